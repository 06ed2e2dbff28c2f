"""Clean-up: which outputs and records may go, by the same rules in every store.

A conversation is live while its ledger is used: records are marked as used when they are
written and when a session looks them up. What is no longer live goes by age. Of the outputs,
those are *needed* that a record of a live ledger names, and those that the index of a
summary names. Whatever else is set aside goes by age, and by size with the longest unused first.

It goes in steps, so that nobody who writes meanwhile waits for long:

    records    every key of the ledger in turn: dead ones go
    outputs    the longest unused first: what is old goes, and what is over the size
    needed     the same again for what is needed, if the bounds say so and it is still too much

A record is not decoded for this: refs are looked for in its bytes, so that one written by a
later version still keeps what it names. Something that only looks like a ref keeps too much,
never too little.

What goes is decided here, by `clean`; a store says what it has and lets go of it (`StoreContents`).

Times later than now come from a clock that was wrong: a clean-up in the future counts as none,
and what was used in the future counts as used now.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ullage.core.errors import ConfigError
from ullage.core.values.owners import tenant_of

DAY_S = 86_400

_REF_CHARS = 16
_WORD = re.compile(r"[0-9a-z]{16,}")
_SPAN = b"span"


class Bounds(Struct, frozen=True):
    """How long, and how much, a store keeps; and how a clean-up goes about it.

    Attributes:
        older_than_s: what was not used for so many seconds goes, unless a live ledger needs it;
            None: nothing goes by age.
        max_bytes: the most the outputs may take in the store's own measure; above it the longest
            unused go first; None: no bound.
        even_needed: above ``max_bytes``, let go also of what a live ledger needs, after all
            else. Its notices then name a ref that opens only from a history at hand.
        every_s: do nothing if the last clean-up began less than so many seconds ago.
        keep: refs that stay whatever the bounds say.
        dry_run: say what would go, all in one step, and keep it.
        has_conversations: a tenant's conversations that are owners of their own
            (`ullage.core.values.owners`) are looked at with it.
        limit: the most outputs and keys of the ledger that a step looks at; a store that keeps
            little may look at all of them.
    """

    older_than_s: float | None = None
    max_bytes: int | None = None
    even_needed: bool = False
    every_s: float = 0
    keep: frozenset[str] = frozenset()
    dry_run: bool = False
    has_conversations: bool = False
    limit: int = 2_000

    def last_s(self, now_s: float) -> float:
        """The time, in seconds since 1970, at or before which a last use is too old.

        Args:
            now_s: the time now.
        """
        return (
            float("-inf")
            if self.older_than_s is None
            else now_s - self.older_than_s
        )

    def covers(self, tenant: str | None, owner: str) -> bool:
        """Whether a clean-up of a tenant looks at what an owner has.

        Args:
            tenant: whose clean-up it is; None: everybody's.
            owner: a tenant, or a conversation of one.
        """
        if tenant is None or owner == tenant:
            return True
        return self.has_conversations and tenant_of(owner) == tenant

    def is_over(self, size_bytes: int) -> bool:
        """Whether outputs of this size are more than may be kept.

        Args:
            size_bytes: their size in the store's own measure.
        """
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
        """The result of this step and of the one after it, as one.

        Args:
            step: the one after it.
        """
        removed = (*self.removed, *step.removed)
        records = self.records + step.records
        return Collected(removed, records, step.left_bytes, step.cursor)


class Cursor(Struct, frozen=True):
    """Where a step begins: behind the row with these values, of keys, of outputs or of objects.

    What is in object storage comes last, if there is any (`ullage.stores.objects.storage`).
    """

    phase: Literal["records", "outputs", "needed", "objects"]
    left_bytes: int
    used_s: float = -1
    tenant: str = ""
    key: bytes = b""
    ref: str = ""

    @staticmethod
    def read(text: str) -> Cursor:
        """The cursor that a step returned as a text.

        Raises:
            ConfigError: none did.
        """
        try:
            return msgspec.convert(json.loads(text), Cursor)
        except (msgspec.MsgspecError, ValueError):
            raise ConfigError(
                "cursor", "it is not one that a step returned", "Begin again"
            ) from None

    def __str__(self) -> str:
        return json.dumps(msgspec.to_builtins(self))


class StoreContents(Protocol):
    """What a clean-up asks of a store, for one tenant or for all; a step is one transaction."""

    def begun(self, now_s: float, every_s: float) -> int | None:
        """Note that a clean-up begins, and what was used in the future as used now.

        Returns:
            What the outputs take; None if the last one began less than ``every_s`` ago.
        """

    def keys(
        self, after: Cursor, limit: int
    ) -> Sequence[tuple[str, bytes, float, int]]:
        """(tenant, key, last use, how many records) of the next keys, by tenant and key."""

    def outputs(
        self, after: Cursor, limit: int, last_s: float
    ) -> Sequence[tuple[float, str, str, bool]]:
        """(last use, tenant, ref, whether a ledger used after ``last_s`` needs it), in order."""

    def drop(self, tenant: str, key: bytes) -> None:
        """Let go of all records under a key."""

    def used_now(self, tenant: str, key: bytes, now_s: float) -> None:
        """Mark a key as used now."""

    def remove(self, tenant: str, ref: str) -> tuple[int, int]:
        """Let go of an output: what it took, and by how much that makes the whole less."""


def clean(
    contents: StoreContents, bounds: Bounds, cursor: str | None, now_s: float
) -> Collected | None:
    """Do one step of a clean-up; see `ullage.stores.Store.collect`.

    Args:
        contents: the outputs and records of a store.
        bounds: how long and how much is kept.
        cursor: where the step before this one ended; None: begin.
        now_s: the time, in seconds since 1970.

    Returns:
        What went; None if it is too early for a clean-up.

    Raises:
        ConfigError: the cursor is none that a step returned.
    """
    if cursor is None:
        left_bytes = contents.begun(now_s, bounds.every_s)
        if left_bytes is None:
            return None
        position: Cursor | None = Cursor("records", left_bytes)
    else:
        position = Cursor.read(cursor)
        if position.phase == "objects":
            raise ConfigError(
                "cursor", "it is of a store with objects", "Begin again"
            )
    collected = Collected((), 0, position.left_bytes if position else 0)
    room = bounds.limit
    while position is not None and (room > 0 or bounds.dry_run):
        work = _records if position.phase == "records" else _outputs
        limit = bounds.limit if bounds.dry_run else room
        step, position, count = work(contents, bounds, position, limit, now_s)
        collected = collected.then(step)
        room -= count
    return replace(collected, cursor=position and str(position))


_Step: TypeAlias = tuple[Collected, Cursor | None, int]


def _records(
    contents: StoreContents,
    bounds: Bounds,
    position: Cursor,
    limit: int,
    now_s: float,
) -> _Step:
    """Look at the next keys, and remove the dead ones. The last value: how many were looked at."""
    rows = contents.keys(position, limit)
    removed_count = 0
    for tenant, key, used_s, count in rows:
        # a time yet to come is of a clock that was wrong
        if used_s > now_s:
            contents.used_now(tenant, key, now_s)
        elif used_s <= bounds.last_s(now_s):
            contents.drop(tenant, key)
            removed_count += count
    collected = Collected((), removed_count, position.left_bytes)
    if len(rows) < limit:
        return collected, Cursor("outputs", position.left_bytes), len(rows)
    return (
        collected,
        replace(position, tenant=rows[-1][0], key=rows[-1][1]),
        limit,
    )


def _outputs(
    contents: StoreContents,
    bounds: Bounds,
    position: Cursor,
    limit: int,
    now_s: float,
) -> _Step:
    """Look at the next outputs, the longest unused first, and remove what may go."""
    last_s = bounds.last_s(now_s)
    rows = contents.outputs(position, limit, last_s)
    removed = list[Removed]()
    left_bytes = position.left_bytes
    is_more = len(rows) == limit
    for used_s, tenant, ref, needed in rows:
        is_old = used_s <= last_s and position.phase == "outputs"
        if not is_old and not bounds.is_over(left_bytes):
            is_more = False  # nothing after it is older
            break
        # what is needed goes in a phase of its own, after all else
        if needed == (position.phase == "needed") and ref not in bounds.keep:
            size_bytes, freed_bytes = contents.remove(tenant, ref)
            left_bytes -= freed_bytes
            removed.append(Removed(tenant, ref, size_bytes, used_s, needed))
    collected = Collected(tuple(removed), 0, left_bytes)
    if is_more:
        used_s, tenant, ref, _ = rows[-1]
        next_cursor = Cursor(
            position.phase, left_bytes, used_s, tenant, ref=ref
        )
        return collected, next_cursor, limit
    if (
        position.phase == "outputs"
        and bounds.even_needed
        and bounds.is_over(left_bytes)
    ):
        return collected, Cursor("needed", left_bytes), len(rows)
    return collected, None, len(rows)


def is_recent(at_s: float | None, now_s: float, within_s: float) -> bool:
    """Whether something happened less than ``within_s`` ago; never what lies in the future."""
    return at_s is not None and 0 <= now_s - at_s < within_s


def refs_in(text: str) -> frozenset[str]:
    """Everything in a text that looks like a ref.

    Args:
        text: any text; bytes are decoded as Latin-1 for this.
    """
    refs = set[str]()
    for word in _WORD.findall(text):
        if len(word) == _REF_CHARS:
            refs.add(word)
        else:
            # no byte tells where a ref begins in it
            starts = range(len(word) - _REF_CHARS + 1)
            refs.update(word[at : at + _REF_CHARS] for at in starts)
    return frozenset(refs)


def named_in(
    data: bytes,
    existing: Callable[[Collection[str]], set[str]],
    text_of: Callable[[str], str],
) -> set[str]:
    """The refs that a record names, and those that the index behind a summary in it names.

    Args:
        data: the bytes of the record.
        existing: those of some refs that the tenant has.
        text_of: the text under one of these, ``""`` if it cannot be read.

    Returns:
        The refs that the tenant has.
    """
    refs = existing(refs_in(data.decode("latin-1")))
    if _SPAN in data:
        for ref in tuple(refs):
            refs |= existing(refs_in(text_of(ref)))
    return refs
