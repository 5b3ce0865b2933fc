"""Inputs named by URL, read over HTTP on loopback and from fsspec's memory file system."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from floorkit.core import remote
from floorkit.core.cache import Cache
from floorkit.core.errors import InputError, ManifestError
from floorkit.core.paths import is_url, resolve, shown

from .conftest import Floorkit, result_files, write_json

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")


class Server:
    """A folder served over HTTP, and the paths that were asked for."""

    def __init__(self, folder: Path) -> None:
        asked = self.asked = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                super().do_GET()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        handler = functools.partial(Handler, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    asked: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def server(toy_data: Path, tmp_path: Path) -> Iterator[Server]:
    """The toy data on a server; only the manifest stays here."""
    served = tmp_path / "served"
    served.mkdir()
    for name in ("gold", "a", "b"):
        shutil.move(toy_data / name, served / name)
    one = Server(served)
    yield one
    one.close()


@pytest.fixture
def served(tmp_path: Path) -> Path:
    return tmp_path / "served"


def by_url(url: str) -> list[str]:
    settings = [
        f"protocols.toy.dataset.gold={url}/gold/",
        f"protocols.toy.runs.a.path={url}/a/",
        f"protocols.toy.runs.b.path={url}/b/",
    ]
    return [text for setting in settings for text in ("--set", setting)]


@pytest.fixture
def memory() -> Iterator[object]:
    """fsspec's memory file system, empty."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()


def test_a_url_is_told_from_a_path() -> None:
    for text in ("s3://bucket/gold", "https://host/x/", "hf://datasets/a/b", "memory://x"):
        assert is_url(text)
    for text in ("gold", "./s3:/x", "/data/s3://x", "C:\\data", "../x"):
        assert not is_url(text)


LONG = "s3://bucket/" + "long/ünï cödé+%/" * 40 + "end"


@pytest.mark.parametrize("url", ["s3://bucket/gold", "http://127.0.0.1:8000/gold", "memory://x", LONG])
def test_a_copy_is_shown_by_its_url(tmp_path: Path, url: str) -> None:
    folder = tmp_path / "remote" / remote.copy_folder(url)
    assert max(len(part.encode()) for part in folder.parts) <= 255
    assert remote.url_of(folder) == url
    assert shown(folder / "inner" / "u0.json", tmp_path) == f"{url}/inner/u0.json"
    assert remote.url_of(tmp_path / "gold" / "u0.json") == ""


def test_inputs_over_http_give_the_same_figures_and_are_recorded_by_url(
    toy_data: Path, floorkit: Floorkit, server: Server, served: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    shutil.copytree(served, here)
    shutil.copy(toy_data / "protocols.toml", here)
    local = floorkit("run", "protocols.toml", "--quiet", cwd=here)
    ran = floorkit("run", "protocols.toml", "--quiet", *by_url(server.url), cwd=toy_data)
    assert (local.returncode, ran.returncode, ran.stderr) == (0, 0, "")
    ours, theirs = result_files(here / "results"), result_files(toy_data / "results")
    assert ours["toy/summary.json"] == theirs["toy/summary.json"]
    assert ours["toy/statistics.json"] == theirs["toy/statistics.json"]
    records = [
        json.loads((folder / "results/toy/provenance.json").read_text(encoding="utf-8"))
        for folder in (here, toy_data)
    ]
    inputs = [{file["path"]: file["sha256"] for file in record["inputs"]} for record in records]
    assert {f"{server.url}/{path}": sha256 for path, sha256 in inputs[0].items()} == inputs[1]
    assert records[0]["data_fingerprint"] == records[1]["data_fingerprint"]


def test_what_did_not_change_there_is_scored_once(
    toy_data: Path, floorkit: Floorkit, server: Server, served: Path
) -> None:
    arguments = ("run", "protocols.toml", *by_url(server.url))
    assert floorkit(*arguments, cwd=toy_data).returncode == 0
    assert floorkit(*arguments, cwd=toy_data).stderr == "toy: 6 of 6 units reused\n"
    write_json(served / "a" / "u1.json", [0.5] * 50)
    assert floorkit(*arguments, cwd=toy_data).stderr == "toy: 5 of 6 units reused\n"
    for name in ("gold", "a", "b"):
        shutil.copy(served / name / "u0.json", served / name / "u9.json")
    more = ("--set", "protocols.toy.dataset.calibration_units=['u5','u9']")
    assert floorkit(*arguments, *more, cwd=toy_data).stderr == "toy: 6 of 7 units reused\n"
    (served / "a" / "u9.json").unlink()
    gone = floorkit(*arguments, *more, cwd=toy_data)
    assert gone.returncode == 4
    assert "u9 (calibration) is missing" in gone.stderr


def test_verify_reads_urls_again(toy_data: Path, floorkit: Floorkit, server: Server, served: Path) -> None:
    assert floorkit("run", "protocols.toml", *by_url(server.url), cwd=toy_data).returncode == 0
    assert floorkit("verify", "results", cwd=toy_data).returncode == 0
    write_json(served / "gold" / "u3.json", [1] * 50)
    changed = floorkit("verify", "results", cwd=toy_data)
    assert changed.returncode == 3
    assert f"{server.url}/gold/u3.json: input file changed" in changed.stderr


def test_problems_of_remote_inputs_name_the_url(
    toy_data: Path, floorkit: Floorkit, server: Server, served: Path
) -> None:
    write_json(served / "a" / "u1.json", [2.0] * 50)
    bad = floorkit("run", "protocols.toml", *by_url(server.url), cwd=toy_data)
    assert bad.returncode == 4
    assert f"{server.url}/a/u1.json[0]: not a number in range" in bad.stderr
    missing = floorkit("run", "protocols.toml", *by_url(f"{server.url}/nowhere"), cwd=toy_data)
    assert missing.returncode == 4
    assert f"{server.url}/nowhere/gold/: cannot be fetched" in missing.stderr
    query = floorkit(
        "run", "protocols.toml", "--set", f"protocols.toy.dataset.gold='{server.url}/gold/?v=1'", cwd=toy_data
    )
    assert query.returncode == 2
    assert "query" in query.stderr
    unknown = floorkit("run", "protocols.toml", *by_url("nosuch://bucket"), cwd=toy_data)
    assert unknown.returncode == 2
    assert "nosuch://bucket/gold/: nothing that is installed reads this URL" in unknown.stderr
    assert "pip install 'floorkit[remote]'" in unknown.stderr
    output = floorkit("run", "protocols.toml", "--set", "floorkit.output=memory://x", cwd=toy_data)
    assert output.returncode == 2
    assert "results are written to a folder, not to a URL" in output.stderr


def test_remote_copies_are_counted_and_cleared(toy_data: Path, floorkit: Floorkit, server: Server) -> None:
    assert floorkit("run", "protocols.toml", *by_url(server.url), cwd=toy_data).returncode == 0
    info = json.loads(floorkit("cache", "info", "--json", cwd=toy_data).stdout)
    assert info["remote"]["files"] == 18
    assert floorkit("cache", "prune", "--limit", "0", cwd=toy_data).returncode == 0
    info = json.loads(floorkit("cache", "info", "--json", cwd=toy_data).stdout)
    assert (info["tables"]["files"], info["remote"]["files"]) == (0, 18), "a run may be reading them"
    copies = toy_data / ".floorkit-cache" / "remote"
    for path in copies.rglob("*.json"):
        os.utime(path, (1e9, 1e9))
    floorkit("cache", "prune", "--limit", "0", cwd=toy_data)
    assert not list(copies.rglob("*.json"))
    assert floorkit("run", "protocols.toml", *by_url(server.url), cwd=toy_data).returncode == 0


def test_a_file_and_a_folder_in_memory(memory: object, tmp_path: Path) -> None:
    memory.pipe({"/data/one.txt": b"one", "/data/sub/two.txt": b"two"})  # type: ignore[attr-defined]
    folder = remote.mirror(tmp_path, "memory://data")
    assert {path.name: path.read_bytes() for path in folder.rglob("*.txt")} == {
        "one.txt": b"one",
        "two.txt": b"two",
    }
    assert shown(folder / "sub" / "two.txt", tmp_path) == "memory://data/sub/two.txt"
    assert remote.mirror(tmp_path, "memory://data/one.txt").read_bytes() == b"one"
    assert remote.hash_url("memory://data/one.txt")[1] == 3


def test_only_what_has_a_new_version_is_fetched_again(
    memory: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = memory
    fetched: list[str] = []
    get = type(system).get

    def noted(self: object, paths: list[str], places: list[str]) -> None:
        fetched.extend(paths)
        get(self, paths, places)

    monkeypatch.setattr(type(system), "get", noted)
    system.pipe({"/data/one.txt": b"one", "/data/two.txt": b"two"})  # type: ignore[attr-defined]
    folder = remote.mirror(tmp_path, "memory://data")
    assert sorted(fetched) == ["/data/one.txt", "/data/two.txt"]
    fetched.clear()
    remote.mirror(tmp_path, "memory://data")
    assert fetched == []
    time.sleep(0.001)
    system.pipe({"/data/one.txt": b"ONE"})  # type: ignore[attr-defined]
    (folder / "two.txt").write_bytes(b"altered here")
    remote.mirror(tmp_path, "memory://data")
    assert sorted(fetched) == ["/data/one.txt", "/data/two.txt"]
    assert [(folder / name).read_bytes() for name in ("one.txt", "two.txt")] == [b"ONE", b"two"]
    fetched.clear()
    Cache.within(tmp_path, tmp_path / "work", rehash=True)
    remote.mirror(tmp_path, "memory://data")
    assert sorted(fetched) == ["/data/one.txt", "/data/two.txt"]
    system.rm("/data/two.txt")  # type: ignore[attr-defined]
    remote.mirror(tmp_path, "memory://data")
    assert [path.name for path in folder.iterdir()] == ["one.txt"]


def test_a_listing_that_leads_out_of_the_copy_is_refused(
    memory: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.pipe({"/data/one.txt": b"one"})  # type: ignore[attr-defined]
    monkeypatch.setattr(
        type(memory), "find", lambda *_, **__: {"/data/../../../evil.txt": {"type": "file", "size": 1}}
    )
    with pytest.raises(InputError, match="leads out of the folder"):
        remote.mirror(tmp_path, "memory://data")
    assert not list(tmp_path.rglob("evil.txt"))


def test_what_cannot_be_read_is_told_whatever_the_file_system_raises(tmp_path: Path, memory: object) -> None:
    with pytest.raises(InputError, match=r"memory://nothing: cannot be fetched"):
        remote.mirror(tmp_path, "memory://nothing")
    with pytest.raises(InputError, match=r"memory://nothing: cannot be fetched"):
        remote.hash_url("memory://nothing")
    with pytest.raises(ManifestError, match="nothing that is installed reads this URL"):
        remote.mirror(tmp_path, "nosuch://x")


def test_a_manifest_path_that_is_a_url_resolves_to_its_copy(
    memory: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FLOORKIT_CACHE", raising=False)
    memory.pipe({"/data/one.txt": b"one"})  # type: ignore[attr-defined]
    folder = resolve(tmp_path, "memory://data")
    assert folder.is_relative_to(tmp_path / ".floorkit-cache")
    assert (folder / "one.txt").read_bytes() == b"one"
