"""Shorten one text to a number of characters so that what is left still makes sense.

JSON stays valid JSON: long lists keep their first and last items, long strings their ends.
Any other text keeps whole lines from its head and tail and, between them, the lines that
speak of errors; a single giant line is cut within. Never half a character.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from ullage.values.notices import Words

ERRORS = re.compile(
    r"[aefptAEFPT](?:(?<=\b.)(?i:"  # a set of first letters comes first: the scan skips the rest
    r"(?<=e)(?:rror|xception|xit (?:code|status))|(?<=t)raceback|(?<=p)anic"
    r"|(?<=f)(?:ailed|ailure|atal)|(?<=a)ssert)\w*\b"
    r"|(?<=[A-Za-z]E)(?:rror|xception)(?::|$))",  # TypeError: …
    re.DOTALL | re.MULTILINE,
)
_ERROR_SHARE = 0.2
_ERROR_LINE_CHARS = 300
_NOTICE_ROOM_CHARS = 260
_JOINER = "\u200d"
_FLAG_HALVES = "".join(map(chr, range(0x1F1E6, 0x1F200)))

_CONTAINERS = frozenset((b"[", b"{", b'"'))
_LEAST_BYTES = 80
"""A list or an object in fewer is named by its size alone."""
_LEAST_STRING_CHARS = 60
_LEAST_ITEMS = 6
"""No item of a list is given so little room that fewer than these would fill it."""
_TRIES = 12
_STEP_CHARS = 1 << 20

_loads = msgspec.json.Decoder().decode
_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode
_raw_dict = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


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
    if len(shown) >= len(text):
        return None
    return shown if utf8_bytes(shown) < utf8_bytes(text) else None


def utf8_bytes(text: str) -> int:
    """Bytes of a text as UTF-8, counted piece by piece; a lone surrogate counts as three."""
    if text.isascii():
        return len(text)
    pieces = (text[at : at + _STEP_CHARS] for at in range(0, len(text), _STEP_CHARS))
    return sum(len(piece.encode("utf-8", "surrogatepass")) for piece in pieces)


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


def ends_of(text: str, chars: int, gap: str = "[… {:,} characters …]") -> str:
    """A text of at most ``chars`` characters: whole, or two parts of its head and one of its tail.

    The gap put for the middle is among the ``chars``; alone it may have more. Its field is the
    characters left out.
    """
    if len(text) <= chars:
        return text
    kept = max(chars - len(gap.format(len(text))), 0)
    tail = safe_cut(text, len(text) - kept // 3)
    head = safe_cut(text, kept - (len(text) - tail))
    return f"{text[:head]}{gap.format(tail - head)}{text[tail:]}"


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
    """A smaller document of the same shape, or None if the text is not JSON, or none fits.

    The notice is the last item of a list; in a dict it has a key of its own. Nothing is measured by
    writing it: the values are slices of the text, and a slice knows its length. Room is counted in
    bytes; where characters take several, there are more tries.
    """
    try:
        whole = _encode(_loads(text))
        size = room * len(whole) // len(whole.decode())
        for _ in range(_TRIES):
            body = _fit(whole, size).decode()
            key = '"_ullage":' if body[0] == "{" else ""
            comma = "," if len(body) > len("[]") else ""
            notice = _encode(words.cut(ref, len(body), len(text), 0)).decode()
            shown = f"{body[:-1]}{comma}{key}{notice}{body[-1]}"
            if len(shown) <= room + _NOTICE_ROOM_CHARS:
                return shown
            size = size * 3 // 4
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    return None


def _fit(raw: bytes, room: int) -> bytes:
    """A JSON value in about so many bytes; numbers stay as they are."""
    kind = raw[:1]
    if len(raw) <= room or kind not in _CONTAINERS:
        return raw
    if kind == b'"':
        text = _loads(raw)
        return _encode(ends_of(text, max(len(text) * room // len(raw), _LEAST_STRING_CHARS)))
    is_list, items, fields = kind == b"[", list[bytes](), dict[str, bytes]()
    if is_list:
        items = list(map(bytes, _raws(raw)))
    else:
        fields = {key: bytes(value) for key, value in _raw_dict(raw).items() if key != "_ullage"}
    if room < _LEAST_BYTES:
        return _encode(f"[… {len(items):,} items …]" if is_list else f"[… {len(fields):,} keys …]")
    room -= _LEAST_BYTES // 2  # for what says how much is left out
    return _fit_list(items, room) if is_list else _fit_dict(fields, room)


def _fit_list(items: list[bytes], room: int) -> bytes:
    """The first and the last items, two of those for one of these; a large one is made smaller."""
    share = room // min(len(items), _LEAST_ITEMS)
    costs = [min(len(item), share) + 1 for item in items]
    head = max(bisect_right(list(accumulate(costs)), room * 2 // 3), 1)
    tail = bisect_right(list(accumulate(costs[: head - 1 : -1])), room - sum(costs[:head]))
    shown = [_fit(item, share) for item in (*items[:head], *items[len(items) - tail :])]
    if head + tail < len(items):
        shown.insert(head, _encode(f"[… {len(items) - head - tail:,} of {len(items):,} items …]"))
    return b"[%b]" % b",".join(shown)


def _fit_dict(fields: dict[str, bytes], room: int) -> bytes:
    """The first keys that have room, each with a value; the room left goes to all values alike."""
    names = list(map(_encode, fields))
    least = (
        len(name) + min(len(raw), _LEAST_BYTES)
        for name, raw in zip(names, fields.values(), strict=True)
    )
    count = max(bisect_right(list(accumulate(least)), room), 1)
    values = list(fields.values())[:count]
    most = level([len(raw) for raw in values], room - sum(map(len, names[:count])))
    shown = [
        b"%b:%b" % (name, _fit(raw, most)) for name, raw in zip(names[:count], values, strict=True)
    ]
    if count < len(fields):
        left = f"{len(fields) - count:,} of {len(fields):,} keys left out"
        shown.append(b"%b:%b" % (_encode("…"), _encode(left)))
    return b"{%b}" % b",".join(shown)


def level(sizes: Sequence[int], room: int) -> int:
    """The largest height to which all sizes may be filled so that together they fit a room.

    Returns:
        The largest size where everything fits, and 0 where nothing does.
    """
    low, high = 0, max(sizes, default=0)
    if sum(sizes) <= room:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) for size in sizes) <= room:
            low = middle
        else:
            high = middle - 1
    return low
