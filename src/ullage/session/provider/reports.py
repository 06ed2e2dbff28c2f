"""What providers say of views: what a reply reports and adds to the sums, and what was too long."""

from __future__ import annotations

from typing import Any

from ullage.core.errors import UllageError
from ullage.core.turn.threads import Thread, record_of
from ullage.core.values.effects import Record
from ullage.core.values.events import Event
from ullage.core.values.limits import Limits
from ullage.core.values.usage import Usage
from ullage.session.spend.account import PendingCall
from ullage.session.spend.book import UsageReport
from ullage.session.spend.calls import Spent
from ullage.session.spend.cost import cost_usd, price_of
from ullage.session.view import RequestInfo
from ullage.wires.reported import (
    Unreadable,
    id_of,
    left_out_of,
    plausible,
    usage_of,
)


def report_of(
    reply: Any, info: RequestInfo, limits: Limits | None
) -> UsageReport | Unreadable:
    """The usage that a reply to a view reports, or why it cannot be read.

    Args:
        reply: any of the forms of `ullage.wires.reported`.
        info: the view it answers.
        limits: those of the session, None if it was given none.
    """
    try:
        usage = usage_of(reply, info.wire)
        if isinstance(usage, Usage):
            usage = plausible(
                usage, info.model, limits, estimated_tokens=info.tokens
            )
        if isinstance(usage, Unreadable):
            return usage
        price = price_of(info.model, info.wire.wire)
        return UsageReport(
            info.number,
            id_of(reply),
            usage,
            cost_usd(usage, price),
            price.is_billed,
        )
    except Exception as error:  # noqa: BLE001 - the object is anybody's, and the call was paid for
        return Unreadable(
            f"reading a {type(reply).__name__} raised {type(error).__name__}"
        )


def thread_record(
    reply: Any,
    report: UsageReport | Unreadable,
    info: RequestInfo,
    tenant: str,
) -> Record | None:
    """The record of a message thread, for the request that goes on from this reply; or None.

    Args:
        reply: the reply.
        report: what it reports.
        info: the view it answers.
        tenant: whose thread it is.
    """
    reply_id = id_of(reply) if info.is_thread else ""
    if not reply_id:
        return None
    words = info.words
    tokens = 0
    if not isinstance(report, Unreadable):
        tokens = report.usage.sent_tokens + report.usage.output_tokens
    thread = Thread(
        info.offers, words.prefix, tuple(sorted(words.toolset.names)), tokens
    )
    return record_of(info.wire.name, tenant, reply_id, thread)


def under_way(info: RequestInfo, output_tokens: int = 0) -> PendingCall:
    """The call of a view, with our estimate in case that nobody reports it.

    Args:
        info: the view.
        output_tokens: what is known of its reply so far.
    """
    return PendingCall(
        info.number,
        info.model,
        info.estimate,
        output_tokens,
        info.wire.wire,
    )


def spent_by(
    report: UsageReport, *, instead_of: UsageReport | None = None
) -> Spent:
    """What a report adds to the sums.

    Args:
        report: of a reply.
        instead_of: what was counted of the same reply before, less of it: that is taken out.
    """
    spent = Spent(usage=report.usage, cost_usd=report.cost_usd)
    if instead_of is None:
        return spent
    return spent - Spent(usage=instead_of.usage, cost_usd=instead_of.cost_usd)


def unreported(unreadable: Unreadable, info: RequestInfo) -> Event:
    """The event of a reply without a readable usage: our estimate is counted.

    Args:
        unreadable: why it cannot be read.
        info: the view it answers.
    """
    estimate = info.estimate
    reason = f"{unreadable.why}; {estimate:,} input tokens are counted for it, our estimate"
    return Event(
        kind="unreported", where="reply", why=reason, tokens_after=estimate
    )


def unkept_usage(error: Exception) -> Event:
    """The event of a reply whose usage could not be stored.

    Args:
        error: what was raised. An error of ours is quoted, any other is named.
    """
    detail = (
        str(error) if isinstance(error, UllageError) else type(error).__name__
    )
    reason = f"the reply's usage could not be kept: {detail}"
    return Event(kind="unreported", where="reply", why=reason)


def reported_in(reply: Any, usage: Usage) -> tuple[Event, ...]:
    """The events of a reply: the reasoning that its provider left out, and its usage.

    Args:
        reply: the reply.
        usage: what it reports.
    """
    reason = f"the provider reported {usage.input_tokens:,} input tokens"
    observed = Event(
        kind="observed",
        where="reply",
        why=reason,
        tokens_after=usage.input_tokens,
    )
    reasons = left_out_of(reply)
    if not reasons:
        return (observed,)
    counts = ", ".join(
        f"{reason} ({count})" for reason, count in reasons.items()
    )
    reason = (
        f"the provider left out {reasons.total():,} blocks of it: {counts}"
    )
    return (Event(kind="reasoning", where="reply", why=reason), observed)
