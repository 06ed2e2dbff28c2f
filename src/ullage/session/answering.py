"""What a session answers to a recall call, and what it opens for a program."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any

from ullage.core.errors import RefNotFound
from ullage.core.history.snapshots import snapshot_at
from ullage.core.values.effects import Get, Output, Steps
from ullage.core.values.events import Event
from ullage.core.values.messages import ToolCall
from ullage.session.reading import Readable
from ullage.session.recall.dispatch import Answer, answer
from ullage.session.recall.found import ToolOutputRef, find, output_ref
from ullage.session.recall.history import (
    corpus_in_history,
    find_in_history,
    find_in_ledger,
)
from ullage.session.recall.tools import call_of
from ullage.session.view import Sent


class Answering(Readable):
    """The part of a session that reads what was set aside."""

    @abstractmethod
    def emit(self, event: Event) -> None:
        """List an event with the others."""

    @abstractmethod
    def _opened(self, request: Mapping[str, Any] | None) -> Steps[Sent]:
        """The newest view, decided now if there is none and its request is there."""

    def _recall(
        self,
        call: Any,
        sent: Sent | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> Steps[dict[str, Any]]:
        sent = sent or (yield from self._opened(request))
        snapshot_at(call, "call")
        parsed = sent.wire.call(call)
        given: Answer = yield from self._answer(parsed, sent)
        why = "the call could not be answered" if given.is_error else "the model asked"
        tokens = sent.frozen.meter.text(given.text)
        event = Event(
            kind="recalled",
            where=parsed.name,
            why=why,
            tokens_after=tokens,
            ref=given.ref,
        )
        self.emit(event)
        return sent.wire.result(
            parsed, given.text, is_error=given.is_error, block=given.block
        )

    def _answer_named(
        self, name: str, arguments: Any, call_id: str, request: Mapping[str, Any] | None
    ) -> Steps[Answer]:
        sent = yield from self._opened(request)
        call = call_of(name, arguments, call_id)
        return (yield from self._answer(call, sent))

    def _answer(self, call: ToolCall, sent: Sent) -> Steps[Answer]:
        from_history = partial(self._from_history, sent)
        return answer(
            call,
            sent.words,
            from_history,
            lambda ref: corpus_in_history(sent.window, ref),
        )

    def _whole(self, wanted: str) -> Steps[str]:
        newest = self._state.newest
        at_hand = _nothing if newest is None else partial(self._from_history, newest)
        found = yield from find(wanted, at_hand)
        if found is None and newest is not None:
            window = newest.window if newest.working is None else newest.working
            found = find_in_ledger(window, self._state.persisted.ledger, wanted)
        if found is None:
            raise RefNotFound("the history and the store", wanted)
        output = found if isinstance(found, Output) else (yield Get(found.ref))
        return output.text

    def _output_ref(self, wanted: str) -> Steps[ToolOutputRef]:
        found = yield from output_ref(wanted, partial(self._from_history, self._newest))
        if found is None:
            raise RefNotFound("the history and the store", wanted)
        return found

    def _from_history(self, sent: Sent, wanted: str, thorough: bool) -> Output | None:
        """An output of the history of a view; under the session's lock."""
        window = sent.window if sent.working is None else sent.working
        output = find_in_history(window, wanted, sent.size, thorough=thorough)
        cache = self._state.cache
        if output is None and thorough and cache is not None:
            return cache.output_of(wanted)
        return output


def _nothing(wanted: str, thorough: bool) -> None:
    """What is found in the history where nothing was fitted yet."""
