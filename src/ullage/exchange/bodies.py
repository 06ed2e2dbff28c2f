"""Bytes to JSON and back.

What msgspec refuses (escapes of lone surrogates, NaN, a byte order mark, UTF-16) the standard
library may still read, and then writes; what neither reads is passed on as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

Write: TypeAlias = Callable[[Mapping[str, Any]], bytes]
"""Makes a body of JSON values. Raises TypeError, ValueError or RecursionError for others."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def read(body: bytes) -> Any:
    """What a body says, as JSON values; None if it cannot be read."""
    return read_to_write(body)[0]


def read_to_write(body: bytes) -> tuple[Any, Write]:
    """What a body says, or None, and what writes a changed one so that all else stays in it."""
    try:
        return _decode(body), write
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        return json.loads(body), _write_any
    except (ValueError, RecursionError):
        return None, write


def write(value: Mapping[str, Any]) -> bytes:
    """A body that says this, without spaces. See `Write`."""
    try:
        return _encode(dict(value))
    except UnicodeError:  # a lone surrogate
        return _write_any(value)


def _write_any(value: Mapping[str, Any]) -> bytes:
    """The same, with NaN, infinities and surrogates as they were read."""
    return json.dumps(value, separators=(",", ":")).encode()
