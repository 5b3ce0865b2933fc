"""Parameters of the seld_metrics protocol, and the tables of a manifest that belong to its format."""

from __future__ import annotations

from typing import Literal

import attrs

from floorkit.core.structure import param
from floorkit_seld_metrics.taxonomy import COCO_REVISION, CURRENT_REVISION, REVISIONS

Revision = Literal["2026-04-02", "2026-05-18", "2026-05-28", "2026-06-30"]

FORMAT = "dcase2026_task3"
SPLITS = ("dev-test-sony", "dev-test-tau")
"""Folders of the development test below ``labels_dev``."""


@attrs.frozen
class SeldMetricsParams:
    """``[protocols.NAME.params]`` of seld_metrics."""

    revisions: tuple[Revision, ...] = param(
        (CURRENT_REVISION,),
        doc="Official revisions of the metric, by date; one or several at once.",
        non_empty=True,
        distinct=True,
    )
    pictures: int = param(
        1,
        doc="Frames a run of each kind (best, worst, drawn at random) that the report shows as maps. Needs a "
        "revision from 2026-05-18 on.",
        low=0,
        high=20,
    )
    picture_format: Literal["png", "svg"] = param("png", doc="Format of the pictures.")

    @property
    def soft_revisions(self) -> tuple[str, ...]:
        """The requested revisions with interpolated maps, oldest first."""
        return tuple(one for one in REVISIONS if one in self.revisions and one != COCO_REVISION)

    @property
    def has_coco(self) -> bool:
        """Whether the revision 2026-04-02 is asked for."""
        return COCO_REVISION in self.revisions


@attrs.frozen
class DatasetTable:
    """``[protocols.NAME.dataset]`` of the format ``dcase2026_task3``."""

    format: Literal["dcase2026_task3"] = param(doc="The official layout: SPLIT/SEQ_std.json below `labels`.")
    labels: str = param(doc="Folder of the labels (`labels_dev`), plain JSON or gzip.")
    splits: tuple[str, ...] = param(
        (),
        doc="Folders below `labels` to take recordings from; left out: those of dev-test-sony and "
        "dev-test-tau that exist.",
        distinct=True,
    )
    recordings: tuple[str, ...] = param(
        (), doc="Names of the recordings to evaluate; left out: all that have labels.", distinct=True
    )
    official: dict[str, str] = param(
        {},
        doc="Your copies of official evaluate.py files by revision; their SHA-256 goes into evaluator.json. "
        "They are not run.",
    )


@attrs.frozen
class RunTable:
    """``[protocols.NAME.runs.RUN]`` of the format ``dcase2026_task3``."""

    predictions: str = param(doc="Folder of SEQ_inference.json (or SEQ.json) files, plain JSON or gzip.")
