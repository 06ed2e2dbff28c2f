"""Gemini CLI sessions: one JSON document, or a line for each message.

    {"sessionId": …, "projectHash": …, "messages": […]}          a document, or the first line
    {"id": …, "type": "user" | "gemini" | "info", "content": …}  a message
    {"$set": {"messages": […]}}, {"$rewindTo": id}               changes to what came so far

A message given again under its id takes the place of the first: replies are given once without
and once with their calls. Results are in the call, and in newer versions in the user's next
message as well. Thoughts are notes for the screen; their signatures are not in the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ullage.tools.replay.readers._log import (
    Event,
    Lines,
    LoggedConversation,
    LogKind,
)
from ullage.tools.replay.readers._run import DamageReport

_KINDS = ("user", "gemini", "info", "error", "warning")
_HEAD = {"sessionId", "projectHash"}


def _is_line(value: Event) -> bool:
    changes = value.get("$set")
    is_change = (
        isinstance(changes, dict) and len(value) == 1
    ) or "$rewindTo" in value
    return value.keys() >= _HEAD or is_change or _is_message(value)


def _is_message(value: Any) -> bool:
    is_complete = (
        isinstance(value, dict)
        and {"id", "timestamp", "type", "content"} <= value.keys()
    )
    return is_complete and value["type"] in _KINDS


def _events(value: Event) -> Iterable[tuple[str | None, Event]]:
    yield (str(value["sessionId"]) if value.keys() >= _HEAD else None), value


def _arranged(
    id: str, lines: Lines, report: DamageReport
) -> Iterable[tuple[str, Lines]]:
    """The messages as they are in the end, each with all results that messages brought."""
    messages: dict[str, tuple[Event, int]] = {}
    for value, line in lines:
        if "$rewindTo" in value:
            ids = list(messages)
            for later_id in (
                ids[ids.index(value["$rewindTo"]) :]
                if value["$rewindTo"] in ids
                else ()
            ):
                del messages[later_id]
        several = value.get("$set", value).get("messages")
        for message in several if isinstance(several, list) else [value]:
            if _is_message(message):
                messages[str(message["id"])] = (message, line)
    answers = {
        str(part["functionResponse"].get("id")): part
        for message, _ in messages.values()
        for part in _parts(message["content"])
        if isinstance(part.get("functionResponse"), dict)
    }
    yield (
        id,
        [
            ({**message, "answers": answers}, line)
            for message, line in messages.values()
        ],
    )


def _take(history: LoggedConversation, message: Event) -> None:
    parts = _parts(message["content"])
    if message["type"] == "user":
        user_parts = [part for part in parts if "functionResponse" not in part]
        if user_parts:
            history.say({"role": "user", "parts": user_parts})
    elif message["type"] == "gemini":
        raw_calls = message.get("toolCalls") or ()
        calls = [
            call
            for call in raw_calls
            if isinstance(call, dict) and {"id", "name"} <= call.keys()
        ]
        for call in calls:
            called = {
                "id": str(call["id"]),
                "name": call["name"],
                "args": call.get("args") or {},
            }
            parts.append({"functionCall": called})
        if parts:
            history.of_model(message.get("model"))
            names = {str(call["id"]): str(call["name"]) for call in calls}
            history.reply([{"role": "model", "parts": parts}], names)
            for call in calls:
                _result(history, call, message["answers"])


def _result(
    history: LoggedConversation, call: Event, answers: dict[str, Event]
) -> None:
    """The result in the call, else that of a later message."""
    responses = [
        part
        for part in _parts(call.get("result"))
        if "functionResponse" in part
    ]
    part = responses[0] if responses else answers.get(str(call["id"]))
    if part is not None:
        response = {
            **part["functionResponse"],
            "id": str(call["id"]),
            "name": call["name"],
        }
        history.result(str(call["id"]), {"functionResponse": response})


def _parts(content: Any) -> list[Event]:
    if isinstance(content, str):
        return [{"text": content}] if content.strip() else []
    parts = content if isinstance(content, list) else [content]
    parts = [
        {"text": part} if isinstance(part, str) else part for part in parts
    ]
    return [
        part
        for part in parts
        if isinstance(part, dict) and part.get("text") != ""
    ]


GEMINI_CLI = LogKind(
    format="gemini",
    is_line=_is_line,
    take=_take,
    events=_events,
    arranged=_arranged,
)
