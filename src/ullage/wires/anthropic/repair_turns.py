"""Repairing Anthropic's rules about who speaks when: A1, A18, A19 and A20.

A server tool runs at the provider: call and result stand in assistant messages, the result
in the same one, or in the next if the turn stayed open between them (paused, or mixed with
calls of the client, which are answered by nothing but results).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ullage.wires.anthropic.blocks import SERVER_CALLS
from ullage.wires.base import field
from ullage.wires.repair.base import BEGIN, At, RepairLog

if TYPE_CHECKING:
    from ullage.wires.anthropic.repair import Messages

__all__ = ["begun", "is_server_result", "unserved", "with_system_placed"]

_UNSERVED = "an interrupted call of a server tool"
_STRAY = "a server tool's result without its call"


def begun(messages: list[Any], log: RepairLog) -> list[Any]:
    """The messages with one of the user in front, if they do not begin with one."""
    if messages:
        first = messages[0]
        content = field(first, "content")
        kind = field(content[0], "type") if isinstance(content, list) and content else ""
        if field(first, "role") == "user" or kind == "compaction":
            return messages
    log.report(0, "the first message was not the user's")
    return [{"role": "user", "content": BEGIN}, *messages]


def with_system_placed(messages: list[Any], log: RepairLog, count: int) -> list[Any]:
    """The messages with those of the system where they may stand.

    That is between the user and the assistant: one that the user follows waits till then.

    Args:
        messages: some messages in a row, up to one of the assistant or the end.
        log: where it is reported.
        count: how many messages stand before them.
    """
    made: list[Any] = []
    waiting: list[Any] = []
    for at, message in enumerate(messages):
        role = field(message, "role")
        if role == "system":
            waiting.append(message)
            continue
        if waiting and role == "assistant":
            _place(made, waiting, log, count)
        elif waiting:
            log.report(count + at - 1, "a system message stood before one of the user")
        made.append(message)
    if waiting:
        _place(made, waiting, log, count)
    return made


def _place(made: list[Any], waiting: list[Any], log: RepairLog, count: int) -> None:
    """Put waiting system messages behind a message of the user."""
    last = made[-1] if made else None
    if field(last, "role") != "user" and not _ends_with_server_result(last):
        log.report(count + len(made), "a system message did not stand behind one of the user")
        made.append({"role": "user", "content": BEGIN})
    made += waiting
    waiting.clear()


def _ends_with_server_result(message: Any) -> bool:
    content = field(message, "content")
    kind = field(content[-1], "type") if isinstance(content, list) and content else ""
    return is_server_result(kind)


def is_server_result(kind: Any) -> bool:
    """Whether a block of this type is the result of a server tool."""
    return isinstance(kind, str) and kind.endswith("_tool_result")


def unserved(reading: Messages, since: int, stop: int) -> tuple[dict[At, str], bool]:
    """The blocks of server tools that may not stand where they are, and what each is.

    And whether a call at the end may still be answered by the next message of the assistant. No
    call of a message before ``since`` is open.
    """
    found: dict[At, str] = {}
    carried: list[At] = []
    caller = -2
    for at in range(since, stop):
        role, content = reading.roles[at], reading.blocks[at]
        if role == "assistant":
            here, answered, strays = _served(reading, at, carried)
            found.update((call, _UNSERVED) for call in carried if call not in answered)
            found.update(dict.fromkeys(strays, _STRAY))
            carried, caller = here, at
        elif (role == "user" and not _only_answers(reading, at, content, caller)) or (
            role == "system" and caller == at - 1 and not reading.batches[caller]
        ):  # behind the system, a message of the user's will stand between
            found.update(dict.fromkeys(carried, _UNSERVED))
            carried = []
    return found, bool(carried)


def _served(reading: Messages, at: int, carried: list[At]) -> tuple[list[At], set[At], list[At]]:
    """Server calls a message leaves open, those it answers, and results in it of none.

    It answers its own, and those that were carried over from the assistant message before.
    """
    blocks = reading.blocks[at] or ()
    kinds = [(field(block, "type"), (at, number)) for number, block in enumerate(blocks)]
    calls = [*carried, *(here for kind, here in kinds if kind in SERVER_CALLS)]
    results = [here for kind, here in kinds if kind != "tool_result" and is_server_result(kind)]
    answered = {reading.pairs.calls.get(result, (-1, 0)) for result in results}
    strays = [here for here in results if reading.pairs.calls.get(here) not in calls]
    here = [call for call in calls if call[0] == at and call not in answered]
    return here, answered, strays


def _only_answers(reading: Messages, at: int, content: list[Any] | None, caller: int) -> bool:
    """Whether a message holds nothing but results of one batch."""
    calls = reading.pairs.calls
    return bool(content) and all(
        calls.get((at, number), (-1, 0))[0] == caller for number in range(len(content or ()))
    )
