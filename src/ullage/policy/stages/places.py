"""Places: where a value of a JSON text begins in the text as it was written."""

from __future__ import annotations

import json
from typing import TypeAlias

import msgspec

Path: TypeAlias = tuple[str | int | None, ...]
"""Keys and indices from the outside in; None for what a string holds as JSON."""

_read = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[msgspec.Raw] | str).decode


def named(path: Path) -> str:
    """A path as people write it, ``orders[3].note``; ``""`` for the whole value."""
    steps = [step for step in path if step is not None]
    names = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return "".join(names).removeprefix(".")


def place_of(text: str, path: Path) -> int:
    """The character at which a value begins, or where its key does.

    Args:
        text: JSON.
        path: what leads to the value.

    Raises:
        msgspec.DecodeError: the text is no JSON, or nothing is there that the path could lead to.
        UnicodeError: it holds half a character.
    """
    start = len(text) - len(text.lstrip())
    if not path:
        return start
    step, rest = path[0], path[1:]
    value = _read(text)
    if isinstance(value, str):
        before = value[: place_of(value, rest)]
        return start + len(json.dumps(before, ensure_ascii=text.isascii())) - 1
    at = start + 1
    for key, raw in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(key, str):
            at = max(text.find(":", at + len(key)), at)
        item = bytes(raw).decode()
        at = max(text.find(item, at), at)
        if key == step:
            return at + place_of(item, rest)
        at += len(item)
    return at
