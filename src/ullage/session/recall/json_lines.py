"""JSON by lines: each value of a document, with the path that leads to it.

A search shows lines, and a document that is written on one line is one match whatever it holds.
Line by line each of its values is found by itself, and those beside it are its context.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    value = data_in(text) if len(text) <= MOST_CHARS else None
    return None if value is None else "\n".join(_lines(value, ()))


def _lines(value: Any, path: Path) -> Iterator[str]:
    inner = data_in(value) if isinstance(value, str) else None
    value = value if inner is None else inner
    if not value or not isinstance(value, (dict, list)):
        yield f"{named(path)}: {_encode(value).decode()}"
        return
    for key, item in (
        value.items() if isinstance(value, dict) else enumerate(value)
    ):
        yield from _lines(item, (*path, key))
