"""What the engine costs a unit: thousands of small units through prepare, hashing, cache and scoring.

    python benchmarks/scale_units.py [UNITS]        10,000 by default; two runs and a control

The yardstick, measured in the same process before anything else, is a plain loop that calls the plugin's own
functions (load gold, load the predictions, score) for every unit and run: what nobody can avoid. The
engine's figures are wall time beyond that loop, cold (an empty cache) and warm (nothing changed).
Statistics and reports are not the engine's; they are not in the figures.

The protocol is the small one of the core's tests, installed into a temporary folder; each unit has 20 events.
"""

from __future__ import annotations

import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOY = Path(__file__).parents[1] / "tests" / "toy"
EVENTS = 20


def write_data(folder: Path, count: int) -> Path:
    """Gold and two runs of ``count`` units, and their manifest."""
    draw = random.Random(0)
    for name in ("gold", "a", "b"):
        (folder / name).mkdir(parents=True)
    for unit in range(count):
        gold = [draw.randint(0, 1) for _ in range(EVENTS)]
        (folder / "gold" / f"u{unit}.json").write_text(json.dumps(gold), encoding="utf-8")
        for run in ("a", "b"):
            scores = [round(min(1.0, 0.5 * label + 0.5 * draw.random()), 6) for label in gold]
            (folder / run / f"u{unit}.json").write_text(json.dumps(scores), encoding="utf-8")
    names = ", ".join(f'"u{unit}"' for unit in range(count))
    manifest = folder / "protocols.toml"
    manifest.write_text(
        '[protocols.toy]\nplugin = "floorkit-toy"\n[protocols.toy.dataset]\ngold = "gold"\n'
        f"units = [{names}]\n"
        '[protocols.toy.runs.a]\npath = "a"\n[protocols.toy.runs.b]\npath = "b"\n',
        encoding="utf-8",
    )
    return manifest


def timed(steps: dict[str, float], name: str, work: Callable[[], Any]) -> Any:
    start = time.process_time()
    result = work()
    steps[name] = steps.get(name, 0.0) + time.process_time() - start
    return result


def bare_loop(prepared: Any) -> None:
    """The plugin's own functions, called for every unit and run as often as a cold run must."""
    team, context = prepared.team, prepared.context
    for unit in prepared.dataset.units:
        gold = prepared.dataset.load(context, unit)
        for run in prepared.runs:
            prediction = run.load(context, unit, run.sources[unit.key], gold)
            team.hook.floorkit_score(context=context, unit=unit, gold=gold, prediction=prediction)


def contents_loop(prepared: Any) -> None:
    """The same for the check of contents, which loads gold and the users' predictions once before."""
    for unit in prepared.dataset.units:
        gold = prepared.dataset.load(prepared.context, unit)
        for run in prepared.runs:
            if not run.control:
                run.load(prepared.context, unit, run.sources[unit.key], gold)


def once(manifest_path: Path, yardstick: dict[str, float] | None) -> tuple[dict[str, float], int]:
    """One run up to pooled tables; seconds by step, and the number of units."""
    from floorkit.core import manifest as manifests
    from floorkit.core.cache import Cache, location
    from floorkit.core.evaluate import score
    from floorkit.core.executors import Executor
    from floorkit.core.pool import Pool
    from floorkit.core.prepare import Findings, check_contents, hash_inputs, prepare, units_of
    from floorkit.core.reuse import plan

    steps: dict[str, float] = {}
    findings, hashed = Findings(), {}
    manifest = manifests.read(manifest_path)
    prepared = prepare(manifest, "toy", hashed, findings)
    assert prepared is not None
    if yardstick is not None:
        timed(yardstick, "load and score", lambda: bare_loop(prepared))
        timed(yardstick, "load for the check", lambda: contents_loop(prepared))
    with Cache.open(location(manifest.root)) as cache, Executor() as executor:
        timed(steps, "hash inputs", lambda: hash_inputs([prepared], hashed, 1, findings, cache.digests))
        its_plan = timed(steps, "keys and look-up", lambda: plan(prepared, cache))
        timed(
            steps,
            "check contents",
            lambda: check_contents(prepared, its_plan.missing, executor, cache.work, findings),
        )
        timed(steps, "score and store", lambda: score(its_plan, executor))

        def pooled() -> None:
            for run in prepared.runs:
                units = units_of(prepared.dataset, run, "evaluated")
                pool = Pool(units, [its_plan.stored(run.name, unit) for unit in units])
                assert len(pool.column("events", "score")) == EVENTS * len(units)

        timed(steps, "pool a column", pooled)
        timed(steps, "record", its_plan.save)
        if its_plan.reasons:
            timed(steps, "prune", cache.prune)
    assert not findings.all
    return steps, len(prepared.dataset.units)


def told(title: str, steps: dict[str, float], units: int, unavoidable: float) -> None:
    print(title)
    for name, seconds in steps.items():
        print(f"  {name:22}{seconds:8.2f} s  {1e3 * seconds / units:7.3f} ms a unit")
    rest = sum(steps.values()) - unavoidable
    print(f"  {'engine overhead':22}{rest:8.2f} s  {1e3 * rest / units:7.3f} ms a unit")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        site = Path(name, "site")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, "--target", str(site), str(TOY)], check=True)
        sys.path.insert(0, str(site))
        os.environ.pop("FLOORKIT_CACHE", None)
        manifest = write_data(Path(name, "data"), count)
        time.sleep(3)  # files that are not racily fresh, as they are in practice
        yardstick: dict[str, float] = {}
        cold, units = once(manifest, yardstick)
        warm, _ = once(manifest, None)
    print(f"{units} units, 2 runs and a control; {platform.machine()}, Python {platform.python_version()}")
    told("yardstick: the plugin's functions in a plain loop", yardstick, units, sum(yardstick.values()))
    told("cold", cold, units, sum(yardstick.values()))
    told("warm", warm, units, 0.0)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
