"""Snapshots: how a change in somebody else's data is noticed without hashing it.

A snapshot copies the containers and shares the leaves. CPython compares a shared leaf by pointer
and any other by value, so a comparison is sound and costs nothing for the bytes
(`core-feasibility` §1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress, count
from operator import is_not
from typing import Any

from ullage.core.errors import FormatError

LEVELS = 200
"""How deep containers may stand in each other. A cycle is deeper than any number."""

_LEAVES = frozenset((str, int, float, bool, type(None), bytes))


class TooDeep(FormatError):
    """A value is nested too deep, or holds itself."""


def snapshot_at(value: Any, path: str) -> Any:
    """A snapshot of what is at a place of the request.

    Raises:
        TooDeep: it is nested too deep, or holds itself.
    """
    try:
        return snapshot(value)
    except RecursionError:
        raise TooDeep(
            path,
            f"nested more than {LEVELS} levels deep, or holding itself",
            "Give plain JSON values.",
        ) from None


def snapshot(value: Any, levels: int = LEVELS) -> Any:
    """A copy of every container in ``value`` that shares its leaves.

    An SDK object becomes a value equal to objects of its type with equal fields; anything
    else that can change becomes a value equal to nothing, so it is looked at every time.

    Raises:
        RecursionError: it is nested more than ``levels`` deep.
    """
    kind = type(value)
    if kind in _LEAVES:
        return value
    if not levels:
        raise RecursionError
    if kind is dict:
        copy = value.copy()
        for key, item in value.items():
            if type(item) not in _LEAVES:
                copy[key] = snapshot(item, levels - 1)
        return copy
    if kind is list:
        return [
            item if type(item) in _LEAVES else snapshot(item, levels - 1)
            for item in value
        ]
    if kind is tuple:
        return tuple(snapshot(item, levels - 1) for item in value)
    fields = getattr(value, "__dict__", None)
    return (
        _Fields(kind, snapshot(fields, levels - 1))
        if isinstance(fields, dict)
        else _Unlike()
    )


def differing(copies: Sequence[Any], values: Sequence[Any]) -> Iterator[int]:
    """Where values are other than their snapshots, in order; not looked at where they are those."""
    return (
        index
        for index, copy, value in not_same(copies, values)
        if copy != value
    )


def not_same(
    copies: Sequence[Any], values: Sequence[Any]
) -> Iterator[tuple[int, Any, Any]]:
    """Where values are other objects than their snapshots, and both, in order."""
    pairs = zip(count(), copies, values, strict=False)
    return compress(pairs, map(is_not, copies, values))


def is_written_alike(value: Any, equal: Any) -> bool:
    """Whether plain JSON is written like an equal one: names in its order, 1 not as 1.0 or true."""
    if type(value) is not type(equal):
        return False
    if type(value) is dict:
        named = [*value] == [*equal]
        return named and all(
            map(is_written_alike, value.values(), equal.values())
        )
    return (
        all(map(is_written_alike, value, equal))
        if type(value) is list
        else type(value) in _LEAVES
    )


class _Fields:
    """Equal to an object of the same type whose fields are equal."""

    __slots__ = ("fields", "kind")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, kind: type, fields: Any) -> None:
        self.kind = kind
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return type(other) is self.kind and bool(self.fields == vars(other))


class _Unlike:
    """Equal to nothing."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False
