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


def passages_of(raw: Any, at: int, path: str) -> list[Content]:
    """The texts of a block and what is beside them.

    Args:
        raw: a block, or a string.
        at: its place in its content.
        path: its path.

    Returns:
        A passage for each text and, last, the frame; nothing for a block without such a text, and
        for one whose frame is too large to stay in a view.

    Raises:
        FormatError: the block is not JSON.
    """
    if isinstance(raw, str) or field(raw, "type") not in _KINDS:
        return []
    block = plain(raw, path)
    texts = _texts(_text_holder(block))
    if not any(texts.values()):
        return []

    frame = block
    for inner in texts:
        frame = with_passage(frame, inner, "")
    frame_text = opaque_json(frame, path)
    tokens = media_tokens_of(frame)
    if tokens is None and len(frame_text) > _MOST_FRAME_CHARS:
        return []

    parts: list[Content] = []
    for inner, text in texts.items():
        if text:
            parts.append(Passage(text, at, inner))
    parts.append(BlockFrame(frame_text, at, tokens))
    return parts


def with_shown_text(raw: Any, inner: int, text: str) -> dict[str, Any]:
    """A block that shows another text in place of one of its own.

    Args:
        raw: the block, a dict or an object of the SDK.
        inner: which of its texts, as `Passage.inner` says.
        text: what it is to show.

    Raises:
        UnsupportedPart: ``text`` is blank (A9).
    """
    block = plain(raw, "block")
    return with_passage(block, inner, filled(text, block.get("type"), "A9"))


def with_passage(
    block: Mapping[str, Any], inner: int, text: str
) -> dict[str, Any]:
    """A block with another text in one place; nothing else of it is changed.

    Args:
        block: a document or a search result.
        inner: which of its texts; ``WHOLE`` where it holds a single one.
        text: the text in its place, which may be empty.
    """
    content: Any = text
    if inner != WHOLE:
        content = list(_text_holder(block))
        content[inner] = {**plain(content[inner], "block"), "text": text}
    if block["type"] == "search_result":
        return {**block, "content": content}
    source = plain(block["source"], "source")
    name = _SOURCE_FIELDS[source["type"]]
    return {**block, "source": {**source, name: content}}


_SOURCE_FIELDS = {"text": "data", "content": "content"}
"""Where a document holds its texts, by the type of its source."""


def _text_holder(block: Mapping[str, Any]) -> Any:
    """The string or the list with a block's texts; None if it holds none."""
    if block["type"] == "search_result":
        content = block.get("content")
        if isinstance(content, (list, tuple)):
            return content
        return None
    source = block.get("source")
    name = _SOURCE_FIELDS.get(str(field(source, "type")))
    if name:
        return field(source, name)
    return None


def _texts(holder: Any) -> dict[int, str]:
    """Texts by their place in a list; a single one under ``WHOLE``."""
    if isinstance(holder, str):
        return {WHOLE: holder}
    texts: dict[int, str] = {}
    if not isinstance(holder, (list, tuple)):
        return texts
    for inner, item in enumerate(holder):
        text = field(item, "text")
        if field(item, "type") == "text" and isinstance(text, str):
            texts[inner] = text
    return texts
