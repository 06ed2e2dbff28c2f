"""What a user decides through a session: pin, drop, restore, undo, note.

A decision is written to the ledger at the place of the newest view, and the next `fit` carries it
out, in this session and in every other of the same conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ullage.core.errors import ConfigError, StoreError
from ullage.core.history import canon
from ullage.core.history.hand import DecisionEntry, hand_of, name_of
from ullage.core.history.ledger import Ledger, latest_record
from ullage.core.history.window import Window
from ullage.core.turn.settings import Settings
from ullage.core.values.decisions import Decision, LedgerRef, Verb, When
from ullage.core.values.edits import whole
from ullage.core.values.effects import Commit, Find, Record, Steps
from ullage.core.values.events import Event
from ullage.session.preview import Preview, preview
from ullage.session.state import SessionState
from ullage.session.targets import target_of, undone_by
from ullage.session.view import Sent


class Deciding:
    """The part of a session that takes a user's decisions.

    Attributes:
        settings: what the session was asked to be.
    """

    settings: Settings
    store: Any
    _state: SessionState
    _opened: Callable[[Mapping[str, Any] | None], Steps[Sent]]
    _change: Callable[
        [Callable[[SessionState], tuple[SessionState, Sequence[Event]]]], None
    ]

    @property
    def decisions(self) -> tuple[DecisionEntry, ...]:
        """The users' decisions that stand in the newest history, oldest first.

        What others decided meanwhile is among them once `fit` has seen it.
        """
        newest = self._state.newest
        if newest is None:
            return ()
        return hand_of(newest.transcript, self._state.persisted.ledger).decisions

    def _outlining(self, sent: Sent) -> tuple[Window, str] | None:
        """What an outline of a view's history is made of; None where none is kept."""
        window = sent.working
        if window is None or window.size < sent.size or not self._outlines:
            return None
        is_whole = window.transcript.chain[0] == canon.root(
            sent.wire.name, self.settings.tenant
        )
        return (
            (window, sent.wire.name) if is_whole else None
        )  # else the provider holds the rest

    @property
    def _outlines(self) -> bool:
        """Whether outlines are kept: not in a store that nobody else can look at."""
        return self.settings.outlines and self.store.name != "memory"

    def _decide(
        self,
        verb: Verb,
        wanted: Any,
        request: Mapping[str, Any] | None,
        sent: Sent | None = None,
        **fields: Any,
    ) -> Steps[str]:
        """Write a decision to the ledger; its name."""
        sent = sent or (yield from self._opened(request))
        ledger = yield from self._looked_up(sent)
        decision = self._decision(sent, ledger, verb, wanted, **fields)
        while True:
            made = LedgerRef("decision", sent.key, len(ledger.at(sent.key).decisions))
            ledger, record = ledger.with_decision(sent.key, decision)
            pointer = latest_record(sent.transcript.chain, (record,))
            lost: tuple[Record, ...] = yield Commit((), (record, pointer))
            if not lost:
                break
            ledger = _after(lost, ledger, made)
        records = _decisions_at(ledger, sent.key)
        self._change(lambda state: (_with_records(state, records), ()))
        return name_of(made)

    def _looked_up(self, sent: Sent) -> Steps[Ledger]:
        """The ledger with what others decided meanwhile."""
        ledger = self._state.persisted.ledger
        records = yield Find((sent.key, *sent.transcript.chain))
        return ledger.with_records(records)

    def _previewed(
        self,
        verb: Verb,
        wanted: Any,
        request: Mapping[str, Any] | None,
        sent: Sent | None = None,
        **fields: Any,
    ) -> Steps[Preview]:
        """What a decision would come to."""
        if verb == "note":
            wanted, fields["text"] = None, wanted
        sent = sent or (yield from self._opened(request))
        raw = sent.raw.request()
        if raw is None:
            raise ConfigError(
                "request", "the newest request is not at hand", "Give request=…."
            )
        ledger = yield from self._looked_up(sent)
        decision = self._decision(sent, ledger, verb, wanted, **fields)
        state = replace(self._state.persisted, ledger=ledger)
        decided, _ = ledger.with_decision(sent.key, decision)
        settings = replace(self.settings, lessons=self._state.learnt)
        return (
            yield from preview(raw, state, replace(state, ledger=decided), settings)
        )

    def _decision(
        self,
        sent: Sent,
        ledger: Ledger,
        verb: Verb,
        wanted: Any,
        *,
        lines: tuple[int, int] | None = None,
        when: When = "batch",
        text: str = "",
        reason: str = "",
        author: str = "",
    ) -> Decision:
        """A decision about the history of a view."""
        target, undoes = None, None
        if verb == "note":
            if not isinstance(text, str) or not text.strip():
                raise ConfigError(
                    "text", "the note is empty", "Give the text of the note."
                )
        elif verb == "undo":
            hand = hand_of(sent.transcript, ledger)
            undoes = undone_by(sent.transcript, ledger, hand, wanted)
        else:
            target = target_of(sent.transcript, sent.wire, wanted, lines)
        return Decision(
            verb=verb,
            target=target,
            undoes=undoes,
            text=self._kept_text(text),
            when=when,
            reason=self._kept_text(reason),
            author=self._kept_text(author),
        )

    def _kept_text(self, text: str) -> str:
        """A text of the user's as the ledger keeps it: without secrets."""
        redact = self.settings.redact
        return whole(text if redact is None else redact(text))


def _after(lost: Sequence[Record], ledger: Ledger, made: LedgerRef) -> Ledger:
    """The ledger with what another wrote in the place of a decision.

    Raises:
        StoreError: it cannot be read: a newer version wrote it.
    """
    ledger = ledger.with_records(lost)
    theirs = ledger.at(made.key).decisions
    if len(theirs) <= made.n:
        raise StoreError(
            "ledger", "append", "a newer version decided at this place. Upgrade"
        )
    return ledger


def _decisions_at(ledger: Ledger, key: bytes) -> Sequence[Record]:
    """The records of all decisions at a place."""
    records, only = list[Record](), Ledger()
    for decision in ledger.at(key).decisions:
        only, record = only.with_decision(key, decision)
        records.append(record)
    return records


def _with_records(state: SessionState, records: Sequence[Record]) -> SessionState:
    """The state of a session with new records of its ledger."""
    ledger = state.persisted.ledger.with_records(records)
    return replace(state, persisted=replace(state.persisted, ledger=ledger))
