"""Places: where a value of a JSON text begins in the text as it was written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

Path: TypeAlias = tuple[str | int | None, ...]
"""Keys and indices from the outside in; None for what a string holds as JSON."""

_Container: TypeAlias = dict[str, msgspec.Raw] | list[msgspec.Raw]

_read = msgspec.json.Decoder(
    dict[str, msgspec.Raw] | list[msgspec.Raw] | str
).decode


def named(path: Path) -> str:
    """A path as people write it, ``orders[3].note``; ``""`` for the whole value."""
    name = ""
    for step in path:
        if isinstance(step, int):
            name += f"[{step}]"
        elif step is not None:
            name += f".{step}"
    return name.removeprefix(".")


def place_of(text: str, path: Path) -> int:
    """The character at which a value begins, or where its key does.

    Args:
        text: JSON.
        path: what leads to the value.

    Returns:
        An index into ``text``.

    Raises:
        msgspec.DecodeError: the text is no JSON, or nothing is there that the path could lead to.
        UnicodeError: it holds half a character.
    """
    start = len(text) - len(text.lstrip())
    if not path:
        return start
    step = path[0]
    rest = path[1:]
    value = _read(text)
    if isinstance(value, str):
        inner = place_of(value, rest)
        # what comes before it is longer as it is written: quotes and escapes
        written = json.dumps(value[:inner], ensure_ascii=text.isascii())
        return start + len(written) - len('"')
    at = start + 1
    for key, raw in _items(value):
        if isinstance(key, str):
            colon = text.find(":", at + len(key))
            at = max(colon, at)
        item = bytes(raw).decode()
        item_start = text.find(item, at)
        at = max(item_start, at)
        if key == step:
            return at + place_of(item, rest)
        at += len(item)
    return at


def _items(value: _Container) -> Iterable[tuple[str | int, msgspec.Raw]]:
    """The items of a container, each with its key or its index."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value)
