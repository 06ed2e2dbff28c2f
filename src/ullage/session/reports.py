"""Replies that a session is given: what they report, and what that adds to its sums."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ullage.session.view import Sent
from ullage.spend.account import UnderWay
from ullage.spend.book import Report
from ullage.spend.calls import Spent
from ullage.spend.cost import cost_usd
from ullage.tokens.catalog import lookup
from ullage.turn import State
from ullage.values.events import Event
from ullage.values.limits import Limits
from ullage.values.usage import Usage
from ullage.wires.reported import Unreadable, id_of, left_out_of, usage_of, within

__all__ = [
    "report_of",
    "reported_in",
    "sum_of",
    "under_way",
    "unreported",
    "with_sum",
    "without",
]

_ANY_WINDOW_TOKENS = 10_000_000


def report_of(reply: Any, sent: Sent, limits: Limits | None) -> Report | Unreadable:
    """What a reply to a view reports, or why that cannot be read, or cannot be.

    Args:
        reply: any of the forms of `ullage.wires.reported`.
        sent: what it answers.
        limits: those of the session, None if it was given none; where the model's own window is
            larger, that one holds, and where neither is known, one larger than any there is.
    """
    usage, info = usage_of(reply, sent.wire), lookup(sent.model)
    if isinstance(usage, Usage):
        given = limits.window_tokens if limits else 0
        window_tokens = max(given, info.window_tokens if info.known else 0) or _ANY_WINDOW_TOKENS
        usage = within(usage, window_tokens, info.max_output_tokens or window_tokens)
    return usage if isinstance(usage, Unreadable) else Report(sent.number, id_of(reply), usage)


def under_way(sent: Sent, output_tokens: int = 0) -> UnderWay:
    """The call of a view, as it counts if nobody reports it."""
    return UnderWay(sent.number, sent.model, sent.estimate, output_tokens)


def sum_of(state: State) -> Spent:
    """What a session's state says was spent, without the number of calls."""
    return Spent(usage=state.usage, cost_usd=state.cost_usd)


def without(report: Report, state: State, model: str) -> State:
    """The state whose sum leaves out a report, since a fuller one of the same reply came."""
    cost = cost_usd(report.usage, lookup(model))
    return with_sum(state, sum_of(state) - Spent(usage=report.usage, cost_usd=cost))


def unreported(found: Unreadable, sent: Sent) -> Event:
    """The event of a reply of which nobody knows what it came to: our estimate counts."""
    estimate = sent.estimate
    why = f"{found.why}; {estimate:,} input tokens are counted for it, our estimate"
    return Event(kind="unreported", where="reply", why=why, tokens_after=estimate)


def with_sum(state: State, spent: Spent) -> State:
    """The state with another sum."""
    return replace(state, usage=spent.usage, cost_usd=spent.cost_usd)


def reported_in(reply: Any, usage: Usage) -> tuple[Event, ...]:
    """The events of a reply: what reasoning its provider left out, and its usage."""
    why = f"the provider reported {usage.input_tokens:,} input tokens"
    observed = Event(kind="observed", where="reply", why=why, tokens_after=usage.input_tokens)
    reasons = left_out_of(reply)
    if not reasons:
        return (observed,)
    counts = ", ".join(f"{reason} ({count})" for reason, count in reasons.items())
    why = f"the provider left out {reasons.total():,} blocks of it: {counts}"
    return (Event(kind="reasoning", where="reply", why=why), observed)
