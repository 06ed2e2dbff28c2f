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
from ullage.wires.base import get, list_at, plain, text_at, unmarked
from ullage.wires.convert.read import read
from ullage.wires.convert.turns import Losses
from ullage.wires.convert.write import beginning
from ullage.wires.gemini.fields import check_object, parts_of, setting

__all__ = ["Beside", "beside", "request_of"]


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

    Raises:
        FormatError: it is not what the format says it is.
        UnsupportedPart: something of it would be lost, or the provider holds what was said.
    """
    _refuse_what_is_held(name, request)
    system = tuple(_system(name, request, losses))
    for key, what in _BESIDE.get(name, {}).items():
        if request.get(key):
            losses.lose(key, what, "Leave it out.")
    tools = tuple(
        tool
        for where, raw in _tools(name, request)
        if (tool := _tool(name, raw, where, losses)) is not None
    )
    if tools and not FORMATS[losses.target].takes_tools({}, losses.model or ""):
        losses.lose("tools", f"each tool that {losses.model!r} would be given", "Leave them out.")
        tools = ()
    return Beside(system, tools, FORMATS[name].head(request).asked_output_tokens)


_HELD = {
    "openai-responses": ("previous_response_id", "conversation"),
    "anthropic": ("thread.previous_message_id",),
    "gemini": ("cachedContent", "config.cachedContent"),
}
"""What names a history that the provider holds."""

_BESIDE = {
    "openai-chat": {"web_search_options": "a search of the vendor's own"},
    "anthropic": {
        "mcp_servers": "the tools of an MCP server",
        "container": "a container with its files",
    },
}
"""What else the model is given beside the messages, and no other wire has."""


def _refuse_what_is_held(name: str, request: Mapping[str, Any]) -> None:
    """What the provider holds cannot be read, so that there is nothing to describe."""
    for path in _HELD.get(name, ()):
        value: Any = request
        for key in path.split("."):
            value = get(value, key)
        if value:
            raise UnsupportedPart(
                path,
                "the history is held by the provider, not in this request, and would be lost",
                "Give the whole history in the request.",
            )


# ── system text ──────────────────────────────────────────────────────────────────────────


def _system(name: str, request: Mapping[str, Any], losses: Losses) -> Iterator[str]:
    wire = FORMATS[name]
    match name:
        case "anthropic":
            yield from _blocks(request.get("system"), losses)
        case "gemini":
            yield from _parts(setting(request, "systemInstruction"), losses)
        case "openai-responses":
            if request.get("prompt"):
                yield losses.lose("prompt", "a prompt that the provider holds", "Give its text.")
            if request.get("instructions") is not None:
                yield text_at(request["instructions"], "instructions")
    for turn in read(name, wire.leading(request), 0, losses):
        for piece in turn.pieces:
            yield piece.text if isinstance(piece, Text) else _no_text(turn.where, losses)


def _blocks(given: Any, losses: Losses) -> Iterator[str]:
    """Anthropic's system text: a string, or blocks of text."""
    if isinstance(given, str):
        yield given
        return
    for at, block in enumerate(list_at(given, "system")):
        where = f"system[{at}]"
        fields = {"text": block} if isinstance(block, str) else plain(block, where)
        if fields.get("type") not in (None, "text"):
            yield _no_text(where, losses)
        else:
            yield text_at(fields.get("text"), f"{where}.text")


def _parts(given: Any, losses: Losses) -> Iterator[str]:
    """Gemini's: a content, or anything that the SDK takes for one."""
    parts = () if given is None else parts_of(given)
    for at, part in enumerate(list_at(parts, "systemInstruction.parts")):
        where = f"systemInstruction.parts[{at}]"
        if not isinstance(part, str):
            check_object(part, where)
        text = part if isinstance(part, str) else get(part, "text")
        yield _no_text(where, losses) if text is None else text_at(text, f"{where}.text")


def _no_text(where: str, losses: Losses) -> str:
    return losses.lose(where, "system text that is no text", "Give text.")


# ── tools ────────────────────────────────────────────────────────────────────────────────


def _tools(name: str, request: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each tool in the form its format has for one, and its place."""
    for at, raw in enumerate(FORMATS[name].tools(request)):
        yield f"tools[{at}]", raw
    functions = request.get("functions") if name == "openai-chat" else None
    for at, raw in enumerate(list_at(functions, "functions")):
        yield f"functions[{at}]", {"type": "function", "function": raw}


def _tool(name: str, given: Any, where: str, losses: Losses) -> ToolSpec | None:
    """The definition of a function; any other tool has its meaning with its vendor alone."""
    if isroutine(given):
        losses.lose(where, "a function of Python that is given as a tool", "Leave it out.")
        return None
    raw = plain(unmarked(plain(given, where)), where)
    kind = raw.get("type")
    body = raw
    schema: Any = None
    match name:
        case "anthropic":
            schema = raw.get("input_schema")
        case "gemini" if get(raw, "name") is not None:
            schema = get(raw, "parametersJsonSchema") or _lowered(get(raw, "parameters"))
            schema = schema or _NO_PARAMETERS
        case _ if kind == "function":
            body = plain(raw.get("function"), f"{where}.function") if name[7:] == "chat" else raw
            schema = body.get("parameters") or _NO_PARAMETERS
    if schema is None:
        losses.lose(where, f"a tool of type {kind or next(iter(raw), 'tool')!r}", "Leave it out.")
        return None
    for key, value in (*body.items(), *(raw.items() if body is not raw else ())):
        if key not in _KNOWN and value not in (None, False, [], {}):
            losses.lose(f"{where}.{key}", f"the {key!r} of a tool", "Leave it out.")
    named = text_at(body.get("name"), f"{where}.name")
    described = text_at(body.get("description") or "", f"{where}.description")
    return ToolSpec(named, described, plain(schema, f"{where}.parameters"))


_NO_PARAMETERS = {"type": "object"}
_KNOWN = frozenset(
    (
        *("type", "name", "description", "parameters", "input_schema", "function"),
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


def request_of(losses: Losses, head: Beside, messages: Sequence[Any]) -> dict[str, Any]:
    """The keyword arguments of the vendor's call."""
    name = losses.target
    named = {"model": losses.model} if losses.model is not None else {}
    tools = [_defined(name, tool) for tool in head.tools]
    given: dict[str, Any] = {"tools": tools} if tools else {}
    if name in ("gemini", "anthropic"):
        messages = messages or [beginning(name)]
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
