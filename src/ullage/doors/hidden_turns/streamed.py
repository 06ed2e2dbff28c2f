"""Streams: the events of several rounds as those of one reply.

    upstream, round 1   begin  text  private call  end
    upstream, round 2                                    begin  text  end
    the client          begin  text                             text  end

What is said passes as it comes. A private call is swallowed from its first event on; what ends a
reply is kept back once there was one, until it is known that no other round follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ullage.doors.hidden_turns.rounds import (
    FinishedReply,
    NextRound,
    PrivateCalls,
    Rounds,
)


class StreamedRounds:
    """`Rounds` whose replies come as events.

    Events are JSON values: of an SSE stream the parsed ``data`` (for the Messages and Responses
    formats the SSE event's name is the value's ``type``); ``[DONE]`` is none.

    Args:
        rounds: of the same reply, which has taken in nothing yet.

    Attributes:
        reply: the reply of the round that ended last, as if unstreamed, for ``view.observe``;
            None if there is none, or its stream broke off.
    """

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds
        rounds.is_streamed = True
        self._stream = rounds.dialect.stream(
            rounds.dialect, rounds.restored.client
        )
        self._queue: tuple[
            dict[str, Any], ...
        ] = ()  # goes out with the next event
        self._begin()
        self.reply: dict[str, Any] | None = None

    def _begin(self) -> None:
        """A round begins. Where one alone may speak, what it says waits until it is known which.

        The copy reads all of it as it comes, so that this is known when it has ended.
        """
        rounds = self._rounds
        self._undecided: list[dict[str, Any]] = []
        self._copy = None
        if rounds.is_data:
            self._copy = rounds.dialect.stream(
                rounds.dialect, rounds.restored.client
            )

    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Take in an event of the present round.

        Returns:
            What the client is given now, in order: often that very event, sometimes none.
        """
        queue = self._queue
        self._queue = ()
        if self._copy is not None:
            self._copy.feed(event)
            if self._undecided or self._copy.speaks(event):
                self._undecided.append(event)
                return queue
        events = self._stream.feed(event)
        return (*queue, *events) if queue else events

    def end(self) -> PrivateCalls | NextRound | FinishedReply:
        """The present round's stream has ended; see `Rounds.take`.

        Of one that broke off the `FinishedReply` has no reply and no records.
        """
        self.reply = (self._copy or self._stream).reply()
        if self.reply is None:
            return FinishedReply(None, events=self._released(is_muted=False))
        return self._step(self._rounds.take(self.reply))

    def _released(self, *, is_muted: bool) -> tuple[dict[str, Any], ...]:
        """What the client gets of the events that were held back."""
        events = list(self._queue)
        self._queue = ()
        undecided = self._undecided
        self._undecided = []
        self._stream.is_muted = is_muted
        for event in undecided:
            events += self._stream.feed(event)
        self._stream.is_muted = False
        return tuple(events)

    def answer(self, results: Sequence[Any]) -> NextRound | FinishedReply:
        """See `Rounds.answer`. The next events that are fed are those of the next round."""
        step = self._step(self._rounds.answer(results))
        assert not isinstance(step, PrivateCalls)
        return step

    def _step(
        self, step: PrivateCalls | NextRound | FinishedReply
    ) -> PrivateCalls | NextRound | FinishedReply:
        if isinstance(step, NextRound):
            self._queue = self._released(is_muted=True)
            self._stream.begin()
            self._begin()
        elif isinstance(step, FinishedReply) and step.reply is not None:
            events = self._released(is_muted=bool(self._rounds.spoken))
            if self._stream.holds:
                note = self._rounds.spoken or self._rounds.note
                events += tuple(self._stream.closing(step.reply, note))
            return replace(step, events=events)
        return step
