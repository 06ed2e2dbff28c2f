"""Rounds: a reply in the making, from the model's first word to what the client is given."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ullage import Record
from ullage.core.redaction import Redact, in_json
from ullage.doors.hidden_turns.record import (
    HiddenTurns,
    held_key,
    hidden_key,
    key_of,
    mark_key,
    opening_key,
    record_of,
)
from ullage.doors.hidden_turns.restore import (
    RestoredRequest,
    chain_behind,
    chain_of,
)
from ullage.doors.host import Dialect, Message, Text
from ullage.wires import Format, model_in, wire_named

MOST_ROUNDS = 8
"""So many rounds of private calls are answered; then the answer says that this is the limit."""

_UNANSWERED = json.dumps(
    {
        "error": "the result cannot be had now",
        "remedy": "Go on without it, or call again later.",
    }
)
_AT_LIMIT = json.dumps(
    {
        "error": "this reply has looked up as much as one may",
        "remedy": "Answer now, with what is known, or look it up in the next turn.",
    }
)
_NOTE = "[no answer: the model kept looking things up, and {rounds} rounds of that are the limit]"


class PrivateCalls(Struct, frozen=True):
    """Private calls that are to be answered, each by ``view.recall``.

    Attributes:
        calls: as they stand in the reply, in order.
    """

    calls: tuple[Any, ...]


class NextRound(Struct, frozen=True):
    """Another round is to be made.

    Attributes:
        request: what is to be fitted and sent: the request before, the reply and the results.
    """

    request: dict[str, Any]


class FinishedReply(Struct, frozen=True):
    """The reply is whole.

    Attributes:
        reply: what the client is given; the very reply of the provider if nothing was private.
            None of a stream that broke off.
        records: to be committed before the client is given the end of it; often none.
        events: of a stream, what is still to be given, after the commit; often none. The chat
            format's ``[DONE]`` is no event: whoever writes the stream ends it.
    """

    reply: dict[str, Any] | None
    records: tuple[Record, ...] = ()
    events: tuple[dict[str, Any], ...] = ()


class Rounds:
    """One reply to the client, however many rounds it takes.

    Attributes:
        dialect: of the wire.
        note: what was added to a reply that says nothing else.
        is_streamed: whether the client has the id of the first round before the last one comes.
        is_data: whether a program reads the answer, so that one round alone may speak.
        spoken: the text of the answer, where it is of an earlier round than the last.

    Args:
        wire: the format of the request.
        knitted: the client's request as `knit` gave it.
        owns: whether a call in a reply is private: ``view.owns``.
        most: so many rounds of private calls are answered.
        redact: as of the session. Turns it would change are not kept: the splice is lost.
        offers: whether there may be private calls at all: ``view.sent.offers``.
    """

    def __init__(
        self,
        wire: Format,
        restored: RestoredRequest,
        owns: Callable[[Any], bool],
        most: int = MOST_ROUNDS,
        redact: Redact | None = None,
        *,
        offers: bool = True,
    ) -> None:
        self._wire, self.knitted, self._most, self._redact = (
            wire,
            restored,
            most,
            redact,
        )
        self.dialect: Dialect = wire_named(wire.wire).dialect(wire, owns)
        self._owns = owns
        self._replies: list[dict[str, Any]] = []
        self._said: list[list[Any]] = []
        self._turns: list[Any] = []
        self._calls: tuple[Any, ...] = ()
        self._starts: list[int] = []
        self.note, self.spoken, self.is_streamed = "", "", False
        self.is_data = offers and wire.wants_data(restored.client)

    # ── the reply of a round ─────────────────────────────────────────────────────────

    def take(self, reply: dict[str, Any]) -> PrivateCalls | NextRound | FinishedReply:
        """Take in the reply of a round, unstreamed, as JSON.

        `PrivateCalls` are answered with `answer`, even where the client has calls of its own in the
        reply. Those of a reply that was cut short (``max_tokens``, a refusal) are left out, and
        beyond the limit they are answered here.
        """
        self._replies.append(reply)
        messages = self._wire.reply(reply)
        self._said.append(messages)
        self._starts.append(len(self._turns))
        calls = (call for message in messages for call in self._wire.calls(message))
        self._calls = tuple(call for call in calls if self._owns(call))
        if not self._calls or self.dialect.is_cut(reply) or not self.knitted.takes:
            return self._done(self._public(messages), ())
        if len(self._replies) <= self._most:
            return PrivateCalls(self._calls)
        limit = f"the limit of {self._most} rounds of such calls is reached"
        error = {"error": limit, "remedy": "Answer now, with what is known."}
        return self._go_on(
            [self._result(call, json.dumps(error)) for call in self._calls]
        )

    def answer(self, results: Sequence[Any]) -> NextRound | FinishedReply:
        """Take in the wire results of the calls that `take` gave, in their order.

        None in the place of a result: it cannot be had now, and the model is told so.
        """
        pairs = zip(self._calls, results, strict=True)
        return self._go_on(
            [
                self._result(call, _UNANSWERED) if result is None else result
                for call, result in pairs
            ]
        )

    def limit_reached(self, call: Any) -> Any:
        """The wire result of a private call that is one too many, or would take too long."""
        return self._result(call, _AT_LIMIT)

    def _result(self, call: Any, text: str) -> Any:
        return self._wire.result(self._wire.call(call), text, is_error=True)

    def _go_on(self, results: Sequence[Any]) -> NextRound | FinishedReply:
        """Another round, unless the client has to answer first, or the model goes on for ever."""
        messages = self._said[-1]
        count = sum(len(self._wire.calls(message)) for message in messages)
        if count > len(self._calls) or len(self._replies) > self._most + 1:
            return self._done(messages, results)
        result_messages = self._wire.results(results)
        self._turns += [*messages, *result_messages]
        request = self.knitted.request
        return NextRound(
            self.dialect.next_round(
                request, self._turns, result_messages, self._replies
            )
        )

    # ── the reply of all of them ─────────────────────────────────────────────────────

    def _public(self, messages: Sequence[Any]) -> list[Any]:
        public = map(self.dialect.shown, messages)
        return [message for message in public if message is not None]

    def _done(self, last_turn: Sequence[Any], waiting: Sequence[Any]) -> FinishedReply:
        """The end.

        Args:
            last_turn: the last turn as it is to be kept.
            waiting: the results that stand beside the client's own.
        """
        reply, client = self._replies[-1], self.knitted.client
        if len(self._replies) == 1 and not self._calls:
            answer = self.dialect.plain(reply)
            continuation = (
                [self._held(answer, ())] if self.dialect.is_thread(client) else []
            )
            return FinishedReply(answer, tuple(continuation))
        speaker = self._speaker()
        public = self._heard(speaker)
        if waiting and not self._says_anything(public):
            self.note = _NOTE.format(rounds=self._most)
        answer = self.dialect.joined(self._replies, public, self.note)
        if self.dialect.is_thread(client) and not self.is_streamed:
            answer = {
                **answer,
                "id": reply.get("id"),
            }  # continued without us, it still answers
        turns = self._ended([*self._turns, *last_turn])
        heard = None
        if speaker is not None:
            start = self._starts[speaker]
            heard = start, start + len(self._said[speaker])
        records = (
            self._records(answer, turns, waiting, heard) if self.knitted.takes else ()
        )
        return FinishedReply(
            answer, tuple(record for record in records if self._is_clean(record))
        )

    def _speaker(self) -> int | None:
        """The round whose texts are the answer, where one alone may speak; None: all may.

        It is the last one that says something whole. A reply that was cut short, or that has calls
        of the client's, is not the answer yet: its own words stand.
        """
        if not self.is_data or len(self._said) == 1:
            return None
        newest = len(self._said) - 1
        is_over = self.dialect.is_cut(self._replies[-1]) or self._calls_client()
        texts = [self._text_of(messages) for messages in self._said]
        if is_over:
            return newest
        whole = (at for at in range(newest, -1, -1) if _is_json(texts[at]))
        spoken = (at for at in range(newest, -1, -1) if texts[at].strip())
        speaker = next(whole, next(spoken, newest))
        if speaker != newest:
            self.spoken = texts[speaker]
        return speaker

    def _calls_client(self) -> bool:
        """Whether the last round has calls for the client."""
        calls = (
            call for message in self._said[-1] for call in self._wire.calls(message)
        )
        return any(not self._owns(call) for call in calls)

    def _text_of(self, messages: Sequence[Any]) -> str:
        parts = (part for message in self._parsed(messages) for part in message.parts)
        return "".join(part.text for part in parts if isinstance(part, Text))

    def _heard(self, speaker: int | None) -> list[Any]:
        """What the client gets of every round."""
        audible = list[Any]()
        for at, messages in enumerate(self._said):
            public = self._public(messages)
            if speaker is not None and at != speaker:
                untold = [self.dialect.untold(message) for message in public]
                public = [message for message in untold if message is not None]
            audible += public
        return audible

    def _says_anything(self, messages: Sequence[Any]) -> bool:
        return key_of(b"", self._parsed(messages)) is not None

    def _parsed(self, messages: Sequence[Any]) -> list[Message]:
        return [
            self._wire.parse(raw, f"reply[{at}]") for at, raw in enumerate(messages)
        ]

    def _ended(self, turns: list[Any]) -> list[Any]:
        """Turns without the thinking at their end that led to nothing: it was cut off there."""
        while turns and self._parsed(turns[-1:])[0].only_thought:
            turns = turns[:-1]
        return turns

    def _records(
        self,
        reply: dict[str, Any],
        turns: list[Any],
        waiting: Sequence[Any],
        audible: tuple[int, int] | None,
    ) -> Iterator[Record]:
        restored, client = self.knitted, self.knitted.client
        model = str(model_in(client) or "")
        start = self._chain_before()
        yield record_of(restored.opening or opening_key(start), None)
        messages = self._parsed(self._wire.reply(reply))
        key = key_of(start, messages, with_ids=self.dialect.sends_call_ids)
        if key is not None and (waiting or self._turns):
            yield record_of(
                key, HiddenTurns(turns, list(waiting), model, self.note, heard=audible)
            )
        if self.dialect.is_held(client):
            yield self._held(reply, waiting)
            yield from self._hidden()
        for seal in self.dialect.loose(self._said):
            yield record_of(mark_key(restored.root, seal), None)

    def _held(self, reply: dict[str, Any], waiting: Sequence[Any]) -> Record:
        """What the client's next request goes on from, where it names the reply."""
        restored = self.knitted
        last_id = str(self._replies[-1].get("id") or "")
        record = HiddenTurns(
            [], list(waiting), str(model_in(restored.client) or ""), reply_id=last_id
        )
        if not self.dialect.is_thread(restored.client):
            record = replace(record, reply=reply, rounds=self._later_ids())
        if self.dialect.is_thread(restored.client):
            messages = self._parsed(self._wire.reply(reply))
            start = self._chain_before()
            opening = restored.opening or opening_key(start)
            chain = chain_behind(start, messages)
            record = replace(record, chain=chain.hex(), opening=opening.hex())
        return record_of(held_key(restored.root, str(reply.get("id") or "")), record)

    def _later_ids(self) -> list[str]:
        """The ids of the replies behind the first, which the client does not know of."""
        return [str(reply["id"]) for reply in self._replies[1:] if reply.get("id")]

    def _hidden(self) -> Iterator[Record]:
        """What the client is not to see of what the provider keeps: its private calls, by their
        ids, and the rounds that it does not know of.
        """
        root = self.knitted.root
        for call in (
            call
            for messages in self._said
            for raw in messages
            for call in self._wire.calls(raw)
        ):
            if self._owns(call):
                yield record_of(hidden_key(root, self._wire.call(call).id), None)
        if not self.dialect.is_thread(self.knitted.client):
            for name in self._later_ids():
                yield record_of(held_key(root, name), None)

    def _chain_before(self) -> bytes:
        """The chain of the client's history before the reply."""
        restored = self.knitted
        if restored.read is not None:
            return restored.read.chain[-1]
        return chain_of(restored.client, self._wire, restored.start)[-1]

    def _is_clean(self, record: Record) -> bool:
        """Whether nothing in it is a secret, as far as anybody knows."""
        text = record.data.decode()
        return self._redact is None or in_json(text, self._redact) == text


def _is_json(text: str) -> bool:
    """Whether a text is one JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
