"""opencode sessions: what ``opencode export`` writes, or the messages alone.

    {"info": {"id": …, …}, "messages": [{"info": {…}, "parts": […]}, …]}
    {"info": {"sessionID": …, "role": "user" | "assistant", …}, "parts": […]}

A part is a text, a call with its result, a file, or a mark of the client's. A message of the
assistant may hold several replies of the model, each begun by ``step-start``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ullage.tools.replay.readers._log import (
    Event,
    LoggedConversation,
    LogKind,
    answer,
    fields_of,
    reply,
    say,
    seconds,
)


def _is_line(value: Event) -> bool:
    info = value.get("info")
    messages = value.get("messages")
    if isinstance(info, dict) and isinstance(messages, list):
        return all(map(_is_message, messages))
    return _is_message(value)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("info"), dict):
        return False
    return isinstance(value.get("parts"), list) and "role" in value["info"]


def _events(value: Event) -> Iterable[tuple[str | None, Event]]:
    whole = "messages" in value
    for message in value["messages"] if whole else [value]:
        session = (
            message["info"].get("sessionID")
            or (whole and value["info"].get("id"))
            or ""
        )
        yield str(session), message


def _take(history: LoggedConversation, message: Event) -> None:
    info = message["info"]
    parts = [part for part in message["parts"] if isinstance(part, dict)]
    history.stamp = seconds(fields_of(info.get("time")).get("created"))
    if info["role"] == "user":
        say(history, "\n".join(_texts(parts)))
        return
    history.of_model(info.get("modelID"))
    steps: list[list[Event]] = [[]]
    for part in parts:
        if part.get("type") == "step-start":
            steps.append([])
        steps[-1].append(part)
    for step in steps:
        _reply(history, step)


def _texts(parts: list[Event]) -> Iterator[str]:
    for part in parts:
        if (
            part.get("type") == "text"
            and part.get("text")
            and not part.get("ignored")
        ):
            yield str(part["text"])
        elif part.get("type") == "file":
            yield f"[file: {part.get('filename') or part.get('mime')}]"


def _reply(history: LoggedConversation, parts: list[Event]) -> None:
    tool_parts = [part for part in parts if part.get("type") == "tool"]
    states = [
        (str(part.get("callID")), fields_of(part.get("state")))
        for part in tool_parts
    ]
    calls = [
        (id, str(part.get("tool")), state.get("input"))
        for part, (id, state) in zip(tool_parts, states, strict=True)
    ]
    text = "\n".join(_texts(parts))
    if not calls and not text:
        return
    reply(history, text, calls)
    for id, state in states:
        outputs = {
            "completed": state.get("output"),
            "error": state.get("error"),
        }
        result = outputs.get(str(state.get("status")))
        if isinstance(result, str):
            answer(history, id, result)


OPENCODE = LogKind(
    format="openai-chat", is_line=_is_line, take=_take, events=_events
)
