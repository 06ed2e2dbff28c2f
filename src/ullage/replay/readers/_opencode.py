"""opencode sessions: what ``opencode export`` writes, or the messages alone.

    {"info": {"id": …, …}, "messages": [{"info": {…}, "parts": […]}, …]}
    {"info": {"sessionID": …, "role": "user" | "assistant", …}, "parts": […]}

A part is a text, a call with its result, a file, or a mark of the client's. A message of the
assistant may hold several replies of the model, each begun by ``step-start``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ullage.replay.readers._chat import chat_reply, chat_result, fields_of
from ullage.replay.readers._history import History, seconds
from ullage.replay.readers._run import Report, Run
from ullage.values.usage import Usage

__all__ = ["Log", "is_line"]

Part = dict[str, Any]


def is_line(value: dict[str, Any]) -> bool:
    """Whether the value is an exported session, or a message of one."""
    info, messages = value.get("info"), value.get("messages")
    if isinstance(info, dict) and isinstance(messages, list):
        return all(map(_is_message, messages))
    return _is_message(value)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("info"), dict):
        return False
    return isinstance(value.get("parts"), list) and "role" in value["info"]


class Log:
    """Gathers the sessions of one file."""

    def __init__(self, name: str, report: Report) -> None:
        self._name, self._report = name, report
        self._histories: dict[str, History] = {}

    def add(self, value: dict[str, Any], line: int) -> None:
        """Take a session, or a message of one."""
        whole = "messages" in value
        for message in value["messages"] if whole else [value]:
            info = message["info"]
            id = str(info.get("sessionID") or (whole and value["info"].get("id")) or self._name)
            history = self._histories.setdefault(
                id, History(id, "openai-chat", "opencode", self._report)
            )
            parts = [part for part in message["parts"] if isinstance(part, dict)]
            stamp = seconds(fields_of(info.get("time")).get("created"))
            if info["role"] == "user":
                text = "\n".join(_texts(parts))
                if text:
                    history.say({"role": "user", "content": text}, line, stamp)
            else:
                history.of_model(info.get("modelID"))
                for step in _steps(parts):
                    _reply(history, step, info.get("tokens"), line, stamp)

    def runs(self) -> Iterator[Run]:
        """The runs, in order of their first message."""
        for history in self._histories.values():
            run = history.run()
            if run is not None:
                yield run


def _texts(parts: list[Part]) -> Iterator[str]:
    for part in parts:
        if part.get("type") == "text" and part.get("text") and not part.get("ignored"):
            yield str(part["text"])
        elif part.get("type") == "file":
            yield f"[file: {part.get('filename') or part.get('mime')}]"


def _steps(parts: list[Part]) -> list[list[Part]]:
    """The parts of each reply."""
    steps: list[list[Part]] = [[]]
    for part in parts:
        if part.get("type") == "step-start":
            steps.append([])
        steps[-1].append(part)
    return steps


def _reply(
    history: History, parts: list[Part], tokens: Any, line: int, stamp: float | None
) -> None:
    calls = [part for part in parts if part.get("type") == "tool"]
    states = [fields_of(part.get("state")) for part in calls]
    calls_made = [
        (str(call.get("callID")), str(call.get("tool")), state.get("input"))
        for call, state in zip(calls, states, strict=True)
    ]
    reply, names = chat_reply("\n".join(_texts(parts)), calls_made)
    if not names and not reply["content"]:
        return
    ends = [part.get("tokens") for part in parts if part.get("type") == "step-finish"]
    history.reply([reply], names, line, stamp, _usage(ends[-1] if ends else tokens))
    for call, state in zip(calls, states, strict=True):
        given = {"completed": state.get("output"), "error": state.get("error")}
        text = given.get(str(state.get("status")))
        if isinstance(text, str):
            history.result(str(call.get("callID")), chat_result(text), line)


def _usage(tokens: Any) -> Usage | None:
    """Cached tokens lie outside the input, reasoning outside the output."""
    if not isinstance(tokens, dict) or not isinstance(tokens.get("input"), int):
        return None
    cache = fields_of(tokens.get("cache"))
    thought = tokens.get("reasoning") or 0
    return Usage(
        fresh_tokens=tokens["input"],
        cache_read_tokens=cache.get("read") or 0,
        cache_write_tokens=cache.get("write") or 0,
        output_tokens=(tokens.get("output") or 0) + thought,
        reasoning_tokens=thought,
    )
