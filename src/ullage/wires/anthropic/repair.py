"""Repairing Anthropic Messages: A1, A3 to A9 and A18 to A20 (`provider-rules` §1.A).

Every batch of calls is followed by one user message with its results. That is the message
that already holds them, if there is one; what else it holds stays behind them. Everything
set aside leaves a line of text where it stood.

A server tool runs at the provider: call and result stand in assistant messages, the result
in the same one, or in the next if the turn stayed open between them (paused, or mixed with
calls of the client, which are answered by nothing but results).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ullage.core.errors import FormatError
from ullage.core.history.pairing import At, Pairing
from ullage.core.history.raw import field
from ullage.wires.anthropic.blocks import BLOCKS, SERVER, SERVER_CALLS
from ullage.wires.anthropic.format import Anthropic
from ullage.wires.block import arguments_of
from ullage.wires.repair.base import (
    BEGIN,
    EMPTY,
    HistoryRepair,
    copy_of,
    is_blank,
    is_interrupted,
)
from ullage.wires.repair.hosted import BlockRepair

_END = object()
_NO_RESULT = "an interrupted call of a server tool"
_STRAY = "a server tool's result without its call"


class AnthropicRepair(BlockRepair):
    """A history with its calls paired, and the messages that come of it."""

    wire = Anthropic()
    hosts = ("user",)
    ids_once = True

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        super().__init__(raws, pairs)
        self._server_flaws: dict[At, str] = {}
        self._outdated: set[int] = set()

    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        role = field(raw, "role")
        content = field(raw, "content")
        if not isinstance(content, (list, tuple)):
            return role, None
        return role, list(content)

    def _pair(self, here: At, block: Any, role: Any) -> None:
        """A server's tools are paired under names of their own."""
        kind = field(block, "type")
        if kind == "tool_result":
            call_id = field(block, "tool_use_id")
            self.answer(here, call_id, is_placeholder=self._is_ours(block))
            if self.is_late(here):
                call = self.pairs.call_by_result[here]
                self._outdated.update(self.spoken(call[0], here[0]))
            return
        if role != "assistant":
            return
        if kind == "tool_use":
            self.call(here, field(block, "id"))
        elif _is_server_call(kind):
            self.pairs.add_call(here, f"{SERVER}{field(block, 'id')}")
        elif _is_server_result(kind):
            self.answer(here, f"{SERVER}{field(block, 'tool_use_id')}")

    def _tool(self, call: At) -> str:
        return str(field(self.block(call), "name") or "tool")

    # ── the messages ─────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `HistoryRepair.opens`. What is empty may be left out, so nothing opens with it."""
        role, blocks = self._opened(self.raws[at])
        if role != "assistant":
            return False
        if blocks is not None:
            return not all(_is_void(block) for block in blocks)
        content = field(self.raws[at], "content")
        return bool(content) and not is_blank(content)

    def _make(
        self,
        start: int,
        stop: int,
        count: int,
        previous: Any,
    ) -> tuple[list[Any], bool]:
        self._server_flaws, is_paused = _open_server_tools(self, start, stop)
        messages, _ = super()._make(start, stop, count, previous)
        messages = _with_system_placed(messages, self, count)
        if not start:
            messages = _begun(messages, self)
        return messages, not is_paused

    def _content(self, at: int, caller: int | None) -> list[Any]:
        if self.blocks[at] is not None:
            messages = super()._content(at, caller)
        elif is_blank(field(self.raws[at], "content")):
            messages = self._emptied(at)
        else:
            messages = [self.raws[at]]
        if at in self._outdated:
            self.stale += messages
        return messages

    def _emptied(self, at: int) -> list[Any]:
        """The last one of the assistant may be empty (A9)."""
        raw = self.raws[at]
        role = self.roles[at]
        is_last = at == len(self.raws) - 1
        if role == "assistant" and is_last and not field(raw, "content"):
            return [raw]
        self.report(at, "the message had no text")
        if role != "user":
            return []
        return [{**copy_of(raw), "content": EMPTY}]

    def _with_blocks(self, at: int, blocks: list[Any]) -> Any:
        return {**copy_of(self.raws[at]), "content": blocks}

    def _is_arranged(self, at: int, caller: int, blocks: list[Any]) -> bool:
        """All in one message (A6), and first in it (A5)."""
        if not self.is_whole(at, caller):
            return False
        leading = blocks[: len(self.batches[caller])]
        return all(self._is_result(block) for block in leading)

    def _arranged(
        self, at: int, caller: int, blocks: list[Any]
    ) -> list[list[Any]]:
        if self._is_arranged(at, caller, blocks):
            return [blocks]
        results = [block for block in blocks if self._is_result(block)]
        rest = [block for block in blocks if not self._is_result(block)]
        if self.is_whole(at, caller):
            self.report(at, "results stood behind something else")
        else:
            results = self._answers(caller, at)
        return [[*results, *rest]]

    # ── blocks ───────────────────────────────────────────────────────────────────────

    def _is_result(self, block: Any) -> bool:
        return bool(field(block, "type") == "tool_result")

    def _is_ours(self, block: Any) -> bool:
        return is_interrupted(field(block, "content"))

    def _fitted(self, here: At, block: Any) -> Any:
        match field(block, "type"):
            case kind if _is_blank_text(kind, block):
                self.report(here[0], "an empty text was left out")
                return None
            case "tool_result" if here in self.pairs.call_by_result:
                return self._result(here)
            case "tool_result":
                message = {"role": "user", "content": [block]}
                return _text(self.left_over(here, message))
            case "tool_use" if here in self.names:
                return self._call(here, block)
            case _ if here in self._server_flaws:
                flaw = self._server_flaws[here]
                message = {"role": "assistant", "content": [block]}
                return _text(self.set_aside(here[0], flaw, message))
        return block

    def _result(self, result: At) -> Any:
        """Under the id of its call, its content not null (A23)."""
        block = self.block(result)
        call_id = self.names[self.pairs.call_by_result[result]]
        is_null = isinstance(block, dict) and block.get("content", "") is None
        if field(block, "tool_use_id") == call_id and not is_null:
            return block
        mended = {**copy_of(block), "tool_use_id": call_id}
        if is_null:
            self.report(result[0], "the content of a result was null")
            del mended["content"]
        return mended

    def _call(self, here: At, block: Any) -> Any:
        """Under its own id, its arguments an object."""
        call_id = self.names[here]
        arguments = field(block, "input")
        if field(block, "id") == call_id and isinstance(arguments, dict):
            return block
        mended = {**copy_of(block), "id": call_id}
        if not isinstance(arguments, dict):
            self.report(here[0], "the arguments of a call were not an object")
            mended["input"] = _as_object(arguments)
        return mended


def _is_void(block: Any) -> bool:
    """Whether a block of the assistant leaves its message: a result, or a text without words."""
    kind = field(block, "type")
    return kind == "tool_result" or _is_blank_text(kind, block)


def _is_blank_text(kind: Any, block: Any) -> bool:
    """Whether a block is a text without words, whichever field its type has it in."""
    row = BLOCKS.get(kind) if isinstance(kind, str) else None
    if row is None or row.becomes != "text":
        return False
    return is_blank(field(block, row.text))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _as_object(arguments: Any) -> dict[str, Any]:
    """Arguments that are no object, as one: text is read as JSON if it is."""
    if arguments is None or arguments == "":
        return {}
    if not isinstance(arguments, str):
        return {"input": arguments}
    try:
        return arguments_of(arguments)
    except (FormatError, UnicodeError):
        return {"input": arguments}


# ── who speaks when ──────────────────────────────────────────────────────────────────────


def _begun(messages: list[Any], repair: HistoryRepair) -> list[Any]:
    """The messages with one of the user in front, if they do not begin with one."""
    if messages and field(messages[0], "role") == "user":
        return messages
    if messages and _kind_at(messages[0], 0) == "compaction":
        return messages
    repair.report(0, "the first message was not the user's")
    return [{"role": "user", "content": BEGIN}, *messages]


def _with_system_placed(
    messages: list[Any],
    repair: HistoryRepair,
    count: int,
) -> list[Any]:
    """The messages with those of the system where they may stand.

    That is between the user and the assistant: one that the user follows waits till then.
    """
    placed: list[Any] = []
    waiting: list[Any] = []
    for at, message in enumerate([*messages, _END]):
        role = field(message, "role")
        if role == "system":
            waiting.append(message)
            continue
        if waiting and (role == "assistant" or message is _END):
            if not _may_precede_system(placed):
                repair.report(
                    count + len(placed),
                    "a system message did not stand behind one of the user",
                )
                placed.append({"role": "user", "content": BEGIN})
            placed += waiting
            waiting = []
        elif waiting:
            repair.report(
                count + at - 1,
                "a system message stood before one of the user",
            )
        if message is not _END:
            placed.append(message)
    return placed


def _may_precede_system(messages: Sequence[Any]) -> bool:
    """Whether a system message may stand behind these (A20)."""
    if not messages:
        return False
    if field(messages[-1], "role") == "user":
        return True
    return _is_server_result(_kind_at(messages[-1], -1))


def _kind_at(message: Any, number: int) -> Any:
    """The type of the first or last block of a message."""
    content = field(message, "content")
    if not isinstance(content, list) or not content:
        return ""
    return field(content[number], "type")


def _is_server_call(kind: Any) -> bool:
    """Whether a block of this type is the call of a server tool."""
    return isinstance(kind, str) and kind in SERVER_CALLS


def _is_server_result(kind: Any) -> bool:
    """Whether a block of this type is the result of a server tool."""
    return isinstance(kind, str) and kind.endswith("_tool_result")


def _open_server_tools(
    repair: HistoryRepair,
    start: int,
    stop: int,
) -> tuple[dict[At, str], bool]:
    """The blocks of server tools that may not stand where they are.

    A message of the assistant answers its own calls, and those that were carried over from the one
    before. No call of a message before ``start`` is open.

    Args:
        repair: the history that is repaired.
        start: the first of the messages.
        stop: the message behind the last of them.

    Returns:
        What is wrong with each such block; and whether a call at the end may still be answered by
        the next message of the assistant.
    """
    flaws: dict[At, str] = {}
    carried: list[At] = []
    caller = -2
    for at in range(start, stop):
        if repair.roles[at] == "assistant":
            calls, results = _server_blocks(repair, at)
            answered = []
            for result in results:
                call = repair.pairs.call_by_result.get(result)
                answered.append(call)
                if call not in calls and call not in carried:
                    flaws[result] = _STRAY
            for call in carried:
                if call not in answered:
                    flaws[call] = _NO_RESULT
            carried = [call for call in calls if call not in answered]
            caller = at
        elif _ends_reply(repair, at, caller):
            flaws.update(dict.fromkeys(carried, _NO_RESULT))
            carried = []
    return flaws, bool(carried)


def _server_blocks(
    repair: HistoryRepair, at: int
) -> tuple[list[At], list[At]]:
    """Where a message has calls of server tools, and where results of such."""
    calls = []
    results = []
    for number, block in enumerate(repair.blocks[at] or ()):
        kind = field(block, "type")
        if _is_server_call(kind):
            calls.append((at, number))
        if _is_server_result(kind):
            results.append((at, number))
    return calls, results


def _ends_reply(repair: HistoryRepair, at: int, caller: int) -> bool:
    """Whether no call of a server tool stays open behind a message.

    Args:
        repair: the history that is repaired.
        at: the message, which is not the assistant's.
        caller: the newest message of the assistant; -2 if there is none.
    """
    role = repair.roles[at]
    if role == "user":
        return not _only_answers(repair, at, caller)
    # Behind the system, a message of the user's will stand between.
    return role == "system" and caller == at - 1 and not repair.batches[caller]


def _only_answers(repair: HistoryRepair, at: int, caller: int) -> bool:
    """Whether a message holds nothing but results of one batch."""
    blocks = repair.blocks[at]
    if not blocks:
        return False
    for number in range(len(blocks)):
        call = repair.pairs.call_by_result.get((at, number))
        if call is None or call[0] != caller:
            return False
    return True


REPAIR = AnthropicRepair
