"""Any table of a results folder as LaTeX, Markdown or CSV.

Values are those that the run recorded: nothing is computed again. As *recorded* they keep full precision
(rates as fractions); as *shown* they are rounded as reports round them (rates as percent, with counts).
Under every LaTeX and Markdown table stand the signature and the warnings; a CSV has them as columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, Literal

from floorkit.core.sections import ColumnSpec
from floorkit.reports import cells
from floorkit.reports.stored import Origin
from floorkit.reports.tables_json import StoredTable

Format = Literal["latex", "markdown", "csv"]
SUFFIXES: dict[Format, str] = {"latex": ".tex", "markdown": ".md", "csv": ".csv"}

LONG_TABLE_ROWS = 50
"""LaTeX tables with more rows are broken over pages (longtable)."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': r"\textquotedblright{}",
    "–": "--",
    "−": "$-$",
    "°": r"$^\circ$",
    "\n": " ",
    "\r": " ",
    "\t": " ",
}

_MARKDOWN = {character: "\\" + character for character in "\\`*_{}[]<>()#+!|~&$^"} | {
    "\n": " ",
    "\r": " ",
    "\t": " ",
}


def export_table(table: StoredTable, origin: Origin, form: Format, *, shown: bool = False) -> str:
    """One table as text.

    Parameters
    ----------
    shown
        Round as reports do, instead of full precision.
    """
    if form == "csv":
        return _csv(table, origin, shown)
    columns, rows = _texts(table, shown)
    if form == "markdown":
        return _markdown(table, origin, columns, rows)
    return _latex(table, origin, columns, rows)


def recorded(value: Any) -> str:
    """A value as text that reads back as itself; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _texts(table: StoredTable, shown: bool) -> tuple[list[ColumnSpec], list[list[str]]]:
    """The columns that stay (as shown: no empty ones), and the text of every cell."""
    if not shown:
        return list(table.columns), [[recorded(value) for value in row] for row in table.rows]
    kept = [
        index
        for index in cells.merged_columns(table.columns)
        if any(row[index] is not None for row in table.rows)
    ]
    rows = []
    for row in table.rows:
        details = cells.row_details(table.columns, row)
        rows.append(
            [
                " ".join([cells.cell_text(row[index], table.columns[index]), *map(_aside, details[index])])
                for index in kept
            ]
        )
    return [table.columns[index] for index in kept], rows


def _aside(words: str) -> str:
    """What stands beside a value: intervals have brackets already, counts get some."""
    return words if words.startswith("[") else f"({words})"


def _csv(table: StoredTable, origin: Origin, shown: bool) -> str:
    columns, rows = _texts(table, shown)
    names = [column.name for column in columns]
    added = {**origin.flags, "signature": origin.signature}
    extra = {name: recorded(value) for name, value in added.items() if name not in names}
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*names, *extra])
    writer.writerows([*row, *extra.values()] for row in rows)
    return stream.getvalue()


# --- Markdown -----------------------------------------------------------------------------------


def _plain(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)


def _markdown(
    table: StoredTable, origin: Origin, columns: Sequence[ColumnSpec], rows: Sequence[Sequence[str]]
) -> str:
    def line(texts: Sequence[str]) -> str:
        return "| " + " | ".join(_plain(text, _MARKDOWN) for text in texts) + " |"

    alignments = [":---" if column.kind == "text" else "---:" for column in columns]
    parts = [
        f"**{_plain(table.title, _MARKDOWN)}** ({_plain(origin.entry, _MARKDOWN)})",
        "\n".join(
            [
                line([cells.column_heading(column) for column in columns]),
                "| " + " | ".join(alignments) + " |",
                *(line(row) for row in rows),
            ]
        ),
        *(_plain(words, _MARKDOWN) for words in [table.note, *origin.warnings] if words),
        f"`{origin.signature}`",
    ]
    return "\n\n".join(parts) + "\n"


# --- LaTeX --------------------------------------------------------------------------------------


def _latex(
    table: StoredTable, origin: Origin, columns: Sequence[ColumnSpec], rows: Sequence[Sequence[str]]
) -> str:
    def line(texts: Sequence[str]) -> str:
        return "  " + " & ".join(_plain(text, _LATEX) for text in texts) + r" \\"

    alignment = "".join("l" if column.kind == "text" else "r" for column in columns)
    heading = line([cells.column_heading(column) for column in columns])
    caption = rf"\caption{{{_plain(f'{table.title} ({origin.entry})', _LATEX)}}}"
    words = [_plain(text, _LATEX) for text in [table.note, *origin.warnings] if text]
    under = [*words, rf"\texttt{{{_plain(origin.signature, _LATEX)}}}"]
    body = [r"  \toprule", heading, r"  \midrule", *map(line, rows), r"  \bottomrule"]
    if len(rows) > LONG_TABLE_ROWS:
        lines = [
            "% needs \\usepackage{booktabs,longtable}",
            rf"\begin{{longtable}}{{{alignment}}}",
            rf"  {caption} \\",
            *body[:3],
            r"  \endhead",
            *body[3:],
            r"\end{longtable}",
            *(rf"{{\footnotesize {text}\par}}" for text in under),
        ]
    else:
        lines = [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"  \centering",
            f"  {caption}",
            rf"  \begin{{tabular}}{{{alignment}}}",
            *("  " + one for one in body),
            r"  \end{tabular}",
            *(rf"  \par\smallskip{{\footnotesize {text}\par}}" for text in under),
            r"\end{table}",
        ]
    return "\n".join(lines) + "\n"
