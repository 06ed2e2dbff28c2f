"""An upstream that answers from a script, and a client that reads the whole answer."""

import json

from ullage.doors.exchange import Exchanges
from ullage.session.drivers import adrive, drive
from ullage.session.sessions import AsyncSessions, Sessions

SSE = "text/event-stream"
LINES = "application/x-ndjson"


def stream_type(format):
    """The content type of a stream of a wire."""
    return LINES if format == "ollama" else SSE


def stream(format, *events):
    """Events as a streamed answer of a wire."""
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return Reply(
        lines if format == "ollama" else sse(*events),
        content_type=stream_type(format),
    )


def sse(*events, done=False):
    """Events as bytes of a stream."""
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return (raw + "data: [DONE]\n\n" * done).encode()


class Reply:
    """A scripted answer; its body comes in the given pieces, an exception in the place of one."""

    def __init__(self, body, status=200, content_type="application/json"):
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        self.pieces = [body] if isinstance(body, bytes) else list(body)
        self.status, self.content_type, self.closed = status, content_type, 0

    def read(self):
        return b"".join(iter(self.next, b""))

    def next(self):
        piece = self.pieces.pop(0) if self.pieces else b""
        if isinstance(piece, BaseException):
            raise piece
        return piece

    def close(self):
        self.closed += 1


class Upstream:
    """Sends to nobody: gives the next scripted reply, and keeps what it was sent."""

    def __init__(self, *replies):
        self.replies, self.sent = list(replies), []

    def send(self, body):
        self.sent.append(body)
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        return reply


def exchanges(**settings):
    """Exchanges whose sessions keep to a small window, and the reports of them."""
    reports = []
    return Exchanges(Sessions(**settings), reports.append), reports


def async_exchanges(**settings):
    """`exchanges` for an event loop."""
    reports = []
    return Exchanges(AsyncSessions(**settings), reports.append), reports


def ask(exchanges, path, body, *replies, **more):
    """Status, body and upstream of one exchange, read to its end."""
    upstream = Upstream(*replies)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = drive(exchanges.of("POST", path, raw, upstream, **more).steps())
    try:
        said = b"".join(iter(lambda: drive(answer.next()), b""))
    finally:
        drive(answer.close())
    return answer.status, said, upstream


async def aask(exchanges, path, body, *replies, **more):
    """`ask` on an event loop."""
    upstream = Upstream(*replies)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await adrive(
        exchanges.of("POST", path, raw, upstream, **more).steps()
    )
    said = b""
    try:
        while data := await adrive(answer.next()):
            said += data
    finally:
        await adrive(answer.close())
    return answer.status, said, upstream
