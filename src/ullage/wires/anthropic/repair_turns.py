"""Repairing Anthropic's rules about who speaks when: A1, A18, A19 and A20.

A server tool runs at the provider: call and result stand in assistant messages, the result
in the same one, or in the next if the turn stayed open between them (paused, or mixed with
calls of the client, which are answered by nothing but results).
"""

from __future__ import annotations

from typing import Any

from ullage.wires.anthropic.blocks import SERVER_CALLS
from ullage.wires.base import field
from ullage.wires.repair.base import BEGIN, At, Reading

__all__ = ["begun", "is_server_call", "is_server_result", "open_server_tools", "with_system_placed"]

_END = object()
_NO_RESULT = "an interrupted call of a server tool"
_STRAY = "a server tool's result without its call"


def begun(messages: list[Any], reading: Reading) -> list[Any]:
    """The messages with one of the user in front, if they do not begin with one."""
    if messages and field(messages[0], "role") == "user":
        return messages
    if messages and _kind_at(messages[0], 0) == "compaction":
        return messages
    reading.report(0, "the first message was not the user's")
    return [{"role": "user", "content": BEGIN}, *messages]


def with_system_placed(messages: list[Any], reading: Reading, count: int) -> list[Any]:
    """The messages with those of the system where they may stand.

    That is between the user and the assistant: one that the user follows waits till then.
    """
    made: list[Any] = []
    waiting: list[Any] = []
    for at, message in enumerate([*messages, _END]):
        role = field(message, "role")
        if role == "system":
            waiting.append(message)
            continue
        if waiting and (role == "assistant" or message is _END):
            last = made[-1] if made else None
            if field(last, "role") != "user" and not is_server_result(_kind_at(last, -1)):
                why = "a system message did not stand behind one of the user"
                reading.report(count + len(made), why)
                made.append({"role": "user", "content": BEGIN})
            made += waiting
            waiting = []
        elif waiting:
            reading.report(count + at - 1, "a system message stood before one of the user")
        made += [] if message is _END else [message]
    return made


def _kind_at(message: Any, number: int) -> Any:
    """The type of the first or last block of a message."""
    content = field(message, "content")
    return field(content[number], "type") if isinstance(content, list) and content else ""


def is_server_call(kind: Any) -> bool:
    """Whether a block of this type is the call of a server tool."""
    return isinstance(kind, str) and kind in SERVER_CALLS


def is_server_result(kind: Any) -> bool:
    """Whether a block of this type is the result of a server tool."""
    return isinstance(kind, str) and kind.endswith("_tool_result")


def open_server_tools(reading: Reading, since: int, stop: int) -> tuple[dict[At, str], bool]:
    """The blocks of server tools that may not stand where they are, and what each is.

    A message of the assistant answers its own calls, and those that were carried over from the one
    before. And whether a call at the end may still be answered by the next message of the
    assistant. No call of a message before ``since`` is open.
    """
    found: dict[At, str] = {}
    carried: list[At] = []
    caller = -2
    for at in range(since, stop):
        role = reading.roles[at]
        if role == "assistant":
            kinds = [field(block, "type") for block in reading.blocks[at] or ()]
            calls = [(at, n) for n, kind in enumerate(kinds) if is_server_call(kind)]
            results = [(at, n) for n, kind in enumerate(kinds) if is_server_result(kind)]
            answered = [reading.pairs.calls.get(result) for result in results]
            for result, call in zip(results, answered, strict=True):
                if call not in calls and call not in carried:
                    found[result] = _STRAY
            found.update((call, _NO_RESULT) for call in carried if call not in answered)
            carried, caller = [call for call in calls if call not in answered], at
        elif (role == "user" and not _only_answers(reading, at, caller)) or (
            role == "system" and caller == at - 1 and not reading.batches[caller]
        ):  # behind the system, a message of the user's will stand between
            found.update(dict.fromkeys(carried, _NO_RESULT))
            carried = []
    return found, bool(carried)


def _only_answers(reading: Reading, at: int, caller: int) -> bool:
    """Whether a message holds nothing but results of one batch."""
    blocks, calls = reading.blocks[at], reading.pairs.calls
    return bool(blocks) and all(
        calls.get((at, number), (-1, 0))[0] == caller for number in range(len(blocks or ()))
    )
