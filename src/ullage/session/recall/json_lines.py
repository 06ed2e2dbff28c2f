"""JSON by lines: each value of a document, with the path that leads to it.

A search shows lines, and a document that is written on one line is one match whatever it holds.
Line by line each of its values is found by itself, and those beside it are its context.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ullage.policy.stages.places import Path, named
from ullage.policy.stages.squeeze import data_in

MOST_CHARS = 1 << 22
"""A longer document is searched as it is written."""

_encode = msgspec.json.Encoder().encode


def json_lines(text: str) -> str | None:
    """The values of a JSON list or object, one a line, as ``[150].sku: "SKU-1150"``.

    A string that holds JSON is read as what it holds. None: the text is no such document, or a
    very long one.
    """
    if len(text) > MOST_CHARS:
        return None
    value = data_in(text)
    if value is None:
        return None
    return "\n".join(_lines(value, ()))


def _lines(value: Any, path: Path) -> Iterator[str]:
    if isinstance(value, str):
        document = data_in(value)
        if document is not None:
            value = document
    if value and isinstance(value, dict):
        items: Iterable[tuple[Any, Any]] = value.items()
    elif value and isinstance(value, list):
        items = enumerate(value)
    else:
        json = _encode(value).decode()
        yield f"{named(path)}: {json}"
        return
    for key, item in items:
        yield from _lines(item, (*path, key))
