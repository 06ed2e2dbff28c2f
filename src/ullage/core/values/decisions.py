"""Decisions: what a user said of the window, as values.

A policy decides by rules; a user decides by name. A decision is a record of the ledger like any
other: it has a place in the chain, so it holds in every history that goes on from there, on every
worker, after a restart and on every branch. The next turn carries it out as a batch of edits.

    pin      a message, a leaf of it, or some of its lines stay whole
    drop     a message or a leaf leaves the view; a notice names the ref that opens it
    restore  what left the view comes back whole
    undo     a batch, or an earlier decision, is taken back
    note     a text of the user's stands in the view from here on
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ullage.core.values.edits import Address

Verb: TypeAlias = Literal["pin", "drop", "restore", "undo", "note"]
"""What a decision asks for."""
When: TypeAlias = Literal["batch", "end", "now"]
"""When something comes back: in its place with the next batch, which breaks the prompt cache
anyway; as a copy at the end of the view, which breaks nothing; or in its place at once."""

EVERY_ITEM = -1
"""As the item of an address: all items of a result."""


class Target(Struct, frozen=True, array_like=True):
    """A message of a history, or a part of one.

    Attributes:
        message: the chain behind the message, 16 bytes.
        leaf: one text, result item (or, with `EVERY_ITEM`, result) or call of it; None: the
            whole message.
        lines: the first and the last line that are meant, counted from 1; None: all.
    """

    message: bytes
    leaf: Address | None = None
    lines: tuple[int, int] | None = None


class LedgerRef(Struct, frozen=True, array_like=True):
    """A decision or a batch, by where the ledger keeps it.

    Attributes:
        kind: which of the two.
        key: the chain at its place, 16 bytes.
        n: its number among those of its kind there, from 0.
    """

    kind: Literal["decision", "batch"]
    key: bytes
    n: int


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a user decided of the window.

    Attributes:
        verb: what is asked for.
        target: of what; None for a note and an undo.
        undoes: what an undo takes back; None otherwise.
        text: of a note; ``""`` otherwise.
        when: of a restore, when it comes back.
        reason: why, in the user's words; ``""``: none was given.
        author: who decided; ``""``: not told.
        origin: the conversation in which it was decided, where its client compacted that one and
            the decision went along; ``""``: this one.
    """

    verb: Verb
    target: Target | None = None
    undoes: LedgerRef | None = None
    text: str = ""
    when: When = "batch"
    reason: str = ""
    author: str = ""
    origin: str = ""
