"""The HTML page as text: self-contained, escaped, complete, within its size, the same every time."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    TimelineSection,
)
from floorkit.core.values import Result
from floorkit.reports.html import timelines, write_html
from floorkit.reports.html.markup import data_script, element, json_text, script, text

Make = Callable[..., tuple[Result, list[Section]]]

LIMIT = 20_000_000


class Page(HTMLParser):
    """What a browser would see of a page: elements, attributes, and the contents of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.executed: list[str] = []
        self.words: list[str] = []
        self._script: dict[str, str | None] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._script = dict(attrs) if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is None:
            self.words.append(data)
        elif self._script.get("type"):
            self.scripts[str(self._script["id"])] = data
        else:
            self.executed.append(data)

    def find(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [
            found
            for name, found in self.elements
            if name == tag and all(found.get(key.rstrip("_")) == value for key, value in wanted.items())
        ]


def spoken(page: str) -> str:
    return re.sub(r"\s+", " ", " ".join(Page(page).words))


def without_timelines(sections: list[Section]) -> list[Section]:
    return [one for one in sections if not isinstance(one, TimelineSection)]


def test_the_page_loads_nothing_and_links_only_to_itself(make_result: Make) -> None:
    page = Page(write_html([make_result()]))
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        for name in ("src", "href", "srcset", "action"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/")), (tag, value)
    ids = {attributes["id"] for _, attributes in page.elements if attributes.get("id")}
    for link in page.find("a"):
        assert str(link["href"])[1:] in ids


def test_no_id_stands_twice(make_result: Make) -> None:
    page = Page(write_html([make_result("one"), make_result("two")]))
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))


def test_the_policy_lets_only_the_page_s_own_scripts_run(make_result: Make) -> None:
    page = Page(write_html([make_result()]))
    (policy,) = (one["content"] for one in page.find("meta", **{"http-equiv": "Content-Security-Policy"}))
    assert str(policy).startswith("default-src 'none'")
    sources = [*page.executed, page.scripts["plotly"]]
    hashes = {base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in sources}
    assert set(re.findall(r"'sha256-([^']+)'", str(policy))) == hashes


def test_names_of_the_data_cannot_become_markup_or_code(make_result: Make, hostile: str) -> None:
    plain, attacked = (
        Page(write_html([make_result(b=name)], title=name, facts={name: name})) for name in ("model", hostile)
    )
    assert [tag for tag, _ in plain.elements] == [tag for tag, _ in attacked.elements]
    assert plain.executed == attacked.executed
    data = [json.loads(source) for name, source in attacked.scripts.items() if name != "plotly"]
    assert any(series["name"] == hostile for one in data if "series" in one for series in one["series"])
    assert any(event["run"] == hostile for one in data if isinstance(one, list) for event in one)
    assert hostile in attacked.words


@given(st.text())
def test_any_text_comes_back_from_content_attributes_and_data(words: str) -> None:
    page = Page(str(element("p", words, title=words)) + str(data_script("x", json_text([words]))))
    allowed = words.translate(dict.fromkeys((*range(9), 11, *range(14, 32), 127), "�"))
    assert "".join(page.words).replace("\r", "") == allowed.replace("\r", "")
    assert str(page.elements[0][1]["title"]).replace("\r", "") == allowed.replace("\r", "")
    assert json.loads(page.scripts["x"]) == [words.replace("\x7f", "\ufffd")]


def test_a_lone_surrogate_does_not_break_the_page() -> None:
    assert text("a\udce9b").encode("utf-8") == "a\ufffdb".encode()


def test_a_script_that_would_end_its_element_is_refused() -> None:
    with pytest.raises(ValueError, match="ends or comments out"):
        script("let a = '</script>'")


def test_the_same_results_give_the_same_bytes_whatever_the_hash_seed(
    make_result: Make, tmp_path: Path
) -> None:
    entry = make_result()
    assert write_html([entry]) == write_html([make_result()])
    conftest = str(Path(__file__).with_name("conftest.py"))
    code = (
        "import hashlib, importlib.util as util\n"
        f"spec = util.spec_from_file_location('made', {conftest!r})\n"
        "made = util.module_from_spec(spec); spec.loader.exec_module(made)\n"
        "from floorkit.reports.html import write_html\n"
        "print(hashlib.sha256(write_html([made.build_example()]).encode()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_signature_stands_under_everything_that_shows_a_number(make_result: Make) -> None:
    result, sections = make_result()
    page = Page(write_html([(result, sections)]))
    assert len(page.find("p", class_="signature")) == len(page.find("figure"))
    assert spoken(write_html([(result, sections)])).count(result.signature) == len(page.find("figure")) + 1


def test_warning_marks_are_banners_before_the_first_number(make_result: Make) -> None:
    page = write_html([make_result()])
    (banner,) = re.findall(r'<p class="banner" role="note">(.*?)</p>', page)
    assert banner == "<strong>exploratory</strong> Thresholds were chosen on the evaluated sessions."
    assert page.index('class="banner"') < page.index("<figure")


def test_cautions_and_comparisons_are_said_in_words(make_result: Make) -> None:
    words = spoken(write_html([make_result()]))
    for sentence in (
        "model is not above its best control on 1 of 3 headline figures.",
        "Alarms are counted at boundary candidates only.",
        "lower trigger rate bought with lower recall: candidate recall 0.71 vs 0.80.",
        "Not comparable, so no difference is given: positives: 120 vs 118.",
        "The adjusted p is Holm's over 2 tests.",
        "With 12 clusters no p can be below 0.0005.",
        "Not every session was scored: model scored 11 of 12.",
        "Brackets hold 95 % cluster bootstrap intervals (2000 resamples).",
    ):
        assert sentence in words


def test_controls_are_reference_rows(make_result: Make) -> None:
    page = write_html([make_result()])
    rows = re.findall(r"<tr( class=\"control\")?>(.*?)</tr>", page)
    marked = [bool(mark) for mark, row in rows if ">control:noise</th>" in row]
    assert marked
    assert all(marked)
    assert not any(mark for mark, row in rows if ">baseline</th>" in row)


def test_a_headline_cell_holds_value_interval_and_counts(make_result: Make) -> None:
    page = write_html([make_result()])
    assert "<b>14.0 %</b><small>[10.0, 19.0]</small><small>28/200</small>" in page
    assert "<b>–</b><small>of 0</small><small>no triggers</small>" in page


def test_without_plots_the_page_carries_no_plotly(make_result: Make) -> None:
    result, sections = make_result()
    page = write_html([(result, [one for one in sections if not isinstance(one, PlotSection)])])
    assert len(page) < 1_000_000
    assert "plotly" not in Page(page).scripts


def test_a_report_over_a_hundred_thousand_events_says_that_it_samples_and_stays_small(
    make_result: Make,
) -> None:
    result, sections = make_result(events=1000, total=250_000)
    (section,) = [one for one in sections if isinstance(one, TimelineSection)]
    many = attrs.evolve(section, events=list(section.events) * 100)
    page = write_html([(result, [*without_timelines(sections), many])])
    assert len(page.encode()) < LIMIT
    words = spoken(page)
    assert "600 of 100,000 events are drawn" in words
    assert "The section holds a sample of 100,000 out of 250,000 events." in words
    (drawn,) = [json.loads(one) for one in Page(page).scripts.values() if one.startswith("[")]
    assert len(drawn) == 600


def test_rare_events_are_all_kept_when_events_are_sampled(make_result: Make) -> None:
    _, sections = make_result(events=4000)
    (section,) = [one for one in sections if isinstance(one, TimelineSection)]
    rare = attrs.evolve(section.events[17], status="negative", triggered=True, kind="rare")
    events = [*section.events[:1700], rare, *section.events[1700:], rare]
    chosen = timelines.sample(events, 100)
    assert len(chosen) == 100
    assert chosen == sorted(set(chosen))
    assert {1700, len(events) - 1} <= set(chosen)
    strata = {(events[i].run, events[i].kind, events[i].status, timelines.outcome(events[i])) for i in chosen}
    assert strata == {(e.run, e.kind, e.status, timelines.outcome(e)) for e in events}


def test_a_sample_fills_its_limit_whatever_the_strata(make_result: Make) -> None:
    _, sections = make_result(events=500)
    (section,) = [one for one in sections if isinstance(one, TimelineSection)]
    for limit in (0, 1, 7, 99, 499, 500, 501):
        assert len(timelines.sample(section.events, limit)) == min(limit, 500)


@pytest.mark.parametrize(
    ("status", "triggered", "told"),
    [
        ("positive", True, "true trigger"),
        ("positive", False, "missed positive"),
        ("false_negative", False, "missed positive"),
        ("negative", True, "false trigger"),
        ("excluded", True, "false trigger"),
        ("negative", False, "no trigger"),
        ("censored", None, "not judged"),
    ],
)
def test_outcomes_tell_true_from_false_triggers(
    status: str, triggered: bool | None, told: str, make_result: Make
) -> None:
    _, sections = make_result(events=1)
    (section,) = [one for one in sections if isinstance(one, TimelineSection)]
    event = attrs.evolve(section.events[0], status=status, triggered=triggered)
    assert timelines.outcome(event) == told


def test_long_score_paths_keep_their_extremes() -> None:
    path: list[tuple[float, float | None]] = [(0.001 * step, 0.5) for step in range(50_000)]
    path[33_333] = (33.333, 0.99)
    path[44_444] = (44.444, 0.01)
    path[100:200] = [(0.001 * step, None) for step in range(100, 200)]
    thinned = timelines._thinned(path)
    assert len(thinned) <= timelines.DRAWN_SAMPLES
    assert {(33.333, 0.99), (44.444, 0.01)} <= set(thinned)
    assert thinned == sorted(thinned, key=lambda sample: sample[0])
    assert any(value is None for _, value in thinned)


def test_long_tables_are_cut_and_say_where_the_rest_is(make_result: Make) -> None:
    result, _ = make_result()
    rows = [(number,) for number in range(1500)]
    table = TableSection("Long", [ColumnSpec("n", kind="integer")], lambda: iter(rows), "long.csv")
    page = write_html([(result, [table])])
    assert "The first 1000 of 1500 rows are shown; all are in demo/long.csv." in spoken(page)
    assert ">999</td>" in page
    assert ">1000</td>" not in page


def test_long_series_are_thinned_and_keep_their_chosen_points(make_result: Make) -> None:
    result, _ = make_result()
    x = [step / 50_000 for step in range(50_000)]
    plot = PlotSection("Sweep", "threshold", "rate", [Series("model", x, x, marked=(12_345,))])
    page = write_html([(result, [plot])])
    (data,) = [json.loads(one) for name, one in Page(page).scripts.items() if name.endswith("-data")]
    (series,) = data["series"]
    assert len(series["x"]) <= 2001
    assert (series["x"][0], series["x"][-1]) == (0.0, x[-1])
    assert [series["x"][index] for index in series["marked"]] == [x[12_345]]
    assert "Drawn with fewer points, spread evenly: model (2001 of 50000 points)." in spoken(page)


def test_a_page_of_large_things_stays_below_its_limit(make_result: Make) -> None:
    result, sections = make_result(events=300)
    picture = ImageSection("Map", os.urandom(2_000_000), "image/png", "A map of errors.", "map.png")
    rows = [tuple("x" * 50 for _ in range(20)) for _ in range(900)]
    table = TableSection("Wide", [ColumnSpec(f"c{n}") for n in range(20)], rows, "wide.csv")
    plot = PlotSection("P", "x", "y", [Series(f"s{n}", range(2000), [0.123456789] * 2000) for n in range(20)])
    long_text = TextSection("Log", "line\n" * 100_000, "log.txt")
    labels = [str(number) for number in range(300)]
    matrix = MatrixSection("Large", labels, labels, [[0.123] * 300] * 300)
    large = [*sections, *[picture] * 6, *[table] * 6, *[plot] * 6, *[long_text] * 4, matrix]
    page = write_html([(result, large)])
    assert len(page.encode()) < LIMIT
    words = spoken(page)
    assert words.count("It is in demo/map.png. A map of errors.") == 5
    assert "The first 20 of 900 rows are shown; all are in demo/wide.csv." in words
    assert "The first 200,000 of 500,000 characters are shown; the whole is in demo/log.txt." in words
    assert "Large Left out here, since the page would become too large." in words


def test_room_is_counted_in_bytes_after_escaping(make_result: Make) -> None:
    result, sections = make_result(events=600)
    (section,) = [one for one in sections if isinstance(one, TimelineSection)]
    lanes = [Lane("語<&>", [(float(second), second + 0.5, "語<&>" * 20) for second in range(200)])]
    heavy = attrs.evolve(section, events=[attrs.evolve(one, lanes=lanes) for one in section.events])
    page = write_html([(result, [heavy])])
    (source,) = [one for one in Page(page).scripts.values() if one.startswith("[")]
    assert 3_500_000 < len(source.encode()) < 4_500_000
    assert f"{len(json.loads(source))} of 600 events are drawn" in spoken(page)


def test_the_page_is_written_where_it_is_told_to(make_result: Make, tmp_path: Path) -> None:
    page = write_html(
        [make_result()], tmp_path / "report.html", title="A & B", facts={"command line": "floorkit run"}
    )
    assert (tmp_path / "report.html").read_bytes() == page.encode("utf-8")
    assert "<title>A &amp; B</title>" in page
    assert "<dt>command line</dt><dd>floorkit run</dd>" in page
