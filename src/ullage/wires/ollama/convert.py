"""Conversations out of Ollama's own chat, and into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ullage.core.history.raw import field
from ullage.core.values.messages import Media, Opaque, Part, Text, ToolCall
from ullage.core.values.toolset import ToolSpec
from ullage.wires.base import plain
from ullage.wires.convert.media import medium_of
from ullage.wires.convert.names import OPENAI_NAME
from ullage.wires.convert.read import Reader, json_text
from ullage.wires.convert.turns import Medium, Piece, Result, Turn, TurnCall
from ullage.wires.convert.write import WireDict, Writer, failed


class OllamaReader(Reader):
    """Reads ``/api/chat``."""

    result_content = "images"

    def tool_body(
        self, raw: Mapping[str, Any], path: str
    ) -> Mapping[str, Any]:
        """See `Reader.tool_body`."""
        return plain(raw.get("function") or {}, f"{path}.function")

    def schema(
        self, raw: Mapping[str, Any], body: Mapping[str, Any], path: str
    ) -> Any:
        """See `Reader.schema`."""
        if raw.get("type") not in (None, "function") or not body:
            return None
        return body.get("parameters") or {"type": "object"}

    def block(self, part: Part, bare: Any, path: str) -> tuple[Any, str]:
        """See `Reader.block`: calls and images stand in lists of their own."""
        if isinstance(part, ToolCall):
            return bare["tool_calls"][part.at], f"{path}.tool_calls[{part.at}]"
        if isinstance(part, Media):
            return part.block, f"{path}.images[{part.at}]"
        return super().block(part, bare, path)

    def kind(self, block: Mapping[str, Any]) -> str:
        """See `Reader.kind`: no field says it."""
        if "role" in block:
            return "tool"
        for name in ("function", "images"):
            if name in block:
                return name
        return "content"

    def arguments(
        self, part: ToolCall, block: Any, path: str
    ) -> tuple[str, Any]:
        """See `Reader.arguments`."""
        value = field(field(block, "function"), "arguments")
        if value is None:
            value = {}
        if isinstance(value, Mapping):
            return json_text(value, path), value
        return part.arguments, value

    def _content(
        self, part: Text | Media | Opaque, block: Any, path: str
    ) -> Text | Medium:
        if isinstance(part, Media):
            return medium_of(part, self.rows["images"], path)
        return super()._content(part, block, path)


class OllamaWriter(Writer):
    """Writes ``/api/chat``, as the Python client takes it."""

    tool_name = OPENAI_NAME

    def messages(self, turns: Sequence[Turn]) -> Iterator[WireDict]:
        """See `Writer.messages`."""
        for turn in turns:
            results = [
                piece for piece in turn.pieces if isinstance(piece, Result)
            ]
            for result in results:
                yield self._result(result)
            if not results:
                yield self._message(turn)

    def _message(self, turn: Turn) -> WireDict:
        message: WireDict = {"role": turn.who, **self._body(turn.pieces)}
        calls = [
            self.call(piece)
            for piece in turn.pieces
            if isinstance(piece, TurnCall)
        ]
        if calls:
            message["tool_calls"] = calls
        return message

    def _result(self, result: Result) -> WireDict:
        return {
            "role": "tool",
            "tool_name": result.name,
            "tool_call_id": result.call_id,
            **self._body(failed(result)),
        }

    def _body(self, pieces: Sequence[Piece]) -> WireDict:
        """The fields with what is said: one text, and images beside it."""
        texts: list[str] = []
        images: list[str] = []
        for block in self.blocks(pieces, _text):
            if "content" in block:
                texts.append(block["content"])
            images += block.get("images", ())
        body: WireDict = {"content": "\n".join(texts)}
        if images:
            body["images"] = images
        return body

    def call(self, call: TurnCall) -> WireDict:
        """See `Writer.call`."""
        body = {"name": call.name, "arguments": self.arguments(call)}
        return {"id": call.id, "function": body}

    def medium(self, medium: Medium) -> WireDict | None:
        """See `Writer.medium`: images by their data alone."""
        if medium.kind != "image" or not medium.data:
            return None
        return {"images": [medium.data]}

    def keeps_name(self, medium: Medium) -> bool:
        """See `Writer.keeps_name`."""
        return False

    def request(
        self,
        system: Sequence[str],
        tools: Sequence[ToolSpec],
        output_tokens: int | None,
        messages: Sequence[Any],
    ) -> WireDict:
        """See `Writer.request`."""
        request = self.led_request("system", system, tools, None, messages)
        request["options"] = {}
        if output_tokens is not None:
            request["options"] = {"num_predict": output_tokens}
        return request


def _text(text: str) -> WireDict:
    return {"content": text}


READER = OllamaReader
WRITER = OllamaWriter
