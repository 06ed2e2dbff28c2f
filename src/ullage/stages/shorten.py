"""Shorten one text to a number of characters so that what is left still makes sense.

JSON stays valid JSON: long lists keep their first and last items, long strings their ends.
Any other text keeps whole lines from its head and tail and, between them, the lines that
speak of errors; a single giant line is cut within. Never half a character, one notice at the
end, and the result is always shorter than the original or there is no result.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

import msgspec

from ullage.values.notices import Words

__all__ = ["ERRORS", "safe_cut", "shorten"]

ERRORS = re.compile(
    r"[aefptAEFPT](?<=\b.)(?i:"  # a set of first letters comes first: the scan skips the rest
    r"(?:(?<=e)(?:rror|xception|xit (?:code|status))|(?<=t)raceback|(?<=p)anic"
    r"|(?<=f)(?:ailed|ailure|atal)|(?<=a)ssert))\w*\b",
    re.DOTALL,
)
_ERROR_SHARE = 0.2
_ERROR_LINE_CHARS = 300
_NOTICE_ROOM_CHARS = 260
_JOINER = "\u200d"
_FLAG_HALVES = "".join(map(chr, range(0x1F1E6, 0x1F200)))

_loads = msgspec.json.Decoder().decode


def shorten(
    text: str, limit_chars: int, ref: str, words: Words, *, head_share: float = 0.7
) -> str | None:
    """A view of ``text`` of at most ``limit_chars`` characters, its notice included.

    Args:
        text: the original, longer than ``limit_chars``.
        limit_chars: the most characters of the view.
        ref: what opens the original.
        words: the wording of the notice.
        head_share: how much of the room the head gets; the tail gets the rest.

    Returns:
        The view, or None where none is shorter than the original in characters and bytes.
    """
    room = max(limit_chars - _NOTICE_ROOM_CHARS, limit_chars // 2)
    shown = _json(text, room, ref, words) if text[:1] in "{[" else None
    if shown is None:
        shown = _lines(text, room, ref, words, head_share)
    return shown if _smaller(shown, text) else None


def _smaller(shown: str, text: str) -> bool:
    if len(shown) >= len(text):
        return False
    if shown.isascii():
        return True
    return len(shown.encode("utf-8", "surrogatepass")) < len(text.encode("utf-8", "surrogatepass"))


# ── plain text ───────────────────────────────────────────────────────────────────────────


def _lines(text: str, room: int, ref: str, words: Words, head_share: float) -> str:
    errors = int(room * _ERROR_SHARE)
    head_stop = _line_end(text, int((room - errors) * head_share))
    tail_start = _line_start(text, len(text) - int((room - errors) * (1 - head_share)))
    tail_start = max(tail_start, head_stop)
    between = _error_lines(text, head_stop, tail_start, errors)
    gap = f"[… {tail_start - head_stop:,} characters left out …]"
    shown = head_stop + len(text) - tail_start + sum(len(line) for line in between)
    notice = words.cut(ref, shown, len(text), head_stop)
    pieces = [text[:head_stop].removesuffix("\n"), gap]
    if between:
        pieces += [*between, "[… end of the lines that speak of errors …]"]
    return "\n".join([*pieces, text[tail_start:], notice])


def _line_end(text: str, at: int) -> int:
    """The end of the last whole line before ``at``; within a giant line, ``at`` itself."""
    newline = text.rfind("\n", 0, at)
    return newline + 1 if newline >= at // 2 else safe_cut(text, at)


def _line_start(text: str, at: int) -> int:
    newline = text.find("\n", at)
    return newline + 1 if 0 <= newline < at + (len(text) - at) // 2 else safe_cut(text, at)


def _error_lines(text: str, start: int, stop: int, room: int) -> list[str]:
    lines: list[str] = []
    reached = start
    for match in ERRORS.finditer(text, start, stop):
        begin = text.rfind("\n", start, match.start()) + 1 or start
        if begin < reached:
            continue
        end = text.find("\n", match.end(), stop)
        reached = stop if end < 0 else end
        line = text[begin : safe_cut(text, min(reached, begin + _ERROR_LINE_CHARS))]
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return lines


def safe_cut(text: str, at: int) -> int:
    """The nearest index at or before ``at`` that does not part what is one character.

    Combining marks, variation selectors, joined emoji, flags, surrogate pairs and CR LF stay
    whole.
    """
    at = max(0, min(at, len(text)))
    if 0 < at < len(text) and text[at] in _FLAG_HALVES:
        before = text[max(0, at - 1_000) : at]
        at -= (len(before) - len(before.rstrip(_FLAG_HALVES))) % 2
    floor = max(0, at - 32)
    while floor < at < len(text) and _joined(text[at - 1], text[at]):
        at -= 1
    return at


def _joined(before: str, after: str) -> bool:
    if after.isascii():
        return before == "\r" and after == "\n"
    return (
        unicodedata.combining(after) != 0
        or unicodedata.category(after) in ("Mn", "Me", "Mc", "Cf")
        or before == _JOINER
        or 0x1F3FB <= ord(after) <= 0x1F3FF
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
    )


# ── JSON ─────────────────────────────────────────────────────────────────────────────────


def _json(text: str, room: int, ref: str, words: Words) -> str | None:
    """A smaller document of the same shape, or None if the text is not JSON."""
    try:
        value = _loads(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(value, (dict, list)):
        return None
    items, chars = 200, 4_000
    while items >= 2:
        shown = _with_notice(_thin(value, items, chars), text, ref, words)
        if len(shown) <= room + _NOTICE_ROOM_CHARS:
            return shown
        items, chars = items * 2 // 3, max(chars * 2 // 3, 40)
    for items in (12, 4, 1, 0):
        shown = _with_notice(_outline(value, items), text, ref, words)
        if len(shown) <= room + _NOTICE_ROOM_CHARS:
            return shown
    return None


def _with_notice(value: Any, text: str, ref: str, words: Words) -> str:
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    notice = words.cut(ref, len(body), len(text), 0)
    if isinstance(value, list):
        return json.dumps([*value, notice], ensure_ascii=False, separators=(",", ":"))
    return json.dumps({**value, "_ullage": notice}, ensure_ascii=False, separators=(",", ":"))


def _thin(value: Any, items: int, chars: int) -> Any:
    """``value`` with at most ``items`` per list or object and ``chars`` per string."""
    if isinstance(value, str) and len(value) > chars:
        head, tail = safe_cut(value, chars * 2 // 3), safe_cut(value, len(value) - chars // 3)
        return f"{value[:head]}[… {tail - head:,} characters …]{value[tail:]}"
    if isinstance(value, list):
        if len(value) > items:
            head, tail = items * 2 // 3, items // 3
            left = f"[… {len(value) - head - tail:,} of {len(value):,} items …]"
            value = [*value[:head], left, *value[len(value) - tail :]]
        return [_thin(item, items, chars) for item in value]
    if isinstance(value, dict):
        kept = list(value.items())[: max(items, 20)]
        thin = {key: _thin(item, items, chars) for key, item in kept}
        if len(kept) < len(value):
            thin["…"] = f"{len(value) - len(kept):,} of {len(value):,} keys left out"
        return thin
    return value


def _outline(value: Any, items: int) -> Any:
    """The first ``items`` of a document, and of what is nested in them only how much it is."""
    if isinstance(value, list):
        left = [f"[… {len(value) - items:,} of {len(value):,} items …]"]
        return [*map(_size_of, value[:items]), *(left if len(value) > items else ())]
    kept = {key: _size_of(value[key]) for key in list(value)[:items]}
    if len(value) > items:
        kept["…"] = f"{len(value) - items:,} of {len(value):,} keys left out"
    return kept


def _size_of(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return f"[… {len(value):,} {'items' if isinstance(value, list) else 'keys'} …]"
    return _thin(value, 1, 40)
