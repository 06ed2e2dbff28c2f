"""Texts inside documents and search results (`provider-rules` §1.A).

A text document, a document of blocks and a search result hold their texts inside a block with a
title, a source and settings for citations. Such a block is read as one `Passage` for each text
and a `BlockFrame` for the rest. A text is cut where it stands and the block keeps everything else:
the API counts documents for citations, and wants citations switched on for all of them or for none.

    document, source of type "text"       source.data
    document, source of type "content"    source.content: a string, or the text blocks in it
    search_result                         content: the text blocks in it

A PDF, an address or a file id has no text here: it is a medium.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ullage.core.history.raw import field
from ullage.core.values.messages import WHOLE, BlockFrame, Content, Passage
from ullage.wires.base import opaque_json, plain
from ullage.wires.block import filled
from ullage.wires.unknown_media import media_tokens_of

_KINDS = ("document", "search_result")
_MOST_FRAME_CHARS = 4_000
"""A longer frame can hold what has to leave the view, and a frame stays in it."""


def passages_of(raw: Any, at: int, where: str) -> list[Content]:
    """The texts of a block and what is beside them; nothing of a block that holds no such text.

    Args:
        raw: a block, or a string.
        at: its place in its content.
        where: its path.

    Raises:
        FormatError: the block is not JSON.
    """
    if isinstance(raw, str) or field(raw, "type") not in _KINDS:
        return []
    block = plain(raw, where)
    texts = _texts(_held(block))
    if not any(texts.values()):
        return []
    frame = block
    for inner in texts:
        frame = with_passage(frame, inner, "")
    text, tokens = opaque_json(frame, where), media_tokens_of(frame)
    if tokens is None and len(text) > _MOST_FRAME_CHARS:
        return []
    passages = [Passage(said, at, inner) for inner, said in texts.items() if said]
    return [*passages, BlockFrame(text, at, tokens)]


def shown(raw: Any, inner: int, text: str) -> dict[str, Any]:
    """A block that shows ``text`` in place of one of its texts. Raises UnsupportedPart if blank."""
    block = plain(raw, "block")
    return with_passage(block, inner, filled(text, block.get("type"), "A9"))


def with_passage(block: Mapping[str, Any], inner: int, text: str) -> dict[str, Any]:
    """A block with another text in one place; nothing else of it is changed."""
    held: Any = text
    if inner != WHOLE:
        held = list(_held(block))
        held[inner] = {**plain(held[inner], "block"), "text": text}
    if block["type"] == "search_result":
        return {**block, "content": held}
    source = plain(block["source"], "source")
    return {**block, "source": {**source, _FIELDS[source["type"]]: held}}


_FIELDS = {"text": "data", "content": "content"}
"""Where a document holds its texts, by the type of its source."""


def _held(block: Mapping[str, Any]) -> Any:
    """The string or the list with a block's texts; None if it holds none."""
    if block["type"] == "search_result":
        content = block.get("content")
        return content if isinstance(content, (list, tuple)) else None
    source = block.get("source")
    name = _FIELDS.get(str(field(source, "type")))
    return field(source, name) if name else None


def _texts(held: Any) -> dict[int, str]:
    """Texts by their place in a list; a single one under ``WHOLE``."""
    if isinstance(held, str):
        return {WHOLE: held}
    if not isinstance(held, (list, tuple)):
        return {}
    blocks = {
        inner: item for inner, item in enumerate(held) if field(item, "type") == "text"
    }
    texts = {inner: field(item, "text") for inner, item in blocks.items()}
    return {inner: text for inner, text in texts.items() if isinstance(text, str)}
