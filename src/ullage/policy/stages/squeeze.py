"""Squeeze: a JSON value that says the same in less room, with nothing left out.

    a string that holds JSON    stands as what it holds; MCP's text blocks do
    a list of like objects      becomes a table: a row of names, and a row of values for each
                                object, without what is empty in all of them

Values are passed on as they are written in compact JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

_LEAST_BYTES = 80
"""A value in fewer stays as it is."""
_LEAST_ROWS = 3
_LEAST_COLUMNS = 2
_FILLED_SHARE = 0.5
"""Of the cells of a table so many hold something; else the objects are not alike."""
_TABLE_SHARE = 0.9
"""A table has at most this share of the bytes of its objects."""
_DATA = ("{", "[")
_EMPTY: tuple[Any, ...] = (None, "", [])

_loads = msgspec.json.Decoder().decode
_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode
_raw_dict = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
NOT_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What reading a text raises that is no JSON."""


class Table(Struct, frozen=True):
    """Objects as rows.

    Attributes:
        names: the names of the columns, as a row; what lies deeper has points, as ``size.width``.
        rows: of each object its values, ``""`` for what is empty or not there.
    """

    names: bytes
    rows: list[bytes]

    @property
    def size_bytes(self) -> int:
        """Of all rows, with what parts them."""
        total = len("[]") + len(self.names)
        for row in self.rows:
            total += len(row) + len(",")
        return total


def json_list(items: Iterable[bytes]) -> bytes:
    """A list of values that are compact JSON."""
    return b"[%b]" % b",".join(items)


def json_object(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """An object of keys and values that are compact JSON."""
    fields = [b"%b:%b" % pair for pair in pairs]
    return b"{%b}" % b",".join(fields)


def data_in(text: str) -> Any:
    """The list or object that a text holds as JSON; None if it holds none."""
    if text.lstrip()[:1] not in _DATA:
        return None
    try:
        return _loads(text)
    except NOT_JSON:
        return None


def is_data(text: str) -> bool:
    """Whether a text is a JSON list or object, and no mere frame around a plain text."""
    value = data_in(text)
    block = value
    if isinstance(value, list) and len(value) == 1:
        block = value[0]
    if not isinstance(block, dict) or block.get("type") != "text":
        return value is not None
    inner = block.get("text")
    if not isinstance(inner, str):
        return True
    return data_in(inner) is not None


def squeezed(raw: bytes, *, tables: bool = True) -> bytes:
    """All of a value in less room.

    Args:
        raw: the value as compact JSON.
        tables: like objects become a table.

    Returns:
        Compact JSON; ``raw`` itself where it is short, a number, or a string of plain text.
    """
    if len(raw) <= _LEAST_BYTES:
        return raw
    match raw[:1]:
        case b'"':
            inner = data_in(_loads(raw))
            if inner is None:
                return raw
            return squeezed(_encode(inner), tables=tables)
        case b"[":
            return _squeezed_list(raw, tables=tables)
        case b"{":
            return _squeezed_object(raw, tables=tables)
        case _:
            return raw


def _squeezed_list(raw: bytes, *, tables: bool) -> bytes:
    """A list as a table, if it makes one, or with each item squeezed."""
    items = [bytes(item) for item in _raws(raw)]
    table = table_of(items) if tables else None
    if table is None:
        pieces = [squeezed(item, tables=tables) for item in items]
    else:
        pieces = [table.names, *table.rows]
    return json_list(pieces)


def _squeezed_object(raw: bytes, *, tables: bool) -> bytes:
    """An object with each value squeezed."""
    pairs = []
    for key, value in _raw_dict(raw).items():
        name = _encode(key)
        small = squeezed(bytes(value), tables=tables)
        pairs.append((name, small))
    return json_object(pairs)


def table_of(items: Sequence[bytes]) -> Table | None:
    """Objects as a table.

    Args:
        items: JSON values, each compact.

    Returns:
        The table; None where the items are too few or not alike, or it is hardly shorter.
    """
    if len(items) < _LEAST_ROWS:
        return None
    rows = _rows(items)
    if rows is None:
        return None
    names = dict[str, None]()  # as a set that keeps its order
    filled_cells = 0
    for row in rows:
        names.update(dict.fromkeys(row))
        filled_cells += len(row)
    if len(names) < _LEAST_COLUMNS:
        return None
    cells = len(names) * len(rows)
    if filled_cells < _FILLED_SHARE * cells:
        return None
    lines = []
    for row in rows:
        values = [row.get(name, "") for name in names]
        lines.append(_encode(values))
    header = _encode(list(names))
    table = Table(header, lines)
    items_bytes = sum(len(item) for item in items)
    # a reader has to learn the columns: that must be worth it
    if table.size_bytes > _TABLE_SHARE * items_bytes:
        return None
    return table


def _rows(items: Sequence[bytes]) -> list[dict[str, Any]] | None:
    """What is not empty in each item; None where one is no object, or has no row of its own."""
    if any(item[:1] != b"{" for item in items):
        return None
    rows = []
    for item in items:
        value = _loads(item)
        leaves = list(_leaves(value, ""))
        row = dict(leaves)
        if len(row) < len(leaves):
            return None  # two values would have one name
        rows.append(row)
    return rows


def _leaves(value: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """What is not empty in an object, each with its name in a table."""
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, dict):
            yield from _leaves(item, f"{name}.")
        elif item not in _EMPTY:
            yield name, item
