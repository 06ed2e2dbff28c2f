"""A reply of several rounds, from the model's first one to what the client is given."""

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
    key_of,
    mark_key,
    opening_key,
    private_call_key,
    record_of,
    reply_key,
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
    """Another request has to be sent.

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
        restored: the client's request as `restore_hidden_turns` gave it.
        owns: whether a call in a reply is private: ``view.owns``.
        most: so many rounds of private calls are answered.
        redact: as of the session. Turns it would change are not recorded.
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
        self._wire = wire
        self.restored = restored
        self._most = most
        self._redact = redact
        self.dialect: Dialect = wire_named(wire.wire).dialect(wire, owns)
        self._owns = owns
        self._replies: list[dict[str, Any]] = []
        self._messages: list[list[Any]] = []  # of each reply
        self._turns: list[Any] = []  # of all rounds that are over
        self._starts: list[int] = []  # where each reply begins among them
        self._calls: tuple[
            Any, ...
        ] = ()  # the private calls of the newest reply
        self.note = ""
        self.spoken = ""
        self.is_streamed = False
        self.is_data = offers and wire.wants_data(restored.client)

    # ── the reply of a round ─────────────────────────────────────────────────────────

    def take(
        self, reply: dict[str, Any]
    ) -> PrivateCalls | NextRound | FinishedReply:
        """Take in the reply of a round, unstreamed, as JSON.

        `PrivateCalls` are answered with `answer`, even where the client has calls of its own in the
        reply. Those of a reply that was cut short (``max_tokens``, a refusal) are left out, and
        beyond the limit they are answered here.
        """
        self._replies.append(reply)
        messages = self._wire.reply(reply)
        self._messages.append(messages)
        self._starts.append(len(self._turns))
        calls = (
            call for message in messages for call in self._wire.calls(message)
        )
        self._calls = tuple(call for call in calls if self._owns(call))
        if (
            not self._calls
            or self.dialect.is_cut(reply)
            or not self.restored.takes
        ):
            return self._done(self._public(messages), ())
        if len(self._replies) <= self._most:
            return PrivateCalls(self._calls)
        limit = f"the limit of {self._most} rounds of such calls is reached"
        error = {"error": limit, "remedy": "Answer now, with what is known."}
        text = json.dumps(error)
        return self._go_on([self._result(call, text) for call in self._calls])

    def answer(self, results: Sequence[Any]) -> NextRound | FinishedReply:
        """Take in the wire results of the calls that `take` gave, in their order.

        None in the place of a result: it cannot be had now, and the model is told so.
        """
        answered = []
        for call, result in zip(self._calls, results, strict=True):
            if result is None:
                result = self._result(call, _UNANSWERED)
            answered.append(result)
        return self._go_on(answered)

    def limit_reached(self, call: Any) -> Any:
        """The wire result of a private call that is one too many, or would take too long."""
        return self._result(call, _AT_LIMIT)

    def _result(self, call: Any, text: str) -> Any:
        return self._wire.result(self._wire.call(call), text, is_error=True)

    def _go_on(self, results: Sequence[Any]) -> NextRound | FinishedReply:
        """Another round, unless the client has to answer first, or the model goes on for ever."""
        messages = self._messages[-1]
        count = sum(len(self._wire.calls(message)) for message in messages)
        if count > len(self._calls) or len(self._replies) > self._most + 1:
            return self._done(messages, results)
        result_messages = self._wire.results(results)
        self._turns += [*messages, *result_messages]
        request = self.dialect.next_round(
            self.restored.request, self._turns, result_messages, self._replies
        )
        return NextRound(request)

    # ── the reply of all of them ─────────────────────────────────────────────────────

    def _public(self, messages: Sequence[Any]) -> list[Any]:
        public = map(self.dialect.shown, messages)
        return [message for message in public if message is not None]

    def _done(
        self, last_turn: Sequence[Any], deferred: Sequence[Any]
    ) -> FinishedReply:
        """The whole reply, joined of all rounds, and its records.

        Args:
            last_turn: the last turn as it is to be recorded.
            deferred: the results of private calls that stand beside the client's own calls.
        """
        reply = self._replies[-1]
        is_thread = self.dialect.is_thread(self.restored.client)
        if len(self._replies) == 1 and not self._calls:
            answer = self.dialect.plain(reply)
            if not is_thread:
                return FinishedReply(answer)
            return FinishedReply(answer, (self._continuation(answer, ()),))
        speaker = self._speaker()
        public = self._heard(speaker)
        if deferred and not self._says_anything(public):
            self.note = _NOTE.format(rounds=self._most)
        answer = self.dialect.joined(self._replies, public, self.note)
        if is_thread and not self.is_streamed:
            # with the last id the provider can go on from it, also where no proxy is between
            answer = {**answer, "id": reply.get("id")}
        if not self.restored.takes:
            return FinishedReply(answer)
        turns = self._ended([*self._turns, *last_turn])
        audible = None
        if speaker is not None:
            start = self._starts[speaker]
            audible = start, start + len(self._messages[speaker])
        records = self._records(answer, turns, deferred, audible)
        return FinishedReply(answer, tuple(filter(self._is_clean, records)))

    def _speaker(self) -> int | None:
        """The round whose texts are the answer, where one alone may speak; None: all may.

        It is the last one that says something whole. A reply that was cut short, or that has calls
        of the client's, is not the answer yet: its own words stand.
        """
        if not self.is_data or len(self._messages) == 1:
            return None
        newest = len(self._messages) - 1
        if self.dialect.is_cut(self._replies[-1]) or self._calls_client():
            return newest
        texts = [self._text_of(messages) for messages in self._messages]
        backwards = range(newest, -1, -1)
        with_json = (index for index in backwards if _is_json(texts[index]))
        with_text = (index for index in backwards if texts[index].strip())
        speaker = next(with_json, next(with_text, newest))
        if speaker != newest:
            self.spoken = texts[speaker]
        return speaker

    def _calls_client(self) -> bool:
        """Whether the last round has calls for the client."""
        for message in self._messages[-1]:
            if not all(map(self._owns, self._wire.calls(message))):
                return True
        return False

    def _text_of(self, messages: Sequence[Any]) -> str:
        parts = (
            part
            for message in self._parsed(messages)
            for part in message.parts
        )
        return "".join(part.text for part in parts if isinstance(part, Text))

    def _heard(self, speaker: int | None) -> list[Any]:
        """What the client gets of every round."""
        audible = list[Any]()
        for index, messages in enumerate(self._messages):
            public = self._public(messages)
            if speaker is not None and index != speaker:
                silent = map(self.dialect.untold, public)
                public = [message for message in silent if message is not None]
            audible += public
        return audible

    def _says_anything(self, messages: Sequence[Any]) -> bool:
        return key_of(b"", self._parsed(messages)) is not None

    def _parsed(self, messages: Sequence[Any]) -> list[Message]:
        return [
            self._wire.parse(raw, f"reply[{at}]")
            for at, raw in enumerate(messages)
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
        deferred: Sequence[Any],
        audible: tuple[int, int] | None,
    ) -> Iterator[Record]:
        """What has to be committed of a reply; see `ullage.doors.hidden_turns.record`."""
        restored = self.restored
        start = self._chain_before()
        yield record_of(restored.opening or opening_key(start), None)
        messages = self._parsed(self._wire.reply(reply))
        key = key_of(start, messages, with_ids=self.dialect.sends_call_ids)
        if key is not None and (deferred or self._turns):
            hidden = HiddenTurns(
                turns=turns,
                deferred=list(deferred),
                model=str(model_in(restored.client) or ""),
                note=self.note,
                audible=audible,
            )
            yield record_of(key, hidden)
        if self.dialect.is_held(restored.client):
            yield self._continuation(reply, deferred)
            yield from self._private()
        for seal in self.dialect.loose(self._messages):
            yield record_of(mark_key(restored.root, seal), None)

    def _continuation(
        self, reply: dict[str, Any], deferred: Sequence[Any]
    ) -> Record:
        """What the client's next request goes on from, where it names the reply by its id."""
        restored = self.restored
        hidden = HiddenTurns(
            turns=[],
            deferred=list(deferred),
            model=str(model_in(restored.client) or ""),
            reply_id=str(self._replies[-1].get("id") or ""),
        )
        if self.dialect.is_thread(restored.client):
            messages = self._parsed(self._wire.reply(reply))
            start = self._chain_before()
            opening = restored.opening or opening_key(start)
            chain = chain_behind(start, messages)
            hidden = replace(hidden, chain=chain.hex(), opening=opening.hex())
        else:
            hidden = replace(hidden, reply=reply, rounds=self._later_ids())
        return record_of(
            reply_key(restored.root, str(reply.get("id") or "")), hidden
        )

    def _later_ids(self) -> list[str]:
        """The ids of the replies behind the first, which the client does not know of."""
        return [
            str(reply["id"]) for reply in self._replies[1:] if reply.get("id")
        ]

    def _private(self) -> Iterator[Record]:
        """What the client may not see of what the provider stores: private calls, by their ids,
        and rounds that it does not know of.
        """
        root = self.restored.root
        for messages in self._messages:
            for message in messages:
                for call in filter(self._owns, self._wire.calls(message)):
                    call_id = self._wire.call(call).id
                    yield record_of(private_call_key(root, call_id), None)
        if not self.dialect.is_thread(self.restored.client):
            for name in self._later_ids():
                yield record_of(reply_key(root, name), None)

    def _chain_before(self) -> bytes:
        """The chain of the client's history before the reply."""
        restored = self.restored
        if restored.history is not None:
            return restored.history.chain[-1]
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
