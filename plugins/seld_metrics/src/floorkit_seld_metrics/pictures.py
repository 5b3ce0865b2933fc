"""Maps, confusion matrices and bars as PNG or SVG: the same bytes for the same data.

Matplotlib is imported here alone, and only when a report has something to draw.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from floorkit_seld_metrics.taxonomy import CLASS_NAMES, HEIGHT, WIDTH

Format = Literal["png", "svg"]

_STYLE: Any = {
    "font.size": 8.0,
    "svg.hashsalt": "floorkit",
    "svg.fonttype": "path",
    "axes.unicode_minus": True,
}
_BAR_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#888888")


def _saved(figure: Figure, kind: Format) -> bytes:
    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(buffer, format=kind, dpi=110, metadata=metadata)
    return buffer.getvalue()


def frame_maps(frames: Sequence[tuple[str, NDArray[Any], NDArray[Any]]], kind: Format) -> bytes:
    """Ground-truth and predicted maps of frames, one row a frame.

    Parameters
    ----------
    frames
        (title, ground-truth map, predicted map), the maps of shape [50, 100] in 0 .. 1, on an
        equirectangular panel: azimuth to the right, zenith at the top.
    """
    with rc_context(_STYLE):
        figure = Figure(figsize=(8.6, 2.25 * len(frames)), layout="constrained")
        axes = figure.subplots(len(frames), 2, squeeze=False, sharex=True, sharey=True)
        image = None
        for row, (title, *maps) in zip(axes, frames, strict=True):
            for axis, panel, side in zip(row, maps, ("ground truth", "prediction"), strict=True):
                image = axis.imshow(
                    panel,
                    extent=(-WIDTH / 2, WIDTH / 2, -HEIGHT / 2, HEIGHT / 2),
                    cmap=colormaps["viridis"],
                    vmin=0.0,
                    vmax=1.0,
                    interpolation="nearest",
                )
                axis.set_title(f"{title}: {side}", fontsize=7.5)
                axis.set_xticks(range(-180, 181, 60))
                axis.set_yticks(range(-90, 91, 45))
        for axis in axes[-1]:
            axis.set_xlabel("azimuth (degrees, x - 180)")
        for axis in axes[:, 0]:
            axis.set_ylabel("elevation (degrees)")
        if image is not None:
            figure.colorbar(image, ax=axes, shrink=0.6, label="energy, peak = 1")
        return _saved(figure, kind)


def confusion_matrix(matrix: NDArray[np.int64], kind: Format) -> bytes:
    """Pairs by ground-truth (rows) and predicted class, shape [13, 13]; shade is the share of the row."""
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    with rc_context(_STYLE):
        figure = Figure(figsize=(7.2, 6.2), layout="constrained")
        axis = figure.subplots()
        axis.imshow(shares, cmap=colormaps["Blues"], vmin=0.0, vmax=1.0)
        for row, column in np.argwhere(matrix).tolist():
            colour = "white" if shares[row, column] > 0.55 else "black"
            axis.text(column, row, str(matrix[row, column]), ha="center", va="center", color=colour)
        places = range(len(CLASS_NAMES))
        axis.set_xticks(places, CLASS_NAMES, rotation=60, ha="right", rotation_mode="anchor")
        axis.set_yticks(places, CLASS_NAMES)
        axis.set_xlabel("predicted class")
        axis.set_ylabel("ground-truth class")
        return _saved(figure, kind)


def class_bars(values: Mapping[str, Sequence[float | None]], y_label: str, kind: Format) -> bytes:
    """A group of bars a class, one bar a run; a cross at 0 where a run has no value."""
    with rc_context(_STYLE):
        figure = Figure(figsize=(8.6, 3.4), layout="constrained")
        axis = figure.subplots()
        width = 0.8 / max(len(values), 1)
        for number, (name, heights) in enumerate(values.items()):
            places = np.arange(len(CLASS_NAMES)) + (number - (len(values) - 1) / 2) * width
            colour = _BAR_COLOURS[number % len(_BAR_COLOURS)]
            axis.bar(places, [height or 0.0 for height in heights], width, label=name, color=colour)
            missing = [place for place, height in zip(places, heights, strict=True) if height is None]
            axis.plot(missing, [0.0] * len(missing), "x", color=colour, markersize=4, clip_on=False)
        axis.set_xticks(range(len(CLASS_NAMES)), CLASS_NAMES, rotation=45, ha="right", rotation_mode="anchor")
        axis.set_ylabel(y_label)
        axis.set_ylim(0.0, 1.0)
        axis.grid(axis="y", linewidth=0.4)
        axis.set_axisbelow(True)
        axis.legend(loc="upper right", frameon=False)
        return _saved(figure, kind)
