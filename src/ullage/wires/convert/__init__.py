"""A conversation of one wire format as one of another.

    request ── read ──▶ turns ── write ──▶ request of the target
              (parse)     │
                          └── what the target cannot hold: `UnsupportedPart`, or a line of text

What is carried: text, tool calls and results, images, documents and sounds, system text, tool
definitions, the limit of the answer. Ids are kept where the target takes them. Reasoning is
not: it is sealed for the model and the history it was made in, and its loss is no error.
`docs/formats.md` has the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import isroutine
from typing import Any, Literal

from msgspec.structs import replace

from ullage.errors import ConfigError, FormatError, UnsupportedPart
from ullage.history.snapshots import snapshot_at
from ullage.values.messages import Text
from ullage.wires import FORMATS, ToolSpec, recognise
from ullage.wires.base import at_path, get, plain, snake, text_at, unmarked
from ullage.wires.block import fields
from ullage.wires.convert.names import tool_names
from ullage.wires.convert.read import read
from ullage.wires.convert.turns import Conversion
from ullage.wires.convert.write import beginning, write

__all__ = ["convert"]


def convert(
    conversation: Mapping[str, Any] | Sequence[Any],
    to: str,
    *,
    format: str | None = None,
    model: str | None = None,
    lossy: Literal["error", "describe"] = "error",
) -> Any:
    """The same conversation in another wire format.

    Settings of the call (temperature, tool choice, thinking …) and cache markers are not carried.
    What is legal for its own provider is legal for the target, and for ``model``.

    Args:
        conversation: the keyword arguments of a provider's call, or its list of messages
            alone. Dicts or SDK objects. Not changed.
        to: the target, one of the four formats.
        format: the format of ``conversation``. None: recognised from a request; a list of
            messages needs it.
        model: the model of the new request. None: the request names none.
        lossy: what to do with a part that the target cannot hold. ``"error"`` raises;
            ``"describe"`` puts a line of text in its place, leaves out a tool definition or a
            field that the target has not, and writes a tool's name that it does not take with
            ``_``. A history that the provider holds is refused both ways.

    Returns:
        A request, as keyword arguments of the target's SDK (of google-genai with ``config``),
        or a list of messages, as was given. Fresh containers, unless ``to`` is the format it
        has: then what was given.

    Raises:
        FormatError: the conversation is not what its format says it is.
        UnsupportedPart: something in it would be lost; names its place, and what to do.
        ConfigError: there is no format of that name, or no such ``lossy``.
    """
    for name in (to, to if format is None else format):
        if not isinstance(name, str) or name not in FORMATS:
            remedy = f"Use one of {', '.join(FORMATS)}."
            raise ConfigError("convert", f"{name!r} is not known", remedy)
    if lossy not in ("error", "describe"):
        raise ConfigError("lossy", f"{lossy!r} is not known", "Use error or describe.")
    source = _format_of(conversation, format)
    conversion = Conversion(source, to, model, lossy == "describe")
    if source == to:
        return conversation
    if isinstance(conversation, Mapping):
        return _request(conversation, conversion)
    turns = read(conversation, 0, conversion)
    return write(turns, conversion, tool_names((), turns, conversion))


def _format_of(conversation: Any, format: str | None) -> str:
    if isinstance(conversation, Mapping):
        return format or recognise(conversation).name
    if not isinstance(conversation, (list, tuple)):
        got = f"expected a request or a list of messages, got {type(conversation).__name__}"
        raise FormatError("conversation", got, "Give a call's keyword arguments, or its messages.")
    if format is None:
        problem = "a list alone does not show its format"
        raise FormatError("messages", problem, "Give format=, or the request.")
    return format


def _request(request: Mapping[str, Any], conversion: Conversion) -> dict[str, Any]:
    source, wire = conversion.source, FORMATS[conversion.source]
    for key, value in request.items():
        if key != wire.key:  # of its messages each is asked for itself
            snapshot_at(value, str(key))
    for path in _HELD.get(source, ()):
        if at_path(request, path):
            raise UnsupportedPart(
                path,
                "the history is held by the provider, not in this request, and would be lost",
                "Give the whole history in the request.",
            )
    system = tuple(_system(request, conversion))
    for key, what in _BESIDE.get(source, {}).items():
        if request.get(key):
            conversion.lose(key, what)
    tools = _tools(request, conversion)
    first = len(wire.leading(request))
    turns = read(wire.history(request)[first:], first, conversion)
    names = tool_names(tools, turns, conversion)
    messages = write(turns, conversion, names)
    tools = [replace(tool, name=names.get(tool.name, tool.name)) for tool in tools]
    return _composed(conversion, system, tools, wire.head(request).asked_output_tokens, messages)


# ── what stands beside the messages ──────────────────────────────────────────────────────


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


def _system(request: Mapping[str, Any], conversion: Conversion) -> Iterator[str]:
    wire = FORMATS[conversion.source]
    if wire.name == "openai-responses" and request.get("prompt"):
        yield conversion.lose("prompt", "a prompt that the provider holds", "Give its text.")
    texts = list(wire.system(request))
    for turn in read(wire.leading(request), 0, conversion):
        pieces = (piece.text if isinstance(piece, Text) else None for piece in turn.pieces)
        texts += [(turn.where, text) for text in pieces]
    for where, text in texts:
        no_text = "system text that is no text"
        yield conversion.lose(where, no_text, "Give text.") if text is None else text


def _tools(request: Mapping[str, Any], conversion: Conversion) -> list[ToolSpec]:
    definitions = FORMATS[conversion.source].definitions(request)
    given = (_tool(raw, where, conversion) for where, raw in definitions)
    tools = [tool for tool in given if tool is not None]
    if tools and not FORMATS[conversion.target].takes_tools({}, conversion.model or ""):
        conversion.lose(
            "tools", f"each tool that {conversion.model!r} would be given", "Leave them out."
        )
        return []
    return tools


def _tool(given: Any, where: str, conversion: Conversion) -> ToolSpec | None:
    """The definition of a function; any other tool has its meaning with its vendor alone."""
    if isroutine(given):
        conversion.lose(where, "a function of Python that is given as a tool")
        return None
    raw = plain(unmarked(plain(given, where)), where)
    body = raw
    if conversion.source == "openai-chat" and not where.startswith("functions"):
        body = plain(raw.get("function") or {}, f"{where}.function")
    schema = _schema(conversion.source, raw, body, where)
    if schema is None:
        kind = raw.get("type") or next(iter(raw), "tool")
        conversion.lose(where, f"a tool of type {kind!r}")
        return None
    for key, value in (*body.items(), *(raw.items() if body is not raw else ())):
        if key not in _KNOWN and value not in (None, False, [], {}):
            conversion.lose(f"{where}.{key}", f"the {key!r} of a tool")
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


def _composed(
    conversion: Conversion,
    system: Sequence[str],
    tools: Sequence[ToolSpec],
    output_tokens: int | None,
    messages: Sequence[Any],
) -> dict[str, Any]:
    """The keyword arguments of the vendor's call."""
    name = conversion.target
    request = {"model": conversion.model} if conversion.model is not None else {}
    defined = [FORMATS[name].tool(tool) for tool in tools]
    settings: dict[str, Any] = {"tools": defined} if defined else {}
    if output_tokens is not None:
        settings[snake(FORMATS[name].answer_limits[0])] = output_tokens
    if name in _LEADING:
        leading = [{"role": _LEADING[name], "content": text} for text in system]
        return {**request, **settings, FORMATS[name].key: [*leading, *messages]}
    messages = list(messages) or [beginning(name)]
    if name == "anthropic":
        texts = [{"type": "text", "text": text} for text in system if text.strip()]
        if texts:
            settings["system"] = texts[0]["text"] if len(texts) == 1 else texts
        return {**request, **settings, "messages": messages}
    if defined:  # the other field takes a dialect of JSON schema only
        functions = [{**tool, "parameters_json_schema": tool.pop("parameters")} for tool in defined]
        settings["tools"] = [{"function_declarations": functions}]
    if system:
        settings["system_instruction"] = {"parts": [{"text": text} for text in system if text]}
    return {**request, "contents": messages, "config": settings}
