"""What a rule is, and the list of all of them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping

from attrs import frozen

from floorkit.core.errors import FloorkitError, ManifestError, Problem
from floorkit.testing.evidence import Evidence

Check = Callable[[Evidence], Iterable[str]]
"""Yields one sentence for each breach that it finds."""

SHOWN = 10


@frozen
class Rule:
    """One rule of the conformance kit.

    Parameters
    ----------
    name
        What it is switched off by: ``score-deterministic``.
    group
        What it is about: contract, score, measure, report, inputs or conduct.
    sentence
        The rule.
    why
        What goes wrong where a plugin breaks it.
    check
        Looks at the evidence.
    """

    name: str
    group: str
    sentence: str
    why: str
    check: Check


RULES: dict[str, Rule] = {}
"""Rules by name, as far as their modules are imported: see ``floorkit.testing.checklist``."""


def rule(group: str) -> Callable[[Check], Check]:
    """Make a rule of a function: its name is the rule's, its docstring the sentence and the reason."""

    def register(check: Check) -> Check:
        sentence, _, why = inspect.cleandoc(check.__doc__ or "").partition("\n\n")
        name = check.__name__.replace("_", "-")
        RULES[name] = Rule(name, group, " ".join(sentence.split()), " ".join(why.split()), check)
        return check

    return register


def breaches(name: str, evidence: Evidence) -> list[str]:
    """What an entry breaks of a rule, each breach once; empty where it keeps it.

    An error that comes up while the rule looks is a breach too: a rule that cannot be checked is not kept.
    """
    try:
        found = list(dict.fromkeys(RULES[name].check(evidence)))
    except FloorkitError as error:
        found = [f"{error.headline}:\n{error}"]
    if len(found) > SHOWN:
        found = [*found[:SHOWN], f"... and {len(found) - SHOWN} more"]
    return found


def check_switches(off: Mapping[str, str]) -> None:
    """Raise ManifestError for unknown rules that are switched off, and for switches without a reason."""
    problems = []
    for name, reason in off.items():
        near = difflib.get_close_matches(name, RULES, n=1)
        if name not in RULES:
            problems.append(
                Problem(
                    "unknown rule",
                    "conformance",
                    name,
                    "one of " + ", ".join(RULES),
                    f"did you mean {near[0]!r}?" if near else "",
                )
            )
        elif not reason.strip():
            problems.append(
                Problem("a rule is switched off without a reason", "conformance", name, "the reason as text")
            )
    if problems:
        raise ManifestError(problems)
