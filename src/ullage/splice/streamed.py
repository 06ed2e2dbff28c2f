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

from ullage.splice.rounds import Again, Calls, Done, Rounds


class Streamed:
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
        self._stream = rounds.dialect.stream(rounds.dialect, rounds.knitted.client)
        self.reply: dict[str, Any] | None = None

    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Take in an event of the present round.

        Returns:
            What the client is given now, in order: often that very event, sometimes none.
        """
        return self._stream.feed(event)

    def end(self) -> Calls | Again | Done:
        """The present round's stream has ended; see `Rounds.take`.

        Of one that broke off the `Done` has no reply, no events and no records.
        """
        self.reply = self._stream.reply()
        return Done(None) if self.reply is None else self._step(self._rounds.take(self.reply))

    def answer(self, results: Sequence[Any]) -> Again | Done:
        """See `Rounds.answer`. The next events that are fed are those of the next round."""
        step = self._step(self._rounds.answer(results))
        assert not isinstance(step, Calls)
        return step

    def _step(self, step: Calls | Again | Done) -> Calls | Again | Done:
        if isinstance(step, Again):
            self._stream.begin()
        elif isinstance(step, Done) and step.reply is not None and self._stream.holds:
            events = self._stream.closing(step.reply, self._rounds.note)
            return replace(step, events=tuple(events))
        return step
