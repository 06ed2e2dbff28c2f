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
from ullage.session.reading import ReadMixin
from ullage.session.recall.dispatch import Answer, answer
from ullage.session.recall.found import ToolOutputRef, find, output_ref
from ullage.session.recall.history import (
    corpus_in_history,
    find_in_history,
    find_in_ledger,
)
from ullage.session.recall.tools import call_of
from ullage.session.view import RequestInfo


class RecallMixin(ReadMixin):
    """The part of a session that answers recall calls and opens what was set aside."""

    @abstractmethod
    def emit(self, event: Event) -> None:
        """List an event with the others."""

    @abstractmethod
    def _latest_view(
        self, request: Mapping[str, Any] | None
    ) -> Steps[RequestInfo]:
        """The newest view; decided now from ``request`` if there is none yet."""

    def _recall(
        self,
        call: Any,
        info: RequestInfo | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> Steps[dict[str, Any]]:
        info = info or (yield from self._latest_view(request))
        snapshot_at(call, "call")
        parsed = info.wire.call(call)
        reply: Answer = yield from self._answer(parsed, info)
        reason = (
            "the call could not be answered"
            if reply.is_error
            else "the model asked"
        )
        tokens = info.frozen.meter.text(reply.text)
        event = Event(
            kind="recalled",
            where=parsed.name,
            why=reason,
            tokens_after=tokens,
            ref=reply.ref,
        )
        self.emit(event)
        return info.wire.result(
            parsed, reply.text, is_error=reply.is_error, block=reply.block
        )

    def _answer_named(
        self,
        name: str,
        arguments: Any,
        call_id: str,
        request: Mapping[str, Any] | None,
    ) -> Steps[Answer]:
        info = yield from self._latest_view(request)
        call = call_of(name, arguments, call_id)
        return (yield from self._answer(call, info))

    def _answer(self, call: ToolCall, info: RequestInfo) -> Steps[Answer]:
        from_history = partial(self._find_in_view, info)
        return answer(
            call,
            info.words,
            from_history,
            lambda ref: corpus_in_history(info.window, ref),
        )

    def _open_text(self, name: str) -> Steps[str]:
        newest = self._state.newest
        at_hand = (
            _find_nothing
            if newest is None
            else partial(self._find_in_view, newest)
        )
        match = yield from find(name, at_hand)
        if match is None and newest is not None:
            window = (
                newest.window if newest.working is None else newest.working
            )
            match = find_in_ledger(window, self._state.persisted.ledger, name)
        if match is None:
            raise RefNotFound("the conversation's", name)
        output = match if isinstance(match, Output) else (yield Get(match.ref))
        return output.text

    def _output_ref(self, name: str) -> Steps[ToolOutputRef]:
        match = yield from output_ref(
            name, partial(self._find_in_view, self._newest)
        )
        if match is None:
            raise RefNotFound("the conversation's", name)
        return match

    def _find_in_view(
        self, info: RequestInfo, name: str, thorough: bool
    ) -> Output | None:
        """An output of the history of a view; under the session's lock."""
        window = info.window if info.working is None else info.working
        output = find_in_history(window, name, info.size, thorough=thorough)
        cache = self._state.cache
        if output is None and thorough and cache is not None:
            return cache.output_of(name)
        return output


def _find_nothing(name: str, thorough: bool) -> None:
    """Finds no output, for a session that has fitted no request yet."""
