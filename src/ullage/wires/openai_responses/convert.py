"""Conversations out of OpenAI Responses, and into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ullage.core.values.messages import Message, ToolCall
from ullage.core.values.toolset import ToolSpec
from ullage.wires.convert.media import openai_file, openai_sound, url_of
from ullage.wires.convert.names import OPENAI_NAME
from ullage.wires.convert.read import Reader, json_value
from ullage.wires.convert.turns import Medium, Result, Turn, TurnCall
from ullage.wires.convert.write import (
    REPLY,
    WireDict,
    Writer,
    alone,
    called,
    failed,
)


class ResponsesReader(Reader):
    """Reads Responses."""

    held = ("previous_response_id", "conversation")
    joins_items = True
    result_content = "output"

    def held_system(self, request: Mapping[str, Any]) -> Iterator[str]:
        """See `Reader.held_system`."""
        if request.get("prompt"):
            yield self.lose(
                "prompt",
                "a prompt that the provider holds",
                "Give its text.",
            )

    def schema(
        self,
        raw: Mapping[str, Any],
        body: Mapping[str, Any],
        path: str,
    ) -> Any:
        """See `Reader.schema`."""
        if raw.get("type") != "function":
            return None
        return body.get("parameters") or {"type": "object"}

    def message_kind(self, bare: Any, message: Message) -> str:
        """See `Reader.message_kind`: an item has a type; a message may leave it out."""
        return str(bare.get("type") or "message")

    def arguments(
        self, part: ToolCall, block: Any, path: str
    ) -> tuple[str, Any]:
        """See `Reader.arguments`."""
        is_free_text = block.get("type") == "custom_tool_call"
        return part.arguments, None if is_free_text else json_value(
            part.arguments
        )


class ResponsesWriter(Writer):
    """Writes Responses."""

    tool_name = OPENAI_NAME

    def messages(self, turns: Sequence[Turn]) -> Iterator[WireDict]:
        """See `Writer.messages`."""
        for turn in turns:
            match turn.who:
                case "assistant":
                    yield from self._reply(turn)
                case "results":
                    for piece in turn.pieces:
                        if isinstance(piece, Result):
                            yield self._output(piece)
                case "system":
                    yield {
                        "role": "developer",
                        "content": self._content(turn.pieces),
                    }
                case _:
                    yield {
                        "role": "user",
                        "content": self._content(turn.pieces),
                    }

    def _reply(self, turn: Turn) -> list[WireDict]:
        """The items of one reply: each run of texts a message, each call by itself."""
        items: list[WireDict] = []
        for piece in turn.pieces:
            if isinstance(piece, TurnCall):
                items.append(self.call(piece))
                continue
            for text in self.texts((piece,), REPLY):
                part = {
                    "type": "output_text",
                    "text": text.text,
                    "annotations": [],
                }
                if items and "content" in items[-1]:
                    items[-1]["content"].append(part)
                    continue
                message = {
                    "type": "message",
                    "role": "assistant",
                    "content": [part],
                }
                items.append(message)
        return items

    def call(self, call: TurnCall) -> WireDict:
        """See `Writer.call`."""
        kind = "custom_tool_call" if call.is_free_text else "function_call"
        return {"type": kind, "call_id": call.id, **called(call)}

    def _output(self, result: Result) -> WireDict:
        kind = "function_call_output"
        if result.is_free_text:
            kind = "custom_tool_call_output"
        content = failed(result)
        output = self._content(content) if content else ""
        return {"type": kind, "call_id": result.call_id, "output": output}

    def _content(self, pieces: Sequence[Any]) -> Any:
        """Texts and media as one string where they are one text, else as parts."""
        text = alone(pieces)
        if text is None:
            return self.blocks(pieces, _text)
        return text

    def medium(self, medium: Medium) -> WireDict | None:
        """See `Writer.medium`."""
        if medium.kind == "audio":
            return openai_sound(medium)
        if medium.kind == "image":
            return _image(medium)
        file = {"file_url": medium.url} if medium.url else openai_file(medium)
        if file is None:
            return None
        return {"type": "input_file", **file}

    def keeps_name(self, medium: Medium) -> bool:
        """See `Writer.keeps_name`: beside its data alone."""
        return bool(medium.data)

    def request(
        self,
        system: Sequence[str],
        tools: Sequence[ToolSpec],
        output_tokens: int | None,
        messages: Sequence[Any],
    ) -> WireDict:
        """See `Writer.request`."""
        return self.led_request(
            "developer", system, tools, output_tokens, messages
        )


def _text(text: str) -> WireDict:
    return {"type": "input_text", "text": text}


def _image(medium: Medium) -> WireDict:
    source = {"image_url": url_of(medium)}
    if medium.file_id:
        source = {"file_id": medium.file_id}
    return {"type": "input_image", **source, "detail": medium.detail or "auto"}


READER = ResponsesReader
WRITER = ResponsesWriter
