"""Repairing Anthropic's rules about who speaks when: A1, A18, A19 and A20.

A server tool runs at the provider: call and result stand in assistant messages, the result
in the same one, or in the next if the turn stayed open between them (paused, or mixed with
calls of the client, which are answered by nothing but results).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ullage.wires.base import field
from ullage.wires.repair.base import BEGIN, Location, RepairLog

__all__ = ["begun", "settled", "unserved"]

_UNSERVED = "an interrupted call of a server tool"
_STRAY = "a server tool's result without its call"


def begun(messages: list[Any], bench: RepairLog) -> list[Any]:
    """The messages with one of the user in front, if they do not begin with one."""
    if messages:
        first = messages[0]
        content = field(first, "content")
        kind = field(content[0], "type") if isinstance(content, list) and content else ""
        if field(first, "role") == "user" or kind == "compaction":
            return messages
    bench.tell(0, "the first message was not the user's")
    return [{"role": "user", "content": BEGIN}, *messages]


def settled(messages: list[Any], bench: RepairLog, count: int) -> list[Any]:
    """The messages with those of the system where they may stand.

    That is between the user and the assistant: one that the user follows waits till then.

    Args:
        messages: some messages in a row, up to one of the assistant or the end.
        bench: where it is told.
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
            _place(made, waiting, bench, count)
        elif waiting:
            bench.tell(count + at - 1, "a system message stood before one of the user")
        made.append(message)
    if waiting:
        _place(made, waiting, bench, count)
    return made


def _place(made: list[Any], waiting: list[Any], bench: RepairLog, count: int) -> None:
    """Put waiting system messages behind a message of the user."""
    last = made[-1] if made else None
    if field(last, "role") != "user" and not _ends_with_server_result(last):
        bench.tell(count + len(made), "a system message did not stand behind one of the user")
        made.append({"role": "user", "content": BEGIN})
    made += waiting
    waiting.clear()


def _ends_with_server_result(message: Any) -> bool:
    content = field(message, "content")
    kind = field(content[-1], "type") if isinstance(content, list) and content else ""
    return _is_server_result(kind)


def _is_server_result(kind: Any) -> bool:
    return isinstance(kind, str) and kind.endswith("_tool_result")


def unserved(
    roles: Sequence[Any],
    blocks: Sequence[list[Any] | None],
    answered: Mapping[Location, Location],
    batches: Sequence[Sequence[Location]],
    within: range,
) -> tuple[Mapping[Location, str], bool]:
    """The blocks of server tools that may not stand where they are, and what each is.

    And whether a call at the end may still be answered by the next message of the assistant.

    Args:
        roles: the role of each message.
        blocks: the blocks of each, None where its content is a string.
        answered: the call that each result of the client's tools answers.
        batches: the calls of the client's tools in each message.
        within: the messages to look at; no call of one before them is open.
    """
    found: dict[Location, str] = {}
    carried: dict[str, Location] = {}
    caller = -1
    for at in within:
        content = blocks[at]
        if roles[at] == "assistant":
            here, strays = _served(at, content or (), carried)
            found.update(dict.fromkeys(carried.values(), _UNSERVED))
            found.update(dict.fromkeys(strays, _STRAY))
            carried, caller = here, at
        elif roles[at] == "system":
            if caller == at - 1 and not batches[caller]:  # one of the user will stand between
                found.update(dict.fromkeys(carried.values(), _UNSERVED))
                carried = {}
        elif roles[at] == "user" and not _only_answers(at, content, caller, answered):
            found.update(dict.fromkeys(carried.values(), _UNSERVED))
            carried = {}
    return found, bool(carried)


def _served(
    at: int, content: Sequence[Any], carried: dict[str, Location]
) -> tuple[dict[str, Location], list[Location]]:
    """Server calls this message leaves open, and results in it of no call.

    Calls carried over from the assistant message before are taken out when answered.
    """
    here: dict[str, Location] = {}
    strays: list[Location] = []
    for number, block in enumerate(content):
        kind = field(block, "type")
        if kind in ("server_tool_use", "mcp_tool_use"):
            here[str(field(block, "id"))] = (at, number)
        elif kind != "tool_result" and _is_server_result(kind):
            asked = str(field(block, "tool_use_id"))
            if here.pop(asked, None) is None and carried.pop(asked, None) is None:
                strays.append((at, number))
    return here, strays


def _only_answers(
    at: int, content: list[Any] | None, caller: int, answered: Mapping[Location, Location]
) -> bool:
    """Whether a message holds nothing but results of one batch."""
    if not content:
        return False
    calls = (answered.get((at, number), (-2, 0)) for number in range(len(content)))
    return all(call[0] == caller for call in calls)
