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

from ullage.core.errors import ConfigError, FormatError, UnsupportedPart
from ullage.core.history.raw import text_at
from ullage.core.history.snapshots import snapshot_at
from ullage.core.values.messages import Text
from ullage.wires import FORMATS, ToolSpec, recognise, wire_named
from ullage.wires.base import at_path, plain, unmarked
from ullage.wires.convert.names import tool_names
from ullage.wires.convert.read import Reader, read
from ullage.wires.convert.turns import Conversion
from ullage.wires.convert.write import write

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
        to: the target, the name of a format.
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
    names = [to] if format is None else [to, format]
    for name in names:
        if not isinstance(name, str) or name not in FORMATS:
            remedy = f"Use one of {', '.join(FORMATS)}."
            raise ConfigError("convert", f"{name!r} is not known", remedy)
    if lossy not in ("error", "describe"):
        raise ConfigError(
            "lossy", f"{lossy!r} is not known", "Use error or describe."
        )
    source = _format_of(conversation, format)
    conversion = Conversion(source, to, model, lossy == "describe")
    if source == to:
        return conversation
    if isinstance(conversation, Mapping):
        return _request(conversation, conversion)
    turns = read(conversation, 0, conversion)
    new_names = tool_names((), turns, conversion)
    return write(turns, conversion, new_names)


def _format_of(conversation: Any, format: str | None) -> str:
    if isinstance(conversation, Mapping):
        return format or recognise(conversation).name
    if not isinstance(conversation, (list, tuple)):
        kind = type(conversation).__name__
        problem = f"expected a request or a list of messages, got {kind}"
        remedy = "Give a call's keyword arguments, or its messages."
        raise FormatError("conversation", problem, remedy)
    if format is None:
        problem = "a list alone does not show its format"
        raise FormatError("messages", problem, "Give format=, or the request.")
    return format


def _request(
    request: Mapping[str, Any], conversion: Conversion
) -> dict[str, Any]:
    """A request as one of the target's. See `convert`."""
    source = conversion.source
    wire = FORMATS[source]
    reader = wire_named(source).reader(conversion)
    _check(request, conversion, reader)
    system = tuple(_system(request, conversion, reader))
    for key, description in reader.beside.items():
        if request.get(key):
            conversion.lose(key, description)
    tools = _tools(request, conversion, reader)
    start = len(wire.leading(request))
    turns = read(wire.history(request)[start:], start, conversion)
    names = tool_names(tools, turns, conversion)
    messages = write(turns, conversion, names)
    tools = [
        replace(tool, name=names.get(tool.name, tool.name)) for tool in tools
    ]
    writer = wire_named(conversion.target).writer(conversion)
    output_tokens = wire.head(request).asked_output_tokens
    return writer.request(system, tools, output_tokens, messages)


def _check(
    request: Mapping[str, Any], conversion: Conversion, reader: Reader
) -> None:
    """Raise FormatError for what has no end, UnsupportedPart where the history is elsewhere."""
    key_of_history = FORMATS[conversion.source].key
    for key, value in request.items():
        if key != key_of_history:  # of its messages each is asked for itself
            snapshot_at(value, str(key))
    problem = "the history is held by the provider, not in this request, and would be lost"
    for path in reader.held:
        if at_path(request, path):
            raise UnsupportedPart(
                path, problem, "Give the whole history in the request."
            )


# ── what stands beside the messages ──────────────────────────────────────────────────────


def _system(
    request: Mapping[str, Any], conversion: Conversion, reader: Reader
) -> Iterator[str]:
    yield from reader.held_system(request)
    wire = FORMATS[conversion.source]
    texts = list(wire.system(request))
    for turn in read(wire.leading(request), 0, conversion):
        for piece in turn.pieces:
            text = piece.text if isinstance(piece, Text) else None
            texts.append((turn.where, text))
    for path, text in texts:
        if text is None:
            text = conversion.lose(
                path, "system text that is no text", "Give text."
            )
        yield text


def _tools(
    request: Mapping[str, Any], conversion: Conversion, reader: Reader
) -> list[ToolSpec]:
    tools = []
    for path, raw in FORMATS[conversion.source].definitions(request):
        tool = _tool(raw, path, conversion, reader)
        if tool is not None:
            tools.append(tool)
    model = conversion.model or ""
    if not tools or FORMATS[conversion.target].takes_tools({}, model):
        return tools
    description = f"each tool that {conversion.model!r} would be given"
    conversion.lose("tools", description, "Leave them out.")
    return []


def _tool(
    definition: Any, path: str, conversion: Conversion, reader: Reader
) -> ToolSpec | None:
    """The definition of a function; any other tool has its meaning with its vendor alone."""
    if isroutine(definition):
        conversion.lose(path, "a function of Python that is given as a tool")
        return None
    raw = plain(unmarked(plain(definition, path)), path)
    body = reader.tool_body(raw, path)
    schema = reader.schema(raw, body, path)
    if schema is None:
        kind = raw.get("type") or next(iter(raw), "tool")
        conversion.lose(path, f"a tool of type {kind!r}")
        return None
    fields = list(body.items())
    if body is not raw:
        fields += raw.items()
    for key, value in fields:
        if key not in reader.tool_fields and value not in (
            None,
            False,
            [],
            {},
        ):
            conversion.lose(f"{path}.{key}", f"the {key!r} of a tool")
    name = text_at(body.get("name"), f"{path}.name")
    description = text_at(body.get("description") or "", f"{path}.description")
    return ToolSpec(name, description, plain(schema, f"{path}.parameters"))
