"""The HTML page in a real browser: headless Chromium, from a file, without network."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from floorkit.core.sections import Section
from floorkit.core.values import Result
from floorkit.reports.html import write_html

Make = Callable[..., tuple[Result, list[Section]]]


class View:
    """A page opened in the browser, with what it said and asked for meanwhile."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.browser = browser
        browser.get_log("browser")
        browser.get_log("performance")
        self.media(scheme="light")
        browser.get(path.as_uri())

    def run(self, code: str, *arguments: Any) -> Any:
        return self.browser.execute_script(code, *arguments)

    def soon(self, code: str, *arguments: Any) -> Any:
        """The value of an expression as soon as it is true."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.browser, 20).until(lambda _: self.run(f"return {code}", *arguments))

    def find(self, selector: str) -> Any:
        from selenium.webdriver.common.by import By

        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def choose(self, selector: str, value: str) -> None:
        from selenium.webdriver.support.ui import Select

        Select(self.find(selector)).select_by_value(value)

    def texts(self, selector: str) -> list[str]:
        code = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
        return list(self.run(code, selector))

    def media(self, scheme: str, media: str = "") -> None:
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def complaints(self) -> list[str]:
        return [str(entry["message"]) for entry in self.browser.get_log("browser")]

    def requests(self) -> set[str]:
        """Schemes of everything that was asked for."""
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        sent = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
        return {one["request"]["url"].split(":")[0] for one in sent}

    def figure(self, title: str, entry: int = 1) -> str:
        """Selector of the figure of that title."""
        code = (
            "return [...document.querySelectorAll(`#entry-${arguments[0]} figure[id]`)]"
            ".find((one) => one.querySelector('h3').textContent === arguments[1]).id"
        )
        return f"#{self.run(code, entry, title)}"


@pytest.fixture(scope="module")
def page(make_result: Make, hostile: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two entries, one with a run name that tries to break out."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html([make_result("demo"), make_result("second", a=hostile)], path)
    return path


@pytest.fixture
def view(browser: Any, page: Path) -> View:
    """The report, opened anew."""
    return View(browser, page)


def test_the_page_opens_from_a_file_without_network_or_complaint(view: View) -> None:
    view.run("document.querySelectorAll('figure.plot').forEach((one) => one.scrollIntoView())")
    view.run("document.querySelectorAll('figure.plot').forEach(floorkit.drawPlot)")
    view.soon("document.querySelectorAll('.js-plotly-plot .main-svg').length > 9")
    assert view.complaints() == []
    assert view.requests() <= {"file", "data", "blob"}
    assert view.browser.title == "floorkit report"


def test_the_page_s_policy_forbids_requests_and_foreign_scripts(view: View) -> None:
    view.run(
        "document.body.append(floorkit.make('img', '', {src: 'http://127.0.0.1:9/x.png'}));"
        "document.body.append(floorkit.make('script', 'document.title = \"owned\"'));"
    )
    view.soon("document.images[document.images.length - 1].complete")
    assert view.browser.title == "floorkit report"
    assert len([one for one in view.complaints() if "Content Security Policy" in one]) == 2


def column(view: View, figure: str, number: int) -> list[str]:
    return view.texts(f"{figure} tbody tr > :nth-child({number})")


def test_tables_sort_by_click_and_by_keyboard_and_go_back(view: View) -> None:
    from selenium.webdriver.common.keys import Keys

    figure = view.figure("Headline figures by horizon (s) and recall")
    original = column(view, figure, 4)
    head = f"{figure} thead th:nth-child(4)"
    view.find(f"{head} button").click()
    values = [float(text.split(" %")[0]) for text in column(view, figure, 4)]
    assert values == sorted(values)
    assert view.find(head).get_attribute("aria-sort") == "ascending"
    view.find(f"{head} button").send_keys(Keys.ENTER)
    values = [float(text.split(" %")[0]) for text in column(view, figure, 4)]
    assert values == sorted(values, reverse=True)
    view.find(f"{head} button").send_keys(Keys.SPACE)
    assert column(view, figure, 4) == original
    assert view.find(head).get_attribute("aria-sort") is None


def test_missing_values_sort_last_both_ways(view: View) -> None:
    figure = view.figure("Recall by horizon")
    button = view.find(f"{figure} thead th:nth-child(3) button")
    for _ in range(2):
        button.click()
        assert column(view, figure, 3)[-1].startswith("–")


def background(view: View) -> int:
    colour = view.run("return getComputedStyle(document.body).backgroundColor")
    return int(colour.split("(")[1].split(",")[0])


def test_the_theme_follows_the_system_until_it_is_chosen(view: View) -> None:
    assert background(view) > 200
    view.media(scheme="dark")
    assert background(view) < 60
    button = view.find("#theme")
    button.click()
    assert button.text == "theme: light"
    assert background(view) > 200
    view.media(scheme="light")
    button.click()
    assert button.text == "theme: dark"
    assert background(view) < 60
    button.click()
    assert background(view) > 200


def test_plots_tell_values_and_intervals_on_hover(view: View) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    figure = view.figure("Event AP over horizons")
    view.run("arguments[0].scrollIntoView({behavior: 'instant'})", view.find(figure))
    point = view.soon("document.querySelector(arguments[0])", f"{figure} .scatterlayer .point")
    ActionChains(view.browser).move_to_element(point).perform()
    told = view.soon("document.querySelector(arguments[0])?.textContent", f"{figure} .hoverlayer")
    assert "interval [" in told
    assert view.texts(f"{figure} .legendtext") == ["baseline", "model", "control:noise", "control:ramp"]


def test_names_in_plots_are_text_and_not_markup(view: View, hostile: str) -> None:
    figure = view.figure("Event AP over horizons", 2)
    view.run("floorkit.drawPlot(arguments[0])", view.find(figure))
    view.soon("document.querySelector(arguments[0])", f"{figure} .legendtext")
    names = [text.replace("\u2028", "") for text in view.texts(f"{figure} .legendtext")]
    assert hostile.replace("\u2028", "") in names


def test_the_data_of_a_plot_can_be_read_as_a_table(view: View) -> None:
    figure = view.figure("Recall against false-trigger rate")
    view.find(f"{figure} details.data summary").click()
    view.soon("document.querySelector(arguments[0])", f"{figure} details.data tbody")
    rows = view.texts(f"{figure} details.data tbody tr")
    assert len(rows) == 3 * 401
    assert sum("chosen operating point" in row for row in rows) == 4


TIMELINE = "#entry-1 figure.timeline"


def position(view: View) -> str:
    return str(view.texts(f"{TIMELINE} .position")[0])


def words(view: View) -> str:
    return " ".join(view.texts(f"{TIMELINE} .words p"))


def canvas(view: View) -> str:
    return str(view.run(f"return document.querySelector('{TIMELINE} canvas').toDataURL()"))


def test_timelines_go_from_event_to_event_by_keyboard_and_say_what_is_shown(view: View) -> None:
    assert position(view) == "event 1 of 40"
    assert "e0, response, run baseline, in Session_0: positive, true trigger, score 0." in words(view)
    assert "Anchor at 2.4 s" in words(view)
    assert "competing boundary at 4 s, outcome at 2.8 s" in words(view)
    first, target = canvas(view), view.find(f"{TIMELINE} canvas")
    target.send_keys("n")
    assert position(view) == "event 2 of 40"
    assert canvas(view) != first
    target.send_keys("p")
    assert canvas(view) == first
    view.find(f"{TIMELINE} button[data-action=next]").click()
    assert position(view) == "event 2 of 40"


def test_timelines_zoom_and_move_by_keyboard(view: View) -> None:
    from selenium.webdriver.common.keys import Keys

    whole, target = canvas(view), view.find(f"{TIMELINE} canvas")
    pictures = {whole}
    for key in ("+", "+", Keys.ARROW_RIGHT, Keys.HOME):
        target.send_keys(key)
        pictures.add(canvas(view))
    assert len(pictures) == 5
    target.send_keys("0")
    assert canvas(view) == whole


def test_timelines_filter_by_status_and_outcome(view: View) -> None:
    options = view.texts(f"{TIMELINE} select[data-filter=outcome] option")
    counts = {text.rsplit(" (", 1)[0]: int(text.rsplit("(", 1)[1][:-1]) for text in options}
    assert counts.pop("all") == sum(counts.values()) == 40
    view.choose(f"{TIMELINE} select[data-filter=outcome]", "false trigger")
    assert position(view) == f"event 1 of {counts['false trigger']}"
    assert "negative, false trigger" in words(view)
    view.choose(f"{TIMELINE} select[data-filter=status]", "positive")
    assert position(view) == "no event fits the filters"
    assert not view.find(f"{TIMELINE} button[data-action=next]").is_enabled()
    view.choose(f"{TIMELINE} select[data-filter=status]", "all")
    assert position(view) == f"event 1 of {counts['false trigger']}"


def test_pointing_at_a_lane_tells_time_and_value(view: View) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    target = view.find(f"{TIMELINE} canvas")
    view.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", target)
    place = view.run(
        f"const [event] = floorkit.data(document.querySelector('{TIMELINE}').id);"
        "const {top, height} = floorkit.lanePlaces(event)[3];"
        "const {left, width} = floorkit.timelineArea(arguments[0]);"
        "const {clientWidth, clientHeight} = arguments[0];"
        "return [left + (width - clientWidth) / 2, top + (height - clientHeight) / 2]",
        target,
    )
    ActionChains(view.browser).move_to_element_with_offset(target, *map(round, place)).perform()
    told = view.soon(f"document.querySelector('{TIMELINE} .readout').textContent")
    assert "forecast" in told
    assert " at " in told


def test_the_lanes_of_an_event_can_be_read_as_text(view: View) -> None:
    view.find(f"{TIMELINE} details.lanes summary").click()
    rows = view.soon(f"document.querySelectorAll('{TIMELINE} details.lanes tbody tr').length")
    assert rows == 2 + 1 + 1 + 30
    assert "excluded5 s5.5 soverlap" in view.texts(f"{TIMELINE} details.lanes tbody tr")


def test_axe_finds_nothing_to_complain_about(view: View) -> None:
    view.run((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
    view.run("document.querySelectorAll('figure.plot').forEach(floorkit.drawPlot)")
    assert axe(view, "{}") == []
    view.media(scheme="dark")
    assert axe(view, "{runOnly: ['color-contrast']}") == []


def axe(view: View, options: str) -> list[Any]:
    """Violations of the web accessibility rules in the first entry."""
    found = view.browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "document.getElementById('entry-2')?.remove();"
        f"axe.run(document, {options}).then((found) => done(found.violations));"
    )
    return [(one["id"], one["help"], [node["html"][:120] for node in one["nodes"]]) for one in found]


def test_every_control_can_be_reached_by_keyboard(view: View) -> None:
    unreachable = view.run(
        "return [...document.querySelectorAll('button, select, canvas, summary, a, .scroll')]"
        ".filter((one) => one.tabIndex < 0).map((one) => one.outerHTML.slice(0, 80))"
    )
    assert unreachable == []


def test_printing_draws_every_plot_and_hides_controls(view: View) -> None:
    printed = view.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")
    undrawn = view.run("return document.querySelectorAll('figure.plot:not([data-drawn])').length")
    assert undrawn == 0
    view.media(scheme="dark", media="print")
    assert background(view) > 200
    shown = view.run(
        "return [...document.querySelectorAll('.controls, #theme, nav, .keys')]"
        ".filter((one) => getComputedStyle(one).display !== 'none').length"
    )
    assert shown == 0


@pytest.mark.parametrize("width", [1400, 1120, 500])
def test_nothing_sticks_out_of_the_page(width: int, view: View) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    view.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        view.soon("window.innerWidth === arguments[0]", width)
        view.run("document.querySelectorAll('figure.plot').forEach(floorkit.drawPlot)")
        assert view.soon("document.documentElement.scrollWidth") <= width
    finally:
        view.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
