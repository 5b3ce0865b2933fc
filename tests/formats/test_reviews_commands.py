"""``floorkit reviews ...`` as people call it: a process of its own, exit code and both streams."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
REVIEWS = EXAMPLES / "reviews"


def floorkit(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "floorkit", "reviews", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def test_stats_counts_by_session_label_origin_reviewer_and_correction() -> None:
    done = floorkit("stats", REVIEWS / "reviews.jsonl", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    data = json.loads(done.stdout)
    lines = [json.loads(text) for text in (REVIEWS / "reviews.jsonl").read_text("utf-8").splitlines()]
    assert data["lines"] == len(lines)
    for table, key in (("by_label", "label"), ("by_origin", "origin"), ("by_reviewer", "reviewer")):
        assert sum(data[table].values()) == len(lines)
        for value, count in data[table].items():
            assert count == sum(line[key] == value for line in lines)
    corrected = sum(line["boundary_correction_s"] == -0.2 for line in lines)
    assert data["by_boundary_correction"]["-0.2 s"] == corrected > 0
    for session, counts in data["by_session"].items():
        mine = [line["label"] for line in lines if line["session"] == session]
        assert counts.pop("lines") == len(mine)
        assert counts == {label: mine.count(label) for label in counts}
        assert sum(counts.values()) == len(mine)
    text = floorkit("stats", REVIEWS / "reviews.jsonl")
    assert f"{len(lines)} lines" in text.stdout
    assert "demo_4" in text.stdout


def test_a_faulty_file_stops_every_command_with_exit_code_4(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"event_id": "r1"\n', encoding="utf-8")
    for arguments in (
        ("stats", bad),
        ("agreement", bad, REVIEWS / "reviews.jsonl"),
        ("recall-audit", REVIEWS / "reviews.jsonl", bad),
    ):
        done = floorkit(*arguments)
        assert (done.returncode, done.stdout) == (4, "")
        assert f"{bad}:1" in done.stderr
        assert "Traceback" not in done.stderr


def test_template_agreement_and_audit_work_together(tmp_path: Path) -> None:
    output = tmp_path / "template.jsonl.gz"
    made = floorkit("template", EXAMPLES / "dense" / "targets", "--output", output, "--session", "demo_2")
    assert (made.returncode, made.stderr) == (0, "")
    assert "UNREVIEWED lines" in made.stdout
    again = floorkit("template", EXAMPLES / "dense" / "targets", "--output", output)
    assert again.returncode == 2
    assert "the file exists" in again.stderr

    agreed = floorkit("agreement", REVIEWS / "reviews.jsonl", REVIEWS / "second_reviewer.jsonl")
    assert (agreed.returncode, agreed.stderr) == (0, "")
    assert "Cohen's kappa" in agreed.stdout
    assert "too narrow: only 4 sessions" in agreed.stdout
    data = json.loads(
        floorkit("agreement", "--json", REVIEWS / "reviews.jsonl", REVIEWS / "second_reviewer.jsonl").stdout
    )
    assert 0 < data["kappa"] < 1
    assert data["kappa_interval"]["low"] <= data["kappa"] <= data["kappa_interval"]["high"]
    total = sum(map(sum, data["matrix"]))
    assert len(data["disagreements"]) == total - sum(data["matrix"][i][i] for i in range(5)) > 0

    audit = floorkit("recall-audit", REVIEWS / "reviews.jsonl", REVIEWS / "continuous.jsonl")
    assert (audit.returncode, audit.stderr) == (0, "")
    assert "entry  contained within 0.2 s:" in audit.stdout
    audited = floorkit("recall-audit", "--json", REVIEWS / "reviews.jsonl", REVIEWS / "continuous.jsonl")
    for family in json.loads(audited.stdout)["families"]:
        assert family["found"] + len(family["missed"]) == family["events"]
        assert 0 < family["recall"] < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("recall-audit", "A", "A", "--tolerance", "0.03"), "0.03"),
        (("recall-audit", "A", "A", "--tolerance", "nan"), "wrong tolerance"),
        (("template", "T", "--output", "o.jsonl", "--shortest", "nan"), "wrong region lengths"),
        (("template", "T", "--output", "o.jsonl", "--longest", "inf"), "wrong region lengths"),
        (("template", "T", "--output", "no/such/o.jsonl"), "no such folder"),
        (("template", "T", "--output", "/dev/null", "--replace"), "not a plain file"),
        (("template", "T", "--output", "o.jsonl", "--shortest", "0.5"), "0.5"),
        (("template", "T", "--output", "o.jsonl", "--shortest", "1.0", "--longest", "0.4"), "0.4"),
        (("stats", "no/such/file"), "no/such/file"),
    ],
)
def test_a_wrong_option_is_told_with_exit_code_2(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    places = {"A": str(REVIEWS / "reviews.jsonl"), "T": str(EXAMPLES / "dense" / "targets")}
    places["o.jsonl"] = str(tmp_path / "o.jsonl")
    done = floorkit(*(places.get(argument, argument) for argument in arguments))
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_session_outside_the_folder_is_no_session(tmp_path: Path) -> None:
    output = tmp_path / "o.jsonl"
    done = floorkit(
        "template", EXAMPLES / "dense" / "targets", "--output", output, "--session", "../targets/demo_1"
    )
    assert done.returncode == 4
    assert "'../targets/demo_1': not a session name" in done.stderr
    assert not output.exists()


@pytest.mark.parametrize(
    "arguments",
    [("stats", "reviews.jsonl"), ("agreement", "reviews.jsonl", "second_reviewer.jsonl")],
)
def test_tables_fit_into_eighty_columns(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command, *files = arguments
    done = floorkit(command, *(REVIEWS / name for name in files))
    tables = done.stdout.split(" disagreements")[0].splitlines()[3:]
    assert any("INT_HARD_NEGATIVE" in line for line in tables)
    assert max(map(len, tables)) <= 80


def test_the_example_reviews_are_what_their_script_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(REVIEWS / "make.py"), str(tmp_path)], check=True)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in REVIEWS.glob("*.jsonl")}
