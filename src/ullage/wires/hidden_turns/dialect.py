"""What one wire does in its own way when turns are hidden from a client, and put back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ullage.core.contract.format import Format
from ullage.core.values.messages import Message


class Dialect(ABC):
    """One wire. Raw values are JSON, and never changed.

    Args:
        wire: the format.
        owns: whether a call is private.

    Attributes:
        added: the counts of a reply's usage that are summed over its rounds.
        total: the count that holds prompt and output together.
        calls_stop: how a reply ends that calls tools, ``""`` where that is not said.
        end_stop: how one ends that is over.
        several: the field with the reply and the others beside it, if there may be any.
        sends_call_ids: whether clients send the ids of calls back as they got them.
    """

    added: tuple[str, ...]
    total: str = ""
    calls_stop: str = ""
    end_stop: str = ""
    several: str = ""
    sends_call_ids: bool = True
    stream: ClassVar[type[Stream]]

    def __init__(self, wire: Format, owns: Callable[[Any], bool]) -> None:
        self.wire = wire
        self.owns = owns

    def is_single(self, request: Mapping[str, Any]) -> bool:
        """Whether a reply can be made of several rounds: not of several at once, nor where the
        client fetches it later.
        """
        return True

    # ── what the provider holds ──────────────────────────────────────────────────────

    def is_held(self, request: Mapping[str, Any]) -> bool:
        """Whether the provider may hold the history behind the reply, under the reply's id."""
        return False

    def is_thread(self, request: Mapping[str, Any]) -> bool:
        """Whether the next request names this reply and leaves out all that came before it.

        Then a record is kept of every reply, before its end is given.
        """
        return False

    def going_on_from(
        self, request: Mapping[str, Any], reply_id: str
    ) -> dict[str, Any]:
        """The request, with another reply in the place of the one that it goes on from."""
        return dict(request)

    def next_round(
        self,
        request: Mapping[str, Any],
        turns: Sequence[Any],
        results: Sequence[Any],
        replies: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        """The request of another round.

        Args:
            request: the one that the rounds began with.
            turns: raw messages: what the model said in each round, and the results it was given.
            results: the newest of them, the raw messages with the results of the last round.
            replies: of every round so far.
        """
        return self.wire.compose(
            request, [*self.wire.history(request), *turns], ()
        )

    # ── a reply ──────────────────────────────────────────────────────────────────────

    @abstractmethod
    def stop_of(self, reply: Mapping[str, Any]) -> str:
        """Why the reply ended; ``""`` if it does not say."""

    def is_cut(self, reply: Mapping[str, Any]) -> bool:
        """Whether the reply ended in the midst of what it said."""
        return bool(self.wire.cut_short(reply))

    @abstractmethod
    def shown(self, message: Any) -> Any:
        """A raw message of the model without private calls; itself if it has none, None if it
        has nothing else.
        """

    @abstractmethod
    def untold(self, message: Any) -> Any:
        """A raw message of the model without its texts; itself if it has none, None if it has
        nothing else.
        """

    def plain(self, reply: dict[str, Any]) -> dict[str, Any]:
        """The reply of one round without private calls, for the client: mostly itself."""
        candidates = reply.get(self.several) if self.several else None
        if not candidates:
            return reply
        head, *alternatives = candidates
        cleaned = [self.other(candidate) for candidate in alternatives]
        if cleaned == alternatives:
            return reply
        return {**reply, self.several: [head, *cleaned]}

    def kept(self, reply: dict[str, Any]) -> dict[str, Any]:
        """A reply that the provider kept, without private calls and definitions."""
        return reply

    def other(self, beside: Mapping[str, Any]) -> Mapping[str, Any]:
        """One beside the first, which makes no further round."""
        return beside

    @abstractmethod
    def joined(
        self,
        replies: Sequence[Mapping[str, Any]],
        messages: Sequence[Any],
        note: str,
    ) -> dict[str, Any]:
        """The reply for the client.

        Args:
            replies: of every round.
            messages: the raw messages of all of them, in order, as `shown` gives them.
            note: a text to be added; ``""`` for none.
        """

    def stop_for(
        self, reply: Mapping[str, Any], messages: Sequence[Any]
    ) -> str:
        """How the client's reply ends: as the last round did, or without a call.

        Args:
            reply: of the last round.
            messages: the raw messages that the client gets.
        """
        stop = self.stop_of(reply)
        if stop != self.calls_stop:
            return stop
        if any(self.wire.calls(message) for message in messages):
            return stop
        return self.end_stop

    # ── a history ────────────────────────────────────────────────────────────────────

    def deferred(
        self, waiting: Sequence[Any], raw: Any, message: Message | None
    ) -> list[Any]:
        """The raw messages from behind a turn on whose private calls were answered.

        Args:
            waiting: the wire results of those calls.
            raw: the client's message behind the turn; None if there is none.
            message: what it was parsed to.
        """
        messages = self.wire.results(waiting)
        if raw is None:
            return messages
        return [*messages, raw]

    def seals(self, message: Any) -> list[str]:
        """What the sealed reasoning in a raw message is known by, in order."""
        return []

    def loose(self, rounds: Sequence[Sequence[Any]]) -> list[str]:
        """The seals of reasoning that cannot stand without what is hidden.

        Args:
            rounds: the raw messages of each round, private calls among them.
        """
        return []

    def without(
        self, run: Sequence[Any], is_loose: Callable[[str], bool]
    ) -> list[Any]:
        """The messages of one reply without the reasoning whose seal is loose."""
        return list(run)

    def marked(self, turns: Sequence[Any], run: Sequence[Any]) -> list[Any]:
        """Turns with the cache marker that the client put on what it has of them."""
        return list(turns)


class Stream(ABC):
    """The events of one reply, of every round in turn.

    Args:
        dialect: its wire.
        request: the client's.

    Attributes:
        is_first: whether this is the first round.
        hides: whether anything was kept from the client so far.
        is_muted: whether the texts that come now are not for the client.
    """

    def __init__(self, dialect: Any, request: Mapping[str, Any]) -> None:
        self.dialect = dialect
        self.request = request
        self.owns: Callable[[Any], bool] = dialect.owns
        self.is_first = True
        self.hides = False
        self.is_muted = False
        self._clear()

    def begin(self) -> None:
        """Another round begins."""
        self.is_first = False
        self._clear()

    @property
    def holds(self) -> bool:
        """Whether the events that end a reply are kept back: it may not be the end of it."""
        return self.hides or not self.is_first

    @abstractmethod
    def _clear(self) -> None:
        """Forget what is of the round before."""

    @abstractmethod
    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Take in an event, and give what the client gets now."""

    @abstractmethod
    def speaks(self, event: Mapping[str, Any]) -> bool:
        """Whether an event begins or goes on with a text for the client."""

    @abstractmethod
    def reply(self) -> dict[str, Any] | None:
        """The reply of this round as if unstreamed; None if the stream broke off."""

    @abstractmethod
    def closing(
        self, reply: dict[str, Any], note: str
    ) -> list[dict[str, Any]]:
        """The events that were kept back, as they end the client's reply, a note before them."""


def object_at(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object in a field; an empty one where a server has sent none."""
    item = value.get(name)
    if isinstance(item, dict):
        return item
    return {}


def objects_at(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of the list in a field; none where a server has sent no list."""
    items = value.get(name)
    if not isinstance(items, list):
        return []
    return [item for item in items if isinstance(item, dict)]


def index_of(value: Mapping[str, Any]) -> int:
    """The ``index`` of a choice; 0 where a server leaves it out."""
    index = value.get("index")
    if isinstance(index, int):
        return index
    return 0


def joint(text: str, next_text: str) -> str:
    """What is put between the texts of two rounds where the wire has one text for both."""
    if not text or not next_text:
        return ""
    if text[-1].isspace() or next_text[0].isspace():
        return ""
    return "\n\n"
