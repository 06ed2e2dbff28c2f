"""How many bytes a value holds in memory, so that what is remembered can be bounded by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import getsizeof
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

_CONTAINERS = (tuple, list, set, frozenset)
_LEAVES = frozenset((str, bytes, int, float, bool, type(None)))


def held_bytes(value: Any, seen: set[int] | None = None) -> int:
    """Bytes held by a value: itself and all that can be reached through containers and structs.

    What is met twice counts once, so a string that many lines share is one string. What a
    caller holds anyway (his messages, whose leaves a snapshot shares) is left out by passing
    its ids in ``seen``. An object of another kind counts without its fields, and a cycle ends.

    Args:
        value: such as a line of history, a memo, or a mapping of them.
        seen: ids of objects that were counted already; those counted now are added. They must
            stay alive while it is used.
    """
    seen = set() if seen is None else seen
    total, rest = 0, [value]
    while rest:
        one = rest.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        total += getsizeof(one)
        if type(one) not in _LEAVES:
            rest.extend(_parts(one))
    return total


def _parts(value: Any) -> Iterable[Any]:
    """What a value holds references to."""
    if isinstance(value, Struct):
        return astuple(value)
    if isinstance(value, _CONTAINERS):
        return value
    if isinstance(value, Mapping):
        return (*value, *value.values())
    return vars(value).values() if hasattr(value, "__dict__") and not callable(value) else ()
