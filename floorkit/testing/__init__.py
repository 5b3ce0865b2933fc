"""What the tests of a plugin call: the conformance kit and the metric-change gate.

    from pathlib import Path
    from floorkit.testing import conformance
    test_conformance = conformance(Path(__file__).parent / "example" / "protocols.toml")

Importing this package is cheap; pytest and the rules are imported by its functions.
"""

from typing import TYPE_CHECKING, Any

from floorkit.testing.kit import conformance

if TYPE_CHECKING:
    from floorkit.testing.golden import golden_gate

__all__ = ["conformance", "golden_gate"]


def __getattr__(name: str) -> Any:
    """golden_gate, imported when asked for: its module is a program too (``python -m``)."""
    if name == "golden_gate":
        from floorkit.testing.golden import golden_gate

        return golden_gate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
