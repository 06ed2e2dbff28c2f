"""The estimate some documents name: four characters are one token. Nothing of ours asks it.

Each text is rounded up by itself, a message costs four tokens more, and of a tool count its name,
its description and its parameters (three-layer document, "Token Estimator"). Characters are
Unicode's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import msgspec

from ullage.core.history.measures import Measure
from ullage.core.history.window import Window
from ullage.core.on_demand import cached_by_text
from ullage.core.values.edits import Replace
from ullage.core.values.messages import Message, Part, Reasoning, ToolCall, ToolResult

CHARS_PER_TOKEN = 4
MESSAGE_TOKENS = 4
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
_WHOLE: Mapping[tuple[int, int], Replace] = {}


def text_tokens(text: str) -> int:
    """Tokens of a text: a quarter of its characters, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def message_tokens(
    message: Message,
    shown: Mapping[tuple[int, int], Replace],
    *,
    drop_reasoning: bool = False,
) -> int:
    """Tokens of a message with ``shown`` in place of its leaves, without reasoning if asked."""
    names = sum(text_tokens(call.name) for call in message.calls)
    return (MESSAGE_TOKENS + names) + sum(
        part_tokens(part, number, shown)
        for number, part in enumerate(message.parts)
        if not (drop_reasoning and isinstance(part, Reasoning))
    )


def view_tokens(window: Window) -> int:
    """Tokens of the whole view: system text, tools, and the messages as they are shown."""
    summaries = (text for placed in window.open_summaries for text in placed.edit.texts)
    held = window.total(_SHOWN) + sum(map(text_tokens, summaries))
    return held + head_tokens(window.head_texts)


def part_tokens(
    part: Part, number: int, shown: Mapping[tuple[int, int], Replace] = _WHOLE
) -> int:
    """Tokens of a part, the ``number``-th of its message, with ``shown`` in place of its leaves."""
    leaves = part.content if isinstance(part, ToolResult) else (part,)
    seen = (shown.get((number, item)) or leaf for item, leaf in enumerate(leaves))
    texts = (
        it.arguments if isinstance(it, ToolCall) else getattr(it, "text", "")
        for it in seen
    )
    return sum(map(text_tokens, texts))


def head_tokens(texts: Iterable[str]) -> int:
    """Tokens of what is outside the messages: system texts, and tools as JSON."""
    return sum(
        _tool_tokens(text) if text.startswith("{") else text_tokens(text)
        for text in texts
    )


def shown_tokens(window: Window, index: int) -> int:
    """Tokens of the message at an index as the window shows it to the model."""
    transcript, shown = window.transcript, window.shown(index)
    message, dropped = transcript.messages[index], index in window.reasoning_dropped
    tokens = message_tokens(message, shown, drop_reasoning=dropped)
    if not transcript.has_program(index):
        return tokens
    return tokens - sum(
        part_tokens(part, number, shown)
        for number, part in enumerate(message.parts)
        if transcript.reader(index, number) == "program"
    )


_SHOWN = Measure("ullage.rough", shown_tokens)


@cached_by_text(256, most_chars=16_384)
def _tool_tokens(text: str) -> int:
    """Tokens of a tool definition of any format; of anything else in braces, of its text."""
    try:
        tool = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text_tokens(text)
    tool = tool.get("function") or tool.get("toolSpec") or tool
    declared = tool.get("functionDeclarations") if isinstance(tool, dict) else None
    total = 0
    for each in declared if isinstance(declared, list) else [tool]:
        if not (isinstance(each, dict) and isinstance(each.get("name"), str)):
            return text_tokens(text)
        schema = next((each[key] for key in _SCHEMAS if each.get(key)), None)
        schema = schema.get("json", schema) if isinstance(schema, dict) else schema
        written = "" if schema is None else json.dumps(schema, separators=(",", ":"))
        texts = (each["name"], str(each.get("description") or ""), written)
        total += sum(map(text_tokens, texts))
    return total
