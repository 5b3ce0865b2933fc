"""The exception tree, and how a problem is told to a person.

FloorkitError            exit code 1
├── EvaluationError      1    a hook or a worker failed while it computed
├── ManifestError        2    the command line or the manifest is wrong
├── SourceDriftError     3    the code that would run is not the code that was recorded
└── InputError           4    gold or prediction files are invalid

Every one carries a list of problems, so that all faults of an input are told together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

SHOWN_PROBLEMS = 20


@frozen
class Problem:
    """One fault: what is wrong, where, what was found and expected, and what to do.

    Parameters
    ----------
    what
        The fault in a few words, without the place: ``"wrong shape"``.
    where
        The place, the more exact the better: ``"runs/model/pred/Session_5.npy"``,
        ``"reviews.jsonl:3 (event r3)"``, ``"protocols.demo.params.window"``.
    found, expected
        What stood there and what had to stand there, as text.
    remedy
        What the person can do, as one sentence or a command.
    """

    what: str
    where: str = ""
    found: str = ""
    expected: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.found:
            lines.append(f"  found:    {self.found}")
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.remedy:
            lines.append(f"  remedy:   {self.remedy}")
        return "\n".join(lines)


class FloorkitError(Exception):
    """Base of every error that floorkit raises on purpose."""

    exit_code = 1
    headline = "the evaluation failed"

    def __init__(self, problems: str | Problem | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(self.problems)

    def __reduce__(self) -> tuple[type[FloorkitError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)

    def __str__(self) -> str:
        shown = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        hidden = len(self.problems) - len(shown)
        if hidden > 0:
            shown.append(f"... and {hidden} more ({len(self.problems)} in all)")
        return "\n".join(shown)


class EvaluationError(FloorkitError):
    """A hook, a worker or the machine failed while figures were computed."""


class ManifestError(FloorkitError):
    """The manifest or the command line asks for something that does not exist or is not allowed."""

    exit_code = 2
    headline = "the manifest or the command line is wrong"


class SourceDriftError(FloorkitError):
    """Installed code differs from the version or source hash that the manifest records."""

    exit_code = 3
    headline = "installed code differs from what the manifest records"


class InputError(FloorkitError):
    """Gold, prediction or auxiliary files are invalid."""

    exit_code = 4
    headline = "inputs are invalid"


def raise_problems(kind: type[FloorkitError], problems: Sequence[Problem]) -> None:
    """Raise ``kind`` with all ``problems`` together; do nothing when there are none."""
    if problems:
        raise kind(problems)
