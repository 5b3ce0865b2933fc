"""How long the HTML report over 100,000 events takes to write and to open in headless Chromium.

    python benchmarks/html_report.py

The yardstick, measured in the same run, is a page with one line of text in the same browser. Each page is
opened in fresh browsers, since a second opening profits from caches; medians of 5. Needs chromium and
chromedriver.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from floorkit.core.sections import TimelineSection
from floorkit.reports.html import write_html

EVENTS = 100_000
REPEATS = 5


def example(events: int) -> Any:
    """The hand-made result of the report tests."""
    path = Path(__file__).parents[1] / "tests" / "reports" / "conftest.py"
    spec = importlib.util.spec_from_file_location("report_examples", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build_example(events=events, total=events)


def open_seconds(page: Path) -> tuple[float, float]:
    """Seconds to the load event, and until the first timeline (if any) has its picture."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--proxy-server=127.0.0.1:9"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        started = time.perf_counter()
        browser.get(page.as_uri())
        loaded = time.perf_counter() - started
        browser.execute_script("document.querySelector('canvas')?.toDataURL()")
        return loaded, time.perf_counter() - started
    finally:
        browser.quit()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report, blank = Path(folder) / "report.html", Path(folder) / "blank.html"
        blank.write_text("<!doctype html><title>blank</title><p>One line.", encoding="utf-8")
        result, sections = example(EVENTS)
        given = sum(len(one.events) for one in sections if isinstance(one, TimelineSection))
        started = time.perf_counter()
        write_html([(result, sections)], report)
        seconds = time.perf_counter() - started
        print(f"{given} events written in {seconds:.2f} s, {report.stat().st_size / 1e6:.1f} MB")
        for name, page in (("blank page", blank), ("report", report)):
            times = [open_seconds(page) for _ in range(REPEATS)]
            loaded, drawn = (statistics.median(one) for one in zip(*times, strict=True))
            print(f"{name:>10}: load event after {loaded:.2f} s, timeline drawn after {drawn:.2f} s")


if __name__ == "__main__":
    main()
