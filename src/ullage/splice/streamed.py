"""Streams: the events of several rounds as those of one reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ullage.splice.rounds import Again, Calls, Done, Rounds

__all__ = ["Streamed"]


class Streamed:
    """`Rounds` whose replies come as events.

    Events are JSON values: of an SSE stream the parsed ``data`` (for the Messages and Responses
    formats the SSE event's name is the value's ``type``); ``[DONE]`` is none.

    Args:
        rounds: of the same reply.
    """

    def __init__(self, rounds: Rounds) -> None:
        raise NotImplementedError

    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Take in an event of the present round.

        Returns:
            What the client is given now, in order: often that very event, sometimes none.
        """
        raise NotImplementedError

    def end(self) -> Calls | Done:
        """The present round's stream has ended; see `Rounds.take`.

        Of one that broke off the `Done` has no reply, no events and no records.
        """
        raise NotImplementedError

    @property
    def reply(self) -> dict[str, Any] | None:
        """The whole reply of the round that ended last, as if unstreamed: for ``view.observe``."""
        raise NotImplementedError

    def answer(self, results: Sequence[Any]) -> Again | Done:
        """See `Rounds.answer`. The next events that are fed are those of the next round."""
        raise NotImplementedError
