"""The conformance kit as a plugin's tests see it; the rules are imported where they are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path


def conformance(
    manifest: str | Path, *, off: Mapping[str, str] | None = None, only: str = ""
) -> Callable[[str, str], None]:
    """A test function that checks every rule on every entry of a manifest, each as a test of its own.

    Parameters
    ----------
    manifest
        A small manifest of the plugin, with relative paths: two units or more, and calibration units where
        the protocol knows them.
    off
        Rules that do not hold, each with the reason; they are skipped and the reason is shown.
    only
        Name of the one entry to check.

    Returns
    -------
    Callable
        Bind it to a name that starts with ``test``.

    Raises
    ------
    ManifestError
        Unknown rules, reasons that are empty, a manifest that is not one.

    Examples
    --------
    A whole test module::

        from pathlib import Path
        from floorkit.testing import conformance
        test_conformance = conformance(Path(__file__).parent / "example" / "protocols.toml")
    """
    import pytest

    from floorkit.core import manifest as manifests
    from floorkit.testing.checklist import RULES, check_switches

    switched = dict(off or {})
    check_switches(switched)
    path = Path(manifest).resolve()
    entries = tuple(manifests.read(path).select((only,) if only else ()).document.protocols)
    rules = [
        pytest.param(name, marks=pytest.mark.skip(reason=f"{name} is off: {switched[name]}"))
        if name in switched
        else name
        for name in RULES
    ]

    @pytest.mark.parametrize("entry", entries)
    @pytest.mark.parametrize("rule", rules)
    def test_conformance(entry: str, rule: str) -> None:
        if told := report(path, entry, rule):
            pytest.fail(told, pytrace=False)

    return test_conformance


def report(manifest: Path, entry: str, rule: str) -> str:
    """What an entry breaks of a rule, as one text; empty where it keeps it."""
    from floorkit.testing.checklist import RULES, breaches
    from floorkit.testing.evidence import evidence

    found = breaches(rule, evidence(manifest.resolve(), entry))
    if not found:
        return ""
    lines = "\n".join(f"- {breach}" for breach in found)
    return f"{rule}: {RULES[rule].sentence}\n{lines}\n(why: {RULES[rule].why})"
