"""The pytest plugin: ``pytest protocols.toml`` runs the conformance kit on every entry of a manifest.

It comes with floorkit. Only manifests that are named on the command line are collected. Rules are switched
off with ``--conformance-off 'RULE: REASON'``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest._code.code import ExceptionInfo, TerminalRepr

OFF = "--conformance-off"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("floorkit").addoption(
        OFF,
        action="append",
        default=[],
        metavar="'RULE: REASON'",
        help="Switch a rule of floorkit's conformance kit off for the manifests named (repeatable).",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect TOML files that are named on the command line."""
    if file_path.suffix == ".toml" and parent.session.isinitpath(file_path):
        collector: pytest.Collector = ManifestFile.from_parent(parent, path=file_path)
        return collector
    return None


class ManifestFile(pytest.File):
    """A manifest: one item for each entry and rule."""

    def collect(self) -> Iterator[pytest.Item]:
        from floorkit.core import manifest as manifests
        from floorkit.core.errors import FloorkitError
        from floorkit.testing.checklist import RULES, check_switches

        pairs = [text.partition(":") for text in self.config.getoption(OFF)]
        off = {name.strip(): reason.strip() for name, _, reason in pairs}
        try:
            check_switches(off)
            entries = manifests.read(self.path).document.protocols
        except FloorkitError as error:
            raise self.CollectError(str(error)) from None
        for entry in entries:
            for rule in RULES:
                item = RuleItem.from_parent(self, name=f"{entry}-{rule}", entry=entry, rule=rule)
                if rule in off:
                    item.add_marker(pytest.mark.skip(reason=f"{rule} is off: {off[rule]}"))
                yield item


class Broken(Exception):
    """A rule is broken; the text says how."""


class RuleItem(pytest.Item):
    """One rule on one entry."""

    def __init__(self, *, entry: str, rule: str, **arguments: object) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]
        self.entry = entry
        self.rule = rule

    def runtest(self) -> None:
        from floorkit.testing.kit import report

        if told := report(self.path, self.entry, self.rule):
            raise Broken(told)

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: object = None) -> str | TerminalRepr:
        if isinstance(excinfo.value, Broken):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.entry}: {self.rule}"
