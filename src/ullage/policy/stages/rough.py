"""The estimate some documents name: four characters are one token. Nothing of ours asks it.

Each text is rounded up by itself, a message costs four tokens more, and of a tool count its name,
its description and its parameters (three-layer document, "Token Estimator"). Characters are
Unicode's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ullage.core.history.measures import Measure
from ullage.core.history.window import Window
from ullage.core.on_demand import cached_by_text
from ullage.core.values.edits import Replace
from ullage.core.values.messages import (
    Message,
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
)

CHARS_PER_TOKEN = 4
MESSAGE_TOKENS = 4
_SCHEMAS = (
    "parameters",
    "input_schema",
    "inputSchema",
    "parametersJsonSchema",
)
_WHOLE: Mapping[tuple[int, int], Replace] = {}


def text_tokens(text: str) -> int:
    """Tokens of a text: a quarter of its characters, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def message_tokens(
    message: Message,
    edits: Mapping[tuple[int, int], Replace],
    *,
    drop_reasoning: bool = False,
) -> int:
    """Tokens of a message.

    Args:
        message: the message.
        edits: what stands in place of its leaves, by part and item.
        drop_reasoning: leave its reasoning out.
    """
    total = MESSAGE_TOKENS
    for call in message.calls:
        total += text_tokens(call.name)
    for number, part in enumerate(message.parts):
        if drop_reasoning and isinstance(part, Reasoning):
            continue
        total += part_tokens(part, number, edits)
    return total


def view_tokens(window: Window) -> int:
    """Tokens of the whole view: system text, tools, and the messages as they are shown."""
    total = head_tokens(window.head_texts)
    total += window.total(_SHOWN)
    for placed in window.open_summaries:
        for text in placed.edit.texts:
            total += text_tokens(text)
    return total


def part_tokens(
    part: Part,
    number: int,
    edits: Mapping[tuple[int, int], Replace] = _WHOLE,
) -> int:
    """Tokens of a part.

    Args:
        part: the part.
        number: which of its message it is.
        edits: what stands in place of the message's leaves, by part and item.
    """
    leaves = part.content if isinstance(part, ToolResult) else (part,)
    total = 0
    for item, leaf in enumerate(leaves):
        shown = edits.get((number, item)) or leaf
        total += text_tokens(_text_of(shown))
    return total


def _text_of(shown: Part | Replace) -> str:
    """The text of what is shown; ``""`` for what has none."""
    if isinstance(shown, ToolCall):
        return shown.arguments
    text: str = getattr(shown, "text", "")
    return text


def head_tokens(texts: Iterable[str]) -> int:
    """Tokens of what is outside the messages: system texts, and tools as JSON."""
    total = 0
    for text in texts:
        if text.startswith("{"):
            total += _tool_tokens(text)
        else:
            total += text_tokens(text)
    return total


def shown_tokens(window: Window, index: int) -> int:
    """Tokens of the message at an index as the window shows it to the model."""
    transcript = window.transcript
    message = transcript.messages[index]
    edits = window.shown(index)
    is_dropped = index in window.reasoning_dropped
    tokens = message_tokens(message, edits, drop_reasoning=is_dropped)
    # what a program reads is in the history and not in the prompt
    if not transcript.has_program(index):
        return tokens
    for number, part in enumerate(message.parts):
        if transcript.reader(index, number) == "program":
            tokens -= part_tokens(part, number, edits)
    return tokens


_SHOWN = Measure("ullage.rough", shown_tokens)


@cached_by_text(256, most_chars=16_384)
def _tool_tokens(text: str) -> int:
    """Tokens of a tool definition of any format; of anything else in braces, of its text."""
    try:
        tool = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text_tokens(text)
    tool = tool.get("function") or tool.get("toolSpec") or tool
    declared = (
        tool.get("functionDeclarations") if isinstance(tool, dict) else None
    )
    definitions = declared if isinstance(declared, list) else [tool]
    total = 0
    for definition in definitions:
        if not isinstance(definition, dict):
            return text_tokens(text)
        name = definition.get("name")
        if not isinstance(name, str):
            return text_tokens(text)
        description = str(definition.get("description") or "")
        total += text_tokens(name)
        total += text_tokens(description)
        total += text_tokens(_schema_text(definition))
    return total


def _schema_text(definition: Mapping[str, Any]) -> str:
    """The parameters of a tool as compact JSON; ``""`` where it has none."""
    for key in _SCHEMAS:
        schema = definition.get(key)
        if not schema:
            continue
        if isinstance(schema, dict):
            schema = schema.get("json", schema)  # Bedrock's
        if schema is None:
            return ""
        return json.dumps(schema, separators=(",", ":"))
    return ""
