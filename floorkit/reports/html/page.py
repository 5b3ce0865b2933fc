"""The page: head, overview, one section an entry, and the scripts and styles that it carries inside.

The page loads nothing: a Content-Security-Policy forbids every request, and lets only the scripts run whose
hashes it names, so that no text of the data can ever act. The same results give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from attrs import define

from floorkit.core.sections import (
    ImageSection,
    MatrixSection,
    PlotSection,
    Section,
    TableSection,
    TextSection,
    TimelineSection,
    to_json,
)
from floorkit.core.structure import unstructure
from floorkit.core.values import Mark, Result
from floorkit.reports.html import plots, tables, timelines
from floorkit.reports.html.markup import Html, element, join, script, script_hash, size
from floorkit.reports.standard import comparison_groups, coverage_words, headline_tables

SCRIPTS = ("page.js", "plots.js", "timeline.js", "drawing.js")

LONGEST_TEXT = 200_000
"""Characters of one text section; longer ones are cut, and the page says so."""


@define
class Room:
    """Bytes that the page has left for what can grow: with Plotly (5 MB) it stays below 20 MB."""

    pictures: int = 5_000_000
    timelines: int = 4_500_000
    tables: int = 2_500_000
    plots: int = 1_500_000
    texts: int = 500_000


Entry = tuple[Result, Sequence[Section]]


def write_html(
    evaluated: Sequence[Entry],
    path: Path | None = None,
    *,
    title: str = "floorkit report",
    facts: Mapping[str, str] | None = None,
) -> str:
    """The report as one self-contained HTML page.

    Parameters
    ----------
    evaluated
        Each entry's result and sections, in the order in which they are shown.
    path
        Where to write it as well, if anywhere.
    facts
        What stands below the title (``{"command line": "floorkit run ..."}``), as given.

    Returns
    -------
    str
        The page; the same for the same arguments, whatever the machine and the time.
    """
    room = Room()
    share = max(1, sum(isinstance(one, TimelineSection) for _, sections in evaluated for one in sections))
    body = [
        _entry(f"entry-{number}", result, sections, room, room.timelines // share)
        for number, (result, sections) in enumerate(evaluated, 1)
    ]
    page = _page(title, facts or {}, evaluated, body)
    if path is not None:
        path.write_text(page, encoding="utf-8", newline="\n")
    return page


def asset(name: str) -> str:
    """The text of a style sheet or script of ours."""
    return (files("floorkit.reports.html") / "assets" / name).read_text(encoding="utf-8")


def _page(title: str, facts: Mapping[str, str], evaluated: Sequence[Entry], body: Sequence[Html]) -> str:
    ours, plotly = "\n".join(asset(name) for name in SCRIPTS), ""
    if any(isinstance(one, PlotSection) for _, sections in evaluated for one in sections):
        from plotly.offline import get_plotlyjs

        plotly = get_plotlyjs()
    allowed = " ".join(script_hash(one) for one in (ours, plotly) if one)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        Html(f"<style>{asset('page.css')}</style>"),
    )
    links = [
        element("li", element("a", result.context.name, href=f"#entry-{number}"))
        for number, (result, _) in enumerate(evaluated, 1)
    ]
    header = element(
        "header",
        element("h1", title),
        element("button", "theme: as the system", type="button", id="theme", hidden=True),
        _facts(facts),
    )
    content = element("main", _overview(evaluated), *body, id="content")
    page = join(
        Html("<!doctype html>\n"),
        Html('<html lang="en">'),
        head,
        element(
            "body",
            element("a", "Skip to the overview", href="#content", class_="skip"),
            header,
            element("nav", element("ul", links), aria_label="Entries"),
            element(
                "noscript",
                element("p", "Without scripts tables do not sort, and plots and timelines are not drawn."),
            ),
            content,
            script(plotly, waiting="plotly") if plotly else None,
            script(ours),
        ),
        Html("</html>\n"),
    )
    return str(page)


def _facts(facts: Mapping[str, str]) -> Html | None:
    if not facts:
        return None
    pairs = [join(element("dt", name), element("dd", value)) for name, value in facts.items()]
    return element("dl", pairs, class_="facts")


# --- overview -----------------------------------------------------------------------------------


def _overview(evaluated: Sequence[Entry]) -> Html:
    rows = []
    for number, (result, _) in enumerate(evaluated, 1):
        runs = [element("li", run.name) for run in result.user_runs]
        marks = [element("li", _badge(mark)) for mark in result.marks]
        rows.append(
            element(
                "tr",
                element("th", element("a", result.context.name, href=f"#entry-{number}"), scope="row"),
                element("td", f"{result.protocol.id}@{result.version}"),
                element("td", element("ul", runs)),
                element("td", coverage_words(result)),
                element("td", element("ul", marks) if marks else "none"),
            )
        )
    headings = ("entry", "protocol", "runs", "coverage", "marks")
    head = element("tr", [element("th", heading, scope="col") for heading in headings])
    return element(
        "section",
        element("h2", "Overview", id="overview-title"),
        element(
            "div",
            element(
                "table",
                element("thead", head),
                element("tbody", rows),
                aria_labelledby="overview-title",
            ),
            class_="scroll",
            tabindex=0,
            role="group",
            aria_labelledby="overview-title",
        ),
        id="overview",
    )


def _badge(mark: Mark) -> Html:
    return element("span", mark.name, class_=f"badge {mark.level}", title=mark.text)


# --- an entry -----------------------------------------------------------------------------------


def _entry(
    identifier: str, result: Result, sections: Sequence[Section], room: Room, timeline_room: int
) -> Html:
    protocol = result.protocol
    warnings = [mark for mark in result.marks if mark.level == "warning"]
    others = [mark for mark in result.marks if mark.level != "warning"]
    blocks = list(_blocks(identifier, result, sections, room, timeline_room))
    contents = [element("li", element("a", title, href=f"#{one}")) for one, title, _ in blocks]
    return element(
        "section",
        element("h2", result.context.name, " ", element("small", protocol.title), id=f"{identifier}-title"),
        [_banner(mark) for mark in warnings],
        [element("p", element("b", mark.name), " ", mark.text) for mark in others],
        element("p", protocol.measures),
        _cautions(result),
        element("nav", element("ul", contents), aria_label=f"Contents of {result.context.name}"),
        [block for _, _, block in blocks],
        _provenance(result),
        class_="entry",
        id=identifier,
        aria_labelledby=f"{identifier}-title",
    )


def _banner(mark: Mark) -> Html:
    return element("p", element("strong", mark.name), " ", mark.text, class_="banner", role="note")


def _cautions(result: Result) -> Html | None:
    """Sentences of the core and caveats of the protocol, before any number."""
    if not (result.notes or result.protocol.caveats):
        return None
    return element(
        "div",
        element("h3", "Read this before you quote a number"),
        element(
            "ul",
            [element("li", element("strong", note)) for note in result.notes],
            [element("li", caveat) for caveat in result.protocol.caveats],
        ),
        class_="cautions",
    )


def _blocks(
    identifier: str, result: Result, sections: Sequence[Section], room: Room, timeline_room: int
) -> Iterator[tuple[str, str, Html]]:
    """Id, title and markup of everything that an entry shows, in order."""
    numbers = iter(range(1, 1_000_000))

    def name() -> str:
        return f"{identifier}-{next(numbers)}"

    for headline in headline_tables(result):
        one = name()
        yield one, headline.title, tables.headline(one, headline, result)
    for title, comparisons in comparison_groups(result):
        one = name()
        yield one, title, tables.comparisons(one, title, comparisons, result)
    one = name()
    yield one, "Coverage", tables.coverage(one, result)
    for section in sections:
        one = name()
        block = _section(one, section, result, room, timeline_room)
        if block is not None:
            yield one, _title(section), block


def _title(section: Section) -> str:
    return str(getattr(section, "title", ""))


def _section(
    identifier: str, section: Section, result: Result, room: Room, timeline_room: int
) -> Html | None:
    if isinstance(section, TableSection) and section.shown:
        block = tables.section(identifier, section, result)
        if size(block) > room.tables:
            block = tables.section(identifier, section, result, limit=tables.ROWS_WITHOUT_ROOM)
        room.tables -= size(block)
        return block
    if isinstance(section, PlotSection):
        block = plots.plot(identifier, section, result)
        if size(block) > room.plots:
            block = plots.plot(identifier, section, result, limit=plots.POINTS_WITHOUT_ROOM)
        room.plots -= size(block)
        return block
    if isinstance(section, TimelineSection):
        return timelines.timeline(identifier, section, result, timeline_room)
    if isinstance(section, MatrixSection):
        block, left = plots.matrix(identifier, section, result), room.tables
        room.tables -= size(block) if size(block) <= left else 0
    elif isinstance(section, ImageSection):
        block, left = plots.image(identifier, section, result), room.pictures
        room.pictures -= size(block) if size(block) <= left else 0
    elif isinstance(section, TextSection) and section.shown:
        block, left = _text(identifier, section, result), room.texts
        room.texts -= size(block) if size(block) <= left else 0
    else:
        return None
    return block if size(block) <= left else _left_out(identifier, section, result)


def _left_out(identifier: str, section: Section, result: Result) -> Html:
    """What stands in the place of something for which the page has no room."""
    file, alt = getattr(section, "file", ""), getattr(section, "alt", "")
    words = ["Left out here, since the page would become too large."]
    words += [f"It is in {result.context.name}/{file}."] if file else []
    words += [alt] if alt else []
    return element(
        "figure",
        element("h3", _title(section)),
        element("p", " ".join(words)),
        tables.signature_line(result.signature),
        id=identifier,
    )


def _text(identifier: str, section: TextSection, result: Result) -> Html:
    cut = None
    if len(section.text) > LONGEST_TEXT:
        where = f"; the whole is in {result.context.name}/{section.file}" if section.file else ""
        cut = f"The first {LONGEST_TEXT:,} of {len(section.text):,} characters are shown{where}."
    return element(
        "figure",
        element("h3", section.title),
        element("pre", section.text[:LONGEST_TEXT], tabindex=0),
        element("p", cut, class_="note") if cut else None,
        tables.signature_line(result.signature),
        id=identifier,
    )


def _provenance(result: Result) -> Html:
    """Plugin, parameters and references, folded away."""
    pairs = {
        "plugin": f"{result.plugin} {result.version}",
        "signature": result.signature,
        "seed": str(result.context.seed),
        "parameters": to_json(unstructure(result.context.params)).rstrip("\n"),
    }
    for reference in result.protocol.upstream:
        told = (
            reference.repository,
            reference.commit and f"commit {reference.commit}",
            reference.path,
            reference.sha256 and f"sha256 {reference.sha256}",
            reference.note,
        )
        pairs[f"reference {len(pairs) - 3}"] = ", ".join(filter(None, told))
    shown = [join(element("dt", name), element("dd", element("pre", value))) for name, value in pairs.items()]
    return element(
        "details",
        element("summary", "Plugin, parameters and references"),
        element("dl", shown),
        class_="provenance",
    )
