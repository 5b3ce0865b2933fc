"""Bad input: one fault a folder (bad/bad.json); each stops before a result is written and names its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BAD = Path(__file__).parent / "bad"
FOLDERS = json.loads((BAD / "bad.json").read_text(encoding="utf-8"))


def test_there_are_bad_folders() -> None:
    assert len(FOLDERS) >= 22


@pytest.mark.parametrize("fault", FOLDERS, ids=lambda fault: fault["path"])
def test_bad_input_is_refused_with_its_place(fault: dict[str, Any], run_case: Callable[..., Any]) -> None:
    outcome = run_case(BAD / fault["path"])
    assert outcome.code in (2, 4), outcome.err
    assert not outcome.results.exists()
    for spellings in fault["must_name"]:
        assert any(text in outcome.err for text in spellings.split("|")), (spellings, outcome.err)


def test_the_problems_of_a_file_are_told_together_the_first_twenty_then_a_count(
    run_case: Callable[..., Any],
) -> None:
    outcome = run_case(BAD / "review_many_problems", command="check")
    assert outcome.code == 4
    assert [f"m{number:02d}" in outcome.err for number in range(23)] == [True] * 20 + [False] * 3
    assert "3 more (23 in all)" in outcome.err
