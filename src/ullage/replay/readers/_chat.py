"""What logs of many tools have in common, as Chat Completions messages."""

from __future__ import annotations

import json
from typing import Any

from ullage.replay.readers._log import History

Call = tuple[str, str, Any]
"""Id, tool and arguments, the arguments as JSON text or a value."""


def say(history: History, text: str, *, role: str = "user") -> None:
    """The user, or the system, says this, if it is anything."""
    if text:
        history.say({"role": role, "content": text})


def reply(history: History, content: Any, calls: list[Call]) -> None:
    """The model replies; an empty text is left out where there are calls."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": content or ("" if not calls else None),
    }
    if calls:
        message["tool_calls"] = [_call(*call) for call in calls]
    history.reply([message], {id: tool for id, tool, _ in calls})


def _call(id: str, tool: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json_text(arguments or {})
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": text}}


def answer(history: History, call_id: str | None, text: Any) -> None:
    """A call returns this; without an id, the first open one."""
    id = history.open_call if call_id is None else call_id
    history.result(id, {"role": "tool", "tool_call_id": id, "content": text})


def calls_in(values: Any, id: str, tool: str, arguments: str) -> list[Call]:
    """The calls among these objects, which are in them under such keys."""
    calls = [value for value in values or () if isinstance(value, dict)]
    return [(str(call.get(id)), str(call.get(tool)), call.get(arguments)) for call in calls]


def text_of(content: Any) -> str:
    """The text of a content: itself, or the texts of its blocks, a line between them."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    texts = (block if isinstance(block, str) else fields_of(block).get("text") for block in blocks)
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def fields_of(value: Any) -> dict[str, Any]:
    """The value where it is an object, else none of its fields."""
    return value if isinstance(value, dict) else {}


def json_text(value: Any) -> str:
    """A value as the JSON text a model would have written."""
    return json.dumps(value, ensure_ascii=False)
