"""What a session knows between two calls: one frozen value, replaced by one assignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from ullage.history.ledger import Ledger, changes, taken
from ullage.session.view import Sent
from ullage.spend.book import Report
from ullage.turn import State
from ullage.turn.learnt import Learnt
from ullage.turn.memo import Memo
from ullage.values.effects import Record
from ullage.values.events import Event

EVENTS_KEPT = 4_096
"""The newest events that a session still lists."""
OBSERVED_KEPT = 256
"""So many replies are known again when they are reported once more."""


class Kept(Struct, frozen=True):
    """Everything a session knows between two calls.

    Attributes:
        state: what lasts, and can be carried.
        memo: what saves time, or None: a call is working on it, or was interrupted.
        newest: what the newest view was made of.
        view: that view, if anybody still has it.
        events: the newest events, in order.
        learnt: what was learnt of the provider's limits, by conversation.
        carried: the ledger as far as the host has it (`news`).
        observed: the newest replies that were observed.
        waiting: records that were taken in before those they follow.
    """

    state: State
    learnt: Learnt = Learnt()
    memo: Memo | None = None
    newest: Sent | None = None
    view: Callable[[], object] = lambda: None
    events: tuple[Event, ...] = ()
    carried: Ledger = Ledger()
    observed: tuple[Report, ...] = ()
    waiting: tuple[Record, ...] = ()

    def with_events(self, *events: Event) -> Kept:
        """With these events behind the others; the oldest are forgotten."""
        return replace(self, events=(*self.events, *events)[-EVENTS_KEPT:]) if events else self

    def observed_before(self, report: Report) -> Report | None:
        """What was observed before of the same reply, if anything was."""
        return next((each for each in self.observed if each.is_of(report)), None)

    def with_observed(self, observed: Report, before: Report | None) -> Kept:
        """With this reply among those that count no second time; the oldest are forgotten.

        Of several reports of one reply the newest is kept; ``before`` is `observed_before`.
        """
        others = [it for it in self.observed if before is None or not it.is_of(observed)]
        return replace(self, observed=(*others, observed)[-OBSERVED_KEPT:])

    def with_news(self) -> tuple[Kept, tuple[Record, ...]]:
        """The session whose host has every record, and the records that it did not have."""
        ledger = self.state.ledger
        return replace(self, carried=ledger), changes(ledger, self.carried)

    def with_records(self, records: Iterable[Record]) -> Kept:
        """With records that the host has; where they are new, what is remembered is dropped."""
        given = (*self.waiting, *records)
        ledger, waiting = taken(self.state.ledger, given)
        carried, _ = taken(self.carried, given)
        kept = replace(self, carried=carried, waiting=waiting)
        if ledger is self.state.ledger:
            return kept
        return replace(kept, state=replace(self.state, ledger=ledger), memo=None)
