"""The wire formats, one folder each, and how a request's format is recognised.

    openai_chat        OpenAI Chat Completions
    openai_responses   OpenAI Responses
    anthropic          Anthropic Messages
    gemini             Google Gemini generateContent

A new format is a new folder and one line in `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from ullage.errors import ConfigError, FormatError
from ullage.values.model_names import plain_name
from ullage.values.toolset import ToolSpec
from ullage.wires.anthropic.format import Anthropic
from ullage.wires.base import field
from ullage.wires.format import Change, Format, Head
from ullage.wires.gemini.format import Gemini
from ullage.wires.openai_chat.format import OpenAIChat
from ullage.wires.openai_responses.format import OpenAIResponses

__all__ = [
    "FORMATS",
    "Change",
    "Format",
    "FormatName",
    "Head",
    "ToolSpec",
    "format_of",
    "recognise",
]

FormatName: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
FORMATS: Mapping[str, Format] = {
    format.name: format for format in (OpenAIChat(), OpenAIResponses(), Anthropic(), Gemini())
}
"""The formats by name."""

_KEYS = {"contents": "gemini", "system": "anthropic"}
_HAS = {
    kind: name
    for name, other in (("anthropic", "openai-chat"), ("openai-chat", "anthropic"))
    for kind in FORMATS[name].blocks.keys() - FORMATS[other].blocks.keys()
}
"""The format that a type of block belongs to, where only one of the two has it."""
_RESPONSES = frozenset(("input", "instructions", "max_output_tokens"))
_OPENAI_FAMILIES = ("gpt", "o1", "o3", "o4", "chatgpt", "codex", "deepseek", "qwen", "grok")


def format_of(format: str | Format) -> Format:
    """The format of this name, or the object itself where one is given.

    Raises:
        ConfigError: no format has this name, or the object is no format.
    """
    if isinstance(format, str):
        if format in FORMATS:
            return FORMATS[format]
        problem = f"{format!r} is not known"
    elif isinstance(format, Format):
        return format
    else:
        problem = f"a {type(format).__name__} is no format"
    raise ConfigError("format", problem, f"Use one of {', '.join(FORMATS)}, or a format object.")


def recognise(request: Mapping[str, Any], model: str | None = None) -> Format:
    """The format of a request: by decisive structure, else by the model's family.

    Raises:
        FormatError: neither decides; the remedy names ``format=``.
    """
    if "messages" not in request and not _RESPONSES.isdisjoint(request):
        return FORMATS["openai-responses"]
    name = next((name for key, name in _KEYS.items() if key in request), None) or _by_structure(
        request
    )
    named = request.get("model") or model
    name = name or _by_model(named if isinstance(named, str) else "")
    if name is None:
        raise FormatError(
            "request",
            "its format cannot be told from its structure or its model",
            f"Give format= one of {', '.join(FORMATS)}.",
        )
    return FORMATS[name]


def _by_structure(request: Mapping[str, Any]) -> str | None:
    tools = request.get("tools")
    for tool in tools if isinstance(tools, (list, tuple)) else ():
        if field(tool, "input_schema") is not None:
            return "anthropic"
        if field(tool, "function") is not None:
            return "openai-chat"
    messages = request.get("messages")
    for raw in messages if isinstance(messages, list) else ():
        if field(raw, "role") in ("tool", "developer") or field(raw, "tool_calls"):
            return "openai-chat"
        content = field(raw, "content")
        for block in content if isinstance(content, list) else ():
            kind = field(block, "type")
            if isinstance(kind, str) and kind in _HAS:
                return _HAS[kind]
    return None


def _by_model(model: str) -> str | None:
    name = plain_name(model)
    if "claude" in name:
        return "anthropic"
    return "openai-chat" if name.startswith(_OPENAI_FAMILIES) else None
