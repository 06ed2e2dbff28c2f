"""Conversations as their outlines list them: which was used last, and which was gone on with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ullage.core.errors import StoreError
from ullage.core.history.outline import Outline, outline_among
from ullage.core.values.effects import Find, Steps

BESIDE_S = 60.0
"""What an agent asks so shortly before or after may be beside its conversation."""


class ConversationEntry(NamedTuple):
    """A conversation in a list.

    Attributes:
        outline: its newest outline.
        used_s: when that was written or read last, in seconds since 1970.
    """

    outline: Outline
    used_s: float


def newest_of(
    listed: Sequence[ConversationEntry],
) -> ConversationEntry | None:
    """The conversation that was used last; None where there is none.

    Agents ask for titles and the like beside their conversation. So of those that were used within
    a minute, the one with the largest request is meant, and none of a sub-agent. Where its client
    compacted that one and went on, the one is meant that it went on with.

    Args:
        listed: as `conversations` lists them.
    """
    if not listed:
        return None
    own = [entry for entry in listed if not entry.outline.subagent] or listed
    start_s = own[0].used_s - BESIDE_S
    recent = [entry for entry in own if entry.used_s >= start_s]
    return gone_on_with(largest(recent), own)


def largest(listed: Sequence[ConversationEntry]) -> ConversationEntry:
    """The conversation with the largest request.

    Args:
        listed: conversations; not empty.
    """
    return max(listed, key=lambda entry: entry.outline.tokens)


def gone_on_with(
    entry: ConversationEntry, listed: Sequence[ConversationEntry]
) -> ConversationEntry:
    """The conversation that a client went on with since; the same one where it did not.

    That is the newest of the same client session, and no sub-agent's, that begins with what the
    client summed up. Times are in whole seconds: of two at once the shorter began later.

    Args:
        entry: the conversation.
        listed: those that it may have gone on with.
    """
    session = entry.outline.client_session
    if not session:
        return entry
    later = [
        one
        for one in listed
        if one.outline.client_session == session
        and one.outline.is_compacted
        and not one.outline.subagent
        and one.used_s >= entry.used_s
    ]
    return max(
        later,
        key=lambda one: (one.used_s, -one.outline.length),
        default=entry,
    )


def read_outlines(newest: Outline) -> Steps[list[Outline]]:
    """All outlines of a conversation, oldest first.

    Args:
        newest: its newest.

    Raises:
        StoreError: one of them is missing.
    """
    outlines = [newest]
    while earlier_key := outlines[-1].before:
        records = yield Find((earlier_key,))
        outline = outline_among(records)
        # each outline must begin before the one that names it, or this would never end
        if outline is None or outline.start >= outlines[-1].start:
            raise StoreError(
                "ledger", "find", "the outline of this conversation is not whole. Go on with it "
                "once, and it is written again"
            )  # fmt: skip
        outlines.append(outline)
    return outlines[::-1]
