"""Every rule of the kit: importing this module makes the list whole."""

from floorkit.testing import (
    rules_conduct,
    rules_contract,
    rules_inputs,
    rules_measure,
    rules_report,
    rules_score,
)
from floorkit.testing.rules import RULES as _REGISTERED
from floorkit.testing.rules import Rule, breaches, check_switches

MODULES = (rules_contract, rules_score, rules_measure, rules_report, rules_inputs, rules_conduct)

RULES: dict[str, Rule] = {
    name: rule
    for module in MODULES
    for name, rule in _REGISTERED.items()
    if rule.check.__module__ == module.__name__
}
"""All rules by name, in the order of a run."""

__all__ = ["MODULES", "RULES", "Rule", "breaches", "check_switches"]
