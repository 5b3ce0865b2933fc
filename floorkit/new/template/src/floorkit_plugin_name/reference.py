"""The same as plain loops, from the definition: a largest matching, found by augmenting paths. Slow."""

from __future__ import annotations

from collections.abc import Sequence


def true_positives(gold_s: Sequence[float], predicted_s: Sequence[float], tolerance_s: float) -> int:
    """The largest number of pairs of a gold and a predicted onset at most ``tolerance_s`` apart, in
    seconds.
    """

    def together(i: int, j: int) -> bool:
        return abs(round(gold_s[i] * 1e6) - round(predicted_s[j] * 1e6)) <= round(tolerance_s * 1e6)

    partner: dict[int, int] = {}

    def find(i: int, visited: set[int]) -> bool:
        for j in range(len(predicted_s)):
            if together(i, j) and j not in visited:
                visited.add(j)
                if j not in partner or find(partner[j], visited):
                    partner[j] = i
                    return True
        return False

    return sum(find(i, set()) for i in range(len(gold_s)))
