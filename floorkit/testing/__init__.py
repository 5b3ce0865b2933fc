"""What the tests of a plugin call: the conformance kit and the metric-change gate.

    from pathlib import Path
    from floorkit.testing import conformance
    test_conformance = conformance(Path(__file__).parent / "example" / "protocols.toml")

Importing this package is cheap; pytest and the rules are imported by its functions.
"""

from floorkit.testing.golden import golden_gate
from floorkit.testing.kit import conformance

__all__ = ["conformance", "golden_gate"]
