"""Session logs that tell of messages and of results apart: pi and Copilot CLI.

    pi       {"type": "session", "id": …}
             {"type": "message", "message": {"role": "user" | "assistant" | "toolResult", …}}
             {"type": "compaction", "summary": …}
    Copilot  {"type": "user.message" | "assistant.message", "data": {"content": …, …}}
             {"type": "tool.execution_complete", "data": {"toolCallId": …, "result": …}}

Both are read as Chat Completions: the logs hold no request. Entries of pi may name the entry
before them; then only the branch that ends last is the history.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ullage.replay.readers._chat import chat_reply, chat_result, text_of
from ullage.replay.readers._history import History, seconds
from ullage.replay.readers._run import Report, Run
from ullage.values.usage import Usage

__all__ = ["CopilotLog", "PiLog", "is_copilot_line", "is_pi_line"]

_PI_KINDS = (
    *("session", "message", "compaction", "thinking_level_change", "model_change"),
    *("branch_summary", "custom", "custom_message", "label", "session_info"),
)
_COPILOT_KINDS = ("session.", "user.", "assistant.", "tool.", "system.", "hook.", "subagent.")


def is_pi_line(value: dict[str, Any]) -> bool:
    """Whether the value is a line of a session of pi."""
    if value.get("type") not in _PI_KINDS or "timestamp" not in value:
        return False
    message = value.get("message")
    return value["type"] != "message" or (isinstance(message, dict) and "role" in message)


def is_copilot_line(value: dict[str, Any]) -> bool:
    """Whether the value is an event of a session of Copilot CLI."""
    kind = value.get("type")
    if kind == "result":
        return "sessionId" in value and "exitCode" in value
    return (
        isinstance(kind, str)
        and kind.startswith(_COPILOT_KINDS)
        and isinstance(value.get("data"), dict)
    )


class PiLog:
    """Gathers the lines of one file; each session begins a run."""

    def __init__(self, name: str, report: Report) -> None:
        self._report, self._now = report, name
        self._sessions: dict[str, list[tuple[dict[str, Any], int]]] = {}

    def add(self, value: dict[str, Any], line: int) -> None:
        """Take one line."""
        if value["type"] == "session":
            self._now = str(value.get("id") or self._now)
        self._sessions.setdefault(self._now, []).append((value, line))

    def runs(self) -> Iterator[Run]:
        """The runs, in order of their first line."""
        for id, entries in self._sessions.items():
            history = History(id, "openai-chat", "pi", self._report)
            for value, line in _branch(entries):
                _pi_entry(history, value, line)
            run = history.run()
            if run is not None:
                yield run


def _branch(entries: list[tuple[dict[str, Any], int]]) -> list[tuple[dict[str, Any], int]]:
    """The entries on the chain that ends last; all of them where none names another."""
    parents = {value["id"]: value.get("parentId") for value, _ in entries if "id" in value}
    if not any(parents.values()):
        return entries
    kept, at = set(), entries[-1][0].get("id")
    while at is not None and at not in kept:
        kept.add(at)
        at = parents.get(at)
    return [(value, line) for value, line in entries if value.get("id") in kept]


def _pi_entry(history: History, value: dict[str, Any], line: int) -> None:
    stamp = seconds(value["timestamp"])
    if value["type"] in ("compaction", "branch_summary"):
        history.say({"role": "user", "content": str(value.get("summary"))}, line, stamp)
    elif value["type"] == "custom_message" and text_of(value.get("content")):
        history.say({"role": "user", "content": text_of(value["content"])}, line, stamp)
    elif value["type"] == "message":
        _pi_message(history, value["message"], line, stamp)


def _pi_message(history: History, message: dict[str, Any], line: int, stamp: float | None) -> None:
    content = message.get("content")
    match message["role"]:
        case "user" if text_of(content):
            history.say({"role": "user", "content": text_of(content)}, line, stamp)
        case "bashExecution":
            said = f"$ {message.get('command')}\n{message.get('output')}"
            history.say({"role": "user", "content": said}, line, stamp)
        case "assistant":
            _pi_reply(history, message, line, stamp)
        case "toolResult":
            call_id = str(message.get("toolCallId"))
            history.result(call_id, chat_result(text_of(content)), line)


def _pi_reply(history: History, message: dict[str, Any], line: int, stamp: float | None) -> None:
    blocks = [block for block in message.get("content") or () if isinstance(block, dict)]
    calls = [block for block in blocks if block.get("type") == "toolCall"]
    calls_made = [(str(c.get("id")), str(c.get("name")), c.get("arguments")) for c in calls]
    reply, names = chat_reply(text_of(blocks), calls_made)
    if not names and not reply["content"]:
        return  # aborted before it said anything
    history.of_model(message.get("model"))
    history.reply([reply], names, line, stamp, _pi_usage(message.get("usage")))


def _pi_usage(counts: Any) -> Usage | None:
    """Cached tokens lie outside the input."""
    if not isinstance(counts, dict) or not counts.get("totalTokens"):
        return None
    return Usage(
        fresh_tokens=counts.get("input") or 0,
        cache_read_tokens=counts.get("cacheRead") or 0,
        cache_write_tokens=counts.get("cacheWrite") or 0,
        output_tokens=counts.get("output") or 0,
    )


class CopilotLog:
    """Gathers the events of one file: one session."""

    def __init__(self, name: str, report: Report) -> None:
        self._history = History(name, "openai-chat", "copilot-cli", report)

    def add(self, value: dict[str, Any], line: int) -> None:
        """Take one event."""
        data, stamp = value.get("data", {}), seconds(value.get("timestamp"))
        if data.get("parentToolCallId"):
            return  # of a subagent: its result is all that the session sees
        match value["type"]:
            case "user.message" | "system.message":
                text = data.get("transformedContent") or data.get("content")
                role = value["type"].removesuffix(".message")
                if text:
                    self._history.say({"role": role, "content": str(text)}, line, stamp)
            case "assistant.message":
                self._reply(data, line, stamp)
            case "tool.execution_complete":
                self._result(data, line)

    def runs(self) -> Iterator[Run]:
        """The run, if there is one."""
        run = self._history.run()
        if run is not None:
            yield run

    def _reply(self, data: dict[str, Any], line: int, stamp: float | None) -> None:
        asked = [call for call in data.get("toolRequests") or () if isinstance(call, dict)]
        calls_made = [
            (str(c.get("toolCallId")), str(c.get("name")), c.get("arguments")) for c in asked
        ]
        reply, names = chat_reply(data.get("content"), calls_made)
        self._history.of_model(data.get("model"))
        if names or reply["content"]:
            self._history.reply([reply], names, line, stamp)

    def _result(self, data: dict[str, Any], line: int) -> None:
        given = data.get("result") or data.get("error") or {}
        text = given.get("content") or given.get("message") if isinstance(given, dict) else given
        self._history.result(str(data.get("toolCallId")), chat_result(str(text or "")), line)
