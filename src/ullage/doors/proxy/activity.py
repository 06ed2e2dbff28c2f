"""What the live page shows: conversations, each with its window over time. No content.

Bounded: the conversations used last, and of each its newest turns and decisions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from operator import add

from msgspec import Struct
from msgspec.structs import astuple

from ullage import Event
from ullage.doors.exchange.additions import Addition
from ullage.doors.host import Standing, cost_usd, lookup
from ullage.doors.proxy.relayed import Relayed, raw_tokens

_CONVERSATIONS, _TURNS, _DECISIONS = 200, 400, 100
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
    """One thing that was decided.

    Attributes:
        at_s: when, in seconds since 1970.
        kind: of its event.
        where: the place. Never content.
        why: the reason, with its numbers.
        before: tokens of the place before.
        after: tokens of the place after.
    """

    at_s: float
    kind: str
    where: str
    why: str
    before: int
    after: int


class Totals(Struct, frozen=True):
    """Sums. They can be added.

    Attributes:
        requests: all of them.
        fitted: those that went on shorter than they came.
        passed: those that were not fitted.
        raw_tokens: of all prompts that were fitted, as they came.
        sent_tokens: the same, as they went on.
        recalled: how often something set aside was opened again.
        cost_usd: at list price, of what was reported; unknown prices are left out.
    """

    requests: int = 0
    fitted: int = 0
    passed: int = 0
    raw_tokens: int = 0
    sent_tokens: int = 0
    recalled: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        return Totals(*map(add, astuple(self), astuple(other)))


class ConversationActivity(Struct, frozen=True):
    """One conversation.

    Attributes:
        key: what its session is kept under.
        wire: of its requests.
        model: that was asked last.
        tenant: whose it is, in its first characters.
        totals: of all its requests.
        turns: the newest, in order.
        decisions: the newest, in order.
        standing: why nothing of it is cut at first sight, as of its last request; None: it is.
        without: what its last request was sent without, because the upstream refuses it.
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

    @property
    def is_joined(self) -> bool:
        """Whether it was under way when it was first seen, and is cut by now."""
        is_met = any(decision.kind == "joined" for decision in self.decisions)
        return self.standing is None and is_met


class Activity:
    """What one worker has seen.

    Attributes:
        totals: of all requests.
    """

    def __init__(self) -> None:
        self.totals = Totals()
        self._shown: OrderedDict[str, ConversationActivity] = OrderedDict()

    def take(self, relayed: Relayed) -> None:
        """Take in a request that is over."""
        totals, report = totalled(relayed), relayed.report
        self.totals += totals
        if not report.conversation:
            return
        key = report.conversation
        before = self._shown.pop(
            key, ConversationActivity(key, report.wire, "", relayed.tenant[:8])
        )
        self._shown[key] = _with(before, relayed, totals)
        if len(self._shown) > _CONVERSATIONS:
            self._shown.popitem(last=False)

    @property
    def shown(self) -> tuple[ConversationActivity, ...]:
        """The conversations, the one used last first."""
        return tuple(reversed(self._shown.values()))


def totalled(relayed: Relayed) -> Totals:
    """What one request adds."""
    report = relayed.report
    cost = (
        None if report.usage is None else cost_usd(report.usage, lookup(report.model))
    )
    return Totals(
        requests=1,
        fitted=int(0 < relayed.sent_bytes < relayed.came_bytes),
        passed=int(not report.view_tokens),
        raw_tokens=raw_tokens(relayed),
        sent_tokens=report.view_tokens,
        recalled=report.recalled,
        cost_usd=cost or 0.0,
    )


def joined(
    workers: Iterable[Iterable[ConversationActivity]],
) -> list[ConversationActivity]:
    """The conversations of several workers; what two of them served is one."""
    found: dict[str, ConversationActivity] = {}
    for shown in workers:
        for each in shown:
            there = found.get(each.key)
            found[each.key] = each if there is None else _both(there, each)
    return sorted(found.values(), key=_last_s, reverse=True)


def _with(
    shown: ConversationActivity, relayed: Relayed, totals: Totals
) -> ConversationActivity:
    report, at_s = relayed.report, round(relayed.began_s, 3)
    usage = report.usage
    turn = TurnFigures(
        at_s,
        totals.raw_tokens,
        report.view_tokens,
        report.limit_tokens,
        0 if usage is None else usage.input_tokens,
        0 if usage is None else usage.cache_read_tokens,
    )
    new = [_decision(at_s, each) for each in report.events if each.kind not in _QUIET]
    return ConversationActivity(
        shown.key,
        report.wire,
        report.model,
        shown.tenant,
        shown.totals + totals,
        (*shown.turns, turn)[-_TURNS:],
        (*shown.decisions, *new)[-_DECISIONS:],
        report.standing,
        report.without,
    )


def _decision(at_s: float, event: Event) -> DecisionNote:
    """A decision as it is shown: its words can name a tool, and a name has no bound."""
    where, why = event.where[:_WORDS_CHARS], event.why[:_WORDS_CHARS]
    return DecisionNote(
        at_s, event.kind, where, why, event.tokens_before, event.tokens_after
    )


def _both(
    one: ConversationActivity, other: ConversationActivity
) -> ConversationActivity:
    older, newer = sorted((one, other), key=_last_s)
    turns = sorted((*older.turns, *newer.turns), key=lambda turn: turn.at_s)
    decisions = sorted((*older.decisions, *newer.decisions), key=lambda each: each.at_s)
    return ConversationActivity(
        newer.key,
        newer.wire,
        newer.model,
        newer.tenant,
        one.totals + other.totals,
        tuple(turns[-_TURNS:]),
        tuple(decisions[-_DECISIONS:]),
        newer.standing,
        newer.without,
    )


def _last_s(shown: ConversationActivity) -> float:
    return shown.turns[-1].at_s
