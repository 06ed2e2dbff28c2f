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
from ullage.core.redaction import Redact
from ullage.core.turn.settings import Settings
from ullage.core.values.decisions import (
    Decision,
    LedgerRef,
    Target,
    Verb,
    When,
)
from ullage.core.values.edits import without_surrogates
from ullage.core.values.effects import Commit, Find, Record, Steps
from ullage.session.changes import ChangeMixin
from ullage.session.decisions.preview import Preview, preview
from ullage.session.decisions.targets import (
    refuse_other_names,
    target_of,
    undone_by,
)
from ullage.session.state import SessionState
from ullage.session.view import RequestInfo


class DecisionMixin(ChangeMixin):
    """The part of a session that takes a user's decisions.

    Attributes:
        settings: what the session was asked to be.
    """

    settings: Settings
    store: Any
    _state: SessionState
    _latest_view: Callable[[Mapping[str, Any] | None], Steps[RequestInfo]]

    @property
    def decisions(self) -> tuple[DecisionEntry, ...]:
        """The users' decisions that stand in the newest history, oldest first.

        What others decided meanwhile is among them once `fit` has seen it.
        """
        newest = self._state.newest
        if newest is None:
            return ()
        return hand_of(
            newest.transcript, self._state.persisted.ledger
        ).decisions

    def _outlining(
        self, info: RequestInfo
    ) -> tuple[Window, str, str, str, str] | None:
        """What a view's outline is made of: window, wire, agent, session, sub-agent.

        Returns:
            None where no outline is kept.
        """
        window = info.working
        if window is None or window.size < info.size or not self._outlines:
            return None
        settings = self.settings
        wire = info.wire.name
        if window.transcript.chain[0] != canon.root(wire, settings.tenant):
            return (
                None  # the beginning of the history is with the provider alone
            )
        names = settings.agent, settings.client_session, settings.subagent
        return window, wire, *names

    @property
    def _outlines(self) -> bool:
        """Whether outlines are kept: in memory nobody else could read them."""
        return self.settings.outlines and self.store.name != "memory"

    def _decide(
        self,
        verb: Verb,
        reference: Any,
        request: Mapping[str, Any] | None,
        info: RequestInfo | None = None,
        **fields: Any,
    ) -> Steps[str]:
        """Write a decision to the ledger, and return its name."""
        info = info or (yield from self._latest_view(request))
        ledger = yield from self._refresh_ledger(info)
        decision = self._decision(info, ledger, verb, reference, **fields)
        while True:
            handle = LedgerRef(
                "decision", info.key, len(ledger.at(info.key).decisions)
            )
            ledger, record = ledger.with_decision(info.key, decision)
            pointer = latest_record(info.transcript.chain, (record,))
            lost: tuple[Record, ...] = yield Commit((), (record, pointer))
            if not lost:
                break
            ledger = with_lost_race(lost, ledger, handle)
        records = _decisions_at(ledger, info.key)
        self._change(lambda state: (with_records(state, records), ()))
        return name_of(handle)

    def _refresh_ledger(self, info: RequestInfo) -> Steps[Ledger]:
        """The ledger with what other workers decided meanwhile."""
        ledger = self._state.persisted.ledger
        records = yield Find((info.key, *info.transcript.chain))
        return ledger.with_records(records)

    def _preview_decision(
        self,
        verb: Verb,
        reference: Any,
        request: Mapping[str, Any] | None,
        info: RequestInfo | None = None,
        **fields: Any,
    ) -> Steps[Preview]:
        """Work out the next turn with a decision that is not written."""
        if verb == "note":
            fields["text"] = reference
            reference = None
        info = info or (yield from self._latest_view(request))
        raw = info.raw.request()
        if raw is None:
            raise ConfigError(
                "request",
                "the newest request is not at hand",
                "Give request=….",
            )
        ledger = yield from self._refresh_ledger(info)
        decision = self._decision(info, ledger, verb, reference, **fields)
        state = replace(self._state.persisted, ledger=ledger)
        decided, _ = ledger.with_decision(info.key, decision)
        settings = replace(self.settings, lessons=self._state.learnt)
        return (
            yield from preview(
                raw, state, replace(state, ledger=decided), settings
            )
        )

    def _decision(
        self,
        info: RequestInfo,
        ledger: Ledger,
        verb: Verb,
        reference: Any,
        *,
        lines: tuple[int, int] | None = None,
        when: When = "batch",
        text: str = "",
        reason: str = "",
        author: str = "",
    ) -> Decision:
        """A decision about the history of a view."""

        def find_target() -> Target:
            if isinstance(reference, str):
                refuse_other_names(info.transcript, ledger, reference)
            return target_of(info.transcript, info.wire, reference, lines)

        def find_undone() -> LedgerRef:
            hand = hand_of(info.transcript, ledger)
            return undone_by(info.transcript, ledger, hand, reference)

        return new_decision(
            verb,
            find_target,
            find_undone,
            text=text,
            when=when,
            reason=reason,
            author=author,
            redact=self.settings.redact,
        )


def new_decision(
    verb: Verb,
    find_target: Callable[[], Target],
    find_undone: Callable[[], LedgerRef],
    *,
    text: str,
    when: When,
    reason: str,
    author: str,
    redact: Redact | None = None,
) -> Decision:
    """A decision, not yet written.

    Args:
        verb: see `ullage.Session.preview`.
        find_target: finds what is pinned, dropped or restored.
        find_undone: finds what is taken back.
        text: of a note.
        when: see `ullage.Session.restore`.
        reason: see `ullage.Session.pin`.
        author: see `ullage.Session.pin`.
        redact: takes the secrets out of the user's texts; None: they are kept as given.

    Raises:
        ConfigError: a note without a text, or what the two functions raise.
    """
    target = None
    undoes = None
    if verb == "note":
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(
                "text", "the note is empty", "Give the text of the note."
            )
    elif verb == "undo":
        undoes = find_undone()
    else:
        target = find_target()
    if redact is not None:
        text = redact(text)
        reason = redact(reason)
        author = redact(author)
    return Decision(
        verb=verb,
        target=target,
        undoes=undoes,
        text=without_surrogates(text),
        when=when,
        reason=without_surrogates(reason),
        author=without_surrogates(author),
    )


def with_lost_race(
    lost: Sequence[Record], ledger: Ledger, handle: LedgerRef
) -> Ledger:
    """The ledger with the records that another worker wrote where our decision was to be.

    Args:
        lost: the records.
        ledger: the ledger without them.
        handle: of our decision.

    Raises:
        StoreError: it cannot be read: a newer version wrote it.
    """
    ledger = ledger.with_records(lost)
    decisions = ledger.at(handle.key).decisions
    if len(decisions) <= handle.n:
        raise StoreError(
            "ledger",
            "append",
            "a newer version decided at this place. Upgrade",
        )
    return ledger


def _decisions_at(ledger: Ledger, key: bytes) -> Sequence[Record]:
    """The records of all decisions at a place."""
    records = list[Record]()
    only = Ledger()
    for decision in ledger.at(key).decisions:
        only, record = only.with_decision(key, decision)
        records.append(record)
    return records


def with_records(
    state: SessionState, records: Sequence[Record]
) -> SessionState:
    """The state of a session with new records of its ledger.

    Args:
        state: the state.
        records: the records.
    """
    ledger = state.persisted.ledger.with_records(records)
    return replace(state, persisted=replace(state.persisted, ledger=ledger))
