"""The cache on the command line: what is reused, what is computed again, why, and how it is kept small."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import (
    TOY,
    Floorkit,
    build_wheel,
    command_environment,
    install,
    make_toy_data,
    result_files,
    write_json,
)

UNITS = 6
STORED = UNITS * 3
"""Tables of six units: two runs and a control."""

COMPUTED = r"computed: {} \(run {}\)"


def stored(data: Path) -> dict[str, int]:
    """Every stored table by name, with its inode: a table that is written again has another."""
    folder = data / ".floorkit-cache" / "tables"
    return {path.name: path.stat().st_ino for path in folder.rglob("*") if path.is_file()}


def make_old(data: Path) -> None:
    """Let inputs be an hour old, as they are in practice, so that their digests are remembered."""
    for path in data.rglob("*.json"):
        if ".floorkit-cache" not in path.parts:
            os.utime(path, (time.time() - 3600, time.time() - 3600))


def change_prediction(data: Path, unit: str = "u1", run: str = "a") -> None:
    path = data / run / f"{unit}.json"
    write_json(path, [1 - score for score in json.loads(path.read_text(encoding="utf-8"))])


def explain(data: Path, floorkit: Floorkit, *arguments: str | Path, **more: object) -> dict[str, str]:
    """What ``floorkit run --explain-cache`` says, by unit."""
    ran = floorkit("run", "protocols.toml", "--quiet", "--explain-cache", *arguments, cwd=data, **more)
    assert ran.returncode == 0, ran.stderr
    lines = re.findall(r"^toy: (u\d) \((?:evaluated|calibration)\): (.*)$", ran.stderr, re.MULTILINE)
    assert len(lines) == UNITS
    return dict(lines)


@pytest.fixture
def first(toy_data: Path, floorkit: Floorkit) -> dict[str, bytes]:
    """The results of a first run, which filled the cache."""
    ran = floorkit("run", "protocols.toml", "--quiet", cwd=toy_data)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert len(stored(toy_data)) == STORED
    return result_files(toy_data / "results")


def test_a_second_run_reuses_every_unit_and_writes_the_same_bytes(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes]
) -> None:
    before = stored(toy_data)
    shutil.rmtree(toy_data / "results")
    again = floorkit("run", "protocols.toml", "--jobs", "2", cwd=toy_data)
    assert again.stderr == "toy: 6 of 6 units reused\n"
    assert result_files(toy_data / "results") == first
    assert stored(toy_data) == before
    quiet = floorkit("run", "protocols.toml", "--quiet", cwd=toy_data)
    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_one_changed_session_alone_is_scored_and_the_difference_is_named(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes]
) -> None:
    before = stored(toy_data)
    change_prediction(toy_data, "u1", "a")
    told = explain(toy_data, floorkit)
    difference = r"the prediction differs \([0-9a-f]{12} -> [0-9a-f]{12}\)"
    assert re.fullmatch(COMPUTED.format(difference, "a"), told.pop("u1"))
    assert set(told.values()) == {"reused"}
    assert stored(toy_data).items() > before.items()
    assert len(stored(toy_data)) == STORED + 1
    incremental = result_files(toy_data / "results")
    assert incremental != first
    floorkit("run", "protocols.toml", "--fresh", cwd=toy_data)
    assert result_files(toy_data / "results") == incremental


def test_a_change_taken_back_is_reused(toy_data: Path, floorkit: Floorkit, first: dict[str, bytes]) -> None:
    change_prediction(toy_data)
    floorkit("run", "protocols.toml", "--quiet", cwd=toy_data)
    change_prediction(toy_data)
    change_prediction(toy_data)
    original = json.loads((toy_data / "a/u1.json").read_text(encoding="utf-8"))
    write_json(toy_data / "a/u1.json", [1 - score for score in original])
    make_toy_data(toy_data.parent / "again")
    shutil.copy(toy_data.parent / "again/a/u1.json", toy_data / "a/u1.json")
    assert set(explain(toy_data, floorkit).values()) == {"reused"}
    assert result_files(toy_data / "results") == first


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("protocols.toy.params.sleep=0.001", r"parameter sleep differs \(0.0 -> 0.001\)"),
        ("floorkit.seed=3", r"the seed differs \(0 -> 3\)"),
        (
            "protocols.toy.params.matched_recalls=[0.5]",
            r"parameter matched_recalls differs \(\[0.8\] -> \[0.5\]\)",
        ),
    ],
)
def test_parameters_and_seed_recompute_everything(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes], argument: str, reason: str
) -> None:
    told = explain(toy_data, floorkit, "--set", argument)
    for text in told.values():
        assert re.fullmatch(COMPUTED.format(reason, "a, b, control:noise"), text)


def test_gold_recomputes_all_runs_of_its_unit(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes]
) -> None:
    path = toy_data / "gold/u2.json"
    write_json(path, [1 - label for label in json.loads(path.read_text(encoding="utf-8"))])
    told = explain(toy_data, floorkit)
    difference = r"gold differs \([0-9a-f]{12} -> [0-9a-f]{12}\)"
    assert re.fullmatch(COMPUTED.format(difference, "a, b, control:noise"), told.pop("u2"))
    assert set(told.values()) == {"reused"}


def test_a_new_run_a_new_unit_and_renamed_ones(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes]
) -> None:
    for change in (("protocols.toy.runs.c.path=b",), ()):
        settings = [text for one in change for text in ("--set", one)]
        assert set(explain(toy_data, floorkit, *settings).values()) == {"reused"}
    change_prediction(toy_data, "u0", "b")
    told = explain(toy_data, floorkit, "--set", "protocols.toy.runs.c.path=b")
    assert re.fullmatch(r"computed: the prediction differs \(.*\) \(run b\); new run \(run c\)", told["u0"])
    shutil.copy(toy_data / "gold/u0.json", toy_data / "gold/u6.json")
    for run in "ab":
        shutil.copy(toy_data / run / "u0.json", toy_data / run / "u6.json")
    ran = floorkit(
        *("run", "protocols.toml", "--quiet", "--explain-cache"),
        *("--set", "protocols.toy.dataset.calibration_units=['u5','u6']"),
        cwd=toy_data,
    )
    assert "toy: u6 (calibration): computed: new unit (run a, b, control:noise)" in ran.stderr
    assert ran.stderr.count(": reused") == UNITS


def test_other_plugin_source_recomputes_everything(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes], tmp_path: Path
) -> None:
    project = tmp_path / "toy"
    shutil.copytree(TOY, project)
    with (project / "floorkit_toy/plugin.py").open("a", encoding="utf-8") as stream:
        stream.write("\n# a remark\n")
    install(tmp_path / "site", str(build_wheel(project, tmp_path)))
    told = explain(toy_data, floorkit, sites=[tmp_path / "site"])
    for text in told.values():
        assert re.match(r"computed: the source of floorkit-toy differs \(", text)
    assert result_files(toy_data / "results") != first, "the signature names the source"


def test_another_version_of_numpy_recomputes_everything(
    toy_data: Path, floorkit: Floorkit, toy_site: Path, first: dict[str, bytes], tmp_path: Path
) -> None:
    """The version is what installed metadata says; a folder that says another stands first on the path."""
    record = tmp_path / "site" / "numpy-0.0.1.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.0.1\n", encoding="utf-8")
    told = explain(toy_data, floorkit, sites=[tmp_path / "site", toy_site])
    for text in told.values():
        assert re.match(r"computed: package numpy differs \([0-9.]+ -> 0.0.1\)", text)


@pytest.mark.parametrize("damage", ["truncated", "altered", "emptied", "swapped", "lengthened"])
def test_a_damaged_file_is_found_and_computed_again(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes], damage: str
) -> None:
    folder = toy_data / ".floorkit-cache" / "tables"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    whole = {path: path.read_bytes() for path in files}
    for path, other in zip(files[:3], files[3:6], strict=True):
        data = whole[path]
        middle = len(data) - 64
        path.write_bytes(
            {
                "truncated": data[:-40],
                "altered": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
                "emptied": b"",
                "swapped": whole[other],
                "lengthened": data + b"\0",
            }[damage]
        )
    told = " ".join(explain(toy_data, floorkit).values())
    assert "its stored tables were damaged" in told
    assert "reused" in told
    assert result_files(toy_data / "results") == first
    assert {path: path.read_bytes() for path in files} == whole
    assert set(explain(toy_data, floorkit).values()) == {"reused"}


@pytest.mark.parametrize("file", ["digests.json", "entries"])
def test_damaged_records_are_left_aside(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes], file: str
) -> None:
    make_old(toy_data)
    floorkit("run", "protocols.toml", cwd=toy_data)
    folder = toy_data / ".floorkit-cache"
    (path,) = [folder / file] if file.endswith(".json") else list((folder / file).iterdir())
    text = path.read_bytes()
    path.write_bytes(text.replace(b"a", b"b") if file == "entries" else text[:-1] + b"x")
    change_prediction(toy_data)
    ran = floorkit("run", "protocols.toml", "--quiet", "--explain-cache", cwd=toy_data)
    assert ran.returncode == 0
    assert ran.stderr.count(": reused") == UNITS - 1


def test_fresh_takes_nothing_and_stores_all(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes]
) -> None:
    before = stored(toy_data)
    told = explain(toy_data, floorkit, "--fresh")
    assert set(told.values()) == {"computed: --fresh (run a, b, control:noise)"}
    now = stored(toy_data)
    assert now.keys() == before.keys()
    assert [name for name in now if now[name] == before[name]] == []
    assert result_files(toy_data / "results") == first


def test_a_unit_whose_run_is_absent_is_reused_for_the_others(toy_data: Path, floorkit: Floorkit) -> None:
    (toy_data / "a/u1.json").unlink()
    absent = ("--set", "protocols.toy.runs.a.absent=['u1']")
    assert len(set(explain(toy_data, floorkit, *absent).values())) == 2
    assert set(explain(toy_data, floorkit, *absent).values()) == {"reused"}
    assert len(stored(toy_data)) == STORED - 1


def test_the_cache_lies_where_the_environment_says(
    toy_data: Path, floorkit: Floorkit, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "deep" / "cache"
    ran = floorkit("run", "protocols.toml", cwd=toy_data, FLOORKIT_CACHE=str(elsewhere))
    assert ran.returncode == 0
    assert not (toy_data / ".floorkit-cache").exists()
    moved = toy_data.rename(tmp_path / "moved")
    again = floorkit("run", "protocols.toml", cwd=moved, FLOORKIT_CACHE=str(elsewhere))
    assert again.stderr == "toy: 6 of 6 units reused\n"


def test_a_folder_that_holds_something_else_is_never_made_a_cache(
    toy_data: Path, floorkit: Floorkit, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / "tables").mkdir(parents=True)
    (home / "tables" / "thesis.csv").write_text("precious", encoding="utf-8")
    for command in (["run"], ["cache", "clear"], ["cache", "prune", "--limit", "0"]):
        ran = floorkit(*command, "protocols.toml", cwd=toy_data, FLOORKIT_CACHE=str(home))
        assert ran.returncode == 2
        assert "not a cache folder of floorkit" in ran.stderr
        assert str(home) in ran.stderr
    assert [path.name for path in home.rglob("*")] == ["tables", "thesis.csv"]


@pytest.mark.skipif(os.name != "posix" or not hasattr(os, "geteuid"), reason="needs a file in the way")
def test_a_cache_that_cannot_be_made_is_told_and_done_without(toy_data: Path, floorkit: Floorkit) -> None:
    in_the_way = toy_data / "file"
    in_the_way.write_text("", encoding="utf-8")
    ran = floorkit("run", "protocols.toml", cwd=toy_data, FLOORKIT_CACHE=str(in_the_way / "cache"))
    assert ran.returncode == 0
    assert ran.stderr.startswith(f"floorkit: nothing is cached: {in_the_way}/cache: ")


def test_info_prune_and_clear(toy_data: Path, floorkit: Floorkit, first: dict[str, bytes]) -> None:
    def info() -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = json.loads(
            floorkit("cache", "info", "--json", cwd=toy_data).stdout
        )
        return found

    files = [path for path in (toy_data / ".floorkit-cache/tables").rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    assert info()["tables"] == {"files": STORED, "bytes": size}
    assert "score tables:" in floorkit("cache", "info", "protocols.toml", cwd=toy_data).stdout
    old = sorted(files)[:5]
    for path in old:
        os.utime(path, (1, 1))
    kept = info()["tables"]["bytes"] + info()["entries"]["bytes"] - sum(path.stat().st_size for path in old)
    pruned = floorkit("cache", "prune", "--limit", f"{kept / 1000}kB", cwd=toy_data)
    assert pruned.stdout.startswith("removed 5 files, ")
    assert not any(path.exists() for path in old)
    told = explain(toy_data, floorkit)
    assert "no longer in the cache" in " ".join(told.values())
    assert result_files(toy_data / "results") == first
    cleared = floorkit("cache", "clear", cwd=toy_data)
    assert cleared.stdout.startswith(f"removed {STORED + 1} files, ")
    assert [info()[kind]["files"] for kind in ("tables", "entries", "remote", "digests")] == [0, 0, 0, 0]
    assert floorkit("cache", "clear", cwd=toy_data.parent).returncode == 2
    bad = floorkit("cache", "prune", "--limit", "a few", cwd=toy_data)
    assert (bad.returncode, "not a size" in bad.stderr) == (2, True)


def test_a_run_prunes_what_is_over_the_limit_but_nothing_of_its_own(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes]
) -> None:
    time.sleep(0.05)  # the clock of some file systems ticks every 10 ms
    ran = floorkit(
        *("run", "protocols.toml", "--set", "protocols.toy.params.sleep=0.001"),
        cwd=toy_data,
        FLOORKIT_CACHE_LIMIT="1kB",
    )
    assert ran.returncode == 0
    assert len(stored(toy_data)) == STORED
    told = explain(toy_data, floorkit, "--set", "protocols.toy.params.sleep=0.001")
    assert set(told.values()) == {"reused"}


def test_what_killed_runs_left_is_swept_after_two_days(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes]
) -> None:
    work = toy_data / ".floorkit-cache" / "work"
    for name, age_s in (("run-old", 3 * 24 * 3600), ("run-new", 3600)):
        (work / name).mkdir()
        (work / name / "0.running").write_text("", encoding="utf-8")
        os.utime(work / name, (time.time() - age_s, time.time() - age_s))
    floorkit("cache", "prune", cwd=toy_data)
    assert [path.name for path in work.iterdir()] == ["run-new"]


def test_processes_that_run_at_once_share_the_cache_and_agree(
    toy_data: Path, toy_site: Path, floorkit: Floorkit
) -> None:
    command = [sys.executable, "-m", "floorkit", "run", "protocols.toml", "--quiet", "--output"]
    environment = command_environment(toy_site)
    running = [
        subprocess.Popen([*command, f"out{index}"], cwd=toy_data, env=environment) for index in range(4)
    ]
    assert [process.wait(timeout=120) for process in running] == [0] * 4
    outputs = [result_files(toy_data / f"out{index}") for index in range(4)]
    assert all(output == outputs[0] for output in outputs)
    assert set(explain(toy_data, floorkit).values()) == {"reused"}


def test_check_reads_everything_whatever_is_cached(
    toy_data: Path, floorkit: Floorkit, first: dict[str, bytes]
) -> None:
    """A file that breaks the rules was never scored, so only a check that was skipped could miss it."""
    write_json(toy_data / "a/u1.json", [2.0] * 50)
    for command in ("check", "run"):
        ran = floorkit(command, "protocols.toml", cwd=toy_data)
        assert ran.returncode == 4
        assert "a/u1.json[0]: not a number in range" in ran.stderr
    assert result_files(toy_data / "results") == first
