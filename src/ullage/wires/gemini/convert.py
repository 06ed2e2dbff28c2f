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
from ullage.wires.convert.turns import Medium, Piece, Result, Turn, TurnCall
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
        path: str,
    ) -> Any:
        """See `Reader.schema`: a tool of Google's own has no name."""
        if get(raw, "name") is None:
            return None
        schema = get(raw, "parametersJsonSchema") or _lowered(
            get(raw, "parameters")
        )
        return schema or {"type": "object"}

    def message_kind(self, bare: Any, message: Message) -> str | None:
        """See `Reader.message_kind`: a part may stand among the contents without one."""
        return (
            super().message_kind(bare, message) if is_content(bare) else None
        )

    def block(self, part: Part, bare: Any, path: str) -> tuple[Any, str]:
        """See `Reader.block`."""
        at = max(part.at, 0)
        return parts_of(bare)[at], f"{path}.parts[{at}]"

    def kind(self, block: Mapping[str, Any]) -> str:
        """See `Reader.kind`: the field that a part has is its kind."""
        return next(
            (kind for kind in PARTS if get(block, kind) is not None), "part"
        )

    def arguments(
        self, part: ToolCall, block: Any, path: str
    ) -> tuple[str, Any]:
        """See `Reader.arguments`."""
        value = get(get(block, "functionCall"), "args") or {}
        if isinstance(value, Mapping):
            return json_text(value, path), value
        return part.arguments, value


def _lowered(schema: Any) -> Any:
    """A schema of Gemini's as a JSON schema: its names of types are in capitals."""
    if isinstance(schema, list):
        return [_lowered(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    lowered = {}
    for key, value in schema.items():
        is_type = key == "type" and isinstance(value, str)
        lowered[key] = value.lower() if is_type else _lowered(value)
    return lowered


class GeminiWriter(Writer):
    """Writes generateContent, as google-genai takes it."""

    # as the SDK documents it
    tool_name = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}\Z")
    not_first = ("model",)

    def messages(self, turns: Sequence[Turn]) -> list[WireDict]:
        """See `Writer.messages`."""
        contents: list[WireDict] = []
        for turn in turns:
            if turn.who == "system":
                turn = self.system_note(turn)
            role = "model" if turn.who == "assistant" else "user"
            parts = self._parts(turn)
            is_more = (
                bool(contents) and contents[-1]["role"] == role == "model"
            )
            if is_more:  # calls follow the user (G4)
                contents[-1]["parts"] += parts
            elif parts:
                contents.append({"role": role, "parts": parts})
        for content in contents:
            _sign(content["parts"])
        return contents

    def _parts(self, turn: Turn) -> list[WireDict]:
        """The parts of a turn without empty texts; of the user's at least one."""
        parts = []
        for piece in turn.pieces:
            part = self._part(piece)
            if part != {"text": ""}:
                parts.append(part)
        if not parts and turn.who == "user":
            return [{"text": EMPTY}]
        return parts

    def call(self, call: TurnCall) -> WireDict:
        """See `Writer.call`."""
        body = {"id": call.id, "name": call.name, "args": self.arguments(call)}
        return {"functionCall": body}

    def _part(self, piece: Piece) -> WireDict:
        match piece:
            case TurnCall():
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
        text = ""
        rest = content
        if content and isinstance(content[0], Text):
            text = content[0].text
            rest = content[1:]
        body: WireDict = {
            "id": result.call_id,
            "name": result.name,
            "response": {"error" if result.is_error else "output": text},
        }
        if rest:
            body["parts"] = self.blocks(rest, _plain_file)
        return {"functionResponse": body}

    def medium(self, medium: Medium) -> WireDict | None:
        """See `Writer.medium`."""
        if not medium.url:
            return {
                "inlineData": {"mimeType": medium.mime, "data": medium.data}
            }
        mime = medium.mime or type_by_ending(medium.url)
        if not mime:
            return None
        return {"fileData": {"fileUri": medium.url, "mimeType": mime}}

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
        if tools:
            functions = []
            for tool in config["tools"]:
                # The field ``parameters`` takes a dialect of JSON schema only.
                schema = tool.pop("parameters")
                functions.append({**tool, "parameters_json_schema": schema})
            config["tools"] = [{"function_declarations": functions}]
        if system:
            parts = [{"text": text} for text in system if text]
            config["system_instruction"] = {"parts": parts}
        contents = list(messages) or [self.beginning()]
        return {**self.model(), "contents": contents, "config": config}


def _sign(parts: Sequence[WireDict]) -> None:
    """Put what passes for a signature on the first call of a content (G7, G10)."""
    for part in parts:
        if "functionCall" in part:
            part["thoughtSignature"] = UNCHECKED
            return


def _text(text: str) -> WireDict:
    return {"text": text}


def _plain_file(text: str) -> WireDict:
    data = b64encode(text.encode("utf-8", "surrogatepass")).decode()
    return {"inlineData": {"mimeType": "text/plain", "data": data}}


READER = GeminiReader
WRITER = GeminiWriter
