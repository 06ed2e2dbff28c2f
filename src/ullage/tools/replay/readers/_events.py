"""Session logs that hold messages and results apart: pi and Copilot CLI.

    pi       {"type": "session", "id": …}
             {"type": "message", "message": {"role": "user" | "assistant" | "toolResult", …}}
             {"type": "compaction", "summary": …}
    Copilot  {"type": "user.message" | "assistant.message", "data": {"content": …, …}}
             {"type": "tool.execution_complete", "data": {"toolCallId": …, "result": …}}

Both are read as Chat Completions: the logs hold no request. Entries of pi may name the entry
before them; then only the branch that ends last is the history.
"""

from __future__ import annotations

from collections.abc import Iterable

from ullage.tools.replay.readers._log import (
    Event,
    Lines,
    LoggedConversation,
    LogKind,
    answer,
    calls_in,
    reply,
    say,
    text_of,
)
from ullage.tools.replay.readers._run import DamageReport

_PI_KINDS = (
    *(
        "session",
        "message",
        "compaction",
        "thinking_level_change",
        "model_change",
    ),
    *("branch_summary", "custom", "custom_message", "label", "session_info"),
)
_COPILOT_KINDS = (
    "session.",
    "user.",
    "assistant.",
    "tool.",
    "system.",
    "hook.",
    "subagent.",
)


def _is_pi_line(value: Event) -> bool:
    if value.get("type") not in _PI_KINDS or "timestamp" not in value:
        return False
    message = value.get("message")
    return value["type"] != "message" or (
        isinstance(message, dict) and "role" in message
    )


def _pi_events(value: Event) -> Iterable[tuple[str | None, Event]]:
    is_head = value["type"] == "session" and value.get("id")
    yield (str(value["id"]) if is_head else None), value


def _branch(
    id: str, lines: Lines, report: DamageReport
) -> Iterable[tuple[str, Lines]]:
    """The entries on the chain that ends last; all of them where none names another."""
    parents = {
        value["id"]: value.get("parentId")
        for value, _ in lines
        if "id" in value
    }
    chain = set()
    at = lines[-1][0].get("id")
    while at is not None and at not in chain:
        chain.add(at)
        at = parents.get(at)
    is_chain = any(parents.values())
    yield (
        id,
        [entry for entry in lines if entry[0].get("id") in chain]
        if is_chain
        else lines,
    )


def _take_pi(history: LoggedConversation, value: Event) -> None:
    if value["type"] in ("compaction", "branch_summary"):
        say(history, str(value.get("summary")))
    elif value["type"] == "custom_message":
        say(history, text_of(value.get("content")))
    elif value["type"] == "message":
        _take_pi_message(history, value["message"])


def _take_pi_message(history: LoggedConversation, message: Event) -> None:
    content = message.get("content")
    match message["role"]:
        case "user":
            say(history, text_of(content))
        case "bashExecution":
            say(
                history, f"$ {message.get('command')}\n{message.get('output')}"
            )
        case "assistant":
            blocks = [
                block for block in content or () if isinstance(block, dict)
            ]
            call_blocks = [
                block for block in blocks if block.get("type") == "toolCall"
            ]
            calls = calls_in(call_blocks, "id", "name", "arguments")
            text = text_of(blocks)
            if calls or text:  # else it was aborted before it said anything
                history.of_model(message.get("model"))
                reply(history, text, calls)
        case "toolResult":
            answer(history, str(message.get("toolCallId")), text_of(content))


def _is_copilot_line(value: Event) -> bool:
    kind = value.get("type")
    if kind == "result":
        return "sessionId" in value and "exitCode" in value
    is_event = isinstance(kind, str) and kind.startswith(_COPILOT_KINDS)
    return is_event and isinstance(value.get("data"), dict)


def _take_copilot(history: LoggedConversation, value: Event) -> None:
    data = value.get("data", {})
    if data.get("parentToolCallId"):
        return  # of a subagent: its result is all that the session sees
    match value["type"]:
        case "user.message" | "system.message":
            text = data.get("transformedContent") or data.get("content") or ""
            say(
                history, str(text), role=value["type"].removesuffix(".message")
            )
        case "assistant.message":
            calls = calls_in(
                data.get("toolRequests"), "toolCallId", "name", "arguments"
            )
            history.of_model(data.get("model"))
            if calls or data.get("content"):
                reply(history, data.get("content"), calls)
        case "tool.execution_complete":
            result = data.get("result") or data.get("error") or {}
            if isinstance(result, dict):
                result = result.get("content") or result.get("message")
            answer(history, str(data.get("toolCallId")), str(result or ""))


PI = LogKind(
    format="openai-chat",
    is_line=_is_pi_line,
    take=_take_pi,
    events=_pi_events,
    arranged=_branch,
)
COPILOT = LogKind(
    format="openai-chat", is_line=_is_copilot_line, take=_take_copilot
)
