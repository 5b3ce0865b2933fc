"""Tables of the manifest: parameters, dataset and run."""

from __future__ import annotations

from typing import Literal

from attrs import frozen
from floorkit.core.structure import param


@frozen
class Params:
    """``[protocols.NAME.params]``."""

    tolerance_s: float = param(
        0.2, doc="Largest distance of a gold and a predicted onset that belong together.", unit="s", above=0
    )


@frozen
class DatasetTable:
    """``[protocols.NAME.dataset]``."""

    format: Literal["onsets"] = param("onsets", doc="Format of the gold files.")
    gold: str = param(doc="Folder of RECORDING.json.")
    recordings: tuple[str, ...] = param(
        doc="Recordings, in the order of reports.", non_empty=True, distinct=True
    )


@frozen
class RunTable:
    """``[protocols.NAME.runs.RUN]``."""

    path: str = param(doc="Folder of RECORDING.json.")
