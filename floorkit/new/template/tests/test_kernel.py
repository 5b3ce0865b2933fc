"""The kernel against the reference, on random onsets with many distances of exactly the tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from floorkit_plugin_name import kernel, reference


@pytest.mark.parametrize("seed", range(200))
def test_as_many_pairs_as_the_definition_allows(seed: int) -> None:
    random = np.random.default_rng(seed)
    tolerance_s = float(random.choice([0.1, 0.2, 0.5]))
    gold_s, predicted_s = (np.sort(random.integers(0, 40, random.integers(0, 12)) / 10) for _ in range(2))
    pairs = kernel.pairs(gold_s, predicted_s, tolerance_s)
    assert len(pairs) == reference.true_positives(list(gold_s), list(predicted_s), tolerance_s)
    assert len(set(pairs[:, 0])) == len(set(pairs[:, 1])) == len(pairs)
    distances = np.abs(gold_s[pairs[:, 0]] - predicted_s[pairs[:, 1]])
    assert (distances <= tolerance_s + 1e-9).all()
