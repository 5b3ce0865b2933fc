"""Public prediction files, where FLOORKIT_REAL_DATA names a folder that has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from floorkit_turnbench.checking import check_file
from floorkit_turnbench.submission import read_submission

pytestmark = pytest.mark.skipif(
    "FLOORKIT_REAL_DATA" not in os.environ, reason="FLOORKIT_REAL_DATA names no folder"
)


def real() -> Path:
    return Path(os.environ["FLOORKIT_REAL_DATA"]) / "conformance/turnbench/real"


def test_public_submissions_are_valid() -> None:
    files = sorted(real().glob("*/predictions-dev*.json"))
    files = [path for path in files if not path.stem.endswith("metrics")]
    assert len(files) == 3
    for path in files:
        assert check_file(path, None).problems == ()


def test_a_whole_public_submission_has_its_events() -> None:
    submission = read_submission(real() / "moshi_vad/predictions-dev.json", None)
    assert len(submission.predictions) == 38
    counts = {
        task: sum(
            len(events[task][speaker]) for events in submission.predictions.values() for speaker in (1, 2)
        )
        for task in ("eot", "int")
    }
    assert counts == {"eot": 2069, "int": 0}
