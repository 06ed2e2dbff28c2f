"""Conversations out of Anthropic Messages, and into it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, ClassVar

from ullage.core.values.messages import ToolCall
from ullage.core.values.toolset import ToolSpec
from ullage.wires.anthropic.models import takes_no_system_messages
from ullage.wires.convert.media import IMAGES, PDF
from ullage.wires.convert.read import Reader, json_text
from ullage.wires.convert.turns import Medium, Piece, Result, Turn, TurnCall
from ullage.wires.convert.write import REPLY, WireDict, Writer, text_block
from ullage.wires.repair.base import EMPTY

_MEDIA_TYPES: Mapping[str, Sequence[str]] = {
    "image": tuple(IMAGES.values()),
    "document": (PDF,),
}
"""The types of media that may stand in a request as data, by the kind of medium."""


class AnthropicReader(Reader):
    """Reads Messages."""

    held = ("thread.previous_message_id",)
    beside: ClassVar = {
        "mcp_servers": "the tools of an MCP server",
        "container": "a container with its files",
    }
    flags_errors = True

    def schema(
        self,
        raw: Mapping[str, Any],
        body: Mapping[str, Any],
        path: str,
    ) -> Any:
        """See `Reader.schema`: a tool of Anthropic's own has none."""
        return raw.get("input_schema")

    def arguments(
        self, part: ToolCall, block: Any, path: str
    ) -> tuple[str, Any]:
        """See `Reader.arguments`."""
        value = block.get("input")
        if isinstance(value, Mapping):
            return json_text(value, path), value
        return part.arguments, value


class AnthropicWriter(Writer):
    """Writes Messages."""

    tool_name = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")  # A8
    not_first = ("assistant",)
    unique_ids = True  # A7

    def messages(self, turns: Sequence[Turn]) -> Iterator[WireDict]:
        """See `Writer.messages`."""
        role = ""
        takes_none = takes_no_system_messages(self.conversion.model)
        for turn, following in zip_longest(turns, turns[1:]):
            if turn.who == "system":
                precedes_reply = (
                    following is None or following.who == "assistant"
                )
                may_stand = role == "user" and precedes_reply
                if takes_none or not may_stand:
                    turn = self.system_note(turn)
            content = self._content(turn)
            if content:
                role = "user" if turn.who == "results" else turn.who
                yield {"role": role, "content": content}

    def _content(self, turn: Turn) -> list[WireDict]:
        """The blocks of a turn without empty texts; of the user's at least one."""
        blocks = []
        for piece in turn.pieces:
            block = self._block(piece, turn)
            if block != text_block(""):
                blocks.append(block)
        if not blocks and turn.who == "user":
            return [text_block(EMPTY)]
        return blocks

    def call(self, call: TurnCall) -> WireDict:
        """See `Writer.call`."""
        return {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": self.arguments(call),
        }

    def _block(self, piece: Piece, turn: Turn) -> WireDict:
        match piece:
            case TurnCall():
                return self.call(piece)
            case Result():
                return self._result(piece)
            case Medium() if turn.who == "assistant":
                line = self.texts((piece,), REPLY)[0]
                return text_block(line.text)
            case Medium():
                return self.blocks((piece,), text_block)[0]
        if piece.text.isspace():
            note = self.conversion.lose(
                turn.where, "text of nothing but spaces"
            )
            return text_block(note)
        return text_block(piece.text)

    def _result(self, result: Result) -> WireDict:
        block: WireDict = {
            "type": "tool_result",
            "tool_use_id": result.call_id,
        }
        content = self.blocks(result.content, text_block)
        if len(content) == 1 and content[0]["type"] == "text":
            block["content"] = content[0]["text"]
        elif content:
            block["content"] = content
        if result.is_error:
            block["is_error"] = True
        return block

    def medium(self, medium: Medium) -> WireDict | None:
        """See `Writer.medium`: images of four types, and PDF; both also by URL."""
        allowed = _MEDIA_TYPES.get(medium.kind, ())
        if medium.url and medium.kind != "audio":
            source = {"type": "url", "url": medium.url}
        elif medium.mime in allowed:
            source = {
                "type": "base64",
                "media_type": medium.mime,
                "data": medium.data,
            }
        else:
            return None
        block: WireDict = {"type": medium.kind, "source": source}
        if medium.name and medium.kind == "document":
            block["title"] = medium.name
        return block

    def keeps_name(self, medium: Medium) -> bool:
        """See `Writer.keeps_name`."""
        return True

    def request(
        self,
        system: Sequence[str],
        tools: Sequence[ToolSpec],
        output_tokens: int | None,
        messages: Sequence[Any],
    ) -> WireDict:
        """See `Writer.request`: one system text is a string, several are blocks."""
        settings = self.settings(tools, output_tokens)
        blocks = [text_block(text) for text in system if text.strip()]
        if len(blocks) == 1:
            settings["system"] = blocks[0]["text"]
        elif blocks:
            settings["system"] = blocks
        messages = list(messages) or [self.beginning()]
        return {**self.model(), **settings, "messages": messages}


READER = AnthropicReader
WRITER = AnthropicWriter
