"""The command line on the toy plugin: real processes, exit codes, both streams, and what is left on disk."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Floorkit, command_environment, result_files, write_json


def test_run_prints_the_report_and_writes_the_results(toy_data: Path, floorkit: Floorkit) -> None:
    ran = floorkit("run", "protocols.toml", cwd=toy_data)
    assert (ran.returncode, ran.stderr) == (0, "")
    for text in ("Toy detections", "a 5 of 5 scored", "control:noise", "B − A", "It measures nothing real."):
        assert text in ran.stdout
    results = toy_data / "results"
    summary = json.loads((results / "toy/summary.json").read_text("utf-8"))
    assert summary["signature"] in ran.stdout
    assert summary["coverage"]["a"] == {"expected": 5, "scored": 5, "missing": [], "extra": []}
    rows = list(csv.DictReader((results / "toy/summary_figures.csv").open(encoding="utf-8")))
    assert [row["run"] for row in rows] == ["a", "b", "control:noise"]
    assert {row["signature"] for row in rows} == {summary["signature"]}
    assert {row["exploratory"] for row in rows} == {"false"}
    value = summary["runs"]["a"]["false_alarm_rate_at_recall_0.8"]
    assert float(rows[0]["value"]) == value
    assert int(rows[0]["count"]) / int(rows[0]["denominator"]) == value


def test_a_second_run_with_any_jobs_locale_and_hash_seed_is_the_same_bytes(
    toy_data: Path, floorkit: Floorkit
) -> None:
    floorkit("run", "protocols.toml", "--output", "one", cwd=toy_data, PYTHONHASHSEED="1", LC_ALL="C")
    other = floorkit(
        "run", "protocols.toml", "--output", "two", "--jobs", "2", cwd=toy_data, PYTHONHASHSEED="2"
    )
    assert other.returncode == 0, other.stderr
    assert result_files(toy_data / "one") == result_files(toy_data / "two")
    records = [
        json.loads((toy_data / name / "toy/provenance.json").read_text("utf-8")) for name in ("one", "two")
    ]
    for record in records:
        for key in ("started", "ended", "command"):
            del record[key]
    assert records[0] == records[1]


def test_json_is_one_object_on_standard_output_and_the_report_on_standard_error(
    toy_data: Path, floorkit: Floorkit
) -> None:
    ran = floorkit("run", "protocols.toml", "--json", cwd=toy_data)
    assert json.loads(ran.stdout)["entries"]["toy"]["protocol"] == "toy"
    assert "Toy detections" in ran.stderr
    quiet = floorkit("run", "protocols.toml", "--quiet", cwd=toy_data)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_a_report_in_a_pipe_has_no_control_codes_and_fits_its_width(
    toy_data: Path, floorkit: Floorkit
) -> None:
    for columns in (80, 140):
        shown = floorkit("run", "protocols.toml", cwd=toy_data, COLUMNS=str(columns)).stdout
        assert "\x1b" not in shown
        lines = [line for line in shown.splitlines() if not line.startswith("Results:")]
        assert max(map(len, lines)) <= columns
        assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["run", "none.toml"], 2, ["none.toml", "cannot be read"]),
        (["run", "protocols.toml", "--only", "tow"], 2, ["did you mean 'toy'?"]),
        (["run", "protocols.toml", "--jobs", "0"], 2, ["--jobs"]),
        (["run", "protocols.toml", "--job"], 2, ["--job"]),
        (["rnu"], 2, ["rnu"]),
        (["run", "protocols.toml", "--set", "protocols.toy.params.matched_recalls=[0]"], 2, ["above 0"]),
        (["run", "protocols.toml", "--set", "protocols.toy.statistics.cluster=room"], 2, ["'room'", "unit"]),
        (["run", "protocols.toml", "--set", "compare.baseline=c"], 2, ["compare.baseline", "one of a, b"]),
        (["run", "protocols.toml", "--frozen"], 2, ["floorkit-toy", "floorkit lock"]),
        (["run", "protocols.toml", "--set", "protocols.toy.runs.a.absent=['u9']"], 2, ["unknown key 'u9'"]),
        (
            ["run", "protocols.toml", "--set", "protocols.toy.runs.a.absent=['u1']"],
            2,
            ["its prediction is there"],
        ),
        (
            ["run", "protocols.toml", "--set", "protocols.toy.params.fail_on=u2"],
            1,
            ["unit u2, run a", "asked to fail"],
        ),
        (["verify", "nothing"], 4, ["nothing", "index.json"]),
    ],
)
def test_errors_are_one_block_with_their_exit_code(
    toy_data: Path, floorkit: Floorkit, arguments: list[str], code: int, expected: list[str]
) -> None:
    ran = floorkit(*arguments, cwd=toy_data)
    assert ran.returncode == code, ran.stderr
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    for text in expected:
        assert text in ran.stderr
    assert not (toy_data / "results").exists()


def spoil(data: Path) -> None:
    write_json(data / "a/u0.json", [0.5] * 49)
    write_json(data / "a/u1.json", [0.5] * 48 + [7, -1])
    write_json(data / "gold/u2.json", [3] + [0] * 49)
    (data / "b/u3.json").unlink()


@pytest.mark.parametrize("command", ["check", "run"])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_every_problem_of_the_inputs_is_told_at_once_and_earlier_results_stay(
    toy_data: Path, floorkit: Floorkit, command: str, jobs: str
) -> None:
    assert floorkit("run", "protocols.toml", cwd=toy_data).returncode == 0
    before = result_files(toy_data / "results")
    spoil(toy_data)
    ran = floorkit(command, "protocols.toml", "--jobs", jobs, cwd=toy_data)
    assert ran.returncode == 4
    for text in ("a/u0.json", "49", "a/u1.json[48]", "a/u1.json[49]", "gold/u2.json[0]", "u3 (evaluated)"):
        assert text in ran.stderr
    assert ran.stderr.count("gold/u2.json[0]") == 1
    assert result_files(toy_data / "results") == before


def test_check_lists_problems_as_json_and_says_when_there_are_none(
    toy_data: Path, floorkit: Floorkit
) -> None:
    fine = floorkit("check", "protocols.toml", cwd=toy_data)
    assert (fine.returncode, fine.stdout) == (
        0,
        "toy: 5 units evaluated, 1 for calibration, 2 runs, 18 files: no problem\n",
    )
    spoil(toy_data)
    found = floorkit("check", "protocols.toml", "--json", cwd=toy_data)
    assert found.returncode == 4
    assert len(json.loads(found.stdout)["problems"]) == 5


def test_a_unit_declared_absent_is_counted_missing(toy_data: Path, floorkit: Floorkit) -> None:
    (toy_data / "b/u3.json").unlink()
    ran = floorkit("run", "protocols.toml", "--set", "protocols.toy.runs.b.absent=['u3']", cwd=toy_data)
    assert ran.returncode == 0, ran.stderr
    assert "b 4 of 5 scored, declared missing: u3" in " ".join(ran.stdout.split())
    assert "Not comparable" in ran.stdout


def test_results_go_to_the_folder_behind_a_link_and_the_link_stays(
    toy_data: Path, floorkit: Floorkit
) -> None:
    disk = toy_data / "disk/results"
    disk.mkdir(parents=True)
    (toy_data / "results").symlink_to(disk)
    for _ in range(2):
        assert floorkit("run", "protocols.toml", cwd=toy_data).returncode == 0
        assert (toy_data / "results").readlink() == disk
        assert (disk / "toy/summary.json").is_file()
        assert not [path for path in toy_data.iterdir() if path.name.startswith(".results")]
    assert floorkit("verify", "results", cwd=toy_data).returncode == 0


def test_lock_writes_to_the_manifest_behind_a_link(toy_data: Path, floorkit: Floorkit) -> None:
    link = toy_data / "link.toml"
    link.symlink_to("protocols.toml")
    assert floorkit("lock", "link.toml", cwd=toy_data).returncode == 0
    assert link.is_symlink()
    assert "sha256:" in (toy_data / "protocols.toml").read_text("utf-8")


def test_only_goes_with_comparisons_of_other_entries(toy_data: Path, floorkit: Floorkit) -> None:
    manifest = toy_data / "protocols.toml"
    text = manifest.read_text("utf-8")
    second = text.replace("protocols.toy", "protocols.second").replace(".runs.b]", ".runs.c]")
    manifest.write_text(text + second + '[compare]\npairs = [["a", "c"]]\n', "utf-8")
    assert floorkit("check", manifest, "--only", "toy").returncode == 0
    manifest.write_text(manifest.read_text("utf-8").replace('"c"]]', '"d"]]'), "utf-8")
    refused = floorkit("check", manifest, "--only", "toy")
    assert refused.returncode == 2
    assert "unknown key 'd'" in refused.stderr


def test_only_keeps_the_results_of_other_entries_and_foreign_files(
    toy_data: Path, floorkit: Floorkit
) -> None:
    manifest = toy_data / "protocols.toml"
    text = manifest.read_text("utf-8")
    manifest.write_text(text + text.replace("protocols.toy", "protocols.second"), "utf-8")
    assert floorkit("run", manifest).returncode == 0
    notes = toy_data / "results/notes.txt"
    notes.write_text("mine", "utf-8")
    before = result_files(toy_data / "results/second")
    setting = "protocols.toy.params.matched_recalls=[0.5]"
    assert floorkit("run", manifest, "--only", "toy", "--set", setting).returncode == 0
    assert result_files(toy_data / "results/second") == before
    assert "recall_0.5" in (toy_data / "results/toy/summary_figures.csv").read_text("utf-8")
    assert notes.read_text("utf-8") == "mine"
    index = json.loads((toy_data / "results/index.json").read_text("utf-8"))
    assert list(index["entries"]) == ["second", "toy"]


def test_a_folder_that_holds_something_else_is_not_written_over(toy_data: Path, floorkit: Floorkit) -> None:
    ran = floorkit("run", "protocols.toml", "--output", "gold", cwd=toy_data)
    assert ran.returncode == 2
    assert "something else" in ran.stderr
    assert len(list((toy_data / "gold").iterdir())) == 6


def test_verify_says_what_changed(toy_data: Path, floorkit: Floorkit) -> None:
    floorkit("run", "protocols.toml", cwd=toy_data)
    fine = floorkit("verify", "results", cwd=toy_data)
    assert fine.returncode == 0
    assert "as recorded" in fine.stdout
    write_json(toy_data / "a/u1.json", [0.25] * 50)
    (toy_data / "b/u0.json").unlink()
    table = toy_data / "results/toy/summary_figures.csv"
    table.write_text(table.read_text("utf-8").replace("0.", "1."), "utf-8")
    changed = floorkit("verify", "results", cwd=toy_data)
    assert changed.returncode == 3
    for text in ("input file changed", "u1.json", "cannot be read", "u0.json", "result file changed"):
        assert text in changed.stderr
    moved = toy_data / "elsewhere"
    shutil.move(toy_data / "results", moved / "deep" / "results")
    told = floorkit("verify", moved / "deep/results", "--root", toy_data, "--json")
    assert len(json.loads(told.stdout)["entries"]["toy"]) == 3


def test_data_that_leads_out_of_its_folder_is_refused(toy_data: Path, floorkit: Floorkit) -> None:
    outside = toy_data.parent / "outside.json"
    outside.write_bytes((toy_data / "a/u0.json").read_bytes())
    (toy_data / "a/u0.json").unlink()
    (toy_data / "a/u0.json").symlink_to(outside)
    linked = floorkit("run", "protocols.toml", cwd=toy_data)
    assert linked.returncode == 4
    assert "leads out of the folder" in linked.stderr
    named = floorkit(
        "run", "protocols.toml", "--set", "protocols.toy.dataset.units=['../a/u1']", cwd=toy_data
    )
    assert named.returncode == 4
    assert "leads out of the folder" in named.stderr


def start(data: Path, *arguments: str, site: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "floorkit", "run", "protocols.toml", *arguments],
        cwd=data,
        env=command_environment(site, TMPDIR=str(data / "tmp")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def processes_of_group(group: int) -> list[int]:
    alive = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            alive.append(int(entry.name))
    return alive


def cached_tables(data: Path) -> list[Path]:
    return list((data / ".floorkit-cache" / "tables").glob("*/*"))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds stray processes through /proc")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupted_run_leaves_no_partial_results_and_no_stray_process(
    toy_data: Path, toy_site: Path, floorkit: Floorkit, jobs: str
) -> None:
    assert floorkit("run", "protocols.toml", cwd=toy_data).returncode == 0
    before = result_files(toy_data / "results")
    (toy_data / "tmp").mkdir()
    cached = len(cached_tables(toy_data))
    process = start(toy_data, "--jobs", jobs, "--set", "protocols.toy.params.sleep=0.7", site=toy_site)
    deadline = time.monotonic() + 60
    while len(cached_tables(toy_data)) == cached and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in err
    assert "Traceback" not in err
    deadline = time.monotonic() + 5
    while processes_of_group(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of_group(process.pid) == []
    assert result_files(toy_data / "results") == before
    assert [path.name for path in toy_data.iterdir() if path.name.startswith(".results")] == []


def test_a_worker_that_dies_names_the_unit(toy_data: Path, floorkit: Floorkit) -> None:
    ran = floorkit(
        "run", "protocols.toml", "--jobs", "2", "--set", "protocols.toy.params.die_on=u2", cwd=toy_data
    )
    assert ran.returncode == 1
    assert "unit u2" in ran.stderr
    assert "a worker process died" in ran.stderr
    assert not (toy_data / "results").exists()


def test_debug_shows_the_traceback(toy_data: Path, floorkit: Floorkit) -> None:
    for jobs in ("1", "2"):
        arguments = ["--jobs", jobs, "--debug", "--set", "protocols.toy.params.fail_on=u2"]
        ran = floorkit("run", "protocols.toml", *arguments, cwd=toy_data)
        assert "Traceback" in ran.stderr
        assert "raise RuntimeError" in ran.stderr
