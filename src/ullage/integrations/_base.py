"""What adapters for frameworks read alike: blocks of content, counts, names of models.

medium       a medium as frameworks have it: bytes or an address, and its MIME type
read_parts   content as most frameworks have it: a text, or blocks as a provider has them
with_text    a block of theirs without bytes, and back: `with_bytes`
show_text    such a content with one of its texts shown otherwise
counted      usage as most frameworks report it, cached tokens among those of the prompt
wire_of      the wire that a model is really asked on
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Literal

from ullage import Usage
from ullage.core.errors import FormatError
from ullage.doors.host import (
    Block,
    Media,
    Part,
    Reasoning,
    Text,
    content_at,
    field,
    filled,
    plain,
    plain_name,
    read_part,
    replaced,
    sealed_bytes,
)
from ullage.wires import WIRES

# ── content ──────────────────────────────────────────────────────────────────────────────

_DATA = ("base64", "data", "url", "file_id")
_WIRES = {
    kind: row
    for wire in WIRES
    if wire.types_blocks
    for kind, row in wire.format.blocks.items()
}
"""Blocks of the wires under one roof."""
_MEDIA = (
    Block(
        "image",
        media=("image",),
        data=_DATA,
        mime="mime_type",
        edited="a text",
    ),
    Block(
        "audio",
        media=("audio",),
        data=_DATA,
        mime="mime_type",
        edited="a text",
    ),
    Block(
        "video",
        media=("document",),
        data=_DATA,
        mime="mime_type",
        edited="a text",
    ),
    Block(
        "document",
        media=("document",),
        data=_DATA,
        mime="mime_type",
        edited="a text",
    ),
)
_NEUTRAL = {**_WIRES, **{row.kind: row for row in _MEDIA}}
"""The same, and media as frameworks write them for all of them."""
_CALLS = frozenset(
    (
        "tool_use",
        "tool_call",
        "tool_call_chunk",
        "function_call",
        "custom_tool_call",
    )
)
_THOUGHTS = frozenset(
    ("thinking", "redacted_thinking", "reasoning", "reasoning_content")
)


def read_parts(content: Any, location: str) -> list[Part]:
    """A content as parts: text, media, reasoning; a call in it is left to whoever lists calls.

    Args:
        content: a string, None, or a list of strings and blocks.
        location: what it is called in an error.

    Raises:
        FormatError: it is none of these.
    """
    parts = content_at(content, location, _part)
    return [part for part in parts if part is not None]


def _part(raw: Any, at: int, location: str) -> Any:
    if isinstance(raw, str):
        return Text(raw, at)
    block = plain(raw, location)
    kind = str(block.get("type"))
    if kind in _CALLS:
        return None
    if kind in _THOUGHTS:
        return thought(block, at)
    if (native := _native_medium(block, at)) is not None:
        return native
    rows = _WIRES if "source" in block else _NEUTRAL
    try:
        return read_part(rows, block, at, location)
    except FormatError:  # whether it may be sent is not ours to say
        return read_part({}, block, at, location)


def _native_medium(block: Mapping[str, Any], at: int) -> Media | None:
    """A medium as one framework alone writes it; None if the block is none of these.

    Args:
        block: ``media`` of langchain-google-genai, with base64, bytes or an address; a block of
            Amazon's Converse (langchain-aws), with its kind as its only key or beside a type;
            ``file`` with its data beside the type (LangChain); bytes where others have base64.
        at: its place.
    """
    kind = str(block.get("type") or "")
    for name, group in _CONVERSE.items():
        inner = block.get(name)
        source = inner.get("source") if isinstance(inner, Mapping) else None
        if isinstance(inner, Mapping) and isinstance(source, Mapping):
            address = source.get("s3Location") or source.get("location") or {}
            mime = f"{group}/{inner.get('format')}"
            return _medium(
                mime, source.get("bytes"), field(address, "uri"), at, block
            )
    mime = str(block.get("mime_type") or f"{_GROUPS.get(kind, kind)}/*")
    data = next(
        (block[name] for name in _DATA_FIELDS if block.get(name)), None
    )
    is_own = kind == "media" or (kind == "file" and "file" not in block)
    if not is_own and not isinstance(data, (bytes, bytearray)):
        return None
    return _medium(mime, data, data, at, block) if data else None


_CONVERSE = {
    "image": "image",
    "document": "application",
    "video": "video",
    "audio": "audio",
}
"""The kinds of media in Converse, and how their MIME types begin."""
_GROUPS = {
    "file": "application",
    "document": "application",
    "media": "application",
}
_DATA_FIELDS = (*_DATA, "file_uri")


def _medium(
    mime: str, data: Any, address: Any, at: int, block: Mapping[str, Any]
) -> Media:
    """A medium of bytes or base64, or of what stands at an address."""
    if isinstance(data, bytearray):
        data = bytes(data)
    text = data if isinstance(data, str) else str(address or "")
    return medium(mime, data, text, at, with_text(block))


_BYTES = "__bytes__"


def with_text(value: Any) -> Any:
    """A block that can be written as JSON: its bytes as base64, which `with_bytes` undoes.

    Args:
        value: the block, or anything in it.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {_BYTES: b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {str(name): with_text(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_text(item) for item in value]
    return value


def with_bytes(value: Any) -> Any:
    """A block as its framework has it.

    Args:
        value: what `with_text` made of it, or anything in that.
    """
    if isinstance(value, Mapping):
        if set(value) == {_BYTES}:
            return b64decode(value[_BYTES])
        return {name: with_bytes(item) for name, item in value.items()}
    return (
        [with_bytes(item) for item in value]
        if isinstance(value, list)
        else value
    )


def is_thought(block: Any) -> bool:
    """Whether a block of a content holds reasoning, by its type."""
    return field(block, "type") in _THOUGHTS


def thought(block: Mapping[str, Any], at: int) -> Reasoning:
    """A block of reasoning of any provider's form.

    A signature or encrypted content in it binds it to the messages before.

    Args:
        block: the block.
        at: its place in the message.
    """
    inner = block.get("reasoning_content")
    fields = inner if isinstance(inner, Mapping) else block
    sealed = next(filter(None, map(fields.get, _SEALED)), None) or field(
        block.get("extras"), "signature"
    )
    text = next(
        (t for name in _SAID if isinstance(t := fields.get(name), str)), ""
    )
    summary = fields.get("summary")
    parts = (
        (field(item, "text") for item in summary)
        if isinstance(summary, list)
        else ()
    )
    text = text or "\n".join(part for part in parts if isinstance(part, str))
    return Reasoning(text, at, bool(sealed), sealed_bytes(sealed, 0))


_SEALED = ("signature", "data", "encrypted_content", "redacted_content")
_SAID = ("thinking", "reasoning", "text")


def medium(mime: str, data: Any, url: str, at: int, block: Any) -> Media:
    """A medium: of bytes, or of what stands at an address.

    Args:
        mime: its MIME type, which says what it is.
        data: its bytes, or anything else where there are none.
        url: where it is, if it has no bytes.
        at: its place in the message.
        block: what it is shown as again when it was set aside.
    """
    source = b64encode(data).decode() if isinstance(data, bytes) else url
    kind: Literal["image", "audio", "document"] = _KINDS.get(
        mime.partition("/")[0], "document"
    )
    return Media(kind, mime, source, at, block=block)


_KINDS: dict[str, Literal["image", "audio"]] = {
    "image": "image",
    "audio": "audio",
}


def show_text(content: Any, at: int, text: str) -> Any:
    """A content with another text at a place; the content itself is not changed.

    Args:
        content: a text, or a list of blocks.
        at: the place of the block; of a text any.
        text: what stands there instead.

    Raises:
        UnsupportedPart: no text may stand there.
    """
    if not isinstance(content, list):
        return text
    blocks = list(content)
    text = filled(text, "text", "blank text")
    if (
        isinstance(blocks[at], Mapping)
        and _native_medium(blocks[at], at) is not None
    ):
        blocks[at] = {"type": "text", "text": text}
    else:
        blocks[at] = replaced(blocks[at], _NEUTRAL, text)
    return blocks


# ── counts and models ────────────────────────────────────────────────────────────────────


def counted(
    prompt: Any,
    output: Any,
    *,
    read: Any = 0,
    written: Any = 0,
    reasoning: Any = 0,
) -> Usage | None:
    """Usage as most frameworks report it: the prompt's tokens with those of the cache in them.

    Args:
        prompt: all tokens of the prompt.
        output: of the reply, reasoning included.
        read: of the prompt, read from cache.
        written: of the prompt, written to cache.
        reasoning: of the output.

    Returns:
        None where nothing was counted, or what was counted cannot be.
    """
    counts = [
        count or 0 for count in (prompt, output, read, written, reasoning)
    ]
    if not all(isinstance(count, int) for count in counts) or not counts[0]:
        return None
    all_tokens, output_tokens, from_cache, to_cache, thoughts = counts
    return Usage(
        fresh_tokens=all_tokens - from_cache - to_cache,
        cache_read_tokens=from_cache,
        cache_write_tokens=to_cache,
        output_tokens=output_tokens,
        reasoning_tokens=thoughts,
    )


def wire_of(request: Mapping[str, Any]) -> str:
    """The wire whose rules of reasoning hold for a request, by the name of its model.

    Args:
        request: the request, with ``model``; without one it is Chat Completions.
    """
    name = plain_name(str(request.get("model") or ""))
    for maker, wire in _MAKERS.items():
        if maker in name:
            return wire
    return "openai-responses" if _OPENAI.match(name) else "openai-chat"


_MAKERS = {"claude": "anthropic", "gemini": "gemini"}
_OPENAI = re.compile(r"gpt-[5-9]|o\d")
