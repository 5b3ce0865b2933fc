"""Time and memory of `floorkit run` on many sessions of a dense protocol, cold, warm and after one change.

    python benchmarks/scale_dense.py [--protocol competing_risk|event_proxy|annotated] [--sessions 1000]

The sessions are copies of the example ones (examples/dense, 1500 rows each) under other names; two runs,
the protocol's controls, 100 resamples, one job. Each run is a process of its own; printed are its wall
and CPU seconds and its peak memory, for a quarter, a half and all of the sessions: what is flat and what
grows. The yardstick, in the same process as nothing else, is a plain loop that reads every file of the
sessions once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
DEMOS = [f"demo_{number}" for number in range(1, 5)]
RUNS = ("baseline", "candidate")
CALIBRATION = "demo_5"


def copy_session(source: str, name: str, folder: Path) -> None:
    """One session's targets and predictions, hard-linked."""
    dense = EXAMPLES / "dense"
    pairs = [("targets", ".npy"), ("targets", ".recordings.json")]
    pairs += [(f"runs/{run}/{part}", ".npy") for run in RUNS for part in ("pred", "valid")]
    for place, suffix in pairs:
        (folder / place).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(dense / place / f"{source}{suffix}", folder / place / f"{name}{suffix}")


def copy_reviews(sources: dict[str, str], name: str, folder: Path) -> None:
    """The reviews of the copied sessions; ``sources`` maps a copy's name to its original's."""
    by_session: dict[str, list[str]] = {}
    text = (EXAMPLES / "reviews" / name).read_text(encoding="utf-8")
    for line in text.splitlines():
        by_session.setdefault(json.loads(line)["session"], []).append(line)
    with (folder / name).open("w", encoding="utf-8") as stream:
        for copy, source in sources.items():
            stream.writelines(line.replace(source, copy) + "\n" for line in by_session[source])


def write_manifest(folder: Path, protocol: str, sessions: Iterable[str]) -> Path:
    reviews = ""
    if protocol != "competing_risk":
        reviews = 'reviews = "reviews.jsonl"\ncalibration_reviews = "calibration_reviews.jsonl"\n'
    names = ", ".join(f'"{name}"' for name in sessions)
    path = folder / "protocols.toml"
    path.write_text(
        f'[protocols.dense]\nplugin = "floorkit-{protocol.replace("_", "-")}"\n'
        f'[protocols.dense.dataset]\nformat = "dense"\ntargets = "targets"\n{reviews}'
        f'sessions = [{names}]\ncalibration_sessions = ["{CALIBRATION}"]\n'
        + "".join(f'[protocols.dense.runs.{run}]\npath = "runs/{run}"\n' for run in RUNS)
        + "[protocols.dense.params]\nmatched_recalls = [0.8]\n"
        "[protocols.dense.statistics]\nresamples = 100\n",
        encoding="utf-8",
    )
    return path


def measured(command: list[str], folder: Path) -> str:
    """Run a command; its wall and CPU seconds and its peak memory in words."""
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return (
        f"{wall:7.1f} s wall {used.ru_utime + used.ru_stime:7.1f} s CPU {used.ru_maxrss / 1024:7.0f} MB peak"
    )


def read_all(folder: Path) -> str:
    started = time.process_time()
    size = 0
    for path in folder.rglob("*.npy"):
        size += len(path.read_bytes())
    return f"{time.process_time() - started:7.2f} s CPU, {size / 1e6:.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocol", default="competing_risk")
    parser.add_argument("--sessions", type=int, default=1000)
    options = parser.parse_args()
    os.environ.pop("FLOORKIT_CACHE", None)
    run = [sys.executable, "-m", "floorkit", "run", "protocols.toml", "--quiet"]
    for count in (options.sessions // 4, options.sessions // 2, options.sessions):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            sources = {f"s{index:05d}": DEMOS[index % len(DEMOS)] for index in range(count)}
            for copy, source in [*sources.items(), (CALIBRATION, CALIBRATION)]:
                copy_session(source, copy, folder)
            copy_reviews(sources, "reviews.jsonl", folder)
            copy_reviews({CALIBRATION: CALIBRATION}, "calibration_reviews.jsonl", folder)
            write_manifest(folder, options.protocol, sources)
            time.sleep(3)  # files that are not racily fresh, as they are in practice
            print(f"{options.protocol}, {count} sessions")
            print(f"  reading every array  {read_all(folder)}")
            print(f"  cold       {measured(run, folder)}")
            print(f"  warm       {measured(run, folder)}")
            copy_session(DEMOS[1], "s00000", folder)
            print(f"  one change {measured(run, folder)}", flush=True)


if __name__ == "__main__":
    main()
