"""Frames of MCP's stdio transport: one JSON-RPC message a line, taken apart no further than needed.

A frame stays bytes; the parts of it that we read are slices of them. What msgspec does not read
(lone surrogates, which JSON.stringify writes for broken text) is read by the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

MOST_FRAME_BYTES = 64 << 20
"""A longer frame is passed on as it comes, and never held."""

Id = str | int | float


class UnreadableFrame(ValueError):
    """These bytes are no JSON of the kind that was expected."""


class FramePiece(NamedTuple):
    """Some bytes of a stream: a whole frame with its line end, or a part of an overlong one.

    Attributes:
        data: the bytes.
        is_frame: whether this is one whole frame.
        is_end: whether a frame ends with it.
    """

    data: bytes
    is_frame: bool
    is_end: bool


class FrameSplitter:
    """Parts a stream of bytes into frames. All pieces joined are the stream.

    Args:
        most_bytes: frames over this come in parts, as they arrive.
    """

    def __init__(self, most_bytes: int = MOST_FRAME_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._is_overlong = False

    def feed(self, data: bytes) -> Iterator[FramePiece]:
        """The pieces that are complete with these bytes."""
        start = 0
        while (end := data.find(b"\n", start) + 1) > 0:
            yield self._ended(data[start:end])
            start = end
        rest = data[start:]
        if not rest:
            return
        self._held.append(rest)
        self._held_bytes += len(rest)
        if self._is_overlong or self._held_bytes > self._most_bytes:
            self._is_overlong = True
            yield FramePiece(self._taken(), False, False)

    def end(self) -> Iterator[FramePiece]:
        """What is left at the end of the stream: a frame without a line end."""
        if self._held or self._is_overlong:
            yield self._ended(b"")

    def _ended(self, end_data: bytes) -> FramePiece:
        was_overlong = self._is_overlong
        self._is_overlong = False
        self._held.append(end_data)
        return FramePiece(self._taken(), not was_overlong, True)

    def _taken(self) -> bytes:
        joined = b"".join(self._held) if len(self._held) > 1 else self._held[0]
        self._held = []
        self._held_bytes = 0
        return joined


class RpcMessage(Struct, frozen=True):
    """The outside of a message. A request has a method and an id, an answer an id alone.

    Attributes:
        id: the request's id, or UNSET.
        method: what is asked for, or UNSET.
        params: of a request or notification, as JSON.
        result: of an answer, as JSON.
    """

    id: Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET


_envelope = msgspec.json.Decoder(RpcMessage).decode
_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_value = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def rpc_message_of(frame: bytes) -> RpcMessage | None:
    """The outside of a frame; None of what is no single JSON-RPC message."""
    try:
        return _envelope(frame)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        read = _slowly_read(frame)
        return msgspec.convert(
            {k: _slice(v) if k in _SLICES else v for k, v in read.items()},
            RpcMessage,
        )
    except (ValueError, AttributeError, RecursionError):
        return None


_SLICES = ("params", "result")


def batch_of(frame: bytes) -> list[bytes]:
    """The messages of a batch, as protocols up to 2025-03-26 have it; [] of all else."""
    if not frame.lstrip().startswith(b"["):
        return []
    try:
        messages = [bytes(item) + b"\n" for item in items_of(frame)]
    except UnreadableFrame:
        return []
    return messages if None not in map(rpc_message_of, messages) else []


def batched(messages: Sequence[bytes]) -> bytes:
    """Messages as one frame; b"" of none."""
    if not messages:
        return b""
    return b"[" + b",".join(message.strip() for message in messages) + b"]\n"


def fields_of(raw: bytes | Raw) -> dict[str, Raw]:
    """The fields of an object, their values as JSON.

    Raises:
        Unreadable: it is not an object.
    """
    try:
        return _fields(raw)
    except msgspec.ValidationError as error:
        raise UnreadableFrame(str(error)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        read = _slowly_read(raw)
    if not isinstance(read, dict):
        raise UnreadableFrame("expected an object")
    return {name: _slice(value) for name, value in read.items()}


def items_of(raw: bytes | Raw) -> list[Raw]:
    """The items of a list, as JSON.

    Raises:
        Unreadable: it is not a list.
    """
    try:
        return _items(raw)
    except msgspec.ValidationError as error:
        raise UnreadableFrame(str(error)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        read = _slowly_read(raw)
    if not isinstance(read, list):
        raise UnreadableFrame("expected a list")
    return [_slice(value) for value in read]


def value_of(raw: bytes | Raw) -> Any:
    """A JSON value.

    Raises:
        Unreadable: it is none.
    """
    try:
        return _value(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _slowly_read(raw)


def _slowly_read(raw: bytes | Raw) -> Any:
    try:
        return json.loads(bytes(raw))
    except (ValueError, RecursionError) as error:
        raise UnreadableFrame(str(error)) from None


def _slice(value: Any) -> Raw:
    """A value as JSON again; a number beyond what JSON has is not written as something else."""
    try:
        return Raw(json.dumps(value, allow_nan=False).encode())
    except (ValueError, RecursionError) as error:
        raise UnreadableFrame(str(error)) from None


def encode(value: Any) -> bytes:
    """A value as JSON; slices in it stay as they are, and lone surrogates are escaped."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def compact(raw: bytes) -> bytes:
    """A JSON value without the blanks between its parts.

    Raises:
        Unreadable: it is none.
    """
    try:
        return msgspec.json.format(raw, indent=-1)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return bytes(_slice(_slowly_read(raw)))


def with_field(frame: bytes, name: str, raw: bytes) -> bytes:
    """A frame with one of its fields replaced, its line end kept."""
    changed: Mapping[str, Raw] = {**fields_of(frame), name: Raw(raw)}
    return _encode(changed) + frame[len(frame.rstrip(b"\r\n")) :]


def reply(id: Id | None, result: Mapping[str, Any]) -> bytes:
    """The frame that answers a request."""
    parts: Sequence[bytes] = (
        b'{"jsonrpc":"2.0","id":',
        _encode(id),
        b',"result":',
        encode(result),
    )
    return b"".join((*parts, b"}\n"))


def failure(id: Id | None, code: int, message: str, data: Any = None) -> bytes:
    """The frame that tells why a request has no answer."""
    error = {
        "code": code,
        "message": message,
        **({} if data is None else {"data": data}),
    }
    return _encode({"jsonrpc": "2.0", "id": id, "error": error}) + b"\n"
