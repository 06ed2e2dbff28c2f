"""An answer that comes as events: passed on as they come, observed when they end.

    upstream ─▶ bytes ─▶ frames ─▶ events ─▶ `ullage.doors.hidden_turns` ─▶ bytes ─▶ the client
                  ▲                             │
                  └── another round ◀───────────┘  where the model called a recall tool

An event that nothing is changed in leaves as the bytes that came. After a bug in ullage all of
them do, up to where a recall tool is called: no client can answer that, so there its stream ends
with an error, and it asks again. Where the first event that has content is a refusal for length, a
shorter view is sent, and its stream goes on in the place of that one; its own opening events are
left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ullage.doors.exchange import bodies
from ullage.doors.exchange.amazon import AMAZON, AMAZON_NAMED
from ullage.doors.exchange.frames import EventFrame, EventTooLong, Framing
from ullage.doors.exchange.lines import LINES
from ullage.doors.exchange.replies import error_event, is_error, is_opening
from ullage.doors.exchange.sse import SSE
from ullage.doors.exchange.values import ClientAnswer, TooLong, UpstreamReply
from ullage.doors.hidden_turns import NextRound, StreamedRounds
from ullage.doors.host import RECALL_TOOLS, Actions
from ullage.wires import wire_named

if TYPE_CHECKING:
    from ullage.doors.exchange.exchange import Exchange

_LAST = b"[DONE]"
REPORTS = b"sage"
"""In every event that reports: ``usage``, ``usageMetadata``, or counts beside a ``message``."""
_FRAMINGS = (SSE, AMAZON, LINES)
_PRIVATE = tuple(name.encode() for name in RECALL_TOOLS)


def framing_of(wire: str, content_type: str) -> Framing | None:
    """How the events of a stream are framed; None if it is not such a stream."""
    for framing in _FRAMINGS:
        if content_type.startswith(framing.content_type):
            if framing is AMAZON and wire_named(wire).http.names_events:
                return AMAZON_NAMED
            return framing
    return None


class StreamedAnswer(ClientAnswer):
    """A streamed answer. See `ClientAnswer` for the attributes."""

    def __init__(
        self, exchange: Exchange, reply: UpstreamReply, framing: Framing
    ) -> None:
        self.reply = reply
        self.status = reply.status
        self.content_type = reply.content_type
        self._exchange = exchange
        self._format = exchange.view.wire
        self._rounds = (
            None
            if exchange.rounds is None
            else StreamedRounds(exchange.rounds)
        )
        self._is_over = self._has_failed = False
        self._framing = framing
        self._closing = b""
        self._begin(reply)
        exchange.note_stream()

    def _begin(self, reply: UpstreamReply) -> None:
        """Begin with the stream of a reply: the first one, or that of another round."""
        self._upstream = reply
        self._reader = self._framing.reader()
        self._has_content = self._has_ended = self._is_observed = False
        self._is_replacement = False
        self._names_tool = False  # of ours, in any event so far
        self._reporting: list[Any] = []

    # ── what the client asks for ─────────────────────────────────────────────────────

    def next(self) -> Actions[bytes]:
        """See `ClientAnswer.next`."""
        while not self._has_ended:
            data: bytes = yield self._upstream.next
            if data:
                output = yield from self._taken(data)
            else:
                output = yield from self._ended()
            if output:
                return output
        return b""

    def close(self) -> Actions[None]:
        """See `ClientAnswer.close`."""
        if self._is_over:
            return
        self._is_over = self._has_ended = True
        yield from self._observe()
        self._exchange.over(self.status)
        yield self._upstream.close

    def _observe(self) -> Actions[None]:
        """Take in what the present stream reported, once."""
        if not self._is_observed:
            self._is_observed = True
            yield from self._exchange.observe(self._reporting)

    # ── what comes ───────────────────────────────────────────────────────────────────

    def _taken(self, data: bytes) -> Actions[bytes]:
        """The bytes that the client gets now, of those that came."""
        output = bytearray()
        try:
            frames = self._reader.feed(data)
        except EventTooLong as error:
            return self._broken_off(error)
        for frame in frames:
            event = None
            if not self._has_content and frame.data is not None:
                event = bodies.read(frame.data)
            if event is not None and is_opening(self._format.wire, event):
                if self._is_replacement:
                    self._report(event)
                    continue
            elif event is not None:
                if is_error(self._format.wire, event) and (
                    yield from self._again(event)
                ):
                    return bytes(output)
                self._has_content = True
            output += self._passed(frame)
            if self._has_ended:
                break
        return bytes(output)

    def _broken_off(self, error: Exception) -> bytes:
        """The end of a stream that cannot be held until its next event is whole."""
        self._exchange.note_problem(error)
        self._has_ended = True
        return self._framing.written(error_event(self._format.wire, 502, b""))

    def _passed(self, frame: EventFrame) -> bytes:
        """The bytes of an event as the client gets them: mostly its own."""
        if frame.data is None:
            return frame.raw
        if frame.data == _LAST:
            self._closing = frame.raw
            return b""
        event = bodies.read(frame.data)
        if not isinstance(event, dict):
            return frame.raw
        if REPORTS in frame.data:
            self._report(event)
        self._names_tool = self._names_tool or any(
            name in frame.data for name in _PRIVATE
        )
        try:
            events = (
                (event,) if self._rounds is None else self._rounds.feed(event)
            )
        except Exception as error:  # noqa: BLE001 - ours; the stream goes on as it comes
            self._exchange.note_problem(error)
            self._rounds = None
            events = (event,)
            self._has_failed = self._exchange.view.sent.offers
        if self._has_failed and self._names_tool:
            self._has_ended = True
            return self._framing.written(
                error_event(self._format.wire, 500, b"")
            )
        if (
            len(events) == 1
            and events[0] is event
            and not self._is_hidden(event)
        ):
            return frame.raw
        return self._written(events)

    def _report(self, event: dict[str, Any]) -> None:
        """Keep an event that reports usage."""
        if self._format.usage_of_stream((event,)) is not None:
            self._reporting.append(event)

    def _written(self, events: Iterable[dict[str, Any]]) -> bytes:
        visible = (event for event in events if not self._is_hidden(event))
        return b"".join(map(self._framing.written, visible))

    def _is_hidden(self, event: dict[str, Any]) -> bool:
        """Whether an event is the usage that the client did not ask for."""
        return (
            self._exchange.hides_usage
            and not event.get("choices")
            and bool(event.get("usage"))
        )

    # ── how it ends ──────────────────────────────────────────────────────────────────

    def _ended(self) -> Actions[bytes]:
        """The upstream has no more: another round begins, or this was the end."""
        rest = self._reader.rest()
        self._has_ended = True
        if self._rounds is None:
            return rest + self._closing
        try:
            step = yield from self._exchange.settle(
                self._rounds.end(), self._rounds.answer
            )
        except Exception as error:  # noqa: BLE001 - ours; the client has all that came
            self._exchange.note_problem(error)
            return rest + self._closing
        if isinstance(step, NextRound):
            yield from self._observe()
            return rest + (yield from self._go_on(step.request))
        if self._exchange.is_thread:
            yield from self._observe()
        return rest + self._written(step.events) + self._closing

    def _go_on(self, request: dict[str, Any]) -> Actions[bytes]:
        """Begin another round; where there is none, the client hears why in its stream."""
        wire = self._format.wire
        try:
            yield from self._exchange.prepare(request)
        except Exception as error:  # noqa: BLE001 - something was given: nothing else can be sent
            self._exchange.note_problem(error)
            return self._framing.written(error_event(wire, 500, b""))
        reply, body = yield from self._exchange.send()
        if (
            body is None
            and framing_of(wire, reply.content_type) is self._framing
        ):
            yield from self._replace(reply)
            return b""
        if body is None:
            try:
                body = yield reply.read
            except TooLong:
                body = b""
        yield reply.close
        return self._framing.written(error_event(wire, reply.status, body))

    def _replace(self, reply: UpstreamReply) -> Actions[None]:
        yield self._upstream.close
        self._begin(reply)

    def _again(self, event: Any) -> Actions[bool]:
        """Retry a request that its stream refuses; whether another stream came in its place."""
        if not (yield from self._exchange.may_retry(event)):
            return False
        reply, body = yield from self._exchange.send()
        framing = framing_of(self._format.wire, reply.content_type)
        if body is not None or framing is not self._framing:
            yield reply.close
            return False
        yield from self._replace(reply)
        self._is_replacement = True
        return True
