"""The conformance kit's rules, on the examples of the repository."""

from pathlib import Path

from floorkit.testing import conformance

test_conformance = conformance(Path(__file__).parents[3] / "protocols.toml", only="event_proxy")
