"""Rounds: a reply in the making, from the model's first word to what the client is given."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ullage.redaction import Redact, in_json
from ullage.splice.dialect import Dialect
from ullage.splice.dialects import dialect_of
from ullage.splice.knit import Knitted, chain_behind, chain_of
from ullage.splice.record import Splice, held_key, key_of, mark_key, opening_key, record_of
from ullage.values.effects import Record
from ullage.values.messages import Message
from ullage.wires import Format

MOST_ROUNDS = 8
"""So many rounds of private calls are answered; then the answer says that this is the limit."""

_UNANSWERED = json.dumps(
    {"error": "the result cannot be had now", "remedy": "Go on without it, or call again later."}
)
_NOTE = "[no answer: the model kept looking things up, and {rounds} rounds of that are the limit]"


class Calls(Struct, frozen=True):
    """Private calls that are to be answered, each by ``view.recall``.

    Attributes:
        calls: as they stand in the reply, in order.
    """

    calls: tuple[Any, ...]


class Again(Struct, frozen=True):
    """Another round is to be made.

    Attributes:
        request: what is to be fitted and sent: the request before, the reply and the results.
    """

    request: dict[str, Any]


class Done(Struct, frozen=True):
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

    Args:
        wire: the format of the request.
        knitted: the client's request as `knit` gave it.
        owns: whether a call in a reply is private: ``view.owns``.
        most: so many rounds of private calls are answered.
        redact: as of the session. Turns it would change are not kept: the splice is lost.
    """

    def __init__(
        self,
        wire: Format,
        knitted: Knitted,
        owns: Callable[[Any], bool],
        most: int = MOST_ROUNDS,
        redact: Redact | None = None,
    ) -> None:
        self._wire, self.knitted, self._most, self._redact = wire, knitted, most, redact
        self.dialect: Dialect = dialect_of(wire, owns)
        self._owns = owns
        self._replies: list[dict[str, Any]] = []
        self._said: list[list[Any]] = []
        self._turns: list[Any] = []
        self._calls: tuple[Any, ...] = ()
        self.note, self.is_streamed = "", False

    # ── the reply of a round ─────────────────────────────────────────────────────────

    def take(self, reply: dict[str, Any]) -> Calls | Again | Done:
        """Take in the reply of a round, unstreamed, as JSON.

        `Calls` are answered with `answer`, even where the client has calls of its own in the
        reply. Those of a reply that was cut short (``max_tokens``, a refusal) are left out, and
        beyond the limit they are answered here.
        """
        self._replies.append(reply)
        said = self._wire.reply(reply)
        self._said.append(said)
        calls = (call for message in said for call in self._wire.calls(message))
        self._calls = tuple(call for call in calls if self._owns(call))
        if not self._calls or self.dialect.is_cut(reply) or not self.knitted.takes:
            return self._done(self._public(said), ())
        if len(self._replies) <= self._most:
            return Calls(self._calls)
        limit = f"the limit of {self._most} rounds of such calls is reached"
        told = {"error": limit, "remedy": "Answer now, with what is known."}
        return self._go_on([self._result(call, json.dumps(told)) for call in self._calls])

    def answer(self, results: Sequence[Any]) -> Again | Done:
        """Take in the wire results of the calls that `take` gave, in their order.

        None in the place of a result: it cannot be had now, and the model is told so.
        """
        pairs = zip(self._calls, results, strict=True)
        return self._go_on(
            [self._result(call, _UNANSWERED) if it is None else it for call, it in pairs]
        )

    def _result(self, call: Any, text: str) -> Any:
        return self._wire.result(self._wire.call(call), text, is_error=True)

    def _go_on(self, results: Sequence[Any]) -> Again | Done:
        """Another round, unless the client has to answer first, or the model goes on for ever."""
        said = self._said[-1]
        count = sum(len(self._wire.calls(message)) for message in said)
        if count > len(self._calls) or len(self._replies) > self._most + 1:
            return self._done(said, results)
        given = self._wire.results(results)
        self._turns += [*said, *given]
        request = self.knitted.request
        return Again(self.dialect.next_round(request, self._turns, given, self._replies))

    # ── the reply of all of them ─────────────────────────────────────────────────────

    def _public(self, said: Sequence[Any]) -> list[Any]:
        shown = map(self.dialect.shown, said)
        return [message for message in shown if message is not None]

    def _done(self, said: Sequence[Any], waiting: Sequence[Any]) -> Done:
        """The end.

        Args:
            said: the last turn as it is to be kept.
            waiting: the results that stand beside the client's own.
        """
        reply, client = self._replies[-1], self.knitted.client
        if len(self._replies) == 1 and not self._calls:
            given = self.dialect.plain(reply)
            held = [self._held(given, ())] if self.dialect.is_thread(client) else []
            return Done(given, tuple(held))
        public = [message for each in self._said for message in self._public(each)]
        if waiting and not self._says_anything(public):
            self.note = _NOTE.format(rounds=self._most)
        given = self.dialect.joined(self._replies, public, self.note)
        if self.dialect.is_thread(client) and not self.is_streamed:
            given = {**given, "id": reply.get("id")}  # continued without us, it still answers
        turns = self._ended([*self._turns, *said])
        records = self._records(given, turns, waiting) if self.knitted.takes else ()
        return Done(given, tuple(record for record in records if self._is_clean(record)))

    def _says_anything(self, messages: Sequence[Any]) -> bool:
        return key_of(b"", self._parsed(messages)) is not None

    def _parsed(self, messages: Sequence[Any]) -> list[Message]:
        return [self._wire.parse(raw, f"reply[{at}]") for at, raw in enumerate(messages)]

    def _ended(self, turns: list[Any]) -> list[Any]:
        """Turns without the thinking at their end that led to nothing: it was cut off there."""
        while turns and self._parsed(turns[-1:])[0].only_thought:
            turns = turns[:-1]
        return turns

    def _records(
        self, reply: dict[str, Any], turns: list[Any], waiting: Sequence[Any]
    ) -> Iterator[Record]:
        knitted, client = self.knitted, self.knitted.client
        model = str(client.get("model") or "")
        before = self._chain_before()
        yield record_of(knitted.opening or opening_key(before), None)
        key = key_of(before, self._parsed(self._wire.reply(reply)))
        if key is not None and (waiting or self._turns):
            yield record_of(key, Splice(turns, list(waiting), model, self.note))
        if self.dialect.is_held(client):
            yield self._held(reply, waiting)
        for seal in self.dialect.loose(self._said):
            yield record_of(mark_key(knitted.root, seal), None)

    def _held(self, reply: dict[str, Any], waiting: Sequence[Any]) -> Record:
        """What the client's next request goes on from, where it names the reply."""
        knitted = self.knitted
        last = str(self._replies[-1].get("id") or "")
        held = Splice([], list(waiting), str(knitted.client.get("model") or ""), reply_id=last)
        if self.dialect.is_thread(knitted.client):
            said = self._parsed(self._wire.reply(reply))
            before = self._chain_before()
            opening = knitted.opening or opening_key(before)
            chain = chain_behind(before, said)
            held = replace(held, chain=chain.hex(), opening=opening.hex())
        return record_of(held_key(knitted.root, str(reply.get("id") or "")), held)

    def _chain_before(self) -> bytes:
        """The chain of the client's history before the reply."""
        knitted = self.knitted
        if knitted.read is not None:
            return knitted.read.chain[-1]
        return chain_of(knitted.client, self._wire, knitted.start)[-1]

    def _is_clean(self, record: Record) -> bool:
        """Whether nothing in it is a secret, as far as anybody knows."""
        text = record.data.decode()
        return self._redact is None or in_json(text, self._redact) == text
