"""What a message *is*, apart from how it happens to be written: digests, chain, refs.

Between two requests clients move cache markers, drop reasoning and write arguments again. None of
that may lose an edit, so identity is taken over a canonical form:

    d    = H(msgpack [version, role, parts…])      one message
    c0   = H(version, format, tenant)              the empty history
    c+1  = H(c ‖ d)                                the chain

Left out: cache markers, nulls, reasoning, item ids and status, leading system text, tools.
A string equals one text block; call arguments are parsed and written again with sorted keys;
empty text counts as absent. ``VERSION`` changes whenever any of this does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec
from blake3 import blake3

from ullage.core.values.jsonable import jsonable
from ullage.core.values.messages import (
    BlockFrame,
    Content,
    Media,
    Message,
    Opaque,
    Part,
    Text,
    ToolCall,
    ToolResult,
)

VERSION = 1
_SLICE_CHARS = 1 << 20
# blake3 lets go of the interpreter for a slice of more: a short text has short slices
_SHORT_CHARS = 8_192
_SHORT_SLICE_CHARS = 2_000
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LETTER_PAIRS = tuple(high + low for high in _ALPHABET for low in _ALPHABET)
"""By ten bits of the number behind a ref: its two characters."""

_pack = msgspec.msgpack.Encoder().encode
_parse = msgspec.json.Decoder().decode
_sorted = msgspec.json.Encoder(order="deterministic", enc_hook=jsonable).encode


@lru_cache(maxsize=1_024)
def root(format_name: str, tenant: str) -> bytes:
    """The chain of the empty history of one format and tenant, 16 bytes."""
    return blake3(_pack([VERSION, format_name, _utf8(tenant)])).digest(16)


def digest_of(message: Message) -> bytes:
    """The digest of one message's canonical form, 16 bytes."""
    form = [VERSION, message.role, _forms(message.parts)]
    return blake3(_pack(form)).digest(16)


def extend(chain: bytes, digest: bytes) -> bytes:
    """The chain one message on, 16 bytes."""
    return blake3(chain + digest).digest(16)


def ref_of(text: str, kind: str = "text") -> str:
    """The ref under which ``text`` is set aside: 16 characters, 80 bits of its content.

    A pure function of the content, so that the same output has the same ref everywhere.
    """
    number = int.from_bytes(content_digest(text, kind)[:10], "big")
    return "".join(
        [
            _LETTER_PAIRS[(number >> shift) & 1023]
            for shift in range(70, -1, -10)
        ]
    )


def content_digest(text: str, kind: str = "text") -> bytes:
    """All 256 bits of the hash whose first 80 are the ref.

    Encodes a slice at a time, so that a huge text is never held twice.
    """
    digest = blake3(derive_key_context=f"ullage {kind}")
    slice_chars = (
        _SHORT_SLICE_CHARS if len(text) <= _SHORT_CHARS else _SLICE_CHARS
    )
    for start in range(0, len(text), slice_chars):
        piece = text[start : start + slice_chars]
        digest.update(piece.encode("utf-8", "surrogatepass"))
    return digest.digest()


def canonical_json(value: Any) -> str:
    """``value`` as JSON text with sorted keys and no spaces; see `jsonable` for what is no JSON.

    Raises:
        TypeError, ValueError: the value cannot be written as JSON.
    """
    try:
        return _sorted(value).decode()
    except UnicodeEncodeError:
        # a lone surrogate: only the standard library escapes it
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), default=jsonable
        )


def _forms(parts: Iterable[Part | Content]) -> list[list[Any]]:
    """The canonical lists of the parts that have a say in identity."""
    forms = [_form(part) for part in parts]
    return [form for form in forms if form is not None]


def _form(part: Part | Content) -> list[Any] | None:
    """The canonical list of one part, or None if the part has no say in identity."""
    match part:
        case Text(text=text):
            return ["t", _utf8(text)] if text else None
        case ToolCall():
            return [
                "c",
                _utf8(part.id),
                _utf8(part.name),
                _arguments(part.arguments),
            ]
        case ToolResult():
            content = _forms(part.content)
            return ["r", _utf8(part.call_id), part.is_error, content]
        case Media(kind=kind, mime=mime, data=data):
            digest = blake3(data.encode("utf-8", "surrogatepass")).digest(16)
            return ["m", kind, _utf8(mime), digest]
        case Opaque(kind=kind, text=text):
            return ["o", _utf8(kind), _utf8(text)]
        case BlockFrame(text=text):
            return ["f", _utf8(text)]
        case _:
            return None


def _arguments(text: str) -> str | bytes:
    """Call arguments with sorted keys if they parse, as they are if not."""
    try:
        return _sorted(_parse(text))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _utf8(text)


def _utf8(text: str) -> str | bytes:
    """Text for packing; not ASCII, encoded apart: the caller's string keeps no copy as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass")
