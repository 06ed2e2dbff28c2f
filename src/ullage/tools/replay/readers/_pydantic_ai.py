"""Pydantic AI's histories: what ``result.all_messages_json()`` gives.

    [{"kind": "request", "instructions": …, "parts": [
         {"part_kind": "system-prompt" | "user-prompt", "content": …},
         {"part_kind": "tool-return" | "retry-prompt", "tool_call_id": …, "content": …}]},
     {"kind": "response", "model_name": …, "parts": [
         {"part_kind": "text" | "thinking", "content": …},
         {"part_kind": "tool-call", "tool_name": …, "tool_call_id": …, "args": …}]}]

They are read as Chat Completions. The instructions of the first request stand at the beginning, as
the model saw them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ullage.tools.replay.readers._log import (
    LoggedConversation,
    answer,
    calls_in,
    fields_of,
    json_text,
    reply,
    say,
    seconds,
    text_of,
)

_KINDS = ("request", "response")
_RESULTS = ("tool-return", "retry-prompt")
"""What answers a call: with its result, or with what to do better."""


def are_messages(values: Any) -> bool:
    """Whether it is a list of Pydantic AI's messages and nothing else."""
    return (
        isinstance(values, list)
        and bool(values)
        and all(map(_is_message, values))
    )


def take_messages(
    messages: Sequence[dict[str, Any]], history: LoggedConversation
) -> None:
    """Take a history, in order.

    Args:
        messages: of Pydantic AI, by `are_messages`.
        history: what takes them.
    """
    instructions = messages[0].get("instructions")
    say(history, text_of(instructions), role="system")
    for message in messages:
        history.stamp = seconds(message.get("timestamp"))
        if message["kind"] == "response":
            _take_response(message, history)
        else:
            _take_request(message, history)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("kind") not in _KINDS:
        return False
    parts = value.get("parts")
    return isinstance(parts, list) and all(
        "part_kind" in fields_of(part) for part in parts
    )


def _take_request(
    message: dict[str, Any], history: LoggedConversation
) -> None:
    """What the user says, and what the tools gave."""
    for part in message["parts"]:
        kind = part["part_kind"]
        if kind == "system-prompt":
            say(history, text_of(part.get("content")), role="system")
        elif kind == "user-prompt":
            say(history, text_of(part.get("content")))
        elif kind in _RESULTS and part.get("tool_name"):
            answer(history, _call_id(part), _result_text(part))
        elif kind == "retry-prompt":  # the output was not valid
            say(history, _result_text(part))


def _take_response(
    message: dict[str, Any], history: LoggedConversation
) -> None:
    """A reply of the model; its thoughts are left out, as in the other logs read as Chat."""
    history.of_model(message.get("model_name"))
    parts = message["parts"]
    texts = [part for part in parts if part["part_kind"] == "text"]
    calls = [part for part in parts if part["part_kind"] == "tool-call"]
    text = "\n".join(text_of(part.get("content")) for part in texts)
    if text or calls:
        named = calls_in(calls, "tool_call_id", "tool_name", "args")
        reply(history, text, named)


def _call_id(part: dict[str, Any]) -> str | None:
    call_id = part.get("tool_call_id")
    return str(call_id) if call_id else None


def _result_text(part: dict[str, Any]) -> str:
    """A result as the model read it: a text as it is, anything else as JSON."""
    content = part.get("content")
    return content if isinstance(content, str) else json_text(content)
