"""An answer that comes as server-sent events: passed on as they come, observed when they end.

An event that nothing is changed in leaves as the bytes that came. What comes before all content is
held back until it is known whether the first event is a refusal: then a shorter view is sent, and
the client sees its stream only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ullage.exchange import bodies
from ullage.exchange.replies import is_error, is_opening
from ullage.exchange.sse import Frame, Reader
from ullage.exchange.values import Answer, Reply
from ullage.session.drivers import Actions
from ullage.wires import FORMATS

if TYPE_CHECKING:
    from ullage.exchange.exchange import Exchange

__all__ = ["Streamed"]

_REPORTS = b"sage"
"""In every event that reports ``usage`` or ``usageMetadata``."""


class Streamed(Answer):
    """A streamed answer. See `Answer` for the attributes."""

    def __init__(self, exchange: Exchange, reply: Reply) -> None:
        assert exchange.route is not None
        self.reply, self.status, self.content_type = reply, reply.status, reply.content_type
        self._exchange, self._format = exchange, FORMATS[exchange.route.wire]
        self._upstream = reply
        self._reader = Reader()
        self._held = b""
        self._has_content = False
        self._reporting: list[Any] = []
        self._is_observed = self._is_over = False
        exchange.note_stream()

    def next(self) -> Actions[bytes]:
        """See `Answer.next`."""
        while not self._is_observed:
            data: bytes = yield self._upstream.next
            if not data:
                rest = self._held + self._reader.rest()
                self._held = b""
                if rest:
                    return rest
                yield from self._observe()
            elif given := (yield from self._taken(data)):
                return given
        return b""

    def close(self) -> Actions[None]:
        """See `Answer.close`."""
        if self._is_over:
            return
        self._is_over = True
        yield from self._observe()
        self._exchange.over(self.status)
        yield self._upstream.close

    def _observe(self) -> Actions[None]:
        if not self._is_observed:
            self._is_observed = True
            yield from self._exchange.observe(self._reporting)

    def _taken(self, data: bytes) -> Actions[bytes]:
        """What of these bytes is for the client now."""
        given = bytearray()
        for frame in self._reader.feed(data):
            if self._has_content:
                given += self._passed(frame)
                continue
            event = _event(frame)
            if event is None or is_opening(event):
                self._held += self._passed(frame)
                continue
            if is_error(event) and (yield from self._again(event)):
                return b""
            self._has_content = True
            given += self._held + self._passed(frame)
            self._held = b""
        return bytes(given)

    def _passed(self, frame: Frame) -> bytes:
        """The bytes of an event, what it reports taken in; none of one that is not asked for."""
        if frame.data is None or _REPORTS not in frame.data:
            return frame.raw
        event = _event(frame)
        if self._format.usage_of_stream((event,)) is not None:
            self._reporting.append(event)
            if self._exchange.hides_usage and not event.get("choices"):
                return b""
        return frame.raw

    def _again(self, event: Any) -> Actions[bool]:
        """Whether a stream that refused the request was replaced by that of a shorter one."""
        if not (yield from self._exchange.may_retry(event)):
            return False
        reply, body = yield from self._exchange.send()
        if body is not None or not reply.content_type.startswith("text/event-stream"):
            yield reply.close
            return False
        yield self._upstream.close
        self._upstream, self._reader = reply, Reader()
        self._held, self._reporting = b"", []
        return True


def _event(frame: Frame) -> Any:
    """What an event says, as JSON; None of one that says nothing or nothing that is JSON."""
    return None if frame.data is None else bodies.read(frame.data)
