"""Texts inside documents, search results, guarded content and answers with citations.

Such a block holds its texts beside a name, a source, qualifiers or citations. It is read as one
`Passage` for each text and a `BlockFrame` for the rest, so that a text is cut where it stands and
the block keeps everything else.

    document            source.text; source.content: the texts in it
    searchResult        content: the texts in it
    citationsContent    content: the texts in it
    guardContent        text.text

A document of bytes, or in a bucket, has no text here: it is a medium.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ullage.core.values.messages import WHOLE, BlockFrame, Content, Passage
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

_MOST_FRAME_CHARS = 4_000
"""A longer frame can hold what has to leave the view, and a frame stays in it."""


def passages_of(block: Mapping[str, Any], at: int, where: str) -> list[Content]:
    """The texts of a block and what is beside them; nothing of a block that holds no such text.

    Args:
        block: a block.
        at: its place in its content.
        where: its path.

    Raises:
        FormatError: the block is not JSON.
    """
    texts = _texts(block)
    if not any(texts.values()):
        return []
    frame = block
    for inner in texts:
        frame = _with_text(frame, inner, "")
    text, tokens = opaque_json(frame, where), media_tokens_of(frame)
    if tokens is None and len(text) > _MOST_FRAME_CHARS:
        return []
    passages = [Passage(said, at, inner) for inner, said in texts.items() if said]
    return [*passages, BlockFrame(text, at, tokens)]


def shown(block: Mapping[str, Any], inner: int, text: str) -> dict[str, Any]:
    """A block that shows ``text`` in place of one of its texts. Raises UnsupportedPart if blank."""
    return _with_text(block, inner, filled(text, kind_of(block), "B6"))


def _with_text(block: Mapping[str, Any], inner: int, text: str) -> dict[str, Any]:
    """A block with another text in one place; nothing else of it is changed."""
    kind = kind_of(block)
    names = [kind, *_path_of(block).split(".")]
    held: Any = text
    if inner != WHOLE:
        held = list(_at(block, names))
        held[inner] = {**held[inner], "text": text}
    new: dict[str, Any] = _with(block, names, held)
    return new


def _with(value: Any, names: Sequence[str], new: Any) -> Any:
    """A copy of nested objects with another value under these names."""
    first, *rest = names
    return {**value, first: _with(value[first], rest, new) if rest else new}


def _texts(block: Mapping[str, Any]) -> dict[int, str]:
    """Texts by their place in a list; a single one under ``WHOLE``."""
    path = _path_of(block)
    if not path:
        return {}
    held = _at(block, [kind_of(block), *path.split(".")])
    if isinstance(held, str):
        return {WHOLE: held}
    items = enumerate(held)
    texts = {
        inner: item.get("text") for inner, item in items if isinstance(item, Mapping)
    }
    return {inner: text for inner, text in texts.items() if isinstance(text, str)}


def _path_of(block: Mapping[str, Any]) -> str:
    """The path of a block's texts; ``""`` of a block without."""
    kind = kind_of(block)
    paths = _PATHS.get(kind, ())
    return next(
        (path for path in paths if _holds(_at(block, [kind, *path.split(".")]))), ""
    )


def _holds(value: Any) -> bool:
    return isinstance(value, (str, list, tuple)) and bool(value)


def _at(value: Any, names: Sequence[str]) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
