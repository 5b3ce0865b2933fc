"""``verify``: the user's own copy of an official evaluate.py on the same files, figures side by side.

The copy runs in a process of its own, in a temporary folder, with a time limit. floorkit ships none of the
official code; what is known of it here are its command line and the files it writes. The revisions from
2026-05-18 on write their figures in full and refuse prediction files above 20 MiB; 2026-04-02 prints four
decimals. Class-agnostic figures come from a second run in which every category is 0 (2026-04-02: every
category of the task).
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import frozen

from floorkit.core.errors import EvaluationError, Problem
from floorkit.core.values import figure_key
from floorkit_seld_metrics.folders import Pair, figures
from floorkit_seld_metrics.measure import AGNOSTIC, MACRO_MAP, MACRO_PEARSON, MICRO_MAP, MICRO_PEARSON
from floorkit_seld_metrics.params import Revision
from floorkit_seld_metrics.taxonomy import CLASS_NAMES, COCO_REVISION

Number = float | None
Merged = Literal["none", "in range", "all"]
"""Which categories become class 0: how a class-agnostic figure is asked of a class-aware evaluator."""
Prepare = Callable[[Path, Sequence[Pair], Merged], Sequence[str]]
"""Lays out the files of a run in a folder; returns the command line's arguments."""


@frozen
class Line:
    """One figure of both sides; ``decimals`` is what the official side prints, None for all."""

    name: str
    ours: Number
    official: Number
    decimals: int | None = None

    @property
    def difference(self) -> Number:
        if self.ours is None or self.official is None:
            return None
        return abs(self.ours - self.official)

    @property
    def agrees(self) -> bool:
        """Within 1e-9, or within rounding where the official side is rounded; or missing on both sides."""
        if self.difference is None:
            return self.ours is self.official
        return self.difference <= (1e-9 if self.decimals is None else 0.5 * 10**-self.decimals + 1e-9)


def verify(official: Path, chosen: Sequence[Pair], revision: Revision, timeout: float) -> list[Line]:
    """Figures of both sides.

    Parameters
    ----------
    official
        The user's copy of evaluate.py, taken to be that of ``revision``.
    timeout
        Seconds that each of its runs may take.

    Raises
    ------
    EvaluationError
        It fails, takes too long, or writes no figures.
    """
    ours = {key: figure.value for key, figure in figures(chosen, [revision]).items()}
    if revision == COCO_REVISION:
        found = dict(_run(official, chosen, timeout, _coco_run))
        found["class-agnostic mask AP"] = _run(official, chosen, timeout, _coco_run, "in range")["mask mAP"]
        return _coco_lines(found, ours)
    aware = _run(official, chosen, timeout, _soft_run)
    agnostic = _run(official, chosen, timeout, _soft_run, "all")
    return _soft_lines(aware, agnostic, revision, ours)


def _soft_lines(
    aware: Mapping[str, Any], agnostic: Mapping[str, Any], revision: str, ours: Mapping[str, Number]
) -> list[Line]:
    def line(words: str, name: str, official: Any, **at: Any) -> Line:
        value = None if official is None or math.isnan(official) else float(official)
        return Line(words, ours.get(figure_key(name, {"revision": revision, **at})), value)

    lines = [
        line("macro mAP", MACRO_MAP, aware["macro_mAP"]),
        line("micro mAP", MICRO_MAP, aware["micro_mAP"]),
        line("macro Pearson r", MACRO_PEARSON, aware["macro_pearson_r"]),
        line("micro Pearson r", MICRO_PEARSON, aware["micro_pearson_r"]),
        line("class-agnostic AP", MACRO_MAP, agnostic["macro_mAP"], **AGNOSTIC),
        line("class-agnostic Pearson r", MACRO_PEARSON, agnostic["macro_pearson_r"], **AGNOSTIC),
    ]
    for name, found in zip(CLASS_NAMES, aware["per_class"].values(), strict=True):
        lines.append(line(f"mAP, {name}", "mAP", found["mAP"], **{"class": name}))
        lines.append(line(f"Pearson r, {name}", "pearson_r", found["pearson_r"], **{"class": name}))
    return lines


def _coco_lines(official: Mapping[str, Number], ours: Mapping[str, Number]) -> list[Line]:
    at = {"revision": COCO_REVISION}
    names: dict[str, Number] = {
        "mask mAP": ours.get(figure_key(MACRO_MAP, at)),
        "mask AP50": ours.get(figure_key("macro_AP", {**at, "iou": 0.5})),
        "class-agnostic mask AP": ours.get(figure_key(MACRO_MAP, {**at, **AGNOSTIC})),
        "Pearson r": ours.get(figure_key("pearson_r", at)),
        "distance MAPE": ours.get(figure_key("distance_mape_percent", at)),
    }
    for name in CLASS_NAMES:
        names[f"mAP, {name}"] = ours.get(figure_key("mAP", {**at, "class": name}))
    return [
        Line(name, value, official.get(name), 2 if name == "distance MAPE" else 4)
        for name, value in names.items()
    ]


# --- running it ---------------------------------------------------------------------------------


def _soft_run(folder: Path, chosen: Sequence[Pair], merged: Merged) -> Sequence[str]:
    for pair in chosen:
        _copy(pair.predictions, folder / "predictions" / f"{pair.recording}.json", merged)
        split = folder / "labels" / pair.labels.parent.name
        _copy(pair.labels, split / f"{pair.recording}_std.json", merged)
    (folder / "frames").mkdir()
    return (
        *("--pred_dir", "predictions", "--gt_dir", "labels", "--frames_base", "frames"),
        *("--output_dir", "out", "--n_comp_seqs", "0"),
    )


def _coco_run(folder: Path, chosen: Sequence[Pair], merged: Merged) -> Sequence[str]:
    for pair in chosen:
        target = folder / "experiment" / "inference_outputs" / f"{pair.recording}_inference.json"
        _copy(pair.predictions, target, merged)
        split = folder / "labels" / pair.labels.parent.name
        _copy(pair.labels, split / f"{pair.recording}_std.json", merged)
    return ["--exp_dir", "experiment", "--gt_root", "labels", "--split", "labels"]


def _copy(source: Path, target: Path, merged: Merged) -> None:
    """Put a plain JSON copy in the temporary folder, categories merged into class 0 where asked."""
    target.parent.mkdir(parents=True, exist_ok=True)
    data = source.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if merged != "none":
        document = json.loads(data)
        for annotation in document["annotations"]:
            if merged == "all" or 0 <= annotation["category_id"] < len(CLASS_NAMES):
                annotation["category_id"] = 0
        data = json.dumps(document).encode("utf-8")
    target.write_bytes(data)


def _run(
    official: Path, chosen: Sequence[Pair], timeout: float, prepare: Prepare, merged: Merged = "none"
) -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory(prefix="floorkit-verify-") as name:
        folder = Path(name)
        shutil.copyfile(official, folder / "evaluate.py")
        arguments = prepare(folder, chosen, merged)
        output = _call([sys.executable, "evaluate.py", *arguments], folder, timeout, official)
        written = folder / "out" / "metrics.json"
        summary = folder / "experiment" / "eval_summary.txt"
        if written.is_file():
            figures: Mapping[str, Any] = json.loads(written.read_text(encoding="utf-8"))
            return figures
        if summary.is_file():
            return _read_summary(summary.read_text(encoding="utf-8"))
    raise EvaluationError(
        Problem("the official evaluator wrote no figures", str(official), output[-1500:], "metrics.json")
    )


def _call(command: Sequence[str], folder: Path, timeout: float, official: Path) -> str:
    environment = {
        **{key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "SYSTEMROOT")},
        "HOME": str(folder),
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(folder),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUTF8": "1",
    }
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise EvaluationError(
                Problem("the official evaluator took too long", str(official), f"over {timeout:g} s")
            ) from None
        finally:
            _end(process)
    if process.returncode:
        raise EvaluationError(
            Problem(
                f"the official evaluator ended with code {process.returncode}",
                str(official),
                output[-1500:].strip(),
                remedy="is --revision that of the file, and are its packages installed here?",
            )
        )
    return output


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and whatever it started."""
    if process.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


_SUMMARY = {
    "mask mAP": r"Mask mAP\s+\(.*\)\s*:\s*(\S+)",
    "mask AP50": r"Mask AP50\s+\(.*\)\s*:\s*(\S+)",
    "Pearson r": r"Pearson r\s+\(.*\)\s*:\s*(\S+)",
    "distance MAPE": r"Distance MAPE\s+\(.*\)\s*:\s*(\S+)",
}


def _read_summary(text: str) -> dict[str, Number]:
    """The figures of 2026-04-02's eval_summary.txt; its class lines stand in class order."""
    found = {}
    for name, pattern in _SUMMARY.items():
        match = re.search(pattern, text)
        found[name] = _number(match.group(1)) if match else None
    _, _, classes = text.partition("PER-CLASS")
    values = re.findall(r"^[ \t]+\S.*:[ \t]*(\S+)[ \t]*$", classes, re.MULTILINE)
    for name, value in zip(CLASS_NAMES, values, strict=True):
        found[f"mAP, {name}"] = _number(value)
    return found


def _number(text: str) -> Number:
    return None if text == "N/A" or float(text) < 0 else float(text)
