"""Conversations out of Google Gemini, and into it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from ullage.core.values.messages import Message, Part, Text, ToolCall
from ullage.core.values.toolset import ToolSpec
from ullage.wires.base import get
from ullage.wires.convert.media import type_by_ending
from ullage.wires.convert.read import Reader, json_text
from ullage.wires.convert.turns import Call, Medium, Piece, Result, Turn
from ullage.wires.convert.write import RESULT, WireDict, Writer
from ullage.wires.gemini.blocks import PARTS
from ullage.wires.gemini.fields import is_content, parts_of
from ullage.wires.gemini.models import UNCHECKED, signs_no_calls
from ullage.wires.repair.base import EMPTY


class GeminiReader(Reader):
    """Reads generateContent."""

    held = ("cachedContent", "config.cachedContent")
    flags_errors = True
    result_content = "functionResponse.parts"

    def schema(
        self,
        raw: Mapping[str, Any],
        body: Mapping[str, Any],
        where: str,
    ) -> Any:
        """See `Reader.schema`: a tool of Google's own has no name."""
        if get(raw, "name") is None:
            return None
        schema = get(raw, "parametersJsonSchema") or _lowered(get(raw, "parameters"))
        return schema or {"type": "object"}

    def message_kind(self, bare: Any, message: Message) -> str | None:
        """See `Reader.message_kind`: a part may stand among the contents without one."""
        return super().message_kind(bare, message) if is_content(bare) else None

    def block(self, part: Part, bare: Any, where: str) -> tuple[Any, str]:
        """See `Reader.block`."""
        at = max(part.at, 0)
        return parts_of(bare)[at], f"{where}.parts[{at}]"

    def kind(self, block: Mapping[str, Any]) -> str:
        """See `Reader.kind`: the field that a part has is its kind."""
        return next((kind for kind in PARTS if get(block, kind) is not None), "part")

    def arguments(self, part: ToolCall, block: Any, where: str) -> tuple[str, Any]:
        """See `Reader.arguments`."""
        value = get(get(block, "functionCall"), "args") or {}
        text = json_text(value, where) if isinstance(value, Mapping) else part.arguments
        return text, value


def _lowered(schema: Any) -> Any:
    """A schema of Gemini's as a JSON schema: its names of types are in capitals."""
    if isinstance(schema, Mapping):
        return {
            key: value.lower()
            if key == "type" and isinstance(value, str)
            else _lowered(value)
            for key, value in schema.items()
        }
    return [_lowered(item) for item in schema] if isinstance(schema, list) else schema


class GeminiWriter(Writer):
    """Writes generateContent, as google-genai takes it."""

    tool_name = re.compile(
        r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}\Z"
    )  # as the SDK documents it
    not_first = ("model",)

    def messages(self, turns: Sequence[Turn]) -> list[WireDict]:
        """See `Writer.messages`."""
        contents: list[WireDict] = []
        for turn in turns:
            if turn.who == "system":
                turn = self.system_note(turn)
            role = "model" if turn.who == "assistant" else "user"
            parts = [self._part(piece) for piece in turn.pieces]
            parts = [part for part in parts if part != {"text": ""}]
            if not parts and turn.who == "user":
                parts = [{"text": EMPTY}]
            if (
                contents and contents[-1]["role"] == role == "model"
            ):  # calls follow the user (G4)
                contents[-1]["parts"] += parts
            elif parts:
                contents.append({"role": role, "parts": parts})
        for content in contents:
            first = next(
                (part for part in content["parts"] if "functionCall" in part), None
            )
            if first is not None:
                first["thoughtSignature"] = UNCHECKED
        return contents

    def call(self, call: Call) -> WireDict:
        """See `Writer.call`."""
        body = {"id": call.id, "name": call.name, "args": self.arguments(call)}
        return {"functionCall": body}

    def _part(self, piece: Piece) -> WireDict:
        match piece:
            case Call():
                return self.call(piece)
            case Result():
                return self._response(piece)
        return self.blocks((piece,), _text)[0]

    def _response(self, result: Result) -> WireDict:
        """A response holds one text; what follows stands in its parts, text as a plain file.

        It has no parts before Gemini 3.
        """
        content: Sequence[Text | Medium] = result.content
        if signs_no_calls(self.conversion.model):
            texts = self.texts(content, RESULT)
            content = [Text("\n".join(text.text for text in texts))]
        first = content[0] if content else None
        text, rest = "", content
        if isinstance(first, Text):
            text, rest = first.text, content[1:]
        response = {"error" if result.is_error else "output": text}
        body: WireDict = {
            "id": result.call_id,
            "name": result.name,
            "response": response,
        }
        if rest:
            body["parts"] = self.blocks(rest, _plain_file)
        return {"functionResponse": body}

    def medium(self, medium: Medium) -> WireDict | None:
        """See `Writer.medium`."""
        if not medium.url:
            return {"inlineData": {"mimeType": medium.mime, "data": medium.data}}
        mime = medium.mime or type_by_ending(medium.url)
        return {"fileData": {"fileUri": medium.url, "mimeType": mime}} if mime else None

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
        """See `Writer.request`: as keyword arguments of google-genai."""
        config = self.settings(tools, output_tokens)
        if tools:  # the other field takes a dialect of JSON schema only
            functions = [
                {**tool, "parameters_json_schema": tool.pop("parameters")}
                for tool in config["tools"]
            ]
            config["tools"] = [{"function_declarations": functions}]
        if system:
            config["system_instruction"] = {
                "parts": [{"text": text} for text in system if text]
            }
        contents = list(messages) or [self.beginning()]
        return {**self.model(), "contents": contents, "config": config}


def _text(text: str) -> WireDict:
    return {"text": text}


def _plain_file(text: str) -> WireDict:
    data = b64encode(text.encode("utf-8", "surrogatepass")).decode()
    return {"inlineData": {"mimeType": "text/plain", "data": data}}


READER = GeminiReader
WRITER = GeminiWriter
