"""A result with everything that reports show, made by hand: two runs, two controls, one entry or several."""

from __future__ import annotations

import math
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from floorkit.core.pool import Pool
from floorkit.core.sections import (
    ColumnSpec,
    ImageSection,
    Lane,
    MatrixSection,
    PlotSection,
    Section,
    Series,
    TableSection,
    TextSection,
    TimelineEvent,
    TimelineSection,
)
from floorkit.core.values import (
    Comparison,
    Context,
    Coverage,
    Dataset,
    Figure,
    Interval,
    Mark,
    Protocol,
    Result,
    RunResult,
    Upstream,
)

HOSTILE = 'run</script><script>document.title="owned"</script>&<b>"\u2028'
HORIZONS = (0.2, 0.6, 1.0, 2.0)
SIGNATURE = "demo_protocol@1.2.0 src:1a2b3c4d core:5e6f7a8b params:9c0d1e2f data:3a4b5c6d seed:0"


@frozen
class Params:
    window: str = "observable"
    matched_recalls: tuple[float, ...] = (0.7, 0.8)


PROTOCOL = Protocol(
    id="demo_protocol",
    title="Floor events with competing boundaries",
    params=Params,
    measures="How often the wearer's entry is forecast, and how often a pause is mistaken for one.",
    caveats=("Alarms are counted at boundary candidates only.",),
    upstream=(Upstream("https://example.org/repository", "abc1234", "evaluate.py", "0" * 64),),
    marks=("exploratory",),
    unit_noun="session",
)


def load_nothing(context: Context, unit: Any) -> None:
    """A dataset needs a loader; reports never call it."""


def _figures(quality: float) -> list[Figure]:
    figures = []
    for horizon in HORIZONS:
        value = quality - 0.05 * horizon
        figures.append(
            Figure("event_ap", value, "AP", None, 120, True, at={"horizon_s": horizon}, headline=True)
        )
        for recall in ("0.7", "0.8"):
            at = {"horizon_s": horizon, "recall": recall}
            count = round(200 * (1 - quality) * float(recall) / 2)
            figures.append(
                Figure("trigger_rate", count / 200, "rate", count, 200, False, at=at, headline=True)
            )
    figures.append(Figure("latency_ms", None, "ms", None, 0, False, "no_triggers", headline=True))
    return figures


def _run(name: str, quality: float, *, control: bool = False, scored: int = 12) -> RunResult:
    figures = _figures(quality)
    intervals = {
        one.key: Interval(one.value - 0.04, one.value + 0.05, 0.95, 2000, 12)
        if one.value is not None
        else Interval(None, None, reason="the figure has no value (no_triggers)")
        for one in figures
    }
    missing = ("Session_9",) if scored < 12 else ()
    coverage = Coverage(12, scored, missing)
    return RunResult(name, control, coverage, (), tuple(figures), Pool.of((), ()), intervals=intervals)


def _comparisons(a: str, b: str) -> list[Comparison]:
    keys = [one.key for one in _figures(0.5) if one.value is not None]
    good = Comparison(
        keys[0], a, b, 0.59, 0.69, 0.1, -0.17, Interval(0.02, 0.18, 0.95, 2000, 12), 0.012, 0.024, 2, 0.0005,
        12, 0, 9, 3, 0, (), ("lower trigger rate bought with lower recall: candidate recall 0.71 vs 0.80",),
    )  # fmt: skip
    refused = Comparison(keys[1], a, b, 0.5, 0.4, not_comparable=("positives: 120 vs 118",))
    return [good, refused]


def _timelines(events: int, total: int, run_names: Sequence[str]) -> TimelineSection:
    made = []
    for number in range(events):
        start = 8.0 * number
        status = ("positive", "negative", "censored")[number % 3]
        path = [
            (start + 0.2 * step, abs(math.sin(number + step / 4)) if step != 7 else None)
            for step in range(30)
        ]
        lanes = (
            Lane("others", [(start, start + 2.4, "speech"), (start + 4.0, start + 5.6, "speech")]),
            Lane("wearer", [(start + 2.8, start + 3.6, "")]),
            Lane("excluded", [(start + 5.0, start + 5.5, "overlap")], role="excluded"),
            Lane("forecast", path=path, role="score"),
        )
        made.append(
            TimelineEvent(
                id=f"e{number}",
                unit=f"Session_{number % 4}",
                run=run_names[number % len(run_names)],
                kind=("response", "yield")[number % 2],
                status=status,
                anchor_s=start + 2.4,
                start_s=start + 2.4,
                stop_s=start + 4.4,
                triggered=None if status == "censored" else number % 5 < 2,
                score=None if status == "censored" else round(abs(math.sin(number)), 6),
                window=(start + 2.4, start + 4.0),
                competing_s=start + 4.0,
                outcome_s=start + 2.8 if status == "positive" else None,
                facts={"threshold": 0.6, "valid": True, "source_row": number},
                lanes=lanes,
            )
        )
    return TimelineSection("Audit timelines", made, total, "Drawn with seed 0 over all statuses.")


def png(width: int = 40, height: int = 20) -> bytes:
    """A small PNG, blue."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x20\x60\xc0" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def _plots(a: str, b: str) -> list[PlotSection]:
    def series(name: str, quality: float, control: bool = False) -> Series:
        y = [quality - 0.05 * horizon for horizon in HORIZONS]
        return Series(name, HORIZONS, y, [v - 0.04 for v in y], [v + 0.05 for v in y], control)

    recalls = [step / 400 for step in range(401)]
    curves = [
        Series(a, [r**3 for r in recalls], recalls, marked=(280, 320)),
        Series(b, [r**2 for r in recalls], recalls, marked=(280, 320)),
        Series("control:noise", recalls, recalls, control=True),
    ]
    controls = [series("control:noise", 0.3, True), series("control:ramp", 0.35, True)]
    sessions = [f"Session_{number}" for number in range(12)]
    differences = [0.1 * math.sin(number) for number in range(12)]
    bins = [50 * number for number in range(20)]
    latencies = [Series(a, bins, [abs(10 - n) for n in range(20)]), Series(b, bins, list(range(20)))]
    return [
        PlotSection(
            "Event AP over horizons", "horizon (s)", "event AP", [series(a, 0.7), series(b, 0.6), *controls]
        ),
        PlotSection("Recall against false-trigger rate", "false-trigger rate", "recall", curves, "step"),
        PlotSection("Differences", "session", "B − A", [Series("difference", sessions, differences)], "bar"),
        PlotSection("Latency", "latency (ms)", "triggers", latencies, "histogram"),
        PlotSection(
            "Score against duration", "s", "score", [Series(a, [1, 2, 3], [0.1, None, 0.3])], "scatter"
        ),
    ]


def _sections(a: str, b: str, timelines: TimelineSection) -> list[Section]:
    columns = [
        ColumnSpec("run"),
        ColumnSpec("horizon_s", "horizon (s)", "float"),
        ColumnSpec("recall", "recall", "rate", count="hits", denominator="positives"),
        ColumnSpec("hits", kind="integer"),
        ColumnSpec("positives", kind="integer"),
        ColumnSpec("in_sample", "in sample", "flag"),
    ]
    rows = [
        (a, 0.2, 0.7166666666666667, 86, 120, False),
        (b, 0.2, 1 / 3, 40, 120, False),
        (b, 0.6, None, None, 0, True),
        ("control:noise", 0.2, 0.0001, 1, 10000, False),
    ]
    table = TableSection(
        "Recall by horizon", columns, rows, "summary_recall.csv", note="Pooled over sessions."
    )
    matrix = MatrixSection(
        "Confusion", ["speech", "music", "none"], ["speech", "music", "none"],
        [[40, 3, 2], [5, 21, None], [0, 1, 90]], "gold", "prediction",
    )  # fmt: skip
    return [
        table,
        TableSection("Every event", columns, lambda: iter(rows * 10), "events.csv", shown=False),
        *_plots(a, b),
        matrix,
        ImageSection("Error map", png(), "image/png", "A blue rectangle.", "map.png"),
        TextSection("Remarks", "two lines\n  of plain <text> & more\n"),
        timelines,
    ]


def build_example(
    name: str = "demo", a: str = "baseline", b: str = "model", events: int = 40, total: int = 5000
) -> tuple[Result, list[Section]]:
    """One entry: runs ``a`` and ``b``, a control, and sections of every kind."""
    runs = [_run(a, 0.6), _run(b, 0.7, scored=11), _run("control:noise", 0.3, control=True)]
    result = Result(
        context=Context(name, PROTOCOL.id, Params(), Path("/nowhere")),
        protocol=PROTOCOL,
        plugin="floorkit-demo",
        version="1.2.0",
        signature=SIGNATURE,
        dataset=Dataset((), load_nothing),
        runs={run.name: run for run in runs},
        marks=(
            Mark("exploratory", "Thresholds were chosen on the evaluated sessions."),
            Mark("window", "full", "info"),
        ),
        comparisons=tuple(_comparisons(a, b)),
        controls=tuple(_comparisons("control:noise", b)[:1]),
        notes=(f"{b} is not above its best control on 1 of 3 headline figures.",),
    )
    return result, _sections(a, b, _timelines(events, total, (a, b)))


@pytest.fixture(scope="session")
def make_result() -> Callable[..., tuple[Result, list[Section]]]:
    """:func:`build_example`: ``make_result(name, a=..., b=..., events=..., total=...)``."""
    return build_example


@pytest.fixture(scope="session")
def hostile() -> str:
    """A run name that would break out of markup and scripts if it were not escaped."""
    return HOSTILE


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium that cannot reach any network."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromedriver on PATH (Debian: chromium chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1400,1000",
        "--proxy-server=127.0.0.1:9",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--disable-dev-shm-usage",
        "--force-device-scale-factor=1",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield made
    made.quit()
