"""A structured result in less room, in the same types under the same names.

A program reads it, and its schema was declared: so unlike the text of a result (`stages.shorten`)
nothing is added to it. Lists lose items from their middle, strings lose their middles; numbers,
names and all else stay. Where that breaks the schema (a list that must have so many items, a
string with a pattern), what is at fault stays whole and the rest gives more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import Raw

from ullage.doors.mcp.frames import (
    UnreadableFrame,
    compact,
    encode,
    fields_of,
    items_of,
    value_of,
)
from ullage.policy import ends_of, level

Path: TypeAlias = tuple[str | None, ...]
"""Where a value is: the names on the way to it, None for any item of a list."""
Fault: TypeAlias = Callable[[bytes], Path | None]
"""Where a value breaks its schema; None if it keeps it."""

_TRIES = 24
_LEAST_STRING_CHARS = 60
_LEAST_ITEMS = 6
"""No item of a list is given so little room that fewer than these would fill it."""


def shorter(raw: bytes, room: int, fault: Fault) -> bytes | None:
    """The value in about ``room`` bytes of JSON, without a fault; None if there is no such.

    It may be longer than ``room``, where names and numbers alone are, or what the schema holds.

    Args:
        raw: a JSON value over ``room``.
        room: how much there should be of it.
        fault: says where a shorter value breaks the schema.
    """
    whole: set[Path] = set()
    deep: set[Path] = set()
    try:
        raw = compact(raw)
        for _ in range(_TRIES):
            candidate = _Fit(whole, deep).value(raw, room, ())
            if len(candidate) >= len(raw):
                return None
            place = fault(candidate)
            if place is None:
                return candidate
            _keep(place, whole, deep)
    except (UnreadableFrame, RecursionError):
        pass
    return None


def _keep(place: Path, whole: set[Path], deep: set[Path]) -> None:
    """Protect the place of a fault: its items, then all in it, then what contains it."""
    while place in deep and place:
        place = place[:-1]
    (deep if place in whole else whole).add(place)


class _Fit:
    """One try: values at the places in ``whole`` keep their items, in ``deep`` everything."""

    def __init__(self, whole: set[Path], deep: set[Path]) -> None:
        self._whole = whole
        self._deep = deep

    def value(self, raw: bytes, room: int, path: Path) -> bytes:
        kind = raw[:1]
        if len(raw) <= room or path in self._deep:
            return raw
        if kind == b"[":
            return self._list(items_of(raw), room, path)
        if kind == b"{":
            return self._object(raw, room, path)
        if kind == b'"' and path not in self._whole:
            return _string(raw, room)
        return raw

    def _list(self, items: Sequence[Raw], room: int, path: Path) -> bytes:
        """The first and the last items, two of those for one of these; a large one is smaller."""
        inside = (*path, None)
        if path in self._whole:
            sizes = [len(item) for item in items]
            share = level(sizes, room - len(items))
        else:
            items, share = _ends(items, room)
        parts = (self.value(bytes(item), share, inside) for item in items)
        return _joined(b"[", parts, b"]")

    def _object(self, raw: bytes, room: int, path: Path) -> bytes:
        """Every name; the room left goes to all values alike."""
        fields = {name: bytes(value) for name, value in fields_of(raw).items()}
        room_for_values = room
        for name in fields:
            # a colon and a comma stand beside each name
            room_for_values -= len(encode(name)) + 2
        sizes = [len(value) for value in fields.values()]
        most = level(sizes, room_for_values)
        pairs = list[bytes]()
        for name, value in fields.items():
            shortened = self.value(value, most, (*path, name))
            pairs.append(encode(name) + b":" + shortened)
        return _joined(b"{", pairs, b"}")


def _ends(items: Sequence[Raw], room: int) -> tuple[Sequence[Raw], int]:
    """The first and the last items of a list that fit a room, and the most that one may take."""
    if not items:
        return items, room
    share = max(room // min(len(items), _LEAST_ITEMS), 1)
    head, used = _fitting(items, share, room * 2 // 3)
    head = max(head, 1)
    rest = items[head:]
    tail, _ = _fitting(reversed(rest), share, room - used)
    return (*items[:head], *rest[len(rest) - tail :]), share


def _fitting(items: Iterable[Raw], share: int, room: int) -> tuple[int, int]:
    """How many items fit a room, none taking more than a share; and how much they take."""
    count = used = 0
    for item in items:
        cost = min(len(item), share) + 1
        if used + cost > room:
            break
        count += 1
        used += cost
    return count, used


def _joined(opening: bytes, parts: Iterable[bytes], closing: bytes) -> bytes:
    return opening + b",".join(parts) + closing


def _string(raw: bytes, room: int) -> bytes:
    text = value_of(raw)
    chars = len(text) * room // len(raw)
    shortened = encode(ends_of(text, max(chars, _LEAST_STRING_CHARS)))
    return shortened if len(shortened) < len(raw) else raw
