"""HTML by construction: text is escaped unless it is Html, and data cannot end the script that holds it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from html import escape
from typing import Any

_VOID = frozenset({"meta", "img", "input", "br"})

_ILLEGAL = dict.fromkeys((*range(9), 11, *range(14, 32), 127, *range(0xD800, 0xE000)), "\ufffd")
"""Characters that HTML does not allow, lone surrogates of odd file names among them."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


_JSON_ESCAPES = _ILLEGAL | {ord(one): f"\\u{ord(one):04x}" for one in "&<>\u2028\u2029"}

Child = str | Iterable["Child"] | None


def text(words: str) -> Html:
    """Escaped text, for content and attributes alike."""
    return Html(escape(words.translate(_ILLEGAL), quote=True))


def join(*children: Child) -> Html:
    """Children one after the other; None is nothing, plain text is escaped."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            parts.append(child if isinstance(child, Html) else text(child))
        else:
            parts.append(join(*child))
    return Html("".join(parts))


def element(tag: str, /, *children: Child, **attributes: str | int | bool | None) -> Html:
    """An element.

    Parameters
    ----------
    attributes
        ``class_`` and ``for_`` lose their underscore, other underscores become dashes; None and False are
        left out, True is an attribute without value.
    """
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.removesuffix("_").replace("_", "-")
        written.append(f" {attribute}" if value is True else f' {attribute}="{text(str(value))}"')
    opening = f"<{tag}{''.join(written)}>"
    return Html(opening if tag in _VOID else f"{opening}{join(*children)}</{tag}>")


def json_text(data: Any) -> str:
    """Compact JSON that may stand inside a script element; NumPy scalars and arrays are plain values.

    No text in it can be taken for markup: ``<``, ``>`` and ``&`` are written as escapes, which JSON reads
    back as themselves.

    Raises
    ------
    ValueError
        Where the data holds NaN or an infinity.
    """

    def plain(value: Any) -> Any:
        return value.tolist() if hasattr(value, "tolist") else str(value)

    source = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain)
    return source.translate(_JSON_ESCAPES)


def data_script(identifier: str, json_source: str) -> Html:
    """Data for the page's scripts, from :func:`json_text`."""
    return Html(f'<script type="application/json" id="{text(identifier)}">{json_source}</script>')


def size(markup: str) -> int:
    """Bytes that a part takes in the page."""
    return len(markup.encode("utf-8"))


def script(source: str, waiting: str = "") -> Html:
    """An inline script of ours or of a library.

    Parameters
    ----------
    waiting
        Id of a script that does not run by itself: the page runs it when it needs it.

    Raises
    ------
    ValueError
        Where the source would end its element early.
    """
    if "</script" in source.lower() or "<!--" in source:
        raise ValueError("the script holds a character sequence that ends or comments out its element")
    attributes = f' type="text/plain" id="{text(waiting)}"' if waiting else ""
    return Html(f"<script{attributes}>{source}</script>")


def script_hash(source: str) -> str:
    """The source's hash as a Content-Security-Policy names it."""
    digest = hashlib.sha256(source.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def data_uri(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
