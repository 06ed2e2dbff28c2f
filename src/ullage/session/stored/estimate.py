"""What a decision about a stored conversation would come to: tokens, and dollars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ullage.core.history.hand import entered_in, index_of, name_of
from ullage.core.turn.hand import rewriting_usd
from ullage.core.values.decisions import Decision, LedgerRef
from ullage.session.decisions.preview import reading_usd
from ullage.session.stored.conversation import (
    CHARS_PER_TOKEN,
    Leaf,
    StoredConversation,
    number_of,
    spots_of,
)


class DecisionEstimate(NamedTuple):
    """What a decision about a stored conversation would come to.

    Attributes:
        added_tokens: that the view has more; below zero, fewer.
        rewritten_tokens: that are written to the prompt cache again.
        cost_now_usd: what that costs, once, at list price; None: the model's prices are unknown.
        cost_per_call_usd: what every later call costs more, as read from the cache; below zero, it
            costs less. None: the model's prices are unknown.
    """

    added_tokens: int
    rewritten_tokens: int
    cost_now_usd: float | None
    cost_per_call_usd: float | None


def estimate_of(
    stored: StoredConversation, decision: Decision
) -> DecisionEstimate:
    """Estimate what a decision adds to the view, writes to the cache again, and costs.

    Four characters count as a token: the texts themselves are with their caller alone.

    Args:
        stored: the conversation.
        decision: the decision.
    """
    added, rewritten = _about_tokens(stored, decision)
    model = stored.outline.model
    return DecisionEstimate(
        added,
        rewritten,
        rewriting_usd(model, rewritten),
        reading_usd(model, added),
    )


def _about_tokens(
    stored: StoredConversation, decision: Decision
) -> tuple[int, int]:
    """Tokens that are added (below zero: removed), and tokens that are written again."""
    leaves = stored.leaves()
    if decision.verb == "note":
        return len(decision.text) // CHARS_PER_TOKEN, 0
    if decision.undoes is not None:
        return _about_undo(stored, decision.undoes, leaves)
    target = decision.target
    if target is None:
        return 0, 0
    index = index_of(stored.transcript, target.message) or 0
    names = {
        f"m{spot[0] + 1}.{number_of(stored, spot)}"
        for spot in spots_of(stored, target)
    }
    meant = [leaf for leaf in leaves if leaf.name in names]
    left_out = sum(leaf.chars for leaf in meant if leaf.state != "whole")
    in_view = sum(leaf.chars for leaf in meant if leaf.state == "whole")
    if decision.verb == "restore" and decision.when == "end":
        return (left_out + in_view) // CHARS_PER_TOKEN, 0
    more = -in_view if decision.verb == "drop" else left_out
    anew = _chars_from(leaves, index) + max(more, 0) if more else 0
    return more // CHARS_PER_TOKEN, anew // CHARS_PER_TOKEN


def _about_undo(
    stored: StoredConversation, undoes: LedgerRef, leaves: Sequence[Leaf]
) -> tuple[int, int]:
    """The same of an undo: the tokens come back from its batch's first message on."""
    entered = {
        decision.ref: decision
        for decision in entered_in(stored.transcript, stored.ledger)
    }
    decision = entered.get(undoes)
    batches = (undoes,) if decision is None else decision.carried_out
    name = {name_of(handle) for handle in batches}
    won = 0
    for handle, batch, _ in stored.batches():
        if handle in batches:
            won += batch.tokens_before - batch.tokens_after
    message = min(
        (leaf.message for leaf in leaves if leaf.batch in name), default=None
    )
    anew = (
        0
        if message is None
        else _chars_from(leaves, message) // CHARS_PER_TOKEN + max(won, 0)
    )
    return won, anew


def _chars_from(leaves: Sequence[Leaf], index: int) -> int:
    """Characters that are shown of the messages from an index on."""
    return sum(
        leaf.chars
        for leaf in leaves
        if leaf.message >= index and leaf.state == "whole"
    )
