"""A shape by the type of the value: text, list and dict are each cut in their own way.

JSON inside a text is taken as what it is (DESIGN §10 "structured results"), so a list stays a
list and a dict a dict, on every wire. Items are shown as they were written, to the character.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

import msgspec

from ullage.stages.shorten import safe_cut
from ullage.stages.truncate import Shown, Source
from ullage.values.notices import Words

__all__ = ["by_type"]

_NOTICE_CHARS = 400
_VALUE = re.compile(r"[ \t\r\n]*[\[{]")
_Value: TypeAlias = list[msgspec.Raw] | dict[str, msgspec.Raw]
_decoder: msgspec.json.Decoder[_Value] = msgspec.json.Decoder(_Value)


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

    A list of which not one item fits becomes a list of that advice. Source: multi-stage §2.

    Args:
        source: the result.
        words: the wording of the session.
        limit_chars: the most characters of a result, all its texts together; the indicator of
            a text that was cut comes on top.
        max_items: the most items of a list, whatever its characters.
        preview_chars: characters of a dict that are still shown.
        text_marker: what follows a text that was cut. Fields: ``shown``, ``total``, ``read_on``.
        list_marker: the last item of a list that was capped. Fields: the same.
        dict_error: the advice in place of a dict. Fields: ``total``, ``limit``, ``read_on``.
    """
    text, chars = source.text, len(source.text)
    limit_chars = max(limit_chars - sum(map(len, source.before)), 0)
    if chars <= min(limit_chars, 2 * max_items):  # an item takes two characters at least
        return None
    value, read_on = _parsed(text), words.read_on(source.ref, 0)
    is_long = chars > limit_chars or (isinstance(value, list) and len(value) > max_items)
    if not is_long or _is_shown(text, value, limit_chars, max_items, text_marker, list_marker):
        return None
    why = f"{chars:,} characters, over {limit_chars:,}"
    if value is None:
        kept = safe_cut(text, limit_chars)
        read_on = words.read_on(source.ref, kept)
        body = text[:kept] + text_marker.format(shown=kept, total=chars, read_on=read_on)
    else:
        error = dict_error.format(total=chars, limit=limit_chars, read_on=read_on)
        preview = text[: safe_cut(text, min(preview_chars, limit_chars))]
        body = _dumps({"error": error, "preview": preview})
    if isinstance(value, list):
        items, shown = _capped(value, limit_chars, max_items, list_marker, read_on)
        body = items if shown else f"[{body}]"
        why = f"{len(value):,} items, {chars:,} characters; the first {shown:,} are shown"
    return Shown(body, why) if len(body) < chars else None


def _is_shown(
    text: str,
    value: _Value | None,
    limit_chars: int,
    max_items: int,
    text_marker: str,
    list_marker: str,
) -> bool:
    """Whether this was cut by the same limits before it came here, as a callback may do.

    It is known by how it ends, and is bounded all the same; to cut it again would name the
    part and no longer the original.
    """
    if isinstance(value, list):
        last = bytes(value[-1]) if len(value) == max_items + 1 else b""
        return len(text) <= limit_chars and last.startswith(_opening(f'"{list_marker}').encode())
    at = text.rfind(_opening(text_marker))
    return 0 <= at <= limit_chars and len(text) - at <= _NOTICE_CHARS and "\n" not in text[at + 1 :]


def _opening(marker: str) -> str:
    return marker.partition("{")[0]


def _capped(
    items: list[msgspec.Raw], limit_chars: int, most: int, marker: str, read_on: str
) -> tuple[str, int]:
    """As many first items as fit, a notice as the last one; and how many they are."""
    notice = _notice(marker, len(items), len(items), read_on)  # at its longest
    room = limit_chars - len(notice) - len("[]")
    kept = []
    for raw in items[:most]:
        item = bytes(raw).decode("utf-8", "surrogatepass")
        room -= len(item) + 1
        if room < 0:
            break
        kept.append(item)
    notice = _notice(marker, len(kept), len(items), read_on)
    return f"[{','.join([*kept, notice])}]", len(kept)


def _notice(marker: str, shown: int, total: int, read_on: str) -> str:
    return _dumps(marker.format(shown=shown, total=total, read_on=read_on))


def _parsed(text: str) -> _Value | None:
    """The list or dict a text holds as JSON, its values as they are written; or None."""
    if not _VALUE.match(text):
        return None
    try:
        return _decoder.decode(text.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
