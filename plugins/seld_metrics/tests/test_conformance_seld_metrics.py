"""The plugin keeps every rule of the contract."""

from pathlib import Path

from floorkit.testing import conformance

test_conformance = conformance(Path(__file__).parent / "example" / "protocols.toml")
