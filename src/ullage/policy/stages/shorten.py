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
from typing import NamedTuple, TypeAlias

import msgspec

from ullage.core.values.notices import Words
from ullage.policy.stages.places import Path, named, place_of
from ullage.policy.stages.squeeze import (
    NOT_JSON,
    data_in,
    json_list,
    json_object,
    squeezed,
    table_of,
)

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
_FLAG_HALVES = "".join(chr(code) for code in range(0x1F1E6, 0x1F200))

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
"""Text is encoded in pieces of this many characters, so that no whole copy is made."""
_JOIN_WINDOW_CHARS = 32
"""Joined characters are followed back no further than this."""
_FLAG_WINDOW_CHARS = 1_000

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
    view = None
    if text.lstrip()[:1] in ("{", "["):
        most_chars = max(limit_chars, whole_chars)
        view = _json(
            text,
            limit=limit_chars,
            most=most_chars,
            ref=ref,
            words=words,
            tables=tables,
        )
    if view is None:
        room = max(limit_chars - _NOTICE_ROOM_CHARS, limit_chars // 2)
        view = _lines(text, room, ref, words, head_share)
    if len(view) >= len(text):
        return None
    if utf8_bytes(view) >= utf8_bytes(text):
        return None
    return view


def utf8_bytes(text: str) -> int:
    """Bytes of a text as UTF-8, counted piece by piece; a lone surrogate counts as three."""
    if text.isascii():
        return len(text)
    total = 0
    for start in range(0, len(text), _STEP_CHARS):
        piece = text[start : start + _STEP_CHARS]
        total += len(piece.encode("utf-8", "surrogatepass"))
    return total


# ── plain text ───────────────────────────────────────────────────────────────────────────


def _lines(
    text: str,
    room: int,
    ref: str,
    words: Words,
    head_share: float,
) -> str:
    """Head and tail of a text, the lines between them that speak of errors, and the notice."""
    # what goes wrong is often reported in the middle, which is what would be lost
    error_room = int(room * _ERROR_SHARE)
    ends_room = room - error_room
    head_room = int(ends_room * head_share)
    tail_room = int(ends_room * (1 - head_share))
    total = len(text)
    head_stop = _line_end(text, head_room)
    tail_start = _line_start(text, total - tail_room)
    tail_start = max(tail_start, head_stop)
    errors = _error_lines(text, head_stop, tail_start, error_room)
    shown = head_stop + total - tail_start
    for line in errors:
        shown += len(line)
    left_out = tail_start - head_stop
    pieces = [
        text[:head_stop].removesuffix("\n"),
        f"[… {left_out:,} characters left out …]",
    ]
    if errors:
        pieces += errors
        pieces.append("[… end of the lines that speak of errors …]")
    pieces.append(text[tail_start:])
    pieces.append(words.cut(ref, shown, total, head_stop))
    return "\n".join(pieces)


def _line_end(text: str, at: int) -> int:
    """The end of the last whole line before ``at``; within a giant line, ``at`` itself."""
    newline = text.rfind("\n", 0, at)
    if newline >= at // 2:
        return newline + 1
    return safe_cut(text, at)


def _line_start(text: str, at: int) -> int:
    """The start of the first whole line after ``at``; within a giant line, ``at`` itself."""
    newline = text.find("\n", at)
    furthest = at + (len(text) - at) // 2
    if 0 <= newline < furthest:
        return newline + 1
    return safe_cut(text, at)


def _error_lines(
    text: str,
    start: int,
    stop: int,
    room: int,
) -> list[str]:
    """The first lines between two places that speak of errors, as many as fit a room."""
    lines: list[str] = []
    reached = start
    for match in ERRORS.finditer(text, start, stop):
        newline = text.rfind("\n", start, match.start())
        begin = newline + 1 or start
        if begin < reached:  # a second one in the same line
            continue
        reached = text.find("\n", match.end(), stop)
        if reached < 0:
            reached = stop
        line_stop = min(reached, begin + _ERROR_LINE_CHARS)
        line = text[begin : safe_cut(text, line_stop)]
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
    if not 0 < at < len(text):
        return at
    if text[at] in _FLAG_HALVES:
        at -= _halves_before(text, at) % 2
    earliest = max(0, at - _JOIN_WINDOW_CHARS)
    while at > earliest and _joined(text[at - 1], text[at]):
        at -= 1
    return at


def _halves_before(text: str, at: int) -> int:
    """How many halves of flags stand before an index: a flag is two letters of a kind."""
    preceding = text[max(0, at - _FLAG_WINDOW_CHARS) : at]
    without = preceding.rstrip(_FLAG_HALVES)
    return len(preceding) - len(without)


def ends_of(text: str, chars: int, gap: str = "[… {:,} characters …]") -> str:
    """A text of at most ``chars`` characters: whole, or two parts of its head and one of its tail.

    The gap put for the middle is among the ``chars``; alone it may have more. Its field is the
    characters left out.
    """
    if len(text) <= chars:
        return text
    total = len(text)
    longest_gap = gap.format(total)
    ends_chars = max(chars - len(longest_gap), 0)
    tail_start = safe_cut(text, total - ends_chars // 3)
    tail_chars = total - tail_start
    head_stop = safe_cut(text, ends_chars - tail_chars)
    head = text[:head_stop]
    tail = text[tail_start:]
    return head + gap.format(tail_start - head_stop) + tail


def _joined(left: str, right: str) -> bool:
    """Whether two neighbouring code points belong to one character, as a reader sees it."""
    if right.isascii():
        return left == "\r" and right == "\n"
    if unicodedata.combining(right) != 0:
        return True
    if unicodedata.category(right) in ("Mn", "Me", "Mc", "Cf"):
        return True
    if left == _JOINER:
        return True
    if 0x1F3FB <= ord(right) <= 0x1F3FF:  # skin tones
        return True
    return "\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff"


# ── JSON ─────────────────────────────────────────────────────────────────────────────────


def _json(
    text: str,
    limit: int,
    most: int,
    ref: str,
    words: Words,
    *,
    tables: bool,
) -> str | None:
    """A smaller document of the same kind, or None if the text is not JSON, or none fits.

    The notice is the last item of a list; in an object it has a key of its own. Nothing is measured
    by writing it: the values are slices of the text, and a slice knows its length. Room is counted
    in bytes; where characters take several, there are more tries.
    """
    room = max(limit - _JSON_NOTICE_ROOM_CHARS, limit // 2, 1)
    try:
        whole = _compact(text)
        size = room * len(whole) // len(whole.decode())
        # perhaps nothing need be left out
        if len(whole) * _SQUEEZED_SHARE <= size * most // room:
            view = _squeezed_view(text, whole, ref, words, tables=tables)
            if len(view) <= most:
                return view
        for _ in range(_TRIES):
            view = _fitted_view(
                text,
                whole,
                size=size,
                ref=ref,
                words=words,
                tables=tables,
            )
            if len(view) <= room + _JSON_NOTICE_ROOM_CHARS:
                return view
            size = size * 3 // 4  # bytes are a guess at characters
    except NOT_JSON:
        pass
    return None


def _compact(text: str) -> bytes:
    """A JSON text as compact JSON, without the notice of an earlier view."""
    value = _loads(text)
    if isinstance(value, dict):
        value.pop("_ullage", None)
    return _encode(value)


def _squeezed_view(
    text: str,
    whole: bytes,
    ref: str,
    words: Words,
    *,
    tables: bool,
) -> str:
    """All of a document in less room."""
    body = squeezed(whole, tables=tables).decode()
    notice = words.reshaped(ref, len(text), rows=tables)
    return _noticed(body, notice)


def _fitted_view(
    text: str,
    whole: bytes,
    size: int,
    ref: str,
    words: Words,
    *,
    tables: bool,
) -> str:
    """A document in about ``size`` bytes; its notice says where something is left out first."""
    fitting = _Fitting(tables=tables)
    body = fitting.fit(whole, size, ()).decode()
    gap = next(iter(fitting.gaps), ())
    offset = place_of(text, gap)
    notice = words.reshaped(ref, len(text), named(gap), offset, rows=tables)
    return _noticed(body, notice)


def _noticed(body: str, notice: str) -> str:
    """A document with a notice as the last item of its list, or under a key of its object."""
    opening = body[:-1]
    closing = body[-1]
    comma = "," if len(body) > len("[]") else ""
    key = '"_ullage":' if closing == "}" else ""
    item = _encode(notice).decode()
    return opening + comma + key + item + closing


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
        if room < _LEAST_BYTES:
            self.gaps.append(path)
            return _encode(_size_alone(raw))
        room -= _LEAST_BYTES // 2  # for what says how much is left out
        if kind == b"[":
            return self._list(raw, room, path)
        return self._dict(raw, room, path)

    def _string(self, raw: bytes, room: int, path: Path) -> bytes:
        """The ends of a string, or the JSON that it holds as what it is."""
        text = _loads(raw)
        value = data_in(text)
        if value is not None:
            return self.fit(_encode(value), room, (*path, None))
        self.gaps.append(path)
        chars = len(text) * room // len(raw)
        return _encode(ends_of(text, max(chars, _LEAST_STRING_CHARS)))

    def _list(self, raw: bytes, room: int, path: Path) -> bytes:
        """The ends of a list, or of the table that it makes."""
        items = [bytes(item) for item in _raws(raw)]
        total = len(items)
        most_items = room // _LEAST_ITEM_BYTES
        if total > 2 * most_items:  # of what is between nothing could be shown
            first_items = items[:most_items]
            last_items = items[-most_items:]
            items = first_items + last_items
        table = table_of(items) if self._tables else None
        if table is None:
            pieces = self._ends(items, total, room, path, self.fit)
        else:
            room -= len(table.names) + 1
            rows = self._ends(table.rows, total, room, path, self._row)
            pieces = [table.names, *rows]
        return json_list(pieces)

    def _ends(
        self,
        items: Sequence[bytes],
        total: int,
        room: int,
        path: Path,
        shrink: _Shrink,
    ) -> list[bytes]:
        """The first and the last items, two of those for one of these; a large one is smaller.

        Args:
            items: both ends of a list, at least as much of them as fits; or all of it.
            total: how many items the list has.
            room: bytes for what is shown.
            path: what leads to the list.
            shrink: makes an item smaller.
        """
        item_count = min(len(items), _LEAST_ITEMS)
        share = max(room, 0) // item_count
        costs = [min(len(item), share) + 1 for item in items]
        head = len(items)
        tail = 0
        if sum(costs) > room or total > len(items):
            head = max(_count_that_fits(costs, room * 2 // 3), 1)
            tail_room = room - sum(costs[:head])
            tail_costs = costs[head:]
            tail_costs.reverse()
            tail = _count_that_fits(tail_costs, tail_room)
        pieces = list[bytes]()
        for at in range(head):
            piece = shrink(items[at], share, (*path, at))
            pieces.append(piece)
        missing = total - head - tail
        if missing > 0:
            self.gaps.append((*path, head))
            gap = f"[… {missing:,} of {total:,} items …]"
            pieces.append(_encode(gap))
        for from_end in range(tail, 0, -1):
            at = total - from_end
            piece = shrink(items[-from_end], share, (*path, at))
            pieces.append(piece)
        return pieces

    def _row(self, raw: bytes, room: int, path: Path) -> bytes:
        """A row of a table in less room: each value stays in its column."""
        if len(raw) <= room:
            return raw
        cells = [bytes(cell) for cell in _raws(raw)]
        sizes = [len(cell) for cell in cells]
        most_bytes = level(sizes, room - len(cells))
        small = [self.fit(cell, most_bytes, path) for cell in cells]
        return json_list(small)

    def _dict(self, raw: bytes, room: int, path: Path) -> bytes:
        """The first keys that have room, each with a value; what is left goes to all alike."""
        fields = self._fields(raw)
        total = len(fields)
        least = [len(field.name) + field.least_bytes for field in fields]
        count = max(_count_that_fits(least, room), 1)
        chosen = fields[:count]
        for field in chosen:
            room -= len(field.name)
        sizes = [len(field.small) for field in chosen]
        most_bytes = level(sizes, room)
        pairs = []
        for field in chosen:
            value = field.small
            if not len(value) <= most_bytes < len(field.value):
                value = self.fit(field.value, most_bytes, (*path, field.key))
            pairs.append((field.name, value))
        missing = total - count
        if missing > 0:
            self.gaps.append((*path, fields[count].key))
            notice = f"{missing:,} of {total:,} keys left out"
            pairs.append((_encode("…"), _encode(notice)))
        return json_object(pairs)

    def _fields(self, raw: bytes) -> list[_Field]:
        """The fields of an object, in order."""
        fields = []
        for key, item in _raw_dict(raw).items():
            value = bytes(item)
            small = squeezed(value, tables=self._tables)
            fields.append(_Field(key, _encode(key), value, small))
        return fields


class _Field(NamedTuple):
    """A field of an object.

    Attributes:
        key: its key.
        name: the key as JSON.
        value: its value as JSON.
        small: all of the value in less room.
    """

    key: str
    name: bytes
    value: bytes
    small: bytes

    @property
    def least_bytes(self) -> int:
        """What the value takes at least."""
        return min(len(self.small), _LEAST_BYTES)


def _size_alone(raw: bytes) -> str:
    """What stands for a list or an object of which nothing is shown."""
    if raw[:1] == b"[":
        count = len(_raws(raw))
        return f"[… {count:,} items …]"
    count = len(_raw_dict(raw))
    return f"[… {count:,} keys …]"


def _count_that_fits(costs: Sequence[int], room: int) -> int:
    """How many of the first costs come to no more than a room together."""
    sums = list(accumulate(costs))
    return bisect_right(sums, room)


def level(sizes: Sequence[int], room: int) -> int:
    """The largest height to which all sizes may be filled so that together they fit a room.

    Returns:
        The largest size where everything fits, and 0 where nothing does.
    """
    low = 0
    high = max(sizes, default=0)
    if sum(sizes) <= room:
        return high
    # by bisection: the higher the level, the more is filled
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) for size in sizes) <= room:
            low = middle
        else:
            high = middle - 1
    return low
