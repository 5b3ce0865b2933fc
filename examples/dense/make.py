"""Make the example data of the dense protocols: five conversations and the forecasts of two models.

    python examples/dense/make.py [FOLDER]

Everything is invented, and seeded: the same files on every run. A conversation alternates between the wearer
and the others with gaps and overlaps; speakers pause within their turns, and listeners give backchannels. The
models see the truth through noise, `candidate` less of it than `baseline`.

    targets/SESSION.npy, SESSION.recordings.json   demo_1 .. demo_4 (evaluated), demo_5 (calibration)
    runs/RUN/pred/SESSION.npy, valid/SESSION.npy   baseline, candidate
    strata.csv                                     whom the others address
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SESSIONS = ("demo_1", "demo_2", "demo_3", "demo_4", "demo_5")
ROW_SECONDS = 0.2
ROWS = {"demo_5": 3000}
"""Rows of a session, where they are not 1500."""
HORIZONS = 10
MODELS = {"baseline": 1.9, "candidate": 1.2}
"""Standard deviation of the noise, in logits, that the model sees the future through."""

Activity = NDArray[np.bool_]


def conversation(rng: np.random.Generator, rows: int) -> Activity:
    """Activity of wearer and others, shape [rows, 2]."""
    active = np.zeros((rows + 200, 2), dtype=bool)
    speaker, start = int(rng.integers(2)), 0.0
    while start < rows:
        length = max(3.0, rng.lognormal(np.log(14), 0.7))
        turn = slice(max(0, round(start)), round(start + length))
        active[turn, speaker] = True
        if length > 15 and rng.random() < 0.7:
            pause = round(start + length * rng.uniform(0.3, 0.7))
            active[pause : pause + int(rng.integers(2, 7)), speaker] = False
        if length > 10 and rng.random() < 0.5:
            nod = round(start + length * rng.uniform(0.2, 0.8))
            active[nod : nod + int(rng.integers(1, 4)), 1 - speaker] = True
        if rng.random() < 0.65:
            speaker = 1 - speaker
            gap = rng.normal(1.0, 2.5)  # 0.2 s in the mean; about a third start in overlap
        else:
            gap = rng.lognormal(np.log(8), 0.8)  # nobody takes the floor, and the speaker goes on
        start += max(2.0, length + gap)
    return active[:rows]


def forecasts(
    rng: np.random.Generator, activity: Activity, starts: list[int], noise: float
) -> tuple[NDArray[np.float16], NDArray[np.bool_]]:
    """A model's forecasts of the classes, shapes [T, 3, 10] and [T, 10]."""
    rows, classes = activity.shape
    pred = np.full((rows, classes, HORIZONS), np.nan, dtype=np.float16)
    valid = np.zeros((rows, HORIZONS), dtype=bool)
    stops = [*starts[1:], rows]
    own = rng.normal(0, noise, (rows, classes, 1)) + rng.normal(0, noise / 2, (rows, classes, HORIZONS))
    for ahead in range(1, HORIZONS + 1):
        for first, last in zip(starts, stops, strict=True):
            if first + ahead >= last:
                continue
            source, target = slice(first, last - ahead), slice(first + ahead, last)
            # What is now speaks for what comes, and less so the farther ahead; the rest is foresight.
            now = 1.6 * np.exp(-ahead / 6) * (2.0 * activity[source] - 1)
            foresight = (1.5 - 0.06 * ahead) * (2.0 * activity[target] - 1)
            logit = now + foresight + own[source, :, ahead - 1] - 0.4
            pred[target, :, ahead - 1] = np.round(1 / (1 + np.exp(-logit)), 3)
            valid[target, ahead - 1] = True
    return pred, valid


def strata(rng: np.random.Generator, rows: int) -> list[tuple[int, int, str]]:
    """Ranges in which the others address the wearer, or each other; some rows lie in none."""
    found, start = [], int(rng.integers(10, 60))
    while start < rows:
        stop = min(rows, start + int(rng.integers(80, 260)))
        found.append((start, stop, str(rng.choice(["addressed", "third_party"]))))
        start = stop + int(rng.integers(0, 50))
    return found


def make(folder: Path) -> None:
    """Write all files below ``folder``."""
    lines = ["session,start_row,stop_row,stratum"]
    for kind in ("targets", *(f"runs/{model}/{part}" for model in MODELS for part in ("pred", "valid"))):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for number, session in enumerate(SESSIONS):
        rng = np.random.default_rng([2024, number])
        rows = ROWS.get(session, 1500) + 50 * number
        starts = [0, rows // 2 + 7 * number] if number % 2 == 0 else [0]
        parts = [
            conversation(rng, stop - start) for start, stop in zip(starts, [*starts[1:], rows], strict=True)
        ]
        wearer, others = np.concatenate(parts).T
        activity = np.stack([~(wearer | others), wearer, others], axis=1)
        np.save(folder / f"targets/{session}.npy", activity.astype(np.uint8))
        text = json.dumps(starts) + "\n"
        (folder / f"targets/{session}.recordings.json").write_text(text, encoding="utf-8", newline="\n")
        lines += [f"{session},{start},{stop},{name}" for start, stop, name in strata(rng, rows)]
        gap = int(rng.integers(200, rows - 200))
        for model, noise in MODELS.items():
            pred, valid = forecasts(rng, activity, starts, noise)
            valid[gap : gap + 15] = False  # a sensor fails for three seconds, for both models
            np.save(folder / f"runs/{model}/pred/{session}.npy", pred)
            np.save(folder / f"runs/{model}/valid/{session}.npy", valid)
    (folder / "strata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
