"""What a session knows between two calls: one frozen value, replaced by one assignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from msgspec.structs import replace

from ullage.history.increments import changes, taken
from ullage.history.ledger import Ledger
from ullage.session.refusals import Refusals
from ullage.session.view import Sent
from ullage.turn import State
from ullage.turn.memo import Memo
from ullage.values.effects import Record
from ullage.values.events import Event
from ullage.values.usage import Usage

__all__ = ["EVENTS_KEPT", "Kept"]

EVENTS_KEPT = 4_096
"""The newest events that a session still lists."""
OBSERVED_KEPT = 256
"""So many replies are known again when they are reported once more."""


class Kept(NamedTuple):
    """Everything a session knows between two calls.

    Attributes:
        state: what lasts, and can be carried.
        memo: what saves time, or None: a call is working on it, or was interrupted.
        newest: what the newest view was made of.
        view: that view, if anybody still has it.
        events: the newest events, in order.
        refusals: what refused requests taught.
        carried: the ledger as far as the host has it (`news`).
        observed: the newest replies that were observed: number of the view, id and usage.
        waiting: records that were taken in before those they follow.
    """

    state: State
    refusals: Refusals
    memo: Memo | None = None
    newest: Sent | None = None
    view: Callable[[], object] = lambda: None
    events: tuple[Event, ...] = ()
    carried: Ledger = Ledger()
    observed: tuple[tuple[int, str, Usage], ...] = ()
    waiting: tuple[Record, ...] = ()

    def with_events(self, *events: Event) -> Kept:
        """With these events behind the others; the oldest are forgotten."""
        return self._replace(events=(*self.events, *events)[-EVENTS_KEPT:]) if events else self

    def with_observed(self, observed: tuple[int, str, Usage] | None) -> Kept:
        """With this reply among those that count no second time; the oldest are forgotten."""
        return (
            self._replace(observed=(*self.observed, observed)[-OBSERVED_KEPT:])
            if observed
            else self
        )

    def with_news(self) -> tuple[Kept, tuple[Record, ...]]:
        """The session whose host has every record, and the records that it did not have."""
        ledger = self.state.ledger
        return self._replace(carried=ledger), changes(ledger, self.carried)

    def with_records(self, records: Iterable[Record]) -> Kept:
        """With records that the host has; where they are new, what is remembered is dropped."""
        given = (*self.waiting, *records)
        ledger, waiting = taken(self.state.ledger, given)
        carried, _ = taken(self.carried, given)
        kept = self._replace(carried=carried, waiting=waiting)
        if ledger is self.state.ledger:
            return kept
        return kept._replace(state=replace(self.state, ledger=ledger), memo=None)
