"""What stands beside the messages: system text, tool definitions, the limit of the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import isroutine
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ullage.errors import UnsupportedPart
from ullage.values.messages import Text
from ullage.wires import FORMATS, ToolSpec
from ullage.wires.base import at_path, get, plain, snake, text_at, unmarked
from ullage.wires.block import fields
from ullage.wires.convert.read import read
from ullage.wires.convert.turns import Losses
from ullage.wires.convert.write import beginning


class Beside(Struct, frozen=True):
    """The system texts in order, the tools, and the most tokens of the answer."""

    system: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    output_tokens: int | None

    def under(self, names: Mapping[str, str]) -> Beside:
        """The same with the tools called by ``names``."""
        tools = tuple(replace(tool, name=names.get(tool.name, tool.name)) for tool in self.tools)
        return replace(self, tools=tools)


def beside(name: str, request: Mapping[str, Any], losses: Losses) -> Beside:
    """What a request of the format ``name`` says beside its messages.

    Raises FormatError if it is not what the format says it is, UnsupportedPart if something of it
    would be lost, or the provider holds what was said.
    """
    wire = FORMATS[name]
    for path in _HELD.get(name, ()):
        if at_path(request, path):
            raise UnsupportedPart(
                path,
                "the history is held by the provider, not in this request, and would be lost",
                "Give the whole history in the request.",
            )
    system = tuple(_system(name, request, losses))
    for key, what in _BESIDE.get(name, {}).items():
        if request.get(key):
            losses.lose(key, what)
    given = (_tool(name, raw, where, losses) for where, raw in wire.definitions(request))
    tools = tuple(tool for tool in given if tool is not None)
    if tools and not FORMATS[losses.target].takes_tools({}, losses.model or ""):
        losses.lose("tools", f"each tool that {losses.model!r} would be given", "Leave them out.")
        tools = ()
    return Beside(system, tools, wire.head(request).asked_output_tokens)


_HELD = {
    "openai-responses": ("previous_response_id", "conversation"),
    "anthropic": ("thread.previous_message_id",),
    "gemini": ("cachedContent", "config.cachedContent"),
}
"""What names a history that the provider holds: there is nothing to describe."""

_BESIDE = {
    "openai-chat": {"web_search_options": "a search of the vendor's own"},
    "anthropic": {
        "mcp_servers": "the tools of an MCP server",
        "container": "a container with its files",
    },
}
"""What else the model is given beside the messages, and no other wire has."""


def _system(name: str, request: Mapping[str, Any], losses: Losses) -> Iterator[str]:
    wire = FORMATS[name]
    if name == "openai-responses" and request.get("prompt"):
        yield losses.lose("prompt", "a prompt that the provider holds", "Give its text.")
    texts = list(wire.system(request))
    for turn in read(name, wire.leading(request), 0, losses):
        pieces = (piece.text if isinstance(piece, Text) else None for piece in turn.pieces)
        texts += [(turn.where, text) for text in pieces]
    for where, text in texts:
        no_text = "system text that is no text"
        yield losses.lose(where, no_text, "Give text.") if text is None else text


def _tool(name: str, given: Any, where: str, losses: Losses) -> ToolSpec | None:
    """The definition of a function; any other tool has its meaning with its vendor alone."""
    if isroutine(given):
        losses.lose(where, "a function of Python that is given as a tool")
        return None
    raw = plain(unmarked(plain(given, where)), where)
    body = raw
    if name == "openai-chat" and not where.startswith("functions"):
        body = plain(raw.get("function") or {}, f"{where}.function")
    schema = _schema(name, raw, body, where)
    if schema is None:
        kind = raw.get("type") or next(iter(raw), "tool")
        losses.lose(where, f"a tool of type {kind!r}")
        return None
    for key, value in (*body.items(), *(raw.items() if body is not raw else ())):
        if key not in _KNOWN and value not in (None, False, [], {}):
            losses.lose(f"{where}.{key}", f"the {key!r} of a tool")
    named = text_at(body.get("name"), f"{where}.name")
    described = text_at(body.get("description") or "", f"{where}.description")
    return ToolSpec(named, described, plain(schema, f"{where}.parameters"))


def _schema(name: str, raw: Any, body: Any, where: str) -> Any:
    """The schema of a function's arguments, None of what is no function."""
    match name:
        case "anthropic":
            return raw.get("input_schema")
        case "gemini":
            schema = get(raw, "parametersJsonSchema") or _lowered(get(raw, "parameters"))
            is_function = get(raw, "name") is not None
        case _:
            schema = body.get("parameters")
            is_function = raw.get("type") == "function" or where.startswith("functions")
    return (schema or {"type": "object"}) if is_function else None


_KNOWN = fields(
    "type name description parameters input_schema function"
    " parametersJsonSchema parameters_json_schema"
)


def _lowered(schema: Any) -> Any:
    """A schema of Gemini's as a JSON schema: its names of types are in capitals."""
    if isinstance(schema, Mapping):
        return {
            key: value.lower() if key == "type" and isinstance(value, str) else _lowered(value)
            for key, value in schema.items()
        }
    return [_lowered(item) for item in schema] if isinstance(schema, list) else schema


_LEADING = {"openai-chat": "system", "openai-responses": "developer"}


def request_of(losses: Losses, head: Beside, messages: Sequence[Any]) -> dict[str, Any]:
    """The keyword arguments of the vendor's call."""
    name = losses.target
    request = {"model": losses.model} if losses.model is not None else {}
    tools = [FORMATS[name].tool(tool) for tool in head.tools]
    settings: dict[str, Any] = {"tools": tools} if tools else {}
    if head.output_tokens is not None:
        settings[snake(FORMATS[name].answer_limits[0])] = head.output_tokens
    if name in _LEADING:
        leading = [{"role": _LEADING[name], "content": text} for text in head.system]
        return {**request, **settings, FORMATS[name].key: [*leading, *messages]}
    messages = list(messages) or [beginning(name)]
    if name == "anthropic":
        texts = [{"type": "text", "text": text} for text in head.system if text.strip()]
        if texts:
            settings["system"] = texts[0]["text"] if len(texts) == 1 else texts
        return {**request, **settings, "messages": messages}
    if tools:  # the other field takes a dialect of JSON schema only
        functions = [{**tool, "parameters_json_schema": tool.pop("parameters")} for tool in tools]
        settings["tools"] = [{"function_declarations": functions}]
    if head.system:
        settings["system_instruction"] = {"parts": [{"text": text} for text in head.system if text]}
    return {**request, "contents": messages, "config": settings}
