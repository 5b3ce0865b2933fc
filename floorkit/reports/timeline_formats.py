"""Tiers of intervals and points as Praat TextGrid, ELAN document, Audacity labels and RTTM.

Conventions
-----------
- Times are rounded to microseconds, in ELAN (which counts so) to milliseconds.
- In a TextGrid and in ELAN the annotations of a tier may not overlap: those that do go to a tier
  ``NAME (2)``, and so on.
- A point (an anchor) is a point tier in a TextGrid and a point label in Audacity; ELAN, which has no points,
  gets a stretch of 20 ms that starts there; RTTM has no place for points.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from xml.etree import ElementTree

from attrs import field, frozen

POINT_MS = 20
"""Length that a point gets in ELAN."""

Span = tuple[int, int, str]
"""Start, stop (in ticks of a resolution) and text; start = stop is a point."""


@frozen
class Tier:
    """A named sequence of intervals and points, in microseconds."""

    name: str
    spans: list[Span] = field(factory=list)


def _without_overlap(tier: Tier) -> list[Tier]:
    """The tier's spans on as few tiers as keep them apart, named ``NAME``, ``NAME (2)``, ..."""
    rows: list[Tier] = []
    for span in sorted(tier.spans):
        free = next((row for row in rows if row.spans[-1][1] <= span[0]), None)
        if free is None:
            name = tier.name if not rows else f"{tier.name} ({len(rows) + 1})"
            free = Tier(name)
            rows.append(free)
        free.spans.append(span)
    return rows


def distinct(texts: Iterable[str], change: Callable[[str], str]) -> list[str]:
    """Each text changed, those that become the same (letter case aside) numbered."""
    seen: dict[str, int] = {}
    result = []
    for text in texts:
        name = change(text)
        candidate, count = name, seen.get(name.casefold(), 0) + 1
        while count > 1 and f"{name}_{count}".casefold() in seen:
            count += 1
        if count > 1:
            candidate = f"{name}_{count}"
        seen[name.casefold()] = count
        seen.setdefault(candidate.casefold(), 1)
        result.append(candidate)
    return result


def file_name(text: str) -> str:
    """A text as part of a file name that every system takes."""
    return re.sub(r"[^\w.-]+", "_", text).strip("._") or "unnamed"


def _seconds(ticks: int) -> str:
    return f"{ticks / 1e6:.6f}"


def textgrid(tiers: Sequence[Tier]) -> str:
    """A Praat TextGrid in the long text format; gaps are empty intervals, as Praat wants them."""
    stop = max((span[1] for tier in tiers for span in tier.spans), default=0)
    start = min(0, *(span[0] for tier in tiers for span in tier.spans), 0)
    stop = max(stop, start + 1)
    items: list[list[str]] = []
    for tier in tiers:
        intervals = Tier(tier.name, [span for span in tier.spans if span[1] > span[0]])
        points = [span for span in tier.spans if span[1] == span[0]]
        items += [_interval_tier(one, start, stop) for one in _without_overlap(intervals)]
        if points:
            name = f"{tier.name} (points)" if intervals.spans else tier.name
            items.append(_point_tier(name, points, start, stop))
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', ""]
    lines += [f"xmin = {_seconds(start)}", f"xmax = {_seconds(stop)}", "tiers? <exists>"]
    lines += [f"size = {len(items)}", "item []:"]
    for number, item in enumerate(items, 1):
        lines += [f"    item [{number}]:", *("        " + line for line in item)]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + " ".join(text.split()).replace('"', '""') + '"'


def _interval_tier(tier: Tier, start: int, stop: int) -> list[str]:
    filled: list[Span] = []
    at = start
    for span in tier.spans:
        if span[0] > at:
            filled.append((at, span[0], ""))
        filled.append(span)
        at = span[1]
    if at < stop:
        filled.append((at, stop, ""))
    lines = ['class = "IntervalTier"', f"name = {_quoted(tier.name)}"]
    lines += [f"xmin = {_seconds(start)}", f"xmax = {_seconds(stop)}", f"intervals: size = {len(filled)}"]
    for number, (first, last, text) in enumerate(filled, 1):
        lines += [f"intervals [{number}]:", f"    xmin = {_seconds(first)}", f"    xmax = {_seconds(last)}"]
        lines.append(f"    text = {_quoted(text)}")
    return lines


def _point_tier(name: str, points: Sequence[Span], start: int, stop: int) -> list[str]:
    at: dict[int, list[str]] = {}
    for time, _, text in points:
        at.setdefault(time, []).append(text)
    lines = ['class = "TextTier"', f"name = {_quoted(name)}"]
    lines += [f"xmin = {_seconds(start)}", f"xmax = {_seconds(stop)}", f"points: size = {len(at)}"]
    for number, (time, texts) in enumerate(sorted(at.items()), 1):
        lines += [f"points [{number}]:", f"    number = {_seconds(time)}"]
        lines.append(f"    mark = {_quoted('; '.join(texts))}")
    return lines


_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_SCHEMA_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
ElementTree.register_namespace("xsi", _SCHEMA_INSTANCE)

NO_DATE = "1970-01-01T00:00:00Z"
"""ELAN wants a date; results carry none, so that the same results give the same bytes."""


def eaf(tiers: Sequence[Tier], signature: str = "") -> str:
    """An ELAN annotation document (format 3.0) without media, which ELAN asks for when it opens it."""
    schema = {f"{{{_SCHEMA_INSTANCE}}}noNamespaceSchemaLocation": _SCHEMA}
    root = ElementTree.Element(
        "ANNOTATION_DOCUMENT", schema, AUTHOR="floorkit", DATE=NO_DATE, FORMAT="3.0", VERSION="3.0"
    )
    header = ElementTree.SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    if signature:
        ElementTree.SubElement(header, "PROPERTY", NAME="signature").text = signature
    order = ElementTree.SubElement(root, "TIME_ORDER")
    slots: dict[int, str] = {}
    rows = [row for tier in tiers for row in _without_overlap(Tier(tier.name, _milliseconds(tier.spans)))]
    for time in sorted({time for row in rows for span in row.spans for time in span[:2]}):
        slots[time] = f"ts{len(slots) + 1}"
        ElementTree.SubElement(order, "TIME_SLOT", TIME_SLOT_ID=slots[time], TIME_VALUE=str(time))
    annotations = 0
    for row, name in zip(rows, distinct([row.name for row in rows], _xml_text), strict=True):
        element = ElementTree.SubElement(root, "TIER", LINGUISTIC_TYPE_REF="default-lt", TIER_ID=name)
        for start, stop, text in row.spans:
            annotations += 1
            annotation = ElementTree.SubElement(
                ElementTree.SubElement(element, "ANNOTATION"),
                "ALIGNABLE_ANNOTATION",
                ANNOTATION_ID=f"a{annotations}",
                TIME_SLOT_REF1=slots[start],
                TIME_SLOT_REF2=slots[stop],
            )
            ElementTree.SubElement(annotation, "ANNOTATION_VALUE").text = _xml_text(text)
    ElementTree.SubElement(header, "PROPERTY", NAME="lastUsedAnnotationId").text = str(annotations)
    ElementTree.SubElement(
        root,
        "LINGUISTIC_TYPE",
        GRAPHIC_REFERENCES="false",
        LINGUISTIC_TYPE_ID="default-lt",
        TIME_ALIGNABLE="true",
    )
    ElementTree.indent(root)
    document: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document}\n'


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _milliseconds(spans: Iterable[Span]) -> list[Span]:
    result = []
    for start, stop, text in spans:
        first, last = round(start / 1000), round(stop / 1000)
        result.append((first, max(last, first + (POINT_MS if start == stop else 1)), text))
    return result


def audacity_labels(tier: Tier) -> str:
    """One Audacity label track: start, stop and text of each label, split by tabs."""
    return "".join(
        f"{_seconds(start)}\t{_seconds(stop)}\t{' '.join(text.split())}\n" for start, stop, text in tier.spans
    )


def rttm(unit: str, tiers: Sequence[Tier]) -> tuple[str, int]:
    """SPEAKER lines, one an interval, the tier as the speaker's name; and the number of points left out.

    Blanks in names become underscores, since RTTM fields are split by blanks.
    """
    names: Mapping[str, str] = dict(
        zip(
            (tier.name for tier in tiers),
            distinct((tier.name for tier in tiers), lambda text: re.sub(r"\s+", "_", text)),
            strict=True,
        )
    )
    file = re.sub(r"\s+", "_", unit)
    spans = sorted((*span[:2], names[tier.name]) for tier in tiers for span in tier.spans)
    lines = [
        f"SPEAKER {file} 1 {_seconds(start)} {_seconds(stop - start)} <NA> <NA> {name} <NA> <NA>\n"
        for start, stop, name in spans
        if stop > start
    ]
    return "".join(lines), len(spans) - len(lines)
