"""Conversations out of OpenAI Chat Completions, and into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ullage.core.values.messages import Part, ToolCall
from ullage.core.values.toolset import ToolSpec
from ullage.wires.base import plain
from ullage.wires.convert.media import openai_file, openai_sound, url_of
from ullage.wires.convert.names import OPENAI_NAME
from ullage.wires.convert.read import Reader, json_value
from ullage.wires.convert.turns import Medium, Result, Turn, TurnCall
from ullage.wires.convert.write import (
    REPLY,
    RESULT,
    WireDict,
    Writer,
    alone,
    called,
    failed,
    text_block,
)
from ullage.wires.gemini.models import UNCHECKED, signs_calls
from ullage.wires.openai_chat.format import FUNCTION_CALL, REFUSAL


class ChatReader(Reader):
    """Reads Chat Completions."""

    beside: ClassVar = {"web_search_options": "a search of the vendor's own"}

    def tool_body(
        self, raw: Mapping[str, Any], path: str
    ) -> Mapping[str, Any]:
        """See `Reader.tool_body`: in the deprecated ``functions`` it is the definition itself."""
        if _is_old_function(path):
            return raw
        return plain(raw.get("function") or {}, f"{path}.function")

    def schema(
        self,
        raw: Mapping[str, Any],
        body: Mapping[str, Any],
        path: str,
    ) -> Any:
        """See `Reader.schema`."""
        if raw.get("type") != "function" and not _is_old_function(path):
            return None
        return body.get("parameters") or {"type": "object"}

    def block(self, part: Part, bare: Any, path: str) -> tuple[Any, str]:
        """See `Reader.block`: calls stand beside the content."""
        if part.at == FUNCTION_CALL:
            call = plain(bare["function_call"], path)
            return {"type": "function_call", **call}, f"{path}.function_call"
        if isinstance(part, ToolCall):
            return bare["tool_calls"][part.at], f"{path}.tool_calls[{part.at}]"
        if part.at == REFUSAL:
            return {"type": "refusal"}, f"{path}.refusal"
        return super().block(part, bare, path)

    def kind(self, block: Mapping[str, Any]) -> str:
        """See `Reader.kind`: some calls have no type, and messages have none."""
        implied = "function" if "function" in block else "text"
        if block.get("role") in ("tool", "function"):
            implied = "tool"
        return str(block.get("type") or implied)

    def arguments(
        self, part: ToolCall, block: Any, path: str
    ) -> tuple[str, Any]:
        """See `Reader.arguments`."""
        is_free_text = block.get("type") == "custom"
        return part.arguments, None if is_free_text else json_value(
            part.arguments
        )


def _is_old_function(path: str) -> bool:
    return path.startswith("functions")


class ChatWriter(Writer):
    """Writes Chat Completions."""

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
        calls = []
        pieces: list[Any] = []
        for piece in turn.pieces:
            if isinstance(piece, TurnCall):
                calls.append(self.call(piece))
            else:
                pieces.append(piece)
        if calls and signs_calls(self.conversion.model):  # C12
            calls[0]["extra_content"] = {
                "google": {"thought_signature": UNCHECKED}
            }
        content = self._content(pieces, turn)
        message = {"role": turn.who, "content": content}
        if calls:
            message["tool_calls"] = calls
        return message

    def _content(self, pieces: Sequence[Any], turn: Turn) -> Any:
        """Texts and media as one string where they are one text, else as parts."""
        if turn.who != "user":  # none but the user's hold media
            pieces = self.texts(pieces, REPLY)
        text = alone(pieces)
        if text is None and pieces:
            return self.blocks(pieces, text_block)
        return text

    def call(self, call: TurnCall) -> WireDict:
        """See `Writer.call`."""
        kind = "custom" if call.is_free_text else "function"
        return {"id": call.id, "type": kind, kind: called(call)}

    def _result(self, result: Result) -> WireDict:
        texts = self.texts(failed(result), RESULT)
        content: Any = alone(texts) or ""
        if len(texts) > 1:
            content = self.blocks(texts, text_block)
        return {
            "role": "tool",
            "tool_call_id": result.call_id,
            "content": content,
        }

    def medium(self, medium: Medium) -> WireDict | None:
        """See `Writer.medium`."""
        if medium.kind == "audio":
            return openai_sound(medium)
        if medium.kind == "image":
            if medium.file_id:
                return None
            return _image(medium)
        file = None if medium.url else openai_file(medium)
        if file is None:
            return None
        return {"type": "file", "file": file}

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
            "system", system, tools, output_tokens, messages
        )


def _image(medium: Medium) -> WireDict:
    image = {"url": url_of(medium)}
    if medium.detail not in ("", "auto"):
        image["detail"] = medium.detail
    return {"type": "image_url", "image_url": image}


READER = ChatReader
WRITER = ChatWriter
