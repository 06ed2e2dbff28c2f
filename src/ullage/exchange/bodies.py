"""Bytes to JSON and back.

What msgspec refuses (escapes of lone surrogates, NaN, a byte order mark, UTF-16) the standard
library may still read; what neither reads is passed on as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["read", "write"]

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def read(body: bytes) -> Any:
    """What a body says, as JSON values; None if it cannot be read."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def write(value: Mapping[str, Any]) -> bytes:
    """A body that says this, without spaces.

    Raises:
        TypeError, ValueError, RecursionError: it is not made of JSON values.
    """
    try:
        return _encode(dict(value))
    except (UnicodeError, OverflowError):  # a lone surrogate; an integer beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode()
