"""Clean-up: which outputs and records may go, worked out the same way for every store.

A conversation is live while its ledger is used: records are marked as used when they are
written and when a session looks them up. What is no longer live goes by age. Of the outputs,
those are *needed* that a batch of a live ledger names, and those that the index of a condensed
span names. Whatever else is set aside goes by age, and by size with the longest unused first.

A batch is not decoded for this: refs are looked for in its bytes, so that a batch written by a
later version still keeps what it names. Something that only looks like a ref keeps too much,
never too little.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

__all__ = ["DAY_S", "Bounds", "Collected", "Kept", "Line", "Plan", "Removed", "plan"]

T = TypeVar("T")

DAY_S = 86_400
_REF = re.compile(r"(?=([0-9a-z]{16}))")
_SPAN = b"span"


class Bounds(Struct, frozen=True):
    """How long, and how much, a store keeps.

    Attributes:
        older_than_s: what was not used for so many seconds goes, unless a live ledger needs it;
            None: nothing goes by age.
        max_bytes: the most the outputs may take in the store's own measure; above it the longest
            unused go first; None: no bound.
        even_needed: above ``max_bytes``, let go also of what a live ledger needs, after all
            else. Its notices then name a ref that opens only from a history at hand.
        every_s: do nothing if the last clean-up is not so many seconds ago.
    """

    older_than_s: float | None = None
    max_bytes: int | None = None
    even_needed: bool = False
    every_s: float = 0


class Removed(Struct, frozen=True):
    """An output that went, or would go.

    Attributes:
        tenant: whose it was.
        ref: its name.
        size_bytes: what it took in the store's own measure.
        used_s: when it was last used, in seconds since 1970.
        needed: a live ledger named it.
    """

    tenant: str
    ref: str
    size_bytes: int
    used_s: float
    needed: bool


class Collected(Struct, frozen=True):
    """What a clean-up did, or would do.

    Attributes:
        removed: the outputs that went, in that order.
        records: how many ledger records went.
        left_bytes: what the outputs left take.
        held: every ref that some tenant still holds.
    """

    removed: tuple[Removed, ...]
    records: int
    left_bytes: int
    held: frozenset[str] = frozenset()


class Kept(Struct, frozen=True):
    """An output that a store holds: whose, its name, which content, how much, last used when."""

    tenant: str
    ref: str
    content: Hashable
    size_bytes: int
    used_s: float


class Line(Struct, frozen=True):
    """Every record under one key: whose, the key, last used when, and the data of its batches."""

    tenant: str
    key: bytes
    used_s: float
    batches: tuple[bytes, ...] = ()


class Plan(Struct, frozen=True):
    """What is to go, in order, and what is left."""

    outputs: tuple[Removed, ...]
    lines: tuple[Line, ...]
    left_bytes: int


def plan(
    kept: Sequence[Kept],
    lines: Sequence[Line],
    bounds: Bounds,
    keep: Collection[str],
    now_s: float,
    text_of: Callable[[str, str], str],
) -> Plan:
    """What is to go.

    Args:
        kept: every output of the tenants concerned.
        lines: every key of their ledgers.
        bounds: how long and how much.
        keep: refs that stay whatever the bounds say.
        now_s: the time.
        text_of: reads an output, by tenant and ref; "" if it cannot be read.
    """
    last_s = float("-inf") if bounds.older_than_s is None else now_s - bounds.older_than_s
    dead, live = _parted(lines, lambda line: line.used_s <= last_s)
    needed = _needed({(one.tenant, one.ref) for one in kept}, live, text_of)
    free = [one for one in kept if one.ref not in keep]
    free.sort(key=lambda one: ((one.tenant, one.ref) in needed, one.used_s))
    holders = Counter(one.content for one in kept)
    left = sum({one.content: one.size_bytes for one in kept}.values())
    gone = []
    for one in free:
        is_needed = (one.tenant, one.ref) in needed
        old = one.used_s <= last_s and not is_needed
        over = bounds.max_bytes is not None and left > bounds.max_bytes
        if old or (over and (bounds.even_needed or not is_needed)):
            gone.append(Removed(one.tenant, one.ref, one.size_bytes, one.used_s, is_needed))
            holders[one.content] -= 1
            left -= 0 if holders[one.content] else one.size_bytes
    return Plan(tuple(gone), tuple(dead), left)


def _needed(
    held: Collection[tuple[str, str]], live: Iterable[Line], text_of: Callable[[str, str], str]
) -> set[tuple[str, str]]:
    """What live batches name, and what the index behind a condensed span names."""
    needed: set[tuple[str, str]] = set()
    for line in live:
        for data in line.batches:
            named = _named(data.decode("latin-1"), line.tenant, held)
            needed |= named
            if _SPAN in data:
                for tenant, ref in named:
                    needed |= _named(text_of(tenant, ref), tenant, held)
    return needed


def _named(text: str, tenant: str, held: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(tenant, ref) for ref in _REF.findall(text) if (tenant, ref) in held}


def _parted(values: Iterable[T], test: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Those that pass a test, and those that do not."""
    yes: list[T] = []
    no: list[T] = []
    for value in values:
        (yes if test(value) else no).append(value)
    return yes, no
