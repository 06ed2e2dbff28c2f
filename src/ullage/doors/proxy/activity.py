"""What the live page shows: conversations, each with its window over time. No content.

Bounded: the conversations used last, and of each its newest turns and decisions.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable
from operator import add

from msgspec import Struct
from msgspec.structs import astuple, replace

from ullage import Event
from ullage.doors.exchange.additions import Addition
from ullage.doors.host import Standing
from ullage.doors.proxy.relayed import (
    Relayed,
    cost_in_usd,
    raw_cost_in_usd,
    raw_tokens,
    tenant_shown,
)
from ullage.stores import SpendingRow
from ullage.wires import is_billed

_CONVERSATIONS = 200
_TURNS = 400
_DECISIONS = 100
_BUDGETS = 100
_WORDS_CHARS = 300
_QUIET = frozenset(("observed", "unreported", "diagnostic"))
"""Kinds of events that decide nothing."""


class TurnFigures(Struct, frozen=True, array_like=True):
    """One request of a conversation.

    Attributes:
        at_s: when it came, in seconds since 1970.
        raw_tokens: about how many tokens it had as it came.
        sent_tokens: about how many went on.
        limit_tokens: how many it might have had.
        reported_tokens: how many the provider reported of the prompt; 0 if it did not.
        cached_tokens: of those, read from its cache.
    """

    at_s: float
    raw_tokens: int
    sent_tokens: int
    limit_tokens: int
    reported_tokens: int
    cached_tokens: int


class DecisionNote(Struct, frozen=True, array_like=True):
    """One decision, without content.

    Attributes:
        at_s: when, in seconds since 1970.
        kind: of its event.
        place: the place. Never content.
        reason: the reason, with its numbers.
        tokens_before: tokens of the place before.
        tokens_after: tokens of the place after.
    """

    at_s: float
    kind: str
    place: str
    reason: str
    tokens_before: int
    tokens_after: int


class Totals(Struct, frozen=True):
    """Sums. They can be added.

    Attributes:
        requests: all of them.
        fitted: those that went on shorter than they came.
        passed: those that were not fitted.
        raw_tokens: of all prompts that were read and not held out, as they came.
        sent_tokens: the same, as they went on.
        recalled: how often something set aside was opened again.
        cost_usd: at list price, of what was reported; unknown prices are left out.
        breaks: how often a prompt cache broke.
        rebilled_tokens: what was sent before and billed again then.
        rebilled_usd: what that cost, at list price.
        unbilled: those that nobody bills: the model runs on a machine of one's own.
        held_out: those of conversations that pass unfitted, to be compared with.
        raw_usd: what all would have cost without ullage, at list price: reckoned.
    """

    requests: int = 0
    fitted: int = 0
    passed: int = 0
    raw_tokens: int = 0
    sent_tokens: int = 0
    recalled: int = 0
    cost_usd: float = 0.0
    breaks: int = 0
    rebilled_tokens: int = 0
    rebilled_usd: float = 0.0
    unbilled: int = 0
    held_out: int = 0
    raw_usd: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        return Totals(*map(add, astuple(self), astuple(other)))


class ConversationActivity(Struct, frozen=True):
    """One conversation.

    Attributes:
        key: what its session is kept under.
        wire: of its requests.
        model: that was asked last.
        tenant: the owner; of one made of a credential the first characters.
        totals: of all its requests.
        turns: the newest, in order.
        decisions: the newest, in order.
        standing: why nothing of it is cut on arrival, as of its last request; None: it is.
        without: what its last request was sent without, because the upstream refuses it.
        is_held_out: whether it passes unfitted, to be compared with.
    """

    key: str
    wire: str
    model: str
    tenant: str
    totals: Totals = Totals()
    turns: tuple[TurnFigures, ...] = ()
    decisions: tuple[DecisionNote, ...] = ()
    standing: Standing | None = None
    without: tuple[Addition, ...] = ()
    is_held_out: bool = False

    @property
    def is_joined(self) -> bool:
        """Whether it was under way when it was first seen, and is cut by now."""
        is_met = any(decision.kind == "joined" for decision in self.decisions)
        return self.standing is None and is_met


class BudgetShown(Struct, frozen=True):
    """How far a budget of a tenant's is used.

    Attributes:
        budget: its name.
        tenant: who spends of it; empty where all its tenants share it.
        period: the present day or month.
        share: what is spent, as a share of the allowance.
        tokens: that are spent.
        usd: dollars that are spent, at list price.
        limit_tokens: the allowance; 0: no limit.
        limit_usd: the same in dollars.
        resets_s: when the period ends, in seconds since 1970.
    """

    budget: str
    tenant: str
    period: str
    share: float
    tokens: int
    usd: float
    limit_tokens: int
    limit_usd: float
    resets_s: int


def budgets_shown(rows: Iterable[SpendingRow]) -> list[BudgetShown]:
    """What several workers know of budgets, each as the one knows it that heard last.

    Args:
        rows: of all workers.

    Returns:
        The budgets, those nearest their end first; so many as a page shows.
    """
    newest: dict[object, SpendingRow] = {}
    for row in rows:
        known = newest.get(row.key)
        if known is None or row.share > known.share:
            newest[row.key] = row
    ordered = sorted(newest.values(), key=lambda row: (-row.share, row.key))
    return [
        BudgetShown(
            row.key.budget,
            tenant_shown(row.key.tenant),
            row.key.period,
            row.share,
            row.tokens,
            row.usd,
            row.limit_tokens,
            row.limit_usd,
            row.resets_s,
        )
        for row in ordered[:_BUDGETS]
    ]


class Activity:
    """The conversations of one worker, for the live page.

    Attributes:
        totals: of all requests.
    """

    def __init__(self) -> None:
        self.totals = Totals()
        self._conversations: OrderedDict[str, ConversationActivity] = (
            OrderedDict()
        )

    def take(self, relayed: Relayed) -> None:
        """Take in a request that is over."""
        totals = totalled(relayed)
        report = relayed.report
        self.totals += totals
        if not report.conversation:
            return
        key = report.conversation
        earlier = self._conversations.pop(
            key,
            ConversationActivity(
                key, report.wire, "", tenant_shown(relayed.tenant)
            ),
        )
        self._conversations[key] = _with(earlier, relayed, totals)
        if len(self._conversations) > _CONVERSATIONS:
            self._conversations.popitem(last=False)

    def note(self, conversation: str, event: Event, cost_usd: float) -> None:
        """Take in what was done beside the requests of a conversation, and what it cost.

        Args:
            conversation: its key.
            event: what was done.
            cost_usd: at list price.
        """
        totals = Totals(cost_usd=cost_usd)
        self.totals += totals
        shown = self._conversations.get(conversation)
        if shown is not None:
            notes = (*shown.decisions, _decision(time.time(), event))
            self._conversations[conversation] = replace(
                shown,
                totals=shown.totals + totals,
                decisions=notes[-_DECISIONS:],
            )

    @property
    def conversations(self) -> tuple[ConversationActivity, ...]:
        """The conversations, the one used last first."""
        return tuple(reversed(self._conversations.values()))


def totalled(relayed: Relayed) -> Totals:
    """What one request adds."""
    report = relayed.report
    is_compared = not report.is_held_out
    breaks = [event.broken for event in report.events if event.broken]
    return Totals(
        requests=1,
        fitted=int(0 < relayed.sent_bytes < relayed.came_bytes),
        passed=int(not report.view_tokens),
        raw_tokens=raw_tokens(relayed) if is_compared else 0,
        sent_tokens=report.view_tokens if is_compared else 0,
        recalled=report.recalled,
        cost_usd=cost_in_usd(relayed) or 0.0,
        breaks=len(breaks),
        rebilled_tokens=sum(broken.tokens for broken in breaks),
        rebilled_usd=sum(broken.cost_usd or 0.0 for broken in breaks),
        unbilled=int(not is_billed(report.wire, report.model)),
        held_out=int(report.is_held_out),
        raw_usd=raw_cost_in_usd(relayed) or 0.0,
    )


def joined(
    workers: Iterable[Iterable[ConversationActivity]],
) -> list[ConversationActivity]:
    """The conversations of several workers; what two of them served is one."""
    merged: dict[str, ConversationActivity] = {}
    for conversations in workers:
        for conversation in conversations:
            there = merged.get(conversation.key)
            merged[conversation.key] = (
                conversation if there is None else _both(there, conversation)
            )
    return sorted(merged.values(), key=_last_s, reverse=True)


def _with(
    conversation: ConversationActivity, relayed: Relayed, totals: Totals
) -> ConversationActivity:
    report = relayed.report
    at_s = round(relayed.began_s, 3)
    usage = report.usage
    turn = TurnFigures(
        at_s,
        raw_tokens(relayed),
        report.view_tokens,
        report.limit_tokens,
        0 if usage is None else usage.input_tokens,
        0 if usage is None else usage.cache_read_tokens,
    )
    notes = [
        _decision(at_s, event)
        for event in report.events
        if event.kind not in _QUIET
    ]
    return ConversationActivity(
        conversation.key,
        report.wire,
        report.model,
        conversation.tenant,
        conversation.totals + totals,
        (*conversation.turns, turn)[-_TURNS:],
        (*conversation.decisions, *notes)[-_DECISIONS:],
        report.standing,
        report.without,
        report.is_held_out,
    )


def _decision(at_s: float, event: Event) -> DecisionNote:
    """A decision as it is shown: its words can name a tool, and a name has no bound."""
    place = event.where[:_WORDS_CHARS]
    reason = event.why[:_WORDS_CHARS]
    return DecisionNote(
        at_s,
        event.kind,
        place,
        reason,
        event.tokens_before,
        event.tokens_after,
    )


def _both(
    one: ConversationActivity, twin: ConversationActivity
) -> ConversationActivity:
    older, newer = sorted((one, twin), key=_last_s)
    turns = sorted((*older.turns, *newer.turns), key=lambda turn: turn.at_s)
    decisions = sorted(
        (*older.decisions, *newer.decisions), key=lambda each: each.at_s
    )
    return ConversationActivity(
        newer.key,
        newer.wire,
        newer.model,
        newer.tenant,
        one.totals + twin.totals,
        tuple(turns[-_TURNS:]),
        tuple(decisions[-_DECISIONS:]),
        newer.standing,
        newer.without,
        newer.is_held_out,
    )


def _last_s(conversation: ConversationActivity) -> float:
    return conversation.turns[-1].at_s
