"""A shape by the type of the value: text, list and dict are each cut in their own way.

JSON inside a text is taken as what it is (DESIGN §10 "structured results"), so a list stays a
list and a dict a dict, on every wire.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ullage.notices import Words
from ullage.stages.shorten import safe_cut
from ullage.stages.truncate import Shown, Source

__all__ = ["by_type"]

_loads = msgspec.json.Decoder().decode


def by_type(
    source: Source,
    words: Words,
    /,
    *,
    limit_chars: int,
    max_items: int,
    preview_chars: int,
    text_marker: str,
    list_marker: str,
    dict_error: str,
) -> Shown | None:
    """A text cut with an indicator, a list capped, a dict replaced by advice and a preview.

    Source: multi-stage §2.

    Args:
        source: the result.
        words: the wording of the session.
        limit_chars: the most characters of a result.
        max_items: the most items of a list, whatever its characters.
        preview_chars: characters of a dict that are still shown.
        text_marker: what follows a text that was cut. Fields: ``shown``, ``total``,
            ``read_on``.
        list_marker: the last item of a list that was capped. Fields: ``shown``, ``total``,
            ``read_on``.
        dict_error: the advice in place of a dict. Fields: ``total``, ``limit``, ``read_on``.
    """
    text, chars = source.text, len(source.text)
    if chars <= min(limit_chars, 2 * max_items):  # an item takes two characters at least
        return None
    value = _parsed(text)
    if isinstance(value, list) and (len(value) > max_items or chars > limit_chars):
        shown = _capped(value, source, words, limit_chars, max_items, list_marker)
        if shown is not None:
            return shown if len(shown.text) < chars else None
    if chars <= limit_chars:
        return None
    if value is not None:  # a dict, or a list of which not one item fits
        read_on = words.read_on(source.ref, 0)
        error = dict_error.format(total=chars, limit=limit_chars, read_on=read_on)
        preview = text[: safe_cut(text, preview_chars)]
        body = _dumps({"error": error, "preview": preview})
    else:
        kept = safe_cut(text, limit_chars)
        read_on = words.read_on(source.ref, kept)
        body = text[:kept] + text_marker.format(shown=kept, total=chars, read_on=read_on)
    return Shown(body, f"{chars:,} characters, over {limit_chars:,}") if len(body) < chars else None


def _capped(
    items: list[Any], source: Source, words: Words, limit_chars: int, most: int, marker: str
) -> Shown | None:
    """The first items and a notice as the last one; None if not one item fits."""
    count = min(len(items), most)
    while count > 0:
        read_on = words.read_on(source.ref, 0)
        last = marker.format(shown=count, total=len(items), read_on=read_on)
        body = _dumps([*items[:count], last])
        if len(body) <= limit_chars:
            return Shown(body, f"{len(items):,} items; the first {count:,} are shown")
        count //= 2
    return None


def _parsed(text: str) -> Any:
    """The list or dict a text holds as JSON, or None."""
    if text[:1] not in "[{":
        return None
    try:
        value = _loads(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, (list, dict)) else None


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
