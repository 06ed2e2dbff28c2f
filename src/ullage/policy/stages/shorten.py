"""Shorten one text to a number of characters so that what is left still makes sense.

JSON stays valid JSON: like objects stand as a table (`ullage.policy.stages.squeeze`), long lists
keep their first and last items, long strings their ends. Any other text keeps whole lines from its
head and tail and, between them, the lines that speak of errors; a single giant line is cut within.
Never half a character.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

import msgspec

from ullage.core.values.notices import Words
from ullage.policy.stages.places import Path, named, place_of
from ullage.policy.stages.squeeze import NOT_JSON, data_in, squeezed, table_of

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
_JSON_NOTICE_ROOM_CHARS = 320
_JOINER = "\u200d"
_FLAG_HALVES = "".join(map(chr, range(0x1F1E6, 0x1F200)))

_CONTAINERS = frozenset((b"[", b"{", b'"'))
_LEAST_BYTES = 80
"""A list or an object in fewer is named by its size alone."""
_LEAST_STRING_CHARS = 60
_LEAST_ITEMS = 6
"""No item of a list is given so little room that fewer than these would fill it."""
_LEAST_ITEM_BYTES = 4
_SQUEEZED_SHARE = 0.05
"""Nothing is expected to become shorter than this without something left out."""
_TRIES = 12
_STEP_CHARS = 1 << 20

_Shrink: TypeAlias = Callable[[bytes, int, Path], bytes]

_loads = msgspec.json.Decoder().decode
_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode
_raw_dict = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def shorten(
    text: str,
    limit_chars: int,
    ref: str,
    words: Words,
    *,
    head_share: float = 0.7,
    tables: bool = False,
    whole_chars: int = 0,
) -> str | None:
    """A view of ``text`` of at most ``limit_chars`` characters, its notice included.

    Args:
        text: the original, longer than ``limit_chars``.
        limit_chars: the most characters of the view.
        ref: what opens the original.
        words: the wording of the notice.
        head_share: how much of the room the head gets; the tail gets the rest.
        tables: show like objects of JSON as a table (`ullage.policy.stages.squeeze`).
        whole_chars: a view of JSON may have so many characters where nothing of it is left out.

    Returns:
        The view, or None where none is shorter than the original in characters and bytes.
    """
    shown = None
    if text.lstrip()[:1] in ("{", "["):
        most = max(limit_chars, whole_chars)
        shown = _json(text, limit_chars, most, ref, words, tables=tables)
    if shown is None:
        room = max(limit_chars - _NOTICE_ROOM_CHARS, limit_chars // 2)
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
    return (
        newline + 1 if 0 <= newline < at + (len(text) - at) // 2 else safe_cut(text, at)
    )


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


def _json(
    text: str, limit: int, most: int, ref: str, words: Words, *, tables: bool
) -> str | None:
    """A smaller document of the same kind, or None if the text is not JSON, or none fits.

    The notice is the last item of a list; in an object it has a key of its own. Nothing is measured
    by writing it: the values are slices of the text, and a slice knows its length. Room is counted
    in bytes; where characters take several, there are more tries.
    """
    room = max(limit - _JSON_NOTICE_ROOM_CHARS, limit // 2, 1)
    try:
        value = _loads(text)
        if isinstance(value, dict):
            value.pop("_ullage", None)  # of an earlier view
        whole = _encode(value)
        size = room * len(whole) // len(whole.decode())
        if len(whole) * _SQUEEZED_SHARE <= size * most // room:
            body = squeezed(whole, tables=tables).decode()
            shown = _noticed(body, words.reshaped(ref, len(text), rows=tables))
            if len(shown) <= most:
                return shown
        for _ in range(_TRIES):
            fitting = _Fitting(tables=tables)
            body = fitting.fit(whole, size, ()).decode()
            first = next(iter(fitting.gaps), ())
            notice = words.reshaped(
                ref, len(text), named(first), place_of(text, first), rows=tables
            )
            shown = _noticed(body, notice)
            if len(shown) <= room + _JSON_NOTICE_ROOM_CHARS:
                return shown
            size = size * 3 // 4
    except NOT_JSON:
        pass
    return None


def _noticed(body: str, notice: str) -> str:
    key = '"_ullage":' if body[0] == "{" else ""
    comma = "," if len(body) > len("[]") else ""
    return f"{body[:-1]}{comma}{key}{_encode(notice).decode()}{body[-1]}"


class _Fitting:
    """Fits values into rooms.

    Args:
        tables: like objects are shown as a table.

    Attributes:
        gaps: where something is left out, in the order of the document.
    """

    def __init__(self, *, tables: bool) -> None:
        self.gaps: list[Path] = []
        self._tables = tables

    def fit(self, raw: bytes, room: int, path: Path) -> bytes:
        """A value in about so many bytes; numbers stay as they are."""
        kind = raw[:1]
        if len(raw) <= room or kind not in _CONTAINERS:
            return raw
        if kind == b'"':
            return self._string(raw, room, path)
        is_list = kind == b"["
        if room < _LEAST_BYTES:
            self.gaps.append(path)
            count = len(_raws(raw)) if is_list else len(_raw_dict(raw))
            return _encode(f"[… {count:,} {'items' if is_list else 'keys'} …]")
        room -= _LEAST_BYTES // 2  # for what says how much is left out
        return self._list(raw, room, path) if is_list else self._dict(raw, room, path)

    def _string(self, raw: bytes, room: int, path: Path) -> bytes:
        text = _loads(raw)
        value = data_in(text)
        if value is not None:
            return self.fit(_encode(value), room, (*path, None))
        self.gaps.append(path)
        return _encode(
            ends_of(text, max(len(text) * room // len(raw), _LEAST_STRING_CHARS))
        )

    def _list(self, raw: bytes, room: int, path: Path) -> bytes:
        """The ends of a list, or of the table that it makes."""
        items = list(map(bytes, _raws(raw)))
        total, most = len(items), room // _LEAST_ITEM_BYTES
        if total > 2 * most:  # of what is between nothing could be shown
            items = items[:most] + items[-most:]
        table = table_of(items) if self._tables else None
        if table is None:
            shown = self._ends(items, total, room, path, self.fit)
        else:
            room -= len(table.names) + 1
            shown = [table.names, *self._ends(table.rows, total, room, path, self._row)]
        return b"[%b]" % b",".join(shown)

    def _ends(
        self, items: Sequence[bytes], total: int, room: int, path: Path, shrink: _Shrink
    ) -> list[bytes]:
        """The first and the last items, two of those for one of these; a large one is smaller.

        Args:
            items: both ends of a list, at least as much of them as fits; or all of it.
            total: how many items the list has.
            room: bytes for what is shown.
            path: what leads to the list.
            shrink: makes an item smaller.
        """
        share = max(room, 0) // min(len(items), _LEAST_ITEMS)
        costs = [min(len(item), share) + 1 for item in items]
        if sum(costs) <= room and total == len(items):
            return [shrink(item, share, (*path, at)) for at, item in enumerate(items)]
        head = max(bisect_right(list(accumulate(costs)), room * 2 // 3), 1)
        tail = bisect_right(
            list(accumulate(costs[: head - 1 : -1])), room - sum(costs[:head])
        )
        shown = [
            shrink(item, share, (*path, at)) for at, item in enumerate(items[:head])
        ]
        if head + tail < total:
            self.gaps.append((*path, head))
            shown.append(_encode(f"[… {total - head - tail:,} of {total:,} items …]"))
        last = enumerate(items[len(items) - tail :], total - tail)
        return shown + [shrink(item, share, (*path, at)) for at, item in last]

    def _row(self, raw: bytes, room: int, path: Path) -> bytes:
        """A row of a table in less room: each value stays in its column."""
        if len(raw) <= room:
            return raw
        cells = list(map(bytes, _raws(raw)))
        most = level([len(cell) for cell in cells], room - len(cells))
        return b"[%b]" % b",".join(self.fit(cell, most, path) for cell in cells)

    def _dict(self, raw: bytes, room: int, path: Path) -> bytes:
        """The first keys that have room, each with a value; what is left goes to all alike."""
        fields = {key: bytes(value) for key, value in _raw_dict(raw).items()}
        names = list(map(_encode, fields))
        small = {
            key: squeezed(value, tables=self._tables) for key, value in fields.items()
        }
        least = (
            len(name) + min(len(value), _LEAST_BYTES)
            for name, value in zip(names, small.values(), strict=True)
        )
        count = max(bisect_right(list(accumulate(least)), room), 1)
        keys = list(fields)
        most = level(
            [len(small[key]) for key in keys[:count]],
            room - sum(map(len, names[:count])),
        )
        shown = list[bytes]()
        for key, name in zip(keys[:count], names, strict=False):
            fits = len(small[key]) <= most < len(fields[key])
            value = small[key] if fits else self.fit(fields[key], most, (*path, key))
            shown.append(b"%b:%b" % (name, value))
        if count < len(keys):
            self.gaps.append((*path, keys[count]))
            left = f"{len(keys) - count:,} of {len(keys):,} keys left out"
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
