"""What a session knows is replaced by one assignment, whoever changes it.

The laws:

- Everything a session knows is one frozen value, `SessionState`, replaced by a single assignment
  when a call is over. So wherever a call is interrupted, the session is as before it or as after.
- Calls run one at a time, under the session's lock. What they write to in place is the cache, and
  with it the working window: it is out of the state while it is worked on, and dropped where that
  is interrupted.
- Whatever reads a session takes no lock: it reads the state, in which all is frozen.
- Beside calls others write to the state too (`emit`, `refused`, a host). Each of them changes what
  the state is then, under a second lock that is held for no I/O and no function of a caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

from msgspec.structs import replace

from ullage.core.values.effects import Record, Steps
from ullage.core.values.events import Event
from ullage.session.state import SessionState
from ullage.session.telling import OnEvent, tell

Transition: TypeAlias = tuple[SessionState, Sequence[Event]]
"""The next state, and the events that it causes."""


class ChangeMixin:
    """The part of a session that changes its state."""

    _state: SessionState
    _state_lock: AbstractContextManager[bool]
    _on_event: OnEvent | None

    def emit(self, event: Event) -> None:
        """Add an event to `events`, the log and ``on_event``.

        Args:
            event: what happened.
        """
        self._change(lambda state: (state, (event,)))

    def _change(self, change: Callable[[SessionState], Transition]) -> None:
        """Replace the state by what a function makes of it, in one assignment, and emit its events.

        The function is given the state as it is then, so that nothing of what another thread
        changed meanwhile is lost. It does no I/O.
        """
        with self._state_lock:
            earlier_events = self._state.events
            state, events = change(self._state)
            self._state = state.with_events(*events)
        tell(events, self._on_event, earlier_events)

    def _take_cache(self) -> SessionState:
        """The state; its cache belongs to this call from now on."""
        with self._state_lock:
            state = self._state
            self._state = replace(state, cache=None)
        return state

    def news(self) -> tuple[Record, ...]:
        """The records decided and observed since the last call, for a host's own checkpoints.

        A host that carries the conversation's ledger adds them to its state. Records are small,
        frozen, and go through JSON (``msgspec.json``) and pickle. A session that has taken all of
        them (`take`) shows the views of the one they came from.

        Returns:
            The records, in order; each is returned once.
        """
        with self._state_lock:
            self._state, records = self._state.with_news()
        return records

    def _take(self, records: Iterable[Record]) -> Steps[None]:
        records = tuple(records)
        self._change(lambda state: (state.with_records(records), ()))
        yield from ()
