"""Conversations out of Amazon Bedrock Converse, and into it."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ullage.core.history.pairing import At
from ullage.core.history.raw import field
from ullage.core.values.messages import (
    Media,
    Opaque,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.toolset import ToolSpec
from ullage.wires.base import at_path
from ullage.wires.bedrock_converse.blocks import kind_of
from ullage.wires.bedrock_converse.format import NO_REASON, blank
from ullage.wires.bedrock_converse.media import form_of
from ullage.wires.bedrock_converse.models import NAME
from ullage.wires.block import fields
from ullage.wires.convert.read import Reader, json_text
from ullage.wires.convert.turns import Medium, Piece, Result, Turn, TurnCall
from ullage.wires.convert.write import REPLY, WireDict, Writer
from ullage.wires.repair.base import EMPTY

_DOCUMENT_NAME = re.compile(
    r"(?=.{1,200}\Z)[a-zA-Z0-9()\[\]-]+(?: [a-zA-Z0-9()\[\]-]+)*\Z"
)
_UNNAMED = re.compile(r"document \d+\Z")
"""The name of a document that had none: Bedrock asks for one, and no two alike."""
_CALLED = "A tool that was called in the conversation so far."


class ConverseReader(Reader):
    """Reads Converse."""

    tool_fields = fields("toolSpec name description inputSchema")
    flags_errors = True
    result_content = "toolResult.content"

    def tool_body(
        self, raw: Mapping[str, Any], path: str
    ) -> Mapping[str, Any]:
        """See `Reader.tool_body`."""
        body = raw.get("toolSpec")
        if isinstance(body, Mapping):
            return body
        return raw

    def schema(
        self, raw: Mapping[str, Any], body: Mapping[str, Any], path: str
    ) -> Any:
        """See `Reader.schema`: a tool of the model's maker has none."""
        return at_path(body, "inputSchema.json")

    def kind(self, block: Mapping[str, Any]) -> str:
        """See `Reader.kind`: the field that a block has is its kind."""
        return kind_of(block) or "block"

    def arguments(
        self, part: ToolCall, block: Any, path: str
    ) -> tuple[str, Any]:
        """See `Reader.arguments`."""
        value = at_path(block, "toolUse.input")
        if isinstance(value, Mapping):
            return json_text(value, path), value
        return part.arguments, value

    def _content(
        self, part: Text | Media | Opaque, block: Any, path: str
    ) -> Text | Medium:
        piece = super()._content(part, block, path)
        if isinstance(piece, Medium) and _UNNAMED.match(piece.name):
            return replace(piece, name="")
        return piece

    def _result(
        self, part: ToolResult, block: Any, path: str, at: At
    ) -> Piece:
        piece = super()._result(part, block, path, at)
        no_reason = (Text(NO_REASON, 0),)
        if isinstance(piece, Result) and piece.content == no_reason:
            return replace(piece, content=())
        return piece


class ConverseWriter(Writer):
    """Writes Converse, as boto3 takes it."""

    tool_name = NAME
    not_first = ("assistant",)
    unique_ids = True  # B5

    def messages(self, turns: Sequence[Turn]) -> list[WireDict]:
        """See `Writer.messages`: user and assistant in turn (B2)."""
        self._documents = 0
        messages: list[WireDict] = []
        for turn in turns:
            if turn.who == "system":
                turn = self.system_note(turn)
            role = "assistant" if turn.who == "assistant" else "user"
            content = self._turn_content(turn)
            if messages and messages[-1]["role"] == role:
                messages[-1]["content"] += content
            elif content:
                messages.append({"role": role, "content": content})
        for message in messages:
            kinds = {kind for block in message["content"] for kind in block}
            if "document" in kinds and "text" not in kinds:  # B12
                message["content"].append(_text(EMPTY))
        return messages

    def _turn_content(self, turn: Turn) -> list[WireDict]:
        """The blocks of a turn, none of them an empty text (B6)."""
        blocks = [self._block(piece, turn) for piece in turn.pieces]
        content = [block for block in blocks if block != _text("")]
        if not content and turn.who == "user":
            return [_text(EMPTY)]
        return content

    def call(self, call: TurnCall) -> WireDict:
        """See `Writer.call`."""
        body = {
            "toolUseId": call.id,
            "name": call.name,
            "input": self.arguments(call),
        }
        return {"toolUse": body}

    def _block(self, piece: Piece, turn: Turn) -> WireDict:
        match piece:
            case TurnCall():
                return self.call(piece)
            case Result():
                return self._result(piece)
            case Medium() if turn.who == "assistant":
                (text,) = self.texts((piece,), REPLY)
                return _text(text.text)
            case Medium():
                (block,) = self.blocks((piece,), _text)
                return block
        return self._spoken(piece.text, turn.where)

    def _spoken(self, text: str, path: str) -> WireDict:
        """A block of text in a message, which may not be blank (B6)."""
        if text.isspace():
            return _text(
                self.conversion.lose(path, "text of nothing but spaces")
            )
        return _text(text)

    def _result(self, result: Result) -> WireDict:
        blocks = self.blocks(result.content, _item)
        content = [block for block in blocks if block != _text("")]
        body: WireDict = {"toolUseId": result.call_id, "content": content}
        if result.is_error:
            body["content"] = content or [_text(NO_REASON)]
            body["status"] = "error"
        return {"toolResult": body}

    def medium(self, medium: Medium) -> WireDict | None:
        """See `Writer.medium`: by its data alone, as bytes."""
        form = form_of(medium.kind, medium.mime)
        if form is None or medium.url:
            return None
        try:
            source = {"bytes": b64decode(medium.data, validate=True)}
        except Error:
            return None
        body: WireDict = {"format": form, "source": source}
        if medium.kind == "document":
            self._documents += 1
            is_legal = _DOCUMENT_NAME.match(medium.name)
            body["name"] = (
                medium.name if is_legal else f"document {self._documents}"
            )
        return {medium.kind: body}

    def keeps_name(self, medium: Medium) -> bool:
        """See `Writer.keeps_name`: where it is of the characters that Bedrock takes (B12)."""
        return bool(_DOCUMENT_NAME.match(medium.name))

    def request(
        self,
        system: Sequence[str],
        tools: Sequence[ToolSpec],
        output_tokens: int | None,
        messages: Sequence[Any],
    ) -> WireDict:
        """See `Writer.request`: as keyword arguments of boto3's client."""
        messages = list(messages) or [self.beginning()]
        request: WireDict = {**self.model(), "messages": messages}
        texts = [_text(text) for text in system if text.strip()]
        if texts:
            request["system"] = texts
        if output_tokens is not None:
            request["inferenceConfig"] = {"maxTokens": output_tokens}
        specs = tools or list(_called(messages))
        if specs:
            definitions = [self.format.tool(spec) for spec in specs]
            request["toolConfig"] = {"tools": definitions}
        return request


def _text(text: str) -> WireDict:
    return {"text": text}


def _item(text: str) -> WireDict:
    """A text as an item of a result."""
    if text.isspace():
        return blank(text)
    return _text(text)


def _called(messages: Sequence[Any]) -> Iterator[ToolSpec]:
    """Definitions of the tools that were called, for a request that has none at all (B8)."""
    names: dict[str, None] = {}
    for message in messages:
        for block in message["content"]:
            if "toolUse" in block:
                name = at_path(field(block, "toolUse"), "name")
                names[name] = None
    for name in names:
        yield ToolSpec(name, _CALLED, {"type": "object", "properties": {}})


READER = ConverseReader
WRITER = ConverseWriter
