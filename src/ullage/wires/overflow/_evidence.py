"""What an error says, gathered from whatever carries it.

The same refusal reaches a caller as an exception of a vendor's SDK, as one of a gateway's
that wraps it, as a response, a body, an event of a stream or a line of a log. Nothing here
imports any of them: fields are read by name, of dicts and of objects alike.

Only fields that carry errors are read. What a model wrote is never looked at: an answer
*about* overflow is none. So a body that is JSON is taken apart, and only text that is not
JSON is taken whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

_MOST_CHARS = 8_000
_MOST_VALUES = 200
_MOST_DEPTH = 8
_MOST_EVENTS = 50

_FIELDS = (
    "message", "error", "errors", "detail", "details", "description", "msg", "title",
    "error_message", "errorMessage", "status_msg", "base_resp", "innererror", "metadata", "raw",
    "code", "type", "__type", "status", "error_code", "body", "response", "delta", "choices",
    "incomplete_details", "response_metadata", "messageStop", "text",
)  # fmt: skip
"""Fields that may carry an error, or lead to one."""

_STOPS = (
    "stop_reason",
    "stopReason",
    "finish_reason",
    "native_finish_reason",
    "reason",
)
_STATUSES = ("status_code", "http_status", "StatusCode", "status", "code")
_COUNTS = ("n_prompt_tokens", "n_ctx")
_WRAPPED = (
    "__cause__",
    "original_exception",
    "original_error",
    "inner_exception",
)
_UNREACHED = ("timeout", "connect", "cancelled", "readerror", "protocolerror")
_decode = msgspec.json.Decoder().decode


class Evidence(Struct):
    """What one layer of an error says.

    Attributes:
        texts: messages, codes, class names and counts (``"n_ctx": 4096``), in order.
        stops: why a reply ended, where it is one.
        statuses: the HTTP statuses it names; a gateway's may hide another in the body.
    """

    texts: list[str] = []
    stops: list[str] = []
    statuses: set[int] = set()
    _seen: set[int] = set()

    @classmethod
    def of(cls, error: Any) -> Evidence:
        """What this layer says, without what it was raised from."""
        evidence = cls()
        evidence.read(error)
        return evidence

    def read(self, value: Any, depth: int = 0) -> None:
        """Take in a value: text, JSON, an object with fields, or a list of them."""
        if (
            depth > _MOST_DEPTH
            or len(self._seen) > _MOST_VALUES
            or value is None
        ):
            return
        if is_a(value, str, bytes, bytearray):
            self._read_text(value, depth)
        elif is_a(value, list, tuple):
            begin = value[:_MOST_EVENTS]
            end = value[_MOST_EVENTS:][-_MOST_EVENTS:]
            for item in (*begin, *end):
                if not is_a(item, str):
                    self.read(item, depth + 1)
        elif not is_a(value, int, float, complex) and not callable(value):
            self._read_object(value, depth)

    def _read_text(self, value: Any, depth: int) -> None:
        text = (
            value
            if is_a(value, str)
            else bytes(value).decode("utf-8", "replace")
        )
        values = list(_values_in(text))
        for value in values:
            self.read(value, depth + 1)
        if values or not text.strip():
            return
        if len(text) > _MOST_CHARS:
            half = _MOST_CHARS // 2
            text = text[:half] + text[-half:]
        self.texts.append(text)

    def _read_object(self, value: Any, depth: int) -> None:
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if is_a(value, BaseException):
            self.texts += [_text_of(value), type(value).__name__]
        for name in _STATUSES:
            status = get(value, name)
            if is_a(status, int) and 100 <= status < 600:
                self.statuses.add(int(status))
        for name in _STOPS:
            stop = get(value, name)
            if is_a(stop, str):
                self.stops.append(stop)
        self._read_fields(value, depth)
        for name in _COUNTS:
            count = get(value, name)
            if is_a(count, int):
                self.texts.append(f'"{name}": {count}')

    def _read_fields(self, value: Any, depth: int) -> None:
        is_response = get(value, "headers") is not None
        for name in _FIELDS:
            item = get(value, name)
            # Of a reply, these hold what a model wrote.
            is_models = name == "delta" or (name == "text" and not is_response)
            if not (is_models and is_a(item, str)):
                self.read(item, depth + 1)


def causes(error: Any) -> Iterator[Any]:
    """What this error was made from.

    A stated cause is always followed. A mere context is not where the error is an answer of
    its own (it has a status) or says that there was none: a rate limit met while an overflow
    was being handled is no overflow.
    """
    for name in _WRAPPED:
        yield get(error, name)
    group = get(error, "exceptions")
    yield from group[:_MOST_EVENTS] if is_a(group, list, tuple) else ()
    is_answer = get(error, "status_code") is not None
    kind = type(error).__name__.lower()
    if is_answer or any(word in kind for word in _UNREACHED):
        return
    if not get(error, "__suppress_context__"):
        yield get(error, "__context__")


def is_a(value: Any, *kinds: type) -> bool:
    """``isinstance`` without asking the value, whose ``__class__`` may be a property."""
    return issubclass(type(value), kinds)


def get(value: Any, name: str) -> Any:
    """A field of a dict or of an object; None where there is none or it cannot be read."""
    try:
        if is_a(value, Mapping):
            return value.get(name)
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - a foreign property may raise what it likes
        return None


def _text_of(value: Any) -> str:
    try:
        return str(value)[:_MOST_CHARS]
    except Exception:  # noqa: BLE001 - so may a foreign __str__
        return ""


def _values_in(text: str) -> Iterator[Any]:
    """The objects in a text that is JSON, or a stream of server-sent events."""
    start = text.lstrip()[:6]
    if start[:1] in ("{", "["):
        yield from _parsed([text])
    elif start.startswith(("data:", "event:")):
        lines = [
            line[5:] for line in text.splitlines() if line.startswith("data:")
        ]
        yield from _parsed(lines[-_MOST_EVENTS:])


def _parsed(texts: Iterable[str]) -> Iterator[Any]:
    for text in texts:
        try:
            value = _decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            continue
        if is_a(value, dict, list):
            yield value
