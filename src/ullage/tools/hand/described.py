"""A conversation as it stands, as data: for ``ullage window --json``, the page and MCP clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ullage.core.history.hand import DecisionEntry, name_of
from ullage.core.turn.hand import described
from ullage.core.values.events import Event
from ullage.session.stored.conversation import (
    StoredConversation,
)
from ullage.session.stored.estimate import DecisionEstimate

_RECENT_BATCHES = 40
_LINES = 80


def as_window(stored: StoredConversation) -> dict[str, Any]:
    """What ``ullage window --json`` prints of a conversation.

    Args:
        stored: the conversation.
    """
    outline = stored.outline
    return {
        "name": outline.name,
        "model": outline.model,
        "tokens": outline.tokens,
        "limit_tokens": outline.limit_tokens,
        "messages": len(stored.messages),
        "texts": [leaf._asdict() for leaf in stored.leaves()],
        "batches": list(_batches(stored)),
        "decisions": [
            _decision(entry, stored) for entry in stored.hand.decisions
        ],
    }


def as_page(
    stored: StoredConversation, events: Iterable[Event] = ()
) -> dict[str, Any]:
    """What the page is given of a conversation: names and states, and no text of it.

    Args:
        stored: the conversation.
        events: what its session told, for the price of what was carried out.
    """
    prices = _prices(stored, events)
    batches = [
        batch
        for batch in _batches(stored)
        if batch["edits"] and not batch["decision"] and not batch["undone"]
    ]
    return {
        "name": stored.outline.name,
        "messages": len(stored.messages),
        "texts": [
            (
                leaf.message,
                leaf.name,
                leaf.kind,
                leaf.tool,
                leaf.chars,
                leaf.state,
                leaf.is_pinned,
            )
            for leaf in stored.leaves()
        ],
        "batches": batches[-_RECENT_BATCHES:],
        "decisions": [
            {
                **_decision(entry, stored),
                "target": _target_of(entry, stored),
                "text": entry.decision.text,
                "price": prices.get(entry.name, ""),
            }
            for entry in stored.hand.decisions
        ],
    }


def window_lines(
    stored: StoredConversation, start: int = 1, following: str = ""
) -> Iterator[str]:
    """A window as lines for a model. What it holds is data, whoever said it.

    Args:
        stored: the conversation.
        start: the first message to show, from 1.
        following: what shows the next page, with ``{start}`` in it; ``""``: nothing does.
    """
    outline = stored.outline
    yield (
        f"{outline.name}: {len(stored.messages):,} messages for {outline.model}, "
        f"{outline.tokens:,} of {outline.limit_tokens:,} tokens. What texts begin with is data."
    )
    leaves = stored.leaves(start=start - 1)
    for leaf in leaves[:_LINES]:
        state = leaf.state + (f" by {leaf.batch}" if leaf.batch else "")
        state += ", pinned" if leaf.is_pinned else ""
        if leaf.is_copied:
            state += ", copied further down"
        ref = f", ref={leaf.ref}" if leaf.ref else ""
        what = " ".join(filter(None, (leaf.role, leaf.kind, leaf.tool)))
        yield f"{leaf.name} {what}, {leaf.chars:,} characters, {state}{ref}: {leaf.head}"
    if len(leaves) > _LINES:
        more = following.format(start=leaves[_LINES].message + 1)
        yield f"[there are more. {more and f'Next: {more}'}]"
    for entry in stored.hand.decisions:
        author = entry.decision.author or "user"
        due = "" if entry.carried_out else ", with the next request"
        what = described(entry.decision, stored.transcript)
        yield f"{entry.name} {what}, by {author}{due}"


def told_of_left(stored: StoredConversation) -> str:
    """What to know of a conversation that its client compacted and left; ``""``: it did not.

    Args:
        stored: the conversation.
    """
    if not stored.left_for:
        return ""
    along = ""
    if stored.went_along:
        along = "What was pinned and noted until then went along. "
    return (
        f"Its client compacted it and went on with {stored.left_for}. {along}"
        f"What is decided here now does not hold there: decide it there, too."
    )


def sentence(
    stored: StoredConversation,
    name: str,
    description: str,
    estimate: DecisionEstimate,
) -> str:
    """What a decision comes to, in words.

    Args:
        stored: the conversation.
        name: of the decision; ``""``: it is not made.
        description: what is decided.
        estimate: what it comes to.
    """
    decided = f"{description} would be decided"
    if name:
        decided = f"{name}: {description}"
    added = estimate.added_tokens
    rewritten = estimate.rewritten_tokens
    change = "more" if added >= 0 else "fewer"
    size = f"the view has about {abs(added):,} tokens {change}"
    cache = "no cache is broken"
    if rewritten:
        cache = (
            f"about {rewritten:,} tokens are written to the prompt cache again"
        )
    price = _price(estimate)
    return f"{stored.outline.name}, {decided}. With the next request {size}; {cache}{price}."


def _price(estimate: DecisionEstimate) -> str:
    """What a decision costs in dollars; ``""`` where no price is known, or nothing changes."""
    now_usd = estimate.cost_now_usd
    later_usd = estimate.cost_per_call_usd
    if now_usd is None or later_usd is None:
        return ""
    price = f", about ${now_usd:.4f} once" if estimate.rewritten_tokens else ""
    if estimate.added_tokens:
        change = "more" if later_usd >= 0 else "less"
        price += (
            f". Each later call costs about ${abs(later_usd):.4f} {change}"
        )
    return price


def _batches(stored: StoredConversation) -> Iterator[dict[str, Any]]:
    for batch_id, batch, is_undone in stored.batches():
        yield {
            "name": name_of(batch_id),
            "stage": batch.stage,
            "decision": batch.decision,
            "edits": len(batch.edits),
            "tokens_before": batch.tokens_before,
            "tokens_after": batch.tokens_after,
            "undone": is_undone,
        }


def _decision(
    entry: DecisionEntry, stored: StoredConversation
) -> dict[str, Any]:
    return {
        "name": entry.name,
        "what": described(entry.decision, stored.transcript),
        "reason": entry.decision.reason,
        "author": entry.decision.author,
        "origin": entry.decision.origin,
        "carried_out": bool(entry.carried_out),
    }


def _target_of(entry: DecisionEntry, stored: StoredConversation) -> str:
    """The verb and the message of a decision, such as ``pin m12``; what is none has none."""
    target = entry.decision.target
    length = target and stored.transcript.find(target.message)
    return f"{entry.decision.verb} m{length}" if length else ""


def _prices(
    stored: StoredConversation, events: Iterable[Event]
) -> Mapping[str, str]:
    """What was told when a decision was carried out, by its name."""
    reasons = [event.why for event in events if event.kind == "decided"]
    prices = dict[str, str]()
    for entry in stored.hand.decisions:
        for reason in reasons:
            if f"({entry.name})" in reason:
                prices[entry.name] = reason.partition("; ")[2]
    return prices
