"""Tables as LaTeX, Markdown and CSV, read back by readers that are not ours."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from pylatexenc.latex2text import LatexNodes2Text

from floorkit.core.sections import ColumnSpec, Section
from floorkit.core.values import Mark, Result
from floorkit.reports import export, tables_json
from floorkit.reports.stored import Origin
from floorkit.reports.tables_json import StoredTable

Make = Callable[..., tuple[Result, list[Section]]]

ORIGIN = Origin(
    "demo_1",
    "p",
    "p@1.0.0 src:1a seed:0",
    (Mark("exploratory", "in-sample."),),
    {"exploratory": True, "unverified": False},
)
COLUMNS = (
    ColumnSpec("run"),
    ColumnSpec("recall", kind="rate", count="hits", denominator="positives"),
    ColumnSpec("hits", kind="integer"),
    ColumnSpec("positives", kind="integer"),
    ColumnSpec("note"),
)
NASTY = r'a|b & 100% of $x_1 {y} \z ~^ <i>"q"</i> *s* `c` [l](u) #'
ROWS = (("model", 1 / 3, 40, 120, NASTY), ("control:noise", None, None, 0, None))
TABLE = StoredTable("Recall & more", COLUMNS, ROWS, "Pooled.")


def markdown_cells(text: str) -> list[list[str]]:
    """The cells of the first Markdown table, as plain text, by markdown-it."""
    rows: list[list[str]] = []
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for token, inside in pairwise(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append("".join(child.content for child in inside.children or ()))
    return rows


def test_csv_holds_recorded_values_marks_and_signature() -> None:
    text = export.export_table(TABLE, ORIGIN, "csv")
    first, second = csv.DictReader(io.StringIO(text))
    assert float(first["recall"]) == 1 / 3
    assert first["note"] == NASTY
    assert (first["exploratory"], first["unverified"]) == ("true", "false")
    assert first["signature"] == ORIGIN.signature
    assert (second["recall"], second["note"]) == ("", "")


def test_markdown_is_read_back_with_every_cell_as_recorded() -> None:
    text = export.export_table(TABLE, ORIGIN, "markdown")
    assert markdown_cells(text) == [
        ["run", "recall", "hits", "positives", "note"],
        ["model", repr(1 / 3), "40", "120", NASTY],
        ["control:noise", "", "", "0", ""],
    ]
    assert ORIGIN.signature in text
    assert "in-sample." in text


def test_shown_values_are_rounded_as_reports_round_them() -> None:
    text = export.export_table(TABLE, ORIGIN, "markdown", shown=True)
    assert markdown_cells(text)[1] == ["model", "33.3 % (40/120)", NASTY]


def unescaped_latex(text: str) -> str:
    """LaTeX text back to plain text, by pylatexenc."""
    converter = LatexNodes2Text(math_mode="text", strict_latex_spaces=True)
    plain: str = converter.latex_to_text(text)
    return plain


def test_latex_is_read_back_with_every_cell_as_recorded() -> None:
    text = export.export_table(TABLE, ORIGIN, "latex")
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0]
    rows = [line.strip().removesuffix(r"\\").strip() for line in body.strip().splitlines()]
    found = [[unescaped_latex(cell).strip() for cell in re.split(r"(?<!\\)&", row)] for row in rows]
    assert found[0] == ["model", repr(1 / 3), "40", "120", NASTY.replace('"', "”").replace("^", "ˆ")]
    assert found[1] == ["control:noise", "", "", "0", ""]
    assert r"\caption{Recall \& more (demo\_1)}" in text
    assert text.count(rf"\texttt{{{ORIGIN.signature}}}") == 1


def test_long_latex_tables_break_over_pages() -> None:
    rows = tuple(("model", 0.5, 1, 2, str(number)) for number in range(export.LONG_TABLE_ROWS + 1))
    text = export.export_table(StoredTable("Long", COLUMNS, rows), ORIGIN, "latex")
    assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") == 1
    assert r"\begin{table}" not in text


@pytest.mark.parametrize("form", ["latex", "markdown", "csv"])
def test_every_table_of_a_report_is_exported(form: export.Format, make_result: Make, tmp_path: Path) -> None:
    path = tmp_path / "tables.json"
    path.write_text(tables_json.write_tables(*make_result()), encoding="utf-8")
    file = tables_json.read_tables(path)
    assert len(file.tables) == 7
    for table in file.tables:
        text = export.export_table(table, file.origin, form)
        body = [line for line in text.splitlines() if line.strip()]
        assert len(body) >= len(table.rows) + 1
        signature = file.origin.signature
        assert signature in text.replace(r"\_", "_")
