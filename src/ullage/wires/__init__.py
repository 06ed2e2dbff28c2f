"""The wires: one folder and one object each, and how a request's wire is recognised.

    openai_chat        OpenAI Chat Completions
    openai_responses   OpenAI Responses
    anthropic          Anthropic Messages
    gemini             Google Gemini generateContent
    ollama             Ollama's own chat
    bedrock_converse   Amazon Bedrock Converse

A new wire is a new folder, a line in `WIRES`, and its name in `FormatName` for type checkers.
``docs/extending.md`` says what the folder holds, and ``tests/wires/test_wires.py`` what is missing.
No other module names a wire: it asks the wire's object (`ullage.wires.wire.Wire`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ullage.core.contract.format import Change, Format, Formats, RequestHead
from ullage.core.contract.repaired import Repaired
from ullage.core.errors import ConfigError, FormatError, did_you_mean
from ullage.core.history.raw import field
from ullage.core.values.model_names import plain_name
from ullage.core.values.toolset import ToolSpec
from ullage.wires.anthropic.wire import WIRE as ANTHROPIC
from ullage.wires.base import MARKERS
from ullage.wires.bedrock_converse.wire import WIRE as BEDROCK_CONVERSE
from ullage.wires.format import WireFormat
from ullage.wires.gemini.wire import WIRE as GEMINI
from ullage.wires.ollama.wire import WIRE as OLLAMA
from ullage.wires.openai_chat.wire import WIRE as OPENAI_CHAT
from ullage.wires.openai_responses.wire import WIRE as OPENAI_RESPONSES
from ullage.wires.streams import stream_in
from ullage.wires.wire import Wire

__all__ = [
    "ALL_FORMATS",
    "FORMATS",
    "MARKERS",
    "MODEL_FIELDS",
    "WIRES",
    "Change",
    "Format",
    "FormatName",
    "RequestHead",
    "ToolSpec",
    "Wire",
    "WireFormat",
    "format_of",
    "is_billed",
    "model_in",
    "recognise",
    "stream_in",
    "wire_named",
]

FormatName: TypeAlias = Literal[
    "openai-chat",
    "openai-responses",
    "anthropic",
    "gemini",
    "ollama",
    "bedrock-converse",
]
"""The names of the wires, for editors and type checkers."""

WIRES: tuple[Wire, ...] = (
    OLLAMA,  # its messages are those of Chat Completions, with fields of its own
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    ANTHROPIC,
    GEMINI,
    BEDROCK_CONVERSE,
)
"""Every wire. Where a request shows two, the first is taken."""

FORMATS: Mapping[str, WireFormat] = {wire.name: wire.format for wire in WIRES}
"""The formats of the wires, by name."""

_BY_NAME: Mapping[str, Wire] = {wire.name: wire for wire in WIRES}


def wire_named(name: str) -> Wire:
    """The wire of this name; that of a format is under its `Format.wire`.

    Raises:
        ConfigError: there is no such wire.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    raise ConfigError(
        "wire", f"{name!r} is not known", f"Use one of {', '.join(_BY_NAME)}."
    )


def is_billed(wire: str, model: str) -> bool:
    """Whether anybody bills a call of a model: nobody does what runs on a machine of one's own.

    Args:
        wire: the name of the wire, `Format.wire`; any other name is taken for a billed one.
        model: the model that is called.
    """
    known_wire = _BY_NAME.get(wire)
    return known_wire is None or known_wire.is_billed(model)


def format_of(format: str | Format) -> Format:
    """The format of this name, or the object itself where one is given.

    Raises:
        ConfigError: no format has this name, or the object is no format.
    """
    question = ""
    if isinstance(format, str):
        if format in FORMATS:
            return FORMATS[format]
        problem = f"{format!r} is not known"
        question = did_you_mean(format, FORMATS)
    elif isinstance(format, Format):
        return format
    else:
        problem = f"a {type(format).__name__} is no format"
    remedy = f"{question}Use one of {', '.join(FORMATS)}, or a format object."
    raise ConfigError("format", problem, remedy)


MODEL_FIELDS = tuple(dict.fromkeys(wire.format.model_field for wire in WIRES))
"""Every name that a wire has for the field with the model."""


def model_in(request: Any) -> Any:
    """What a request names as its model, under the name that any wire has for it, or None."""
    for name in MODEL_FIELDS:
        model = field(request, name)
        if model:
            return model
    return None


# ── recognising ──────────────────────────────────────────────────────────────────────────


def recognise(request: Mapping[str, Any], model: str | None = None) -> Format:
    """The format of a request: by decisive structure, else by the model's family.

    Raises:
        FormatError: neither decides; the remedy names ``format=``.
    """
    wire = _by_bare_block(request) or _by_fields(request)
    wire = wire or _by_tools(request) or _by_messages(request)
    if wire is None:
        name = model_in(request) or model
        wire = _by_model(name if isinstance(name, str) else "")
    if wire is None:
        raise FormatError(
            "request",
            "its format cannot be told from its structure or its model",
            f"Give format= one of {', '.join(FORMATS)}.",
        )
    return wire.format


def _by_bare_block(request: Mapping[str, Any]) -> Wire | None:
    """By the first block of the messages, if it does not name its type as most wires want it."""
    block = _leading_block(request.get("messages"))
    if not isinstance(block, Mapping) or "type" in block:
        return None
    for wire in WIRES:
        if not block.keys().isdisjoint(wire.signs.bare_blocks):
            return wire
    return None


def _leading_block(messages: Any) -> Any:
    """The first block of the messages; None if none of them is a list of blocks."""
    if not isinstance(messages, list):
        return None
    for raw in messages:
        content = field(raw, "content")
        if content and isinstance(content, list):
            return content[0]
    return None


def _by_fields(request: Mapping[str, Any]) -> Wire | None:
    """By a field of the request; of two wires the one whose history is in it."""
    matches = [wire for wire in WIRES if _shows(request, wire)]
    with_history = [wire for wire in matches if wire.format.key in request]
    return next(iter(with_history or matches), None)


def _shows(request: Mapping[str, Any], wire: Wire) -> bool:
    if any(name in request for name in wire.signs.not_beside):
        return False
    return any(name in request for name in wire.signs.fields)


def _by_tools(request: Mapping[str, Any]) -> Wire | None:
    tools = request.get("tools")
    for tool in tools if isinstance(tools, (list, tuple)) else ():
        for wire in WIRES:
            if any(
                field(tool, name) is not None
                for name in wire.signs.tool_fields
            ):
                return wire
    return None


def _by_messages(request: Mapping[str, Any]) -> Wire | None:
    messages = request.get("messages")
    for raw in messages if isinstance(messages, list) else ():
        for wire in WIRES:
            if field(raw, "role") in wire.signs.roles:
                return wire
            if any(field(raw, name) for name in wire.signs.message_fields):
                return wire
        content = field(raw, "content")
        for block in content if isinstance(content, list) else ():
            kind = field(block, "type")
            if isinstance(kind, str) and kind in _BLOCKS:
                return _BLOCKS[kind]
    return None


def _by_model(model: str) -> Wire | None:
    name = plain_name(model)
    for wire in WIRES:
        if wire.signs.models and re.search(wire.signs.models, name):
            return wire
    return None


def _blocks_of_one() -> Iterator[tuple[str, Wire]]:
    """Each type of block that one wire alone has, of those with ``messages``, and the wire."""
    wires = [
        wire
        for wire in WIRES
        if wire.types_blocks and wire.format.key == "messages"
    ]
    counts = Counter(kind for wire in wires for kind in wire.format.blocks)
    for wire in wires:
        for kind in wire.format.blocks:
            if counts[kind] == 1:
                yield kind, wire


_BLOCKS: Mapping[str, Wire] = dict(_blocks_of_one())


# ── all of them, as a turn asks for them ─────────────────────────────────────────────────


def _repair(
    wire: Format, raws: Sequence[Any], *arguments: Any, **options: Any
) -> Repaired:
    """Make a history legal: what does it loads for a session that repairs, and no other."""
    from ullage.wires.repair.apply import repair

    return repair(wire, raws, *arguments, **options)


_HELD_HISTORIES = [
    field for wire in WIRES for field in wire.format.held_histories
]

ALL_FORMATS = Formats(
    named=format_of,
    recognise=recognise,
    repair=_repair,
    held_histories=tuple(_HELD_HISTORIES),
)
"""Every format, as a turn asks for it."""
