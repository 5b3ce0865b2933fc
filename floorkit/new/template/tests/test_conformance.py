from pathlib import Path

from floorkit.testing import conformance

test_conformance = conformance(Path(__file__).parents[1] / "example" / "protocols.toml")
