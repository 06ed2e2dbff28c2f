"""Edits: what makes the view differ from the history, addressed so that they hold anywhere.

An edit names its place by what the conversation itself calls it (a call id and how many
calls had that id before; a message's digest), never by an index into the caller's list, and
carries the digest of what it replaces. Where the history no longer holds that, the edit does
not apply.

A batch is the edits of one decision, keyed by the chain at the decision point: the last
assistant message then.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.values.briefs import Brief
from ullage.core.values.effects import Output


class Address(Struct, frozen=True, array_like=True):
    """One leaf of the conversation: a text, a result's item or a call's arguments.

    Attributes:
        kind: what the leaf belongs to.
        id: the call id, or the hex digest of the message for a text.
        ordinal: how many earlier calls (or equal messages) have the same id.
        item: index of the item within a result's content, or of the part within a message.
    """

    kind: Literal["result", "call", "text"]
    id: str
    ordinal: int
    item: int = 0


class Replace(Struct, frozen=True, tag="replace", rename={"address": "place"}):
    """Show ``text`` in place of a leaf.

    Attributes:
        address: the leaf.
        ref: what opens the original. It is derived from the original's content, so it is
            also the guard: the edit applies only where the leaf still has this ref.
        text: what is shown. For call arguments: a JSON object.
        kind: the kind of event this is reported as.
        why: the reason, with its numbers.
        left_out_bytes: bytes of the original that are not shown, where its stage says.
    """

    address: Address
    ref: str
    text: str
    kind: Literal["truncated", "pruned", "cut"]
    why: str
    left_out_bytes: int = 0

    @property
    def was_sent(self) -> bool:
        """Whether the leaf had been sent before: no batch makes it shorter once more."""
        return self.kind != "truncated"


class ReplaceSpan(
    Struct,
    frozen=True,
    tag="span",
    rename={"model_text": "said", "model_upto": "said_upto"},
):
    """Show one user message in place of a run of messages, or two.

    Attributes:
        after: the chain before the first message of the run, 16 bytes.
        upto: the chain after its last message, 16 bytes.
        text: the account or summary shown in its place; ``""`` where it is shown in the result
            before the run, by an edit of its own.
        ref: what opens the index of everything in the run.
        why: the reason, with its numbers.
        kind: the kind of event this is reported as.
        model_text: the part of ``text`` that a model wrote, unchanged; the next summary starts from
            it.
        retain: what a model chose to keep, shown as a message before ``text``; ``""`` for none.
        summarised: whether ``text`` holds the deterministic summary of the run.
        model_upto: the chain up to which ``model_text`` covers the run; empty for all of it.
        later: for each message of the system in the run, in order, what the user said behind it;
            ``""`` for nothing. What the system says stays in the view, so that its order among
            the user's words does too. Empty: ``text`` holds all that the user said.
        keeps: the chain behind each message of the run that stays, shown before the text.
    """

    after: bytes
    upto: bytes
    text: str
    ref: str
    why: str
    kind: Literal["condensed", "compacted", "pruned"] = "condensed"
    model_text: str = ""
    retain: str = ""
    summarised: bool = False
    model_upto: bytes = b""
    keeps: tuple[bytes, ...] = ()
    later: tuple[str, ...] = ()

    @property
    def opening(self) -> tuple[str, ...]:
        """The messages shown where the run began, in order.

        None where the text stands in a result (A14).
        """
        return tuple(text for text in (self.retain, self.text) if text)

    @property
    def texts(self) -> tuple[str, ...]:
        """All messages shown, in order."""
        return (*self.opening, *(text for text in self.later if text))


class Drop(Struct, frozen=True, tag="drop"):
    """Leave out the reasoning of a run of messages, which an earlier edit made invalid.

    Since 2026 vendors bind reasoning to the exact messages before it: kept behind an edit it is a
    400. It is not set aside; it means nothing to any other reader.

    Attributes:
        after: the chain before the first message of the run, 16 bytes.
        upto: the chain after its last message, 16 bytes.
        why: what made it invalid.
    """

    after: bytes
    upto: bytes
    why: str


class Restore(Struct, frozen=True, tag="whole"):
    """Show again, whole, what earlier edits took out: a message with all its leaves, or one leaf.

    A message that a summary hides comes back with what it cannot be shown without: its reply, the
    calls that it answers, the results of its calls.

    Attributes:
        message: the chain behind the message, 16 bytes.
        leaf: the leaf; None: all leaves of the message.
        why: the reason.
        name: the name of the decision that asks for it (`ullage.core.values.decisions`).
    """

    message: bytes
    leaf: Address | None
    why: str
    name: str


class Insert(Struct, frozen=True, tag="added"):
    """Show a text of the user's, as a message, behind the history as it was then.

    Attributes:
        after: the chain behind the last message before it, 16 bytes.
        text: what is shown; ``""``: the text of this name is not shown any more.
        why: the reason.
        name: the name of the decision that asks for it (`ullage.core.values.decisions`).
    """

    after: bytes
    text: str
    why: str
    name: str


Edit: TypeAlias = Replace | ReplaceSpan | Drop | Restore | Insert


class ProposedEdit(NamedTuple):
    """An edit and what it sets aside: the effect that fills it.

    A summary may bring a brief: a model is asked, if there is one, for what it adds to the text.
    """

    edit: Edit
    outputs: tuple[Output, ...]
    brief: Brief | None = None


class Skipped(NamedTuple):
    """In place of cuts: it was time to cut, and it could not be done.

    Attributes:
        why: the reason.
    """

    why: str


class Batch(Struct, frozen=True, omit_defaults=True):
    """The edits of one decision, in order.

    Attributes:
        stage: name of the stage that decided.
        policy: name of the policy then in force.
        edits: the edits; a later one wins over an earlier one in the same place.
        tokens_before: estimated tokens of the whole view before.
        tokens_after: and after.
        decision: the name of the user's decision that it carries out; ``""``: a policy's.
        keeps: the refs of what a pin keeps: it is in the store as well, so that it can go along
            when the client compacts its history.
    """

    stage: str
    policy: str
    edits: tuple[Edit, ...]
    tokens_before: int
    tokens_after: int
    decision: str = ""
    keeps: tuple[str, ...] = ()


def without_surrogates(text: str) -> str:
    """``text`` as UTF-8 can hold it: a question mark for each lone surrogate."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def storable(edit: Edit) -> Edit:
    """An edit that shows no lone surrogate: neither a record nor the wire can hold one."""
    if isinstance(edit, (Drop, Restore)):
        return edit
    text = without_surrogates(edit.text)
    return edit if text == edit.text else replace(edit, text=text)
