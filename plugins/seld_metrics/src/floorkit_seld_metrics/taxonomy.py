"""The task's classes, grids and official revisions (seld_metrics spec, opening table and "Data")."""

from __future__ import annotations

from typing import Final

CLASS_NAMES: Final = (
    "Female speech",
    "Male speech",
    "Clapping",
    "Telephone",
    "Laughter",
    "Domestic sounds",
    "Walk/footsteps",
    "Door open/close",
    "Music",
    "Musical instrument",
    "Water tap",
    "Bell",
    "Knock",
)
N_CLASSES: Final = len(CLASS_NAMES)
OUT_OF_RANGE: Final = N_CLASSES
"""Code of every category outside 0 .. 12 in the score tables."""
CODED_CLASSES: Final = (*CLASS_NAMES, "out of range")

WIDTH: Final = 360
"""Azimuth extent of the annotation grid in degrees and pixels: x lies in [0, 360], both inclusive."""
HEIGHT: Final = 180
"""Elevation extent in degrees and pixels: y lies in [0, 180], both inclusive, 0 at the zenith."""

REPOSITORY: Final = "https://github.com/iranroman/DCASE2026_Task3_SAISELD_baseline"
COCO_REVISION: Final = "2026-04-02"
CURRENT_REVISION: Final = "2026-06-30"
REVISIONS: Final = {
    COCO_REVISION: "84b2cd155c9ee0c2176f386db54541ffd75312b2",
    "2026-05-18": "2bbbe41af0815c84122d1df5247ec25d483acbb1",
    "2026-05-28": "d47b751548a303cad109a2affd5934a12ee2d65e",
    CURRENT_REVISION: "d4df66251f39e34bc0157be93858e5a68ec9d7c4",
}
"""Official revisions by date, with their commits."""

SOFT_THRESHOLDS: Final = {
    "2026-05-18": (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95),
    "2026-05-28": (0.25, 0.5, 0.75),
    CURRENT_REVISION: (0.25, 0.5, 0.75),
}
"""Soft-IoU thresholds of the revisions with interpolated maps."""

SUBMISSION_LIMIT_BYTES: Final = 20 * 1024 * 1024
"""Largest prediction file that the challenge accepts; never applied when scoring."""

FRAMES_PER_SECOND: Final = 10


def short_name(revision: str) -> str:
    """The name that papers use for a revision: ``2026-06-30`` is ``6.30``."""
    _, month, day = revision.split("-")
    return f"{int(month)}.{int(day)}"
