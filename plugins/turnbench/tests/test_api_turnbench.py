"""The Python interface: the README's example runs, references score as they must, thresholds stay frozen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import floorkit_turnbench as tb
import numpy as np
import pytest
from floorkit_turnbench.conversation import TASKS
from floorkit_turnbench.kernel import kept, score_task
from floorkit_turnbench.predictors import gold_events, metronome_events

from floorkit.core.errors import InputError

README = Path(__file__).parents[1] / "README.md"


def test_the_readme_example_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, golden_case: Callable[[str], Any]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    monkeypatch.chdir(golden_case("basic").folder)
    for block in blocks:
        exec(compile(block, str(README), "exec"), {})
    assert "0.73" in capsys.readouterr().out


def test_the_gold_scores_perfectly_where_nothing_excluded_hides_an_event(case: Any) -> None:
    for gold in case.dataset.golds.values():
        events = gold_events(gold)
        for task in TASKS:
            of = gold.task(task)
            score = score_task(of, events[task])
            visible = {
                (speaker, time)
                for speaker in (1, 2)
                for time in kept(of.positives.of(speaker).start, of.excluded.of(speaker)).tolist()
            }
            assert score.tp >= len(visible)
            assert score.fp == 0


def test_gold_that_a_submission_can_hold_has_recall_one(golden_case: Callable[[str], Any]) -> None:
    dataset = golden_case("basic").dataset
    scores = tb.score_events(tb.gold_submission(dataset), dataset)
    past_the_end = sum(
        int((gold.eot.positives.start > gold.duration_s + 0.25).sum()) for gold in dataset.golds.values()
    )
    assert past_the_end == 1
    assert (scores.eot.fn, scores.eot.fp_rate) == (past_the_end, 0.0)
    assert scores.eot.latency_p50_ms == 0.0


def test_an_annotator_is_between_silence_and_the_gold(golden_case: Callable[[str], Any]) -> None:
    dataset = golden_case("basic").dataset
    for annotator in "abc":
        scores = tb.score_events(tb.annotator_submission(dataset, annotator), dataset)
        assert scores.eot.recall is not None
        assert 0.5 < scores.eot.recall < 1.0
    with pytest.raises(ValueError, match="annotator must be one of"):
        tb.annotator_submission(dataset, "d")


def test_lists_dicts_and_files_score_alike(golden_case: Callable[[str], Any]) -> None:
    case = golden_case("basic")
    path = case.folder / "predictions.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    from_lists = tb.Submission.of(
        {
            entry["conversation_id"]: {
                "eot": {speaker: entry[f"speaker_{speaker}"]["eot"] for speaker in (1, 2)},
                "int": {speaker: np.array(entry[f"speaker_{speaker}"]["interruption"]) for speaker in (1, 2)},
            }
            for entry in data["predictions"]
        }
    )
    assert from_lists.to_json() == data
    found = [tb.score_events(one, case.dataset) for one in (path, str(path), data, from_lists)]
    assert found[0] == found[1] == found[2] == found[3]
    assert tb.score_events(path, case.folder / "conversations.json") == found[0]


def test_events_in_memory_are_validated_as_files_are(golden_case: Callable[[str], Any]) -> None:
    dataset = golden_case("basic").dataset
    with pytest.raises(InputError) as caught:
        tb.score_events(tb.Submission.of({"3": {"eot": {1: [5.0, 4.0]}}}), dataset)
    text = "\n".join(map(str, caught.value.problems))
    assert "conversation 3, speaker_1, eot[1]" in text
    assert "missing conversations '7', '20', '101'" in text
    short = tb.Probabilities.of("eot", 12.5, {"3": {1: [0.5, 2.0], 2: []}})
    with pytest.raises(InputError) as caught:
        tb.sweep(short, dataset)
    text = "\n".join(map(str, caught.value.problems))
    assert "conversation 3, speaker_1, prob[1]" in text
    assert "2 frames" in text
    with pytest.raises(InputError, match="no finite number"):
        tb.sweep(golden_case("basic").folder / "probs_50hz/probs-eot.json", dataset, [0.5, float("nan")])


def test_committing_at_a_threshold_scores_as_its_row_of_the_sweep(golden_case: Callable[[str], Any]) -> None:
    case = golden_case("basic")
    file = tb.Probabilities
    loaded = {}
    for task in TASKS:
        raw = json.loads((case.folder / f"probs_12.5hz/probs-{task}.json").read_text(encoding="utf-8"))
        loaded[task] = file.of(
            raw["task"],
            raw["frame_rate_hz"],
            {
                entry["conversation_id"]: {s: entry[f"speaker_{s}"]["prob"] for s in (1, 2)}
                for entry in raw["probs"]
            },
        )
    table = tb.sweep(loaded["eot"], case.dataset)
    point = table.operating_point()
    assert point is not None
    scores = tb.score_events(tb.commit((loaded["eot"], point["theta"])), case.dataset)
    for name in ("tp", "fn", "fp", "tn", "recall", "fp_rate", "latency_p50_ms"):
        assert getattr(scores.eot, name) == point[name]
    assert scores.int.tp == 0
    both = tb.commit((loaded["eot"], 0.5), (loaded["int"], 0.5))
    assert set(both.predictions["3"]) == {"eot", "int"}


def test_no_threshold_qualifies_without_negatives_or_under_a_budget_of_nothing(
    golden_case: Callable[[str], Any],
) -> None:
    case = golden_case("dense_overlap")
    table = tb.sweep(case.folder / "probs_12.5hz/probs-eot.json", case.dataset, [0.06, 0.07])
    assert table.operating_point(0.0) is None
    empty = golden_case("empty")
    table = tb.sweep(empty.folder / "probs_12.5hz/probs-eot.json", empty.dataset)
    assert table.operating_point(1.0) is None


def test_a_metronome_beats_every_two_seconds_up_to_the_end() -> None:
    events = metronome_events(7.9)
    assert events["eot"][1].tolist() == [2.0, 4.0, 6.0]
    assert metronome_events(8.0)["int"][2].tolist() == [2.0, 4.0, 6.0, 8.0]


def test_exported_names_are_these() -> None:
    assert sorted(tb.__all__) == [
        "AnnotatedDataset",
        "Probabilities",
        "Scores",
        "Submission",
        "Sweep",
        "TaskFigures",
        "annotator_submission",
        "commit",
        "gold_submission",
        "load_dataset",
        "make_conversation",
        "score_events",
        "sweep",
    ]
    assert dir(tb) == sorted(tb.__all__)
    for name in tb.__all__:
        assert getattr(tb, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tb.nothing  # noqa: B018
