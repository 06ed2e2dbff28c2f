"""What is known of one type of block, item or part: a row that every reader of a wire shares.

    parse      what it becomes, which field holds its text, which ids it opens and closes
    edit       what may take its place when its text is replaced
    rules      who may say it, whether a tool's result may hold it, and its fields
    convert    which fields are carried into another wire; any other is named as lost
    media      which kinds it holds
    people     who wrote it, and who reads it

Each wire lists its rows in ``blocks.py`` of its folder. The tests ask for an example of each row,
and of every type that the vendors' SDKs know for a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from ullage.core.errors import FormatError, UnsupportedPart
from ullage.core.history.raw import field, text_at
from ullage.core.values.authors import Author, Reader
from ullage.core.values.messages import Content, Media, Opaque, Role, Text
from ullage.wires.base import (
    MARKERS,
    at_path,
    block_at,
    detail_of,
    opaque_json,
    optional_text_at,
    plain,
)
from ullage.wires.unknown_media import media_tokens_of

_loads = msgspec.json.Decoder().decode
Kind: TypeAlias = Literal["image", "document", "audio"]
Becomes: TypeAlias = Literal[
    "text", "media", "call", "result", "reasoning", "opaque", "message"
]


class Block(Struct, frozen=True, gc=False):
    """One type of a wire.

    Attributes:
        kind: its name on the wire.
        becomes: what it is read as (`ullage.core.values.messages`); ``"message"`` if it holds
        others.
        text: the field that holds its text, or the arguments of a call.
        roles: of the messages it may stand in.
        in_result: whether the result of a tool may hold it.
        needs: fields it must have, with their types.
        one_of: of these it must have one.
        may: fields it may have besides.
        not_null: of all its fields those that may be left out but are never null.
        inner: of a field that holds an object of several types, the fields each type needs.
        by_server: whether the server makes it. It goes back as it came and may be newer than
            the row, so that of its unknown fields only a null is refused: nulls are what writing
            a block through a type of one's own adds.
        unknown: the rule that a field breaks which the row does not have, where it is another
            than for most types of the wire.
        edited: what becomes of it when its text is replaced: the text stands in its field, or a
            block of text in its place; ``""`` if neither would be legal.
        carried: the fields a conversion carries; None if it can carry nothing of it.
        within: the same of the objects that stand in its fields.
        media: the kinds of media it holds.
        data: the paths under which its data stands, its address or its file id: one of them.
        bare: the field that may be the address itself where the wire has an object: hosts in
            front of it take both.
        mime: the path of the medium's type.
        type: the medium's type, where no field tells.
        detail: the path of how finely it is to be looked at.
        title: the path of its name.
        tokens: what it costs where its JSON does not tell.
        opens: the field with the id under which something behind it belongs to it.
        closes: the field with the id of what it belongs to.
        prefix: how an id begins that the server gave it.
        author: who wrote it; None: whoever speaks in its message (`Block.written_by`).
        reader: who reads it, where ``caller`` does not say otherwise.
        caller: the field that says who made a call, or asked for what this is the result of: the
            model, or a program (`Block.is_of_program`).
        words: the field with what of it are the user's words.
    """

    kind: str
    becomes: Becomes = "opaque"
    text: str = ""
    roles: tuple[str, ...] = ()
    in_result: bool = False
    needs: Mapping[str, Any] = {}
    one_of: tuple[str, ...] = ()
    may: frozenset[str] = frozenset()
    not_null: frozenset[str] = frozenset()
    inner: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    by_server: bool = False
    unknown: str = ""
    edited: Literal["its field", "a text", ""] = ""
    carried: frozenset[str] | None = None
    within: Mapping[str, frozenset[str]] = {}
    media: tuple[Kind, ...] = ()
    data: tuple[str, ...] = ()
    bare: str = ""
    mime: str = ""
    type: str = ""
    detail: str = ""
    title: str = ""
    tokens: int | None = None
    opens: str = ""
    closes: str = ""
    prefix: str = ""
    author: Author | None = None
    reader: Reader = "model"
    caller: str = ""
    words: str = ""

    def written_by(self, role: Role) -> Author:
        """Who wrote a block of this type in a message of this role."""
        if self.author is None:
            return _SPEAKERS[role]
        return self.author

    def is_of_program(self, block: Any) -> bool:
        """Whether a program made this call, or reads this result: any caller but the model.

        A caller's type names its kind and version (``code_execution_20260120``, ``program``); that
        of the model is ``direct``, and where nothing is said it is the model as well.
        """
        if not self.caller:
            return False
        kind = field(field(block, self.caller), "type")
        return isinstance(kind, str) and kind != _DIRECT

    def read_by(self, block: Any) -> Reader:
        """Who reads a block."""
        if self.is_of_program(block):
            return "program"
        return self.reader

    def unknown_fields(self, block: Mapping[str, Any]) -> list[str]:
        """The fields of a block that its row does not have, or not as null."""
        names = block.items()
        return [name for name, value in names if not self._knows(name, value)]

    def _knows(self, name: str, value: Any) -> bool:
        """Whether a block of this type may have a field with this value."""
        if name in self.may:
            return value is not None or name not in self.not_null
        if name == "type" or name in self.needs:
            return True
        # The server adds fields to its own blocks; it sends none of them as null.
        return self.by_server and value is not None


def fields(names: str) -> frozenset[str]:
    """A set of names of fields, from a text with spaces between."""
    return frozenset(names.split())


_DIRECT = "direct"
_SPEAKERS: Mapping[Role, Author] = {
    "user": "user",
    "system": "system",
    "assistant": "model",
    "tool": "tool",
}
Blocks: TypeAlias = Mapping[str, Block]
_UNKNOWN = Block("")


def table(*rows: Block) -> Blocks:
    """Rows by the name of their type."""
    return {row.kind: row for row in rows}


def cannot_edit(
    kind: object, reason: str = "stands as it came or not at all"
) -> UnsupportedPart:
    """The error for an edit that would not be legal."""
    return UnsupportedPart(
        f"a part of type {str(kind)[:64]!r}",
        f"it {reason}",
        "Leave it out with its message, or edit another part.",
    )


def filled(text: str, kind: object, rule: str) -> str:
    """``text``, for a leaf that may not be blank. Raises UnsupportedPart if it is."""
    if not text or text.isspace():
        raise cannot_edit(
            kind, f"needs a text, and this one is blank ({rule})"
        )
    return text


def replaced(
    raw: Any, rows: Blocks, text: str, say: str = "text"
) -> dict[str, Any]:
    """A block of a content that shows another text, and its cache marker.

    A bare text becomes a block of text, whose type is ``say`` there. Raises UnsupportedPart if
    nothing but the block itself may stand there.
    """
    if isinstance(raw, str):
        return {"type": say, "text": text}
    block = plain(raw, "block")
    row = rows.get(str(block.get("type")), _UNKNOWN)
    if row.edited == "its field":
        return {**block, row.text: text}
    if row.edited == "a text":
        markers = {
            key: block[key] for key in MARKERS if block.get(key) is not None
        }
        return {"type": say, "text": text, **markers}
    raise cannot_edit(block.get("type"))


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of a call from their text. Raises FormatError if it is not a JSON object."""
    try:
        value = _loads(text)
    except (msgspec.DecodeError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    remedy = "Replace arguments by a JSON object."
    raise FormatError("arguments", "not a JSON object", remedy)


def read_part(rows: Blocks, raw: Any, at: int, path: str) -> Content:
    """One part of a content as its row says: a text, a medium, or what is carried through.

    Raises FormatError if it is not what its type says it is.
    """
    if type(raw) is str:
        return Text(raw, at)
    part = raw if type(raw) is dict else plain(raw, path)
    kind = part.get("type")
    row = rows.get(kind, _UNKNOWN) if type(kind) is str else _UNKNOWN
    if row.becomes == "text":
        return Text(text_at(part.get(row.text), f"{path}.{row.text}"), at)
    if row.media:
        return medium_at(part, row, at, path)
    text = opaque_json(part, path)
    tokens = row.tokens
    if tokens is None:
        tokens = media_tokens_of(part)
    return Opaque(
        str(kind), text, at, tokens, author=row.author, reader=row.reader
    )


# ── media ────────────────────────────────────────────────────────────────────────────────


def medium_at(
    block: Mapping[str, Any], row: Block, at: int, path: str
) -> Media:
    """The medium in a block whose row says where. Raises FormatError naming the path."""
    data_path = _data_path(block, row)
    mime = row.type
    if row.mime:
        holder, has_holder, _ = row.mime.partition(".")
        body = block.get(holder) or {} if has_holder else block
        plain(body, f"{path}.{holder}")  # only to refuse what is no object
        mime = optional_text_at(at_path(block, row.mime), f"{path}.{row.mime}")
    return Media(
        kind=row.media[0],
        mime=mime,
        data=optional_text_at(
            at_path(block, data_path), f"{path}.{data_path}"
        ),
        at=at,
        block=block_at(block, path),
        detail=detail_of(at_path(block, row.detail)) if row.detail else "",
    )


def _data_path(block: Mapping[str, Any], row: Block) -> str:
    """The path of the medium's data in a block."""
    if row.bare and isinstance(block.get(row.bare), str):
        return row.bare
    for path in row.data:
        if at_path(block, path):
            return path
    return row.data[0]


def without_medium(blocks: Blocks, content: object, text: str) -> str | None:
    """What the result of a tool says instead of a medium that it may not hold.

    That is ``text`` and why the medium is not there; None if it is none, or may stand there.
    """
    if not isinstance(content, Media):
        return None
    for row in blocks.values():
        if row.in_result and content.kind in row.media:
            return None
    return (
        f"{text}\n[not shown: a tool result of this format cannot hold {_NAMES[content.kind]}. "
        "It is whole in the caller's history and can be sent in a user message.]"
    )


_NAMES = {"image": "an image", "document": "a document", "audio": "a sound"}
