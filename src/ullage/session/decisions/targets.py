"""What a user means: a message, a ref, a call id or a short name, found in a history.

    m12          message 12, as events and ``ullage window`` count them
    m12.2        its second text, result item or call
    0tmq…        a ref, as a notice names it: the newest leaf of this content
    toolu_…      the id of a tool call: its newest result
    {"role": …}  a message of the request itself, or its SDK object: the newest that says the same

A batch and a decision are named ``b…`` and ``d…`` (`ullage.core.history.hand.name_of`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from ullage.core.errors import ConfigError, TargetNotFound
from ullage.core.history import canon
from ullage.core.history.hand import UserDecisions, entered_in, name_of
from ullage.core.history.ledger import Ledger
from ullage.core.history.transcript import Location, Transcript, leaves_of
from ullage.core.values.decisions import EVERY_ITEM, LedgerRef, Target
from ullage.core.values.edits import Address, Batch, Replace, ReplaceSpan
from ullage.wires import Format

_MESSAGE = re.compile(r"(?:m|message )(\d+)(?:\.(\d+))?")
_RANGE = re.compile(r"(m\d+)(?:\.\d+)?\s*[-–]\s*m?(\d+)(?:\.\d+)?")


def target_of(
    transcript: Transcript,
    wire: Format | None,
    reference: Any,
    lines: tuple[int, int] | None = None,
) -> Target:
    """The target that a user names.

    Args:
        transcript: the history.
        wire: its format; None: only names are understood.
        reference: what is meant; see above.
        lines: the first and the last line that are meant, counted from 1; None: all.

    Raises:
        ConfigError: it is a name of another kind, or no text has such lines.
        TargetNotFound: the history has no such message, ref or call.
        FormatError: it is not a message of the format.
    """
    if isinstance(reference, str) or wire is None:
        named = _target_by_name(transcript, str(reference))
        if named is None:
            raise TargetNotFound(len(transcript), str(reference))
        target = named
    else:
        target = _target_by_message(transcript, wire, reference)
    return target if lines is None else _with_lines(transcript, target, lines)


def range_of(reference: Any) -> tuple[str, int, int] | None:
    """The messages that a range names, as ``m5-m12``; None: it is none.

    Args:
        reference: what is meant.

    Returns:
        The short name of the first, and the numbers of the first and the last.
    """
    names = isinstance(reference, str) and _RANGE.fullmatch(reference.strip())
    if not names:
        return None
    return names[1], int(names[1][1:]), int(names[2])


def refuse_other_names(
    transcript: Transcript,
    ledger: Ledger,
    reference: Any,
    batches: Iterable[str] = (),
) -> None:
    """Refuse what names no message or text, and say what to do instead.

    Args:
        transcript: the history.
        ledger: what is known of it.
        reference: what a user names to pin, drop or restore.
        batches: the names of the batches that took out what a range names, where that is known.

    Raises:
        ConfigError: it is a range of messages, or the name of a batch or a decision.
    """
    messages = range_of(reference)
    if messages is not None:
        listed = list(batches)
        undo = "undo, with its name"
        if listed:
            undo = f"undo {listed[0]}"
        raise ConfigError(
            "target",
            f"{reference} is a range, and a decision is about one message",
            f"Name one, such as {messages[0]}. A batch as a whole is taken back by {undo}.",
        )
    decisions = {one.name for one in entered_in(transcript, ledger)}
    if reference in decisions:
        raise ConfigError(
            "target",
            f"{reference} is the name of a decision",
            f"To take it back: undo {reference}",
        )
    names = (name_of(handle) for handle, _ in batches_in(transcript, ledger))
    if reference in names:
        raise ConfigError(
            "target",
            f"{reference} is the name of a batch",
            f"To bring back all that it took out: undo {reference}",
        )


def _target_by_name(transcript: Transcript, reference: str) -> Target | None:
    """The target of a name; None where the history has none."""
    name = _MESSAGE.fullmatch(reference.strip())
    if name is not None:
        index = int(name[1]) - 1
        number = name[2]
        if not 0 <= index < len(transcript):
            return None
        leaves = list(leaves_of(transcript.messages[index]))
        if number is None:
            return Target(transcript.chain[index + 1])
        if not 1 <= int(number) <= len(leaves):
            return None
        return _leaf(transcript, (index, *leaves[int(number) - 1][:2]))
    result = transcript.newest_result(reference, len(transcript))
    if result is not None:
        address = transcript.address(result)
        return Target(
            transcript.chain[result[0] + 1], replace(address, item=EVERY_ITEM)
        )
    for spot in _newest_first(transcript):
        output = transcript.output(spot)
        if output is not None and output.ref == reference:
            return _leaf(transcript, spot)
    return None


def _leaf(transcript: Transcript, spot: Location) -> Target:
    return Target(transcript.chain[spot[0] + 1], transcript.address(spot))


def _newest_first(transcript: Transcript) -> Iterator[Location]:
    for index in range(len(transcript) - 1, -1, -1):
        for number, item, _ in leaves_of(transcript.messages[index]):
            yield index, number, item


def _target_by_message(
    transcript: Transcript, wire: Format, message: Any
) -> Target:
    """The newest message that equals one of the request's own."""
    if isinstance(message, (int, float, bytes)) or message is None:
        raise ConfigError(
            "target",
            f"{type(message).__name__} names no message",
            'Give "m12" for message 12, a ref, the id of a call, or the message itself.',
        )
    digest = canon.digest_of(wire.parse(message, "target"))
    # equal messages are numbered from the oldest: the last that is found is the newest
    ordinal = 0
    newest = None
    while (
        spot := transcript.locate(Address("text", digest.hex(), ordinal))
    ) is not None:
        newest = spot
        ordinal += 1
    if newest is None:
        raise TargetNotFound(len(transcript), "a message")
    return Target(transcript.chain[newest[0] + 1])


def _with_lines(
    transcript: Transcript, target: Target, lines: tuple[int, int]
) -> Target:
    """Lines of a target, which must be one text that has them."""
    index = (transcript.find(target.message) or 0) - 1
    start, stop = lines
    leaf = target.leaf
    if leaf is None:
        leaves = list(leaves_of(transcript.messages[index]))
        leaf = (
            transcript.address((index, *leaves[0][:2]))
            if len(leaves) == 1
            else None
        )
    elif leaf.item == EVERY_ITEM:
        leaf = replace(leaf, item=0)
    spot = None if leaf is None else transcript.locate(leaf)
    output = None if spot is None else transcript.output(spot)
    if leaf is None or output is None or leaf.kind == "call":
        raise ConfigError(
            "lines",
            "the target is no single text",
            'Name one text of it, such as "m12.1".',
        )
    count = len(output.text.splitlines())
    if not 1 <= start <= stop <= count:
        raise ConfigError(
            "lines",
            f"{start} to {stop} are not among its {count:,} lines",
            "Count from 1; the first comes before the last.",
        )
    return Target(target.message, leaf, (start, stop))


# ── batches and decisions ────────────────────────────────────────────────────────────────


def undone_by(
    transcript: Transcript,
    ledger: Ledger,
    hand: UserDecisions,
    reference: str | None,
) -> LedgerRef:
    """The batch or decision that an undo is to take back.

    Args:
        transcript: the history.
        ledger: what is known of it.
        hand: what stands in it.
        reference: its name, or a ref that a batch set aside; None: the newest that stands and is no
            undo itself.

    Raises:
        TargetNotFound: nothing has this name.
        ConfigError: nothing is left to be taken back.
    """
    if reference is None:
        handle = _newest_standing(transcript, ledger, hand)
        if handle is None:
            raise ConfigError(
                "undo",
                "nothing was decided that stands",
                "Name what you mean.",
            )
        return handle
    decisions = {one.name: one.ref for one in entered_in(transcript, ledger)}
    if reference in decisions:
        return decisions[reference]
    for handle, batch in batches_in(transcript, ledger):
        if reference == name_of(handle) or _sets_aside(batch, reference):
            return decisions.get(batch.decision, handle)
    raise TargetNotFound(len(transcript), reference)


def batches_in(
    transcript: Transcript, ledger: Ledger
) -> Iterator[tuple[LedgerRef, Batch]]:
    """Every batch of a history, the newest first."""
    for key in reversed(dict.fromkeys(transcript.chain)):
        batches = ledger.at(key).batches
        for n in range(len(batches) - 1, -1, -1):
            yield LedgerRef("batch", key, n), batches[n]


def _newest_standing(
    transcript: Transcript, ledger: Ledger, hand: UserDecisions
) -> LedgerRef | None:
    """The newest decision that is due, else the newest that was carried out and stands."""
    standing = {
        one.name: one for one in hand.decisions if one.decision.verb != "undo"
    }
    for due in reversed(hand.due):
        if due.name in standing:
            return due.ref
    for handle, batch in batches_in(transcript, ledger):
        if handle in hand.undone or _follows_from_one(handle, ledger):
            continue
        if not batch.decision:
            if batch.edits:
                return handle
            continue
        entered = standing.get(batch.decision)
        # one that is carried out again was decided when it was first
        if entered is not None and handle == entered.carried_out[0]:
            return entered.ref
    return None


def _follows_from_one(handle: LedgerRef, ledger: Ledger) -> bool:
    """Whether a batch was made at the place of a decision and because of it, and goes with it."""
    batches = ledger.at(handle.key).batches
    follows = any(batch.decision for batch in batches[: handle.n])
    return follows and not batches[handle.n].decision


def _sets_aside(batch: Batch, ref: str) -> bool:
    return any(
        isinstance(edit, (Replace, ReplaceSpan)) and edit.ref == ref
        for edit in batch.edits
    )
