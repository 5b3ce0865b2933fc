"""Make the example reviews: opportunities on the conversations of examples/dense, and what reviewers say.

    python examples/reviews/make.py [FOLDER]

Everything is invented, and seeded: the same files on every run. Candidates are mined from the activity arrays
as ``floorkit reviews template`` does; a made-up reviewer then labels them.

    reviews.jsonl               demo_1 .. demo_4 (evaluated)
    calibration_reviews.jsonl   demo_5 (chooses the thresholds)
    second_reviewer.jsonl       the events of reviews.jsonl, labelled by somebody else (reviews agreement)
    continuous.jsonl            events found without seeing the candidates (reviews recall-audit)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from floorkit.formats.dense import OTHERS, WEARER, Targets
from floorkit.formats.reviews_line import FRAMES_PER_ROW
from floorkit.formats.reviews_template import Mining, candidates, read_targets

TARGETS = Path(__file__).parent.parent / "dense" / "targets"
EVALUATED = ("demo_1", "demo_2", "demo_3", "demo_4")
CALIBRATION = ("demo_5",)
BACKCHANNEL_ROWS = 4
"""Up to this long, speech of the wearer takes no floor."""

Line = dict[str, Any]


def reviewed(rng: np.random.Generator, targets: Targets, line: Line) -> Line:
    """The line as the reviewer fills it in."""
    wearer, others = targets.activity[:, WEARER], targets.activity[:, OTHERS]
    line = {key: value for key, value in line.items() if key != "note"}
    if rng.random() < 0.03:
        return line  # not reviewed yet
    if line["origin"] == "raw_onset":
        row = line["anchor_frame_20hz"] // FRAMES_PER_ROW
        silent = np.flatnonzero(~wearer[row:])
        length = int(silent[0]) if len(silent) else len(wearer) - row
        if length > BACKCHANNEL_ROWS:
            line["label"] = "WEARER_ENTRY"
        else:
            line["label"] = "ENTRY_HARD_NEGATIVE"
            line["region_20hz"] = [FRAMES_PER_ROW * row, FRAMES_PER_ROW * (row + length)]
            line["note"] = "a backchannel"
    elif line["origin"] == "raw_offset":
        row = line["anchor_frame_20hz"] // FRAMES_PER_ROW
        line["label"] = "INT_YIELD" if others[max(0, row - 5) : row + 3].any() else "EXCLUDED"
    else:
        line["label"] = "ENTRY_HARD_NEGATIVE" if "mined_entry" in line["event_id"] else "INT_HARD_NEGATIVE"
    if rng.random() < 0.05:
        line["label"] = "EXCLUDED"
    if rng.random() < 0.1 and line.get("anchor_frame_20hz", 0) > FRAMES_PER_ROW:
        line["boundary_correction_s"] = float(rng.choice([-0.2, 0.2]))
    # The annotators' clock is finer than the rows: their frames lie anywhere inside the row.
    if "anchor_frame_20hz" in line:
        line["anchor_frame_20hz"] += int(rng.integers(FRAMES_PER_ROW))
    return line


def second_opinion(rng: np.random.Generator, line: Line) -> Line:
    """The same event, labelled by a reviewer who sees one in eight otherwise."""
    line = dict(line)
    if line["label"] != "UNREVIEWED" and rng.random() < 0.12:
        hard = (
            "ENTRY_HARD_NEGATIVE" if line["label"] in ("WEARER_ENTRY", "ENTRY_HARD_NEGATIVE") else "EXCLUDED"
        )
        line["label"] = "EXCLUDED" if line["label"] == hard or "region_20hz" not in line else hard
    return line


def found_continuously(rng: np.random.Generator, lines: Iterable[Line]) -> list[Line]:
    """Events of an annotator who listens through, a little off, and some that no candidate is near."""
    found: list[Line] = []
    for line in lines:
        if line["label"] not in ("WEARER_ENTRY", "INT_YIELD") or rng.random() < 0.5:
            continue
        missed = rng.random() < 0.08
        shift = int(rng.integers(20, 40)) if missed else int(rng.integers(-3, 4))
        frame = max(0, line["anchor_frame_20hz"] + shift)
        event_id = f"{line['session']}_heard_{len(found):03d}"
        kept = {key: line[key] for key in ("session", "label", "reviewer")}
        found.append({"event_id": event_id, **kept, "origin": "mined", "anchor_frame_20hz": frame})
    return found


def write(path: Path, lines: Iterable[Line]) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="\n")


def make(folder: Path) -> None:
    """Write all files into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    by_session: dict[str, list[Line]] = {}
    for number, targets in enumerate(read_targets(TARGETS, (*EVALUATED, *CALIBRATION))):
        rng = np.random.default_rng([2025, number])
        by_session[targets.session] = [
            reviewed(rng, targets, line) for line in candidates(targets, Mining(shortest=1))
        ]
    evaluated = [line for session in EVALUATED for line in by_session[session]]
    write(folder / "reviews.jsonl", evaluated)
    write(folder / "calibration_reviews.jsonl", (one for s in CALIBRATION for one in by_session[s]))
    rng = np.random.default_rng(7)
    write(folder / "second_reviewer.jsonl", (second_opinion(rng, line) for line in evaluated))
    write(folder / "continuous.jsonl", found_continuously(rng, evaluated))


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
