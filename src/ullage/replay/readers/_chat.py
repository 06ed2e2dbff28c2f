"""What logs of many tools have in common, as Chat Completions messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["chat_reply", "chat_result", "fields_of", "json_text", "text_of"]


def chat_reply(
    content: Any, calls: Iterable[tuple[str, str, Any]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """A message of the assistant, and its tools by call id.

    Args:
        content: what it says; an empty text is left out where there are calls.
        calls: id, tool and arguments of each call, the arguments as JSON text or a value.
    """
    wire, names = [], {}
    for call_id, tool, arguments in calls:
        text = arguments if isinstance(arguments, str) else json_text(arguments or {})
        body = {"name": tool, "arguments": text}
        wire.append({"id": call_id, "type": "function", "function": body})
        names[call_id] = tool
    said = content if content else None
    if not wire:
        return {"role": "assistant", "content": said or ""}, names
    return {"role": "assistant", "content": said, "tool_calls": wire}, names


def chat_result(content: Any) -> Callable[[str], dict[str, Any]]:
    """The result of a call, once its id is known."""
    return lambda call_id: {"role": "tool", "tool_call_id": call_id, "content": content}


def text_of(content: Any) -> str:
    """The text of a content: itself, or the texts of its blocks, a line between them."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    texts = (block if isinstance(block, str) else _text_in(block) for block in blocks)
    return "\n".join(text for text in texts if text)


def _text_in(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""


def fields_of(value: Any) -> dict[str, Any]:
    """The value where it is an object, else none of its fields."""
    return value if isinstance(value, dict) else {}


def json_text(value: Any) -> str:
    """A value as the JSON text a model would have written."""
    return json.dumps(value, ensure_ascii=False)
