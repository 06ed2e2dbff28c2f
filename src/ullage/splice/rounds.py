"""Rounds: a reply in the making, from the model's first word to what the client is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ullage.splice.knit import Knitted
from ullage.values.effects import Record
from ullage.wires import Format

__all__ = ["MOST_ROUNDS", "Again", "Calls", "Done", "Rounds"]

MOST_ROUNDS = 8
"""So many rounds of private calls are answered; then the answer says that this is the limit."""


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

    Args:
        wire: the format of the request.
        knitted: the client's request as `knit` gave it.
        owns: whether a call in a reply is private: ``view.owns``.
        most: so many rounds of private calls are answered.
    """

    def __init__(
        self,
        wire: Format,
        knitted: Knitted,
        owns: Callable[[Any], bool],
        most: int = MOST_ROUNDS,
    ) -> None:
        raise NotImplementedError

    def take(self, reply: Mapping[str, Any]) -> Calls | Done:
        """Take in the reply of a round, unstreamed, as JSON.

        `Calls` are answered with `answer`, even where the client has calls of its own in the
        reply. One that was cut short (``max_tokens``, a refusal) is `Done`.
        """
        raise NotImplementedError

    def answer(self, results: Sequence[Any]) -> Again | Done:
        """Take in the wire results of the calls that `take` gave, in their order.

        None in the place of a result: it cannot be had (the model is told so).
        """
        raise NotImplementedError
