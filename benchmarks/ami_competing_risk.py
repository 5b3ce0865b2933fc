"""CPU time of all competing_risk figures of 100 hours of real conversation, beside the plain reference.

    python benchmarks/ami_competing_risk.py FOLDER [--memory]

FOLDER holds the AMI meeting corpus's speaker activity: only_words/rttms/SET/*.rttm, uems/SET/*.uem and
lists/train.meetings.txt. The first speaker of each meeting (by name) is the wearer; forecasts are those of
`hazard`, fitted on the train meetings, saved as float32 in the dense layout (in a scratch folder).

Timed is what comes after loading: statuses and scores of every candidate at ten horizons, thresholds at three
recalls, event and framewise figures. Yardstick, in the same process: the plain loops of
floorkit_competing_risk.reference on part of one meeting, whose event counts must be the same, scaled to the
rows of all meetings. The same for a quarter and a half of the meetings shows how the time grows.

With --memory, `floorkit run` evaluates a quarter, a half and all of the meetings in processes of their own
(without controls, 100 resamples), and their peak memory is printed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import attrs
import numpy as np
import tomlkit
from floorkit_competing_risk import baselines, kernel, measure, plugin, reference
from floorkit_competing_risk.data import UNSPECIFIED, Gold
from floorkit_competing_risk.params import CompetingRiskParams

from floorkit.core.calibration import matched_recall_points
from floorkit.core.pool import Pool
from floorkit.core.values import Context, Figure, Source, Unit
from floorkit.formats.dense import Prediction, Targets, load_prediction, load_targets
from floorkit.formats.dense_writer import WrittenSession, write_run
from floorkit.formats.rttm import read_rttm
from floorkit.numerics import ROW_SECONDS

PARAMS = CompetingRiskParams(allow_in_sample_thresholds=True)
REFERENCE_ROWS = 1500


@attrs.frozen(eq=False)
class Meeting:
    """One meeting: its unit, targets and forecast."""

    unit: Unit
    targets: Targets
    prediction: Prediction


def gather(folder: Path, scratch: Path) -> tuple[Context, list[Unit]]:
    """All meetings as units, their RTTM and UEM files beside each other in ``scratch``."""
    context = Context("ami", "competing_risk", PARAMS, scratch)
    units = []
    for kind, pattern in (("rttm", "only_words/rttms/*/*.rttm"), ("uem", "uems/*/*.uem")):
        (scratch / kind).mkdir()
        for path in folder.glob(pattern):
            shutil.copyfile(path, scratch / kind / path.name)
    for path in sorted((scratch / "rttm").iterdir()):
        wearer = min(read_rttm(path, scratch).sessions[path.stem])
        files = {"rttm": path, "uem": scratch / "uem" / f"{path.stem}.uem"}
        units.append(Unit(path.stem, "evaluated", Source(files, {"wearer": wearer})))
    return context, units


def write_forecasts(context: Context, units: Sequence[Unit], train: set[str]) -> None:
    """The hazard run, in scratch/run."""
    shape = PARAMS.classes, PARAMS.horizons
    trained = (load_targets(context, unit) for unit in units if unit.name in train)
    forecasts = baselines.hazard(trained, *shape)
    sessions = (
        WrittenSession(unit.name, *baselines.forecast(load_targets(context, unit), forecasts), {})
        for unit in units
    )
    write_run(context.root / "run", sessions, [unit.name for unit in units], add=False, tool="benchmark")


def load(context: Context, unit: Unit) -> Meeting:
    targets = load_targets(context, unit)
    run = context.root / "run"
    files = {"pred": run / f"pred/{unit.name}.npy", "valid": run / f"valid/{unit.name}.npy"}
    return Meeting(unit, targets, load_prediction(context, unit, Source(files), targets))


def figures(meetings: Sequence[Meeting]) -> tuple[list[Figure], int, list[float]]:
    """All figures, the number of candidates, and CPU seconds of scoring, calibrating and measuring."""
    times = [time.process_time()]
    tables = [
        kernel.score(
            Gold(one.targets, np.zeros(one.targets.rows, int), (UNSPECIFIED,)), one.prediction, PARAMS
        )
        for one in meetings
    ]
    times.append(time.process_time())
    pool = Pool.of([one.unit for one in meetings], tables)
    (protocol,) = plugin.floorkit_protocols()
    assert protocol.matched_recall is not None
    points = matched_recall_points(pool, protocol.matched_recall, PARAMS.matched_recalls, True)
    times.append(time.process_time())
    found = measure.measure(PARAMS, pool, points, None)
    times.append(time.process_time())
    return found, len(pool.column("candidates", "family")), np.diff(times).tolist()


def hours(meetings: Sequence[Meeting]) -> float:
    return sum(one.targets.rows for one in meetings) * ROW_SECONDS / 3600


def yardstick(meeting: Meeting) -> float:
    """CPU seconds of the plain loops for all event and framewise figures, per row; checks their counts."""
    rows = slice(0, REFERENCE_ROWS)
    part = attrs.evolve(
        meeting,
        targets=attrs.evolve(meeting.targets, activity=meeting.targets.activity[rows]),
        prediction=Prediction(meeting.prediction.pred[rows], meeting.prediction.valid[rows]),
    )
    session = {
        "wearer": part.targets.activity[:, 1].astype(int).tolist(),
        "others": part.targets.activity[:, 2].astype(int).tolist(),
        "starts": [0],
        "pred": part.prediction.wearer.tolist(),
        "valid": part.prediction.valid.tolist(),
    }
    start = time.process_time()
    params = attrs.asdict(PARAMS)
    plain = {
        (family, k): reference.family_figures([session], [], family, k, params)
        for family in kernel.FAMILIES
        for k in range(1, PARAMS.horizons + 1)
    }
    for k in range(1, PARAMS.horizons + 1):
        reference.framewise([session], k)
    spent = time.process_time() - start
    found = {figure.key: figure.count for figure in figures([part])[0] if figure.unit == "count"}
    for (family, k), expected in plain.items():
        for status in kernel.STATUSES:
            key = f"{family}_{status}[horizon_s={round(k * ROW_SECONDS, 9)}]"
            assert found[key] == expected[status], (key, found[key], expected[status])
    return spent / part.targets.rows


def peak_memory(context: Context, units: Sequence[Unit]) -> float:
    """Peak resident MB of ``floorkit run`` on these meetings (VmHWM: ru_maxrss would count this process)."""
    manifest = {
        "plugin": "floorkit-competing-risk",
        "controls": False,
        "dataset": {
            "format": "rttm",
            "targets": "rttm",
            "uem": "uem",
            "wearer": {unit.name: unit.gold.values["wearer"] for unit in units},
            "sessions": [unit.name for unit in units],
        },
        "runs": {"hazard": {"path": "run"}},
        "params": {"allow_in_sample_thresholds": True},
        "statistics": {"resamples": 100},
    }
    path = context.root / "protocols.toml"
    path.write_text(tomlkit.dumps({"protocols": {"ami": manifest}}), encoding="utf-8")
    code = (
        "import sys, floorkit.cli\n"
        "try: floorkit.cli.main(['run', sys.argv[1], '--quiet'])\n"
        "finally: print(*(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, encoding="utf-8", check=True
    )
    return int(done.stdout.split()[-2]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory", action="store_true")
    arguments = parser.parse_args()
    train = set((arguments.folder / "lists/train.meetings.txt").read_text(encoding="utf-8").split())
    with tempfile.TemporaryDirectory() as folder:
        context, units = gather(arguments.folder, Path(folder))
        write_forecasts(context, units, train)
        start = time.process_time()
        meetings = [load(context, unit) for unit in units]
        print(f"loading {len(units)} meetings: {time.process_time() - start:.2f} s CPU")
        print("meetings  hours  candidates   score  calibrate  figures  total (s CPU)")
        total = 0.0
        for share in (4, 2, 1):
            part = meetings[::share]
            figures(part)
            _, candidates, spent = figures(part)
            total = sum(spent)
            columns = f"{spent[0]:7.3f}  {spent[1]:9.3f}  {spent[2]:7.3f}  {total:5.3f}"
            print(f"{len(part):8}  {hours(part):5.1f}  {candidates:10}  {columns}")
        plain = yardstick(meetings[0]) * sum(one.targets.rows for one in meetings)
        print(
            f"plain loops, scaled from {REFERENCE_ROWS} rows: {plain:.0f} s CPU ({plain / total:.0f} times)"
        )
        if arguments.memory:
            for share in (4, 2, 1):
                part_of = units[::share]
                megabytes = peak_memory(context, part_of)
                print(f"peak memory of floorkit run, {len(part_of)} meetings: {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
