"""What providers say of views: what a reply reports and adds to the sums, and what was too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ullage.errors import UllageError
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
from ullage.wires.overflow import Overflow
from ullage.wires.reported import Unreadable, id_of, left_out_of, plausible, usage_of


def report_of(reply: Any, sent: Sent, limits: Limits | None) -> Report | Unreadable:
    """What a reply to a view reports, or why that cannot be read, or cannot be.

    Args:
        reply: any of the forms of `ullage.wires.reported`.
        sent: what it answers.
        limits: those of the session, None if it was given none.
    """
    try:
        usage = usage_of(reply, sent.wire)
        if isinstance(usage, Usage):
            usage = plausible(usage, sent.model, limits, estimated_tokens=sent.tokens)
        if isinstance(usage, Unreadable):
            return usage
        return Report(sent.number, id_of(reply), usage, cost_usd(usage, lookup(sent.model)))
    except Exception as error:  # noqa: BLE001 - the object is anybody's, and the call was paid for
        return Unreadable(f"reading a {type(reply).__name__} raised {type(error).__name__}")


def under_way(sent: Sent, output_tokens: int = 0) -> UnderWay:
    """The call of a view, as it counts if nobody reports it."""
    return UnderWay(sent.number, sent.model, sent.estimate, output_tokens)


def with_more(state: State, spent: Spent) -> State:
    """The state with what some calls came to in its sums."""
    total = Spent(usage=state.usage, cost_usd=state.cost_usd) + spent
    return replace(state, usage=total.usage, cost_usd=total.cost_usd)


def without(report: Report, state: State) -> State:
    """The state whose sum leaves out a report, since a fuller one of the same reply came."""
    return with_more(state, Spent() - Spent(usage=report.usage, cost_usd=report.cost_usd))


def unreported(found: Unreadable, sent: Sent) -> Event:
    """The event of a reply of which nobody knows what it came to: our estimate counts."""
    estimate = sent.estimate
    why = f"{found.why}; {estimate:,} input tokens are counted for it, our estimate"
    return Event(kind="unreported", where="reply", why=why, tokens_after=estimate)


def unkept_usage(error: Exception) -> Event:
    """The event of a reply that is there, and paid for, and whose usage could not be taken in."""
    reason = str(error) if isinstance(error, UllageError) else type(error).__name__
    why = f"the reply's usage could not be kept: {reason}"
    return Event(kind="unreported", where="reply", why=why)


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


class Refusals(Struct, frozen=True):
    """The limits of a session's models, as given, as known, and as refusals taught. A value.

    Attributes:
        given: the limits the session was asked to keep, or None.
        named: by model, a smaller window that its provider named.
        retry: by model, what the next view must keep to.
    """

    given: Limits | None = None
    named: Mapping[str, Limits] = {}
    retry: Mapping[str, Limits] = {}

    def limits(self, model: str) -> Limits:
        """The window of a model: as a provider named it, as was given, or as is known."""
        return self.known(model) or Limits(window_tokens=lookup(model).window_tokens)

    def known(self, model: str) -> Limits | None:
        """The window of a model as a provider named it, or as was given; None if neither is."""
        return self.named.get(model) or self.given

    def next_limits(self, model: str) -> Limits | None:
        """What the next view must keep to; None where nothing was given or learnt."""
        return self.retry.get(model) or self.known(model)

    def after(self, found: Overflow, model: str, sent_tokens: int) -> tuple[Refusals, Event]:
        """What is known once a view of so many tokens was refused, and the event of it."""
        room = found.room_tokens(sent_tokens)
        retry = {**self.retry, model: Limits(window_tokens=room, output_reserve_tokens=0)}
        named, limit_tokens = self.named, found.limit_tokens if found.by == "tokens" else None
        if limit_tokens and limit_tokens < self.limits(model).window_tokens:
            named = {**named, model: Limits(window_tokens=limit_tokens)}
        size = "a size it does not name" if found.size_tokens is None else f"{found.size_tokens:,}"
        limit = "" if found.limit_tokens is None else f" for a limit of {found.limit_tokens:,}"
        event = Event(
            kind="refused",
            where="request",
            why=f"the provider refused the request as too long: {size}{limit}, by its own count",
            tokens_before=sent_tokens,
            tokens_after=room,
        )
        return replace(self, named=named, retry=retry), event

    def reported(self) -> Refusals:
        """What is known once a reply was counted: estimates are right again."""
        return replace(self, retry={}) if self.retry else self
