"""Clean-up: which outputs and records may go, by the same rules in every store.

A conversation is live while its ledger is used: records are marked as used when they are
written and when a session looks them up. What is no longer live goes by age. Of the outputs,
those are *needed* that a record of a live ledger names, and those that the index of a condensed
span names. Whatever else is set aside goes by age, and by size with the longest unused first.

It goes in steps, so that nobody who writes meanwhile waits for long:

    records    every key of the ledger in turn: dead ones go
    outputs    the longest unused first: what is old goes, and what is over the size
    needed     the same again for what is needed, if the bounds say so and it is still too much

A record is not decoded for this: refs are looked for in its bytes, so that one written by a
later version still keeps what it names. Something that only looks like a ref keeps too much,
never too little.

Times later than now come from a clock that was wrong: a clean-up in the future counts as none,
and what was used in the future counts as used now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from msgspec import Struct

__all__ = ["DAY_S", "STEP", "Bounds", "Collected", "Removed", "is_recent", "named_in", "refs_in"]

DAY_S = 86_400
STEP = 2_000
"""How many outputs, and keys of the ledger, a step looks at if nobody says otherwise."""

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
        every_s: do nothing if the last clean-up began less than so many seconds ago.
    """

    older_than_s: float | None = None
    max_bytes: int | None = None
    even_needed: bool = False
    every_s: float = 0

    def last_s(self, now_s: float) -> float:
        """What was last used then, or before, is old."""
        return float("-inf") if self.older_than_s is None else now_s - self.older_than_s

    def is_over(self, size_bytes: int) -> bool:
        """Whether outputs of this size are more than may be kept."""
        return self.max_bytes is not None and size_bytes > self.max_bytes


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
    """What a step of a clean-up did, or would do.

    Attributes:
        removed: the outputs that went, in that order.
        records: how many ledger records went.
        left_bytes: what the outputs left take.
        cursor: what the next step is to be given; None: this was the last one.
    """

    removed: tuple[Removed, ...]
    records: int
    left_bytes: int
    cursor: str | None = None

    def then(self, step: Collected) -> Collected:
        """This step and the one after it, as one."""
        removed, records = (*self.removed, *step.removed), self.records + step.records
        return Collected(removed, records, step.left_bytes, step.cursor)


def is_recent(at_s: float | None, now_s: float, within_s: float) -> bool:
    """Whether something happened less than ``within_s`` ago; never what lies in the future."""
    return at_s is not None and 0 <= now_s - at_s < within_s


def refs_in(text: str) -> frozenset[str]:
    """Everything in a text that looks like a ref."""
    return frozenset(_REF.findall(text))


def named_in(
    data: bytes, held: Callable[[Collection[str]], set[str]], text_of: Callable[[str], str]
) -> set[str]:
    """What a record names, and what the index behind a condensed span of it names.

    Args:
        data: the record's.
        held: those of some refs that the record's tenant holds.
        text_of: the text of an output that it holds; ``""`` if it cannot be read.
    """
    named = held(refs_in(data.decode("latin-1")))
    if _SPAN in data:
        for ref in tuple(named):
            named |= held(refs_in(text_of(ref)))
    return named
