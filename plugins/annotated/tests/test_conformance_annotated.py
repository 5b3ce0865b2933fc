"""The conformance kit's rules, on the examples of the repository."""

from pathlib import Path

from floorkit.testing import conformance

test_conformance = conformance(
    Path(__file__).parents[3] / "protocols.toml",
    only="annotated",
    off={
        "corrupted-inputs": "the dense layout makes masks and recordings optional: a missing one is no "
        "fault; every other fault of the inputs has a test of its own in test_bad_input_annotated.py"
    },
)
