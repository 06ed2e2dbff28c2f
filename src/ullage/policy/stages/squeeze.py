"""Squeeze: a JSON value that says the same in less room, with nothing left out.

    a string that holds JSON    stands as what it holds; MCP's text blocks do
    a list of like objects      becomes a table: a row of names, and a row of values for each
                                object, without what is empty in all of them

Values are passed on as they are written in compact JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

_LEAST_BYTES = 80
"""A value in fewer stays as it is."""
_LEAST_ROWS, _LEAST_COLUMNS = 3, 2
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
        return len(self.names) + sum(map(len, self.rows)) + len(self.rows) + len("[]")


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
    if not (isinstance(block, dict) and block.get("type") == "text"):
        return value is not None
    inner = block.get("text")
    return not isinstance(inner, str) or data_in(inner) is not None


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
            return raw if inner is None else squeezed(_encode(inner), tables=tables)
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
    return b"[%b]" % b",".join(pieces)


def _squeezed_object(raw: bytes, *, tables: bool) -> bytes:
    """An object with each value squeezed."""
    pairs = []
    for key, value in _raw_dict(raw).items():
        small = squeezed(bytes(value), tables=tables)
        pairs.append(b"%b:%b" % (_encode(key), small))
    return b"{%b}" % b",".join(pairs)


def table_of(items: Sequence[bytes]) -> Table | None:
    """Objects as a table.

    Args:
        items: JSON values, each compact.

    Returns:
        The table; None where the items are too few or not alike, or it is hardly shorter.
    """
    if len(items) < _LEAST_ROWS:
        return None
    if any(item[:1] != b"{" for item in items):
        return None
    rows = list[dict[str, Any]]()
    for item in items:
        leaves = list(_leaves(_loads(item), ""))
        row = dict(leaves)
        if len(row) < len(leaves):
            return None  # two values would have one name
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = len(names) * len(rows)
    filled_cells = sum(len(row) for row in rows)
    if len(names) < _LEAST_COLUMNS or filled_cells < _FILLED_SHARE * cells:
        return None
    lines = []
    for row in rows:
        values = [row.get(name, "") for name in names]
        lines.append(_encode(values))
    table = Table(_encode(names), lines)
    items_bytes = sum(len(item) for item in items)
    if table.size_bytes > _TABLE_SHARE * items_bytes:
        return None
    return table


def _leaves(value: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """What is not empty in an object, each with its name in a table."""
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, dict):
            yield from _leaves(item, f"{name}.")
        elif item not in _EMPTY:
            yield name, item
