"""Answers in one piece, and those whose bytes go through as they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ullage.doors.exchange.replies import events_of
from ullage.doors.exchange.values import ClientAnswer, UpstreamReply
from ullage.doors.host import Actions

if TYPE_CHECKING:
    from ullage.doors.exchange.exchange import Exchange

_MOST_BYTES = 32 << 20
"""So much of a stream is held to be read at its end; of a longer one the usage is not known."""


class WholeAnswer(ClientAnswer):
    """An answer whose body is there. See `ClientAnswer` for the attributes.

    What it reports is taken in when it is closed. Hidden turns must be recorded before a client has
    the reply, or its next request is not restored; usage that is lost costs one calibration.

    Args:
        exchange: that it ends.
        reply: the upstream's.
        status: its HTTP status.
        body: the whole of it.
        then: what is to be done once the client has it.
    """

    def __init__(
        self,
        exchange: Exchange,
        reply: UpstreamReply | None,
        status: int,
        body: bytes,
        then: Callable[[], Actions[None]] | None = None,
    ) -> None:
        self.reply = reply
        self.status = status
        self.body = body
        self.content_type = (
            "application/json" if reply is None else reply.content_type
        )
        self._exchange = exchange
        self._rest = body
        self._then = then
        self._is_over = False

    def next(self) -> Actions[bytes]:
        """See `ClientAnswer.next`."""
        rest = self._rest
        self._rest = b""
        return rest
        yield

    def close(self) -> Actions[None]:
        """See `ClientAnswer.close`."""
        if self._is_over:
            return
        self._is_over = True
        if self._then is not None:
            yield from self._then()
        self._exchange.over(self.status)
        if self.reply is not None:
            yield self.reply.close


class UntouchedAnswer(ClientAnswer):
    """The upstream's answer as it is, unread."""

    is_untouched = True

    def __init__(self, exchange: Exchange, reply: UpstreamReply) -> None:
        self.reply = reply
        self.status = reply.status
        self.content_type = reply.content_type
        exchange.over(self.status)

    def next(self) -> Actions[bytes]:
        """See `ClientAnswer.next`."""
        data: bytes = yield self.reply.next
        return data

    def close(self) -> Actions[None]:
        """See `ClientAnswer.close`."""
        yield self.reply.close


class TeedAnswer(ClientAnswer):
    """A stream that comes as one JSON array: it is only read, at its end."""

    def __init__(self, exchange: Exchange, reply: UpstreamReply) -> None:
        self.reply = reply
        self.status = reply.status
        self.content_type = reply.content_type
        self._exchange = exchange
        self._seen = bytearray()
        self._is_over = False
        exchange.note_stream()

    def next(self) -> Actions[bytes]:
        """See `ClientAnswer.next`."""
        data: bytes = yield self.reply.next
        if len(self._seen) <= _MOST_BYTES:
            self._seen += data
        return data

    def close(self) -> Actions[None]:
        """See `ClientAnswer.close`."""
        if self._is_over:
            return
        self._is_over = True
        events: list[Any] = []
        if len(self._seen) <= _MOST_BYTES:
            events = events_of(bytes(self._seen))
        yield from self._exchange.observe(events)
        self._exchange.over(self.status)
        yield self.reply.close
