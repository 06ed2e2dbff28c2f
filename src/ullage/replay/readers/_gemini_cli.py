"""Gemini CLI sessions: one JSON document, or a line for each message.

    {"sessionId": …, "projectHash": …, "messages": […]}          a document, or the first line
    {"id": …, "type": "user" | "gemini" | "info", "content": …}  a message
    {"$set": {"messages": […]}}, {"$rewindTo": id}               changes to what stands so far

A message told again under its id takes the place of the first: replies are told once without
and once with their calls. Results stand in the call, and in newer versions in the user's next
message as well. Thoughts are notes for the screen; their signatures are not in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ullage.replay.readers._history import History, seconds
from ullage.replay.readers._run import Report, Run
from ullage.values.usage import Usage

__all__ = ["Log", "is_line"]

_KINDS = ("user", "gemini", "info", "error", "warning")


def is_line(value: dict[str, Any]) -> bool:
    """Whether the value is a session, or a line of one."""
    changes = value.get("$set")
    return (
        {"sessionId", "projectHash"} <= value.keys()
        or (isinstance(changes, dict) and len(value) == 1)
        or "$rewindTo" in value
        or _is_message(value)
    )


def _is_message(value: Any) -> bool:
    known = isinstance(value, dict) and {"id", "timestamp", "type", "content"} <= value.keys()
    return known and value["type"] in _KINDS


class Log:
    """Gathers the lines of one file; every head of a session begins a run."""

    def __init__(self, name: str, report: Report) -> None:
        self._report = report
        self._sessions: dict[str, dict[str, tuple[dict[str, Any], int]]] = {}
        self._now = name

    def add(self, value: dict[str, Any], line: int) -> None:
        """Take one line, or a whole session."""
        if {"sessionId", "projectHash"} <= value.keys():
            self._now = str(value["sessionId"])
        messages = self._sessions.setdefault(self._now, {})
        if "$rewindTo" in value:
            ids = list(messages)
            for gone in ids[ids.index(value["$rewindTo"]) :] if value["$rewindTo"] in ids else ():
                del messages[gone]
        told = value.get("$set", value).get("messages")
        for message in told if isinstance(told, list) else [value]:
            if _is_message(message):
                messages[str(message["id"])] = (message, line)

    def runs(self) -> Iterator[Run]:
        """The runs, in order of their first line."""
        for id, messages in self._sessions.items():
            run = _history(id, list(messages.values()), self._report).run()
            if run is not None:
                yield run


def _history(id: str, told: list[tuple[dict[str, Any], int]], report: Report) -> History:
    history = History(id, "gemini", "gemini-cli", report)
    answers = {
        str(part["functionResponse"].get("id")): part
        for message, _ in told
        for part in _parts(message["content"])
        if isinstance(part.get("functionResponse"), dict)
    }
    for message, line in told:
        stamp = seconds(message["timestamp"])
        if message["type"] == "user":
            parts = [part for part in _parts(message["content"]) if "functionResponse" not in part]
            if parts:
                history.say({"role": "user", "parts": parts}, line, stamp)
        elif message["type"] == "gemini":
            _reply(history, message, answers, line)
    return history


def _reply(
    history: History, message: dict[str, Any], answers: dict[str, dict[str, Any]], line: int
) -> None:
    asked = message.get("toolCalls") or ()
    calls = [call for call in asked if isinstance(call, dict) and {"id", "name"} <= call.keys()]
    parts = _parts(message["content"])
    parts += [
        {
            "functionCall": {
                "id": str(call["id"]),
                "name": call["name"],
                "args": call.get("args") or {},
            }
        }
        for call in calls
    ]
    if not parts:
        return
    history.of_model(message.get("model"))
    names = {str(call["id"]): str(call["name"]) for call in calls}
    usage = _usage(message.get("tokens"))
    reply = {"role": "model", "parts": parts}
    history.reply([reply], names, line, seconds(message["timestamp"]), usage)
    for call in calls:
        own = [part for part in _parts(call.get("result")) if "functionResponse" in part]
        part = own[0] if own else answers.get(str(call["id"]))
        if part is not None:
            given = {**part["functionResponse"], "id": str(call["id"]), "name": call["name"]}
            history.result(str(call["id"]), _given(given), line)


def _given(response: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    return lambda _: {"functionResponse": response}


def _parts(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"text": content}] if content.strip() else []
    parts = content if isinstance(content, list) else [content]
    parts = [{"text": part} if isinstance(part, str) else part for part in parts]
    return [part for part in parts if isinstance(part, dict) and part.get("text") != ""]


def _usage(tokens: Any) -> Usage | None:
    """The counts of a reply: cached tokens lie inside the input, thoughts outside the output."""
    if not isinstance(tokens, dict) or not isinstance(tokens.get("input"), int):
        return None
    read, thought = tokens.get("cached") or 0, tokens.get("thoughts") or 0
    return Usage(
        fresh_tokens=max(tokens["input"] - read, 0) + (tokens.get("tool") or 0),
        cache_read_tokens=read,
        output_tokens=(tokens.get("output") or 0) + thought,
        reasoning_tokens=thought,
    )
