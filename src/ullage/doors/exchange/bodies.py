"""Bytes to JSON and back.

What msgspec refuses (escapes of lone surrogates, NaN, a byte order mark, UTF-16) the standard
library may still read, and then writes; what neither reads is passed on as it is. Numbers are
written as they were read (`ullage.core.values.numbers`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from blake3 import blake3

from ullage.doors.host import Number, as_written, number_of

Write: TypeAlias = Callable[[Mapping[str, Any]], bytes]
"""Makes a body of JSON values. Raises TypeError, ValueError or RecursionError for others."""

decode = msgspec.json.Decoder(float_hook=number_of).decode
"""Reads JSON. Raises `msgspec.DecodeError`, UnicodeError or RecursionError."""

_encode = msgspec.json.Encoder(enc_hook=as_written).encode


def read(body: bytes) -> Any:
    """What a body says, as JSON values; None if it cannot be read."""
    return read_to_write(body)[0]


def read_to_write(body: bytes) -> tuple[Any, Write]:
    """Parse a body; also give what writes a changed one, with all else as it was read."""
    try:
        return decode(body), write
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        return json.loads(body, parse_float=number_of), _write_any
    except (ValueError, RecursionError):
        return None, write


def write(value: Mapping[str, Any]) -> bytes:
    """A body that says this, without spaces. See `Write`."""
    try:
        return _encode(dict(value))
    except UnicodeError:  # a lone surrogate
        return _write_any(value)


def _write_any(value: Mapping[str, Any]) -> bytes:
    """The same, with NaN, infinities and surrogates as they were read.

    The standard library writes each float in its own way. So a placeholder is written for each
    `Number`, and its literal put there afterwards.
    """
    text = _dumps(value)
    placeholder = blake3(
        text.encode()
    ).hexdigest()  # no text holds its own digest
    literals: list[str] = []
    template = _with_placeholders(value, placeholder, literals)
    if not literals:
        return text.encode()
    pieces = _dumps(template).split(f'"{placeholder}"')
    parts = [pieces[0]]
    for literal, piece in zip(literals, pieces[1:], strict=True):
        parts += literal, piece
    return "".join(parts).encode()


def _with_placeholders(
    value: Any, placeholder: str, literals: list[str]
) -> Any:
    """A value with a text in the place of each `Number`, whose literals are added to the list."""
    if isinstance(value, Number):
        literals.append(value.literal)
        return placeholder
    if isinstance(value, Mapping):
        return {
            key: _with_placeholders(item, placeholder, literals)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            _with_placeholders(item, placeholder, literals) for item in value
        ]
    return value


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
