"""The rules that every protocol keeps, and the gate in front of the golden values."""

from pathlib import Path

from floorkit.testing import conformance, golden_gate

test_conformance = conformance(Path(__file__).parent / "example" / "protocols.toml")
test_metric_changes_are_announced = golden_gate(Path(__file__).parent)
