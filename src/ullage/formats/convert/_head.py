"""What stands beside the messages: system text, tool definitions, the limit of the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ullage.formats import FORMATS, ToolSpec
from ullage.formats._base import field, list_at, unmarked
from ullage.formats._gemini_fields import get, parts_of, setting
from ullage.formats.convert._turns import Losses
from ullage.messages import Text

__all__ = ["Beside", "beside", "request_of"]


class Beside(Struct, frozen=True):
    """The system texts in order, the tools, and the most tokens of the answer."""

    system: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    output_tokens: int | None


def beside(name: str, request: Mapping[str, Any], losses: Losses) -> Beside:
    """What a request of the format ``name`` says beside its messages."""
    wire = FORMATS[name]
    system = tuple(_system(name, request, losses))
    tools = tuple(
        tool
        for index, raw in enumerate(wire.tools(request))
        if (tool := _tool(name, unmarked(raw), f"tools[{index}]", losses)) is not None
    )
    return Beside(system, tools, wire.head(request).asked_output_tokens)


def _system(name: str, request: Mapping[str, Any], losses: Losses) -> Iterator[str]:
    if name == "anthropic":
        given = request.get("system")
        blocks = [given] if isinstance(given, str) else list_at(given, "system")
        yield from (b if isinstance(b, str) else field(b, "text", "") for b in blocks)
    elif name == "gemini":
        given = setting(request, "systemInstruction")
        for at, part in enumerate(() if given is None else parts_of(given)):
            text = part if isinstance(part, str) else get(part, "text")
            where = f"systemInstruction.parts[{at}]"
            yield text or losses.lose(where, "system text that is no text", "Give text.")
    elif isinstance(request.get("instructions"), str):
        yield request["instructions"]
    wire = FORMATS[name]
    for index, raw in enumerate(wire.leading(request)):
        for part in wire.parse(raw, f"{wire.key}[{index}]").parts:
            where = f"{wire.key}[{index}]"
            yield (
                part.text
                if isinstance(part, Text)
                else losses.lose(where, "system text that is no text", "Give text.")
            )


def _tool(name: str, raw: Any, where: str, losses: Losses) -> ToolSpec | None:
    """The definition of a function; any other tool has its meaning with its vendor alone."""
    body: Any = raw.get("function") if name == "openai-chat" else raw
    schema: Any = None
    match name:
        case "anthropic":
            schema = raw.get("input_schema")
        case "gemini":
            schema = get(raw, "parametersJsonSchema") or _lowered(get(raw, "parameters"))
            schema = schema or ({"type": "object"} if raw.get("name") else None)
        case _ if raw.get("type") == "function":
            schema = field(body, "parameters") or {"type": "object"}
    if not isinstance(schema, Mapping) or not isinstance(body, Mapping):
        kind = raw.get("type") or next(iter(raw), "tool")
        losses.lose(where, f"a tool of type {kind!r}", "Leave it out.")
        return None
    for key, value in body.items():
        if key not in _KNOWN and value not in (None, False, [], {}):
            losses.lose(f"{where}.{key}", f"the {key!r} of a tool", "Leave it out.")
    return ToolSpec(str(body["name"]), str(body.get("description") or ""), schema)


_KNOWN = frozenset(
    (
        *("type", "name", "description", "parameters", "input_schema"),
        *("parametersJsonSchema", "parameters_json_schema"),
    )
)


def _lowered(schema: Any) -> Any:
    """A schema of Gemini's as a JSON schema: its names of types are in capitals."""
    if isinstance(schema, Mapping):
        return {
            key: value.lower() if key == "type" and isinstance(value, str) else _lowered(value)
            for key, value in schema.items()
        }
    return [_lowered(item) for item in schema] if isinstance(schema, list) else schema


def request_of(
    name: str, head: Beside, messages: Sequence[Any], model: str | None
) -> dict[str, Any]:
    """The keyword arguments of the vendor's call."""
    named = {"model": model} if model is not None else {}
    tools = [_defined(name, tool) for tool in head.tools]
    given: dict[str, Any] = {"tools": tools} if tools else {}
    if name == "gemini":
        return _gemini_request(named, head, messages, tools)
    if head.output_tokens is not None:
        given[_OUTPUT[name]] = head.output_tokens
    if name == "anthropic":
        texts = [{"type": "text", "text": text} for text in head.system if text.strip()]
        if texts:
            given["system"] = texts[0]["text"] if len(texts) == 1 else texts
        return {**named, **given, "messages": list(messages)}
    role = "system" if name == "openai-chat" else "developer"
    leading = [{"role": role, "content": text} for text in head.system]
    return {**named, **given, FORMATS[name].key: [*leading, *messages]}


_OUTPUT = {
    "anthropic": "max_tokens",
    "openai-chat": "max_completion_tokens",
    "openai-responses": "max_output_tokens",
}


def _gemini_request(
    named: dict[str, Any], head: Beside, messages: Sequence[Any], tools: Sequence[Any]
) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if head.system:
        config["system_instruction"] = {"parts": [{"text": text} for text in head.system if text]}
    if tools:
        config["tools"] = [{"function_declarations": list(tools)}]
    if head.output_tokens is not None:
        config["max_output_tokens"] = head.output_tokens
    return {**named, "contents": list(messages), "config": config}


def _defined(name: str, tool: ToolSpec) -> dict[str, Any]:
    if name == "gemini":  # the other field takes a dialect of JSON schema only
        known = {"name": tool.name, "description": tool.description}
        return {**known, "parameters_json_schema": dict(tool.parameters)}
    return FORMATS[name].tool(tool)
