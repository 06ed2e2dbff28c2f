"""Texts inside documents, search results, guarded content and answers with citations.

Such a block holds its texts beside a name, a source, qualifiers or citations. It is read as one
`Passage` for each text and a `BlockFrame` for the rest, so that a text is cut where it stands and
the block keeps everything else.

    document            source.text; source.content: the texts in it
    searchResult        content: the texts in it
    citationsContent    content: the texts in it
    guardContent        text.text

A document of bytes, or in a bucket, has no text here: it is a medium. Guarded content is what the
user says, unless its qualifiers say that an answer is held against it; so it is a `Text`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ullage.core.values.messages import (
    WHOLE,
    BlockFrame,
    Content,
    Passage,
    Text,
)
from ullage.wires.base import opaque_json
from ullage.wires.bedrock_converse.blocks import kind_of
from ullage.wires.block import filled
from ullage.wires.unknown_media import media_tokens_of

_PATHS: Mapping[str, Sequence[str]] = {
    "document": ("source.text", "source.content"),
    "searchResult": ("content",),
    "citationsContent": ("content",),
    "guardContent": ("text.text",),
}
"""Where a block has its texts: a string, or a list of objects with a ``text``."""

_GUARDED = ("guardContent", "text")
_SOURCE = "grounding_source"
"""The qualifier of a text that the model's answer is held against."""

_MOST_FRAME_CHARS = 4_000
"""A longer frame can hold what has to leave the view, and a frame stays in it."""


def passages_of(block: Mapping[str, Any], at: int, path: str) -> list[Content]:
    """The texts of a block and what is beside them; nothing of a block that holds no such text.

    Args:
        block: a block.
        at: its place in its content.
        path: its path.

    Raises:
        FormatError: the block is not JSON.
    """
    texts = _texts(block)
    if not any(texts.values()):
        return []
    frame = block
    for inner in texts:
        frame = _with_text(frame, inner, "")
    text = opaque_json(frame, path)
    tokens = media_tokens_of(frame)
    if tokens is None and len(text) > _MOST_FRAME_CHARS:
        return []
    is_said = _is_said(block)
    content: list[Content] = []
    for inner, passage in texts.items():
        if not passage:
            continue
        content.append(
            Text(passage, at) if is_said else Passage(passage, at, inner)
        )
    content.append(BlockFrame(text, at, tokens))
    return content


def _is_said(block: Mapping[str, Any]) -> bool:
    """Whether the user says the text of a block: it is guarded, and no source for an answer."""
    guarded = _at(block, _GUARDED)
    if not isinstance(guarded, Mapping):
        return False
    return _SOURCE not in (guarded.get("qualifiers") or ())


def shown(block: Mapping[str, Any], inner: int, text: str) -> dict[str, Any]:
    """A block that shows ``text`` in place of one of its texts. Raises UnsupportedPart if blank."""
    return _with_text(block, inner, filled(text, kind_of(block), "B6"))


def _with_text(
    block: Mapping[str, Any], inner: int, text: str
) -> dict[str, Any]:
    """A block with another text in one place; nothing else of it is changed."""
    names = _names_of(block)
    value: Any = text
    if inner != WHOLE:
        value = list(_at(block, names))
        value[inner] = {**value[inner], "text": text}
    edited: dict[str, Any] = _with(block, names, value)
    return edited


def _with(container: Any, names: Sequence[str], value: Any) -> Any:
    """A copy of nested objects with another value under these names."""
    name, *inner_names = names
    if inner_names:
        value = _with(container[name], inner_names, value)
    return {**container, name: value}


def _texts(block: Mapping[str, Any]) -> dict[int, str]:
    """Texts by their place in a list; a single one under ``WHOLE``."""
    names = _names_of(block)
    if not names:
        return {}
    value = _at(block, names)
    if isinstance(value, str):
        return {WHOLE: value}
    texts = {}
    for inner, item in enumerate(value):
        text = item.get("text") if isinstance(item, Mapping) else None
        if isinstance(text, str):
            texts[inner] = text
    return texts


def _names_of(block: Mapping[str, Any]) -> list[str]:
    """The names under which a block's texts stand; none of a block without."""
    kind = kind_of(block)
    for path in _PATHS.get(kind, ()):
        names = [kind, *path.split(".")]
        value = _at(block, names)
        if value and isinstance(value, (str, list, tuple)):
            return names
    return []


def _at(value: Any, names: Sequence[str]) -> Any:
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
