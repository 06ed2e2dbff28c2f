"""What a session knows between two calls: one frozen value, replaced by one assignment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.history.ledger import Ledger, merge_records, records_since
from ullage.core.turn import State
from ullage.core.turn.caches import SessionCache
from ullage.core.turn.lessons import Lessons
from ullage.core.values.effects import Record
from ullage.core.values.events import Event
from ullage.session.prompt_cache.sent import (
    Answered,
    RecentRequest,
    with_recent,
)
from ullage.session.spend.book import UsageReport
from ullage.session.spend.calls import Spent
from ullage.session.view import RequestInfo

if TYPE_CHECKING:
    from ullage.session.decisions.successor import Following

EVENTS_KEPT = 4_096
"""The newest events that a session still lists."""
OBSERVED_KEPT = 256
"""So many replies are known again when they are reported once more."""


class SessionState(Struct, frozen=True):
    """Everything a session knows between two calls.

    Attributes:
        persisted: what lasts, and can be carried.
        cache: what saves time, or None: a call is working on it, or was interrupted.
        newest: what the newest view was made of.
        events: the newest events, in order.
        learnt: what was learnt of the provider's limits, by conversation.
        carried: the ledger as far as the host has it (`news`).
        observed: the newest replies that were observed.
        waiting: records that were taken in before those they follow.
        recent: the newest requests that were answered, one of each conversation.
        following: the newest conversation of which it was looked up what it follows.
    """

    persisted: State
    learnt: Lessons = Lessons()
    cache: SessionCache | None = None
    newest: RequestInfo | None = None
    events: tuple[Event, ...] = ()
    carried: Ledger = Ledger()
    observed: tuple[UsageReport, ...] = ()
    waiting: tuple[Record, ...] = ()
    recent: tuple[RecentRequest, ...] = ()
    following: Following | None = None

    @property
    def caches(self) -> bool:
        """Whether a prompt cache was seen at work."""
        usage = self.persisted.usage
        return bool(usage.cache_read_tokens or usage.cache_write_tokens)

    def with_persisted(self, persisted: State) -> SessionState:
        """The state with a new persisted part. Its sums are added apart (`with_spent`).

        A call may take long, and another reply may have been counted meanwhile.

        Args:
            persisted: as a call made it.
        """
        usage = self.persisted.usage
        cost_usd = self.persisted.cost_usd
        return replace(
            self, persisted=replace(persisted, usage=usage, cost_usd=cost_usd)
        )

    def with_spent(self, spent: Spent) -> SessionState:
        """The state with the usage of some calls added to its sums.

        Args:
            spent: the usage and cost.
        """
        total = (
            Spent(usage=self.persisted.usage, cost_usd=self.persisted.cost_usd)
            + spent
        )
        persisted = replace(
            self.persisted, usage=total.usage, cost_usd=total.cost_usd
        )
        return replace(self, persisted=persisted)

    def without_room(self, room_tokens: int, model: str) -> SessionState:
        """The state without the room that a refusal left of a model's window.

        Args:
            room_tokens: that room.
            model: the model.
        """
        return replace(
            self, learnt=self.learnt.without_room(room_tokens, model)
        )

    def with_events(self, *events: Event) -> SessionState:
        """The state with these events behind the others; the oldest are forgotten.

        Args:
            events: in order.
        """
        return (
            replace(self, events=(*self.events, *events)[-EVENTS_KEPT:])
            if events
            else self
        )

    def observed_before(self, report: UsageReport) -> UsageReport | None:
        """The earlier report of the same reply, if there is one.

        Args:
            report: of a reply.
        """
        return next(
            (earlier for earlier in self.observed if earlier.is_of(report)),
            None,
        )

    def with_observed(
        self, observed: UsageReport, earlier: UsageReport | None
    ) -> SessionState:
        """With this reply among those that count no second time; the oldest are forgotten.

        Of several reports of one reply the newest is kept; ``earlier`` is `observed_before`.
        """
        reports = [
            report
            for report in self.observed
            if earlier is None or not report.is_of(observed)
        ]
        return replace(self, observed=(*reports, observed)[-OBSERVED_KEPT:])

    def with_sent(self, sent: Answered) -> SessionState:
        """The state that knows of a request which was answered, to judge the next one by.

        Args:
            sent: what is kept of it.
        """
        if sent.request is None:
            return self
        return replace(self, recent=with_recent(self.recent, sent.request))

    def with_news(self) -> tuple[SessionState, tuple[Record, ...]]:
        """The session whose host has every record, and the records that it did not have."""
        ledger = self.persisted.ledger
        return replace(self, carried=ledger), records_since(
            ledger, self.carried
        )

    def with_records(self, records: Iterable[Record]) -> SessionState:
        """The state with records that the host has; new ones drop what is remembered for speed.

        Args:
            records: in any order.
        """
        records = (*self.waiting, *records)
        # records may come in any order: one that follows a missing one waits for it
        ledger, waiting = merge_records(self.persisted.ledger, records)
        carried, _ = merge_records(self.carried, records)
        state = replace(self, carried=carried, waiting=waiting)
        if ledger is self.persisted.ledger:
            return state
        return replace(
            state, persisted=replace(self.persisted, ledger=ledger), cache=None
        )
