"""Where a plugin aligns the runs of a unit, each run's tables depend on the others'."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from .conftest import TOY, Floorkit, build_wheel, install, result_files, write_json

ALIGN = '''

@hookimpl
def floorkit_align(context: Any, tables: Any) -> Any:
    """Every run keeps the highest score of all runs on its first event, so that runs depend on each other."""
    highest = max(table["events"]["score"][0] for table in tables.values())
    changed = {}
    for run, table in tables.items():
        columns = dict(table["events"].columns)
        columns["score"] = columns["score"].copy()
        columns["score"][0] = highest
        changed[run] = {"events": Table(columns, table["events"].categories)}
    return changed
'''


@pytest.fixture(scope="module")
def aligning_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy plugin with floorkit_align."""
    folder = tmp_path_factory.mktemp("aligning")
    shutil.copytree(TOY, folder / "project")
    with (folder / "project/floorkit_toy/plugin.py").open("a", encoding="utf-8") as stream:
        stream.write(ALIGN)
    install(folder / "site", str(build_wheel(folder / "project", folder)))
    return folder / "site"


def explain(data: Path, floorkit: Floorkit, site: Path, *arguments: str) -> dict[str, str]:
    ran = floorkit("run", "protocols.toml", "--quiet", "--explain-cache", *arguments, cwd=data, sites=[site])
    assert ran.returncode == 0, ran.stderr
    return dict(re.findall(r"^toy: (u\d) \(\w+\): (.*)$", ran.stderr, re.MULTILINE))


def test_a_changed_run_recomputes_the_runs_aligned_with_it_but_not_the_controls(
    toy_data: Path, floorkit: Floorkit, aligning_site: Path
) -> None:
    explain(toy_data, floorkit, aligning_site)
    assert set(explain(toy_data, floorkit, aligning_site).values()) == {"reused"}
    path = toy_data / "a/u1.json"
    write_json(path, [1.0, *json.loads(path.read_text(encoding="utf-8"))[1:]])
    told = explain(toy_data, floorkit, aligning_site)
    assert re.fullmatch(
        r"computed: the prediction differs \(\w+ -> \w+\) \(run a\); "
        r"another run that it is aligned with changed \(run b\)",
        told.pop("u1"),
    )
    assert set(told.values()) == {"reused"}
    incremental = result_files(toy_data / "results")
    explain(toy_data, floorkit, aligning_site, "--fresh")
    assert result_files(toy_data / "results") == incremental


def test_a_further_run_recomputes_what_it_is_aligned_with(
    toy_data: Path, floorkit: Floorkit, aligning_site: Path
) -> None:
    explain(toy_data, floorkit, aligning_site)
    third = ("--set", "protocols.toy.runs.c.path=b")
    for text in explain(toy_data, floorkit, aligning_site, *third).values():
        assert text == "computed: another run that it is aligned with changed (run a, b); new run (run c)"


def test_one_damaged_table_recomputes_all_that_it_is_aligned_with(
    toy_data: Path, floorkit: Floorkit, aligning_site: Path
) -> None:
    explain(toy_data, floorkit, aligning_site)
    before = result_files(toy_data / "results")
    for path in (toy_data / ".floorkit-cache/tables").glob("*/*"):
        path.write_bytes(path.read_bytes()[:-1])
        told = " ".join(explain(toy_data, floorkit, aligning_site).values())
        assert "its stored tables were damaged" in told
        assert result_files(toy_data / "results") == before
        if "is aligned with a run that is not in the cache" in told:
            return
    pytest.fail("no user run's table was damaged")
