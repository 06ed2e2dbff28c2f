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


class Messages(BlockRepair):
    """A history with its calls paired, and the messages that come of it."""

    wire = Anthropic()
    hosts = ("user",)
    ids_once = True

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        super().__init__(raws, pairs)
        self._server_tools: dict[At, str] = {}
        self._outdated: set[int] = set()

    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        content = field(raw, "content")
        blocks = list(content) if isinstance(content, (list, tuple)) else None
        return field(raw, "role"), blocks

    def _pair(self, here: At, block: Any, role: Any) -> None:
        """A server's tools are paired under names of their own."""
        kind = field(block, "type")
        if kind == "tool_result":
            self.answer(
                here, field(block, "tool_use_id"), is_placeholder=self._is_ours(block)
            )
            if self.is_late(here):
                self._outdated.update(self.spoken(self.pairs.calls[here][0], here[0]))
        elif role == "assistant" and kind == "tool_use":
            self.call(here, field(block, "id"))
        elif role == "assistant" and _is_server_call(kind):
            self.pairs.call(here, f"{SERVER}{field(block, 'id')}")
        elif role == "assistant" and _is_server_result(kind):
            self.answer(here, f"{SERVER}{field(block, 'tool_use_id')}")

    def _tool(self, call: At) -> str:
        return str(field(self.block(call), "name") or "tool")

    # ── the messages ─────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `HistoryRepair.opens`. What is empty may be left out, so nothing opens with it."""
        role, blocks = self._opened(self.raws[at])
        content = field(self.raws[at], "content")
        if blocks is None:
            return role == "assistant" and bool(content) and not is_blank(content)
        return role == "assistant" and not all(map(_is_void, blocks))

    def _make(
        self, since: int, stop: int, count: int, last: Any
    ) -> tuple[list[Any], bool]:
        self._server_tools, is_paused = _open_server_tools(self, since, stop)
        messages, _ = super()._make(since, stop, count, last)
        messages = _with_system_placed(messages, self, count)
        return messages if since else _begun(messages, self), not is_paused

    def _content(self, at: int, caller: int | None) -> list[Any]:
        raw = self.raws[at]
        if self.blocks[at] is not None:
            made = super()._content(at, caller)
        else:
            made = self._emptied(at) if is_blank(field(raw, "content")) else [raw]
        self.stale += made if at in self._outdated else []
        return made

    def _emptied(self, at: int) -> list[Any]:
        """The last one of the assistant may be empty (A9)."""
        raw, role = self.raws[at], self.roles[at]
        if (
            role == "assistant"
            and at == len(self.raws) - 1
            and not field(raw, "content")
        ):
            return [raw]
        self.report(at, "the message had no text")
        return [{**copy_of(raw), "content": EMPTY}] if role == "user" else []

    def _with_blocks(self, at: int, blocks: list[Any]) -> Any:
        return {**copy_of(self.raws[at]), "content": blocks}

    def _is_arranged(self, at: int, caller: int, blocks: list[Any]) -> bool:
        """All in one message (A6), and first in it (A5)."""
        first = blocks[: len(self.batches[caller])]
        return self.is_whole(at, caller) and all(map(self._is_result, first))

    def _arranged(self, at: int, caller: int, blocks: list[Any]) -> list[list[Any]]:
        if self._is_arranged(at, caller, blocks):
            return [blocks]
        results = [block for block in blocks if self._is_result(block)]
        others = [block for block in blocks if not self._is_result(block)]
        if self.is_whole(at, caller):
            self.report(at, "results stood behind something else")
        else:
            results = self._answers(caller, at)
        return [[*results, *others]]

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
            case "tool_result" if here in self.pairs.calls:
                return self._result(here)
            case "tool_result":
                return _text(self.left_over(here, {"role": "user", "content": [block]}))
            case "tool_use" if here in self.names:
                return self._call(here, block)
            case _ if here in self._server_tools:
                message = {"role": "assistant", "content": [block]}
                return _text(self.set_aside(here[0], self._server_tools[here], message))
        return block

    def _result(self, result: At) -> Any:
        """Under the id of its call, its content not null (A23)."""
        block, name = self.block(result), self.names[self.pairs.calls[result]]
        void = isinstance(block, dict) and block.get("content", "") is None
        if field(block, "tool_use_id") == name and not void:
            return block
        new = {**copy_of(block), "tool_use_id": name}
        if void:
            self.report(result[0], "the content of a result was null")
            del new["content"]
        return new

    def _call(self, here: At, block: Any) -> Any:
        given = field(block, "input")
        if field(block, "id") == self.names[here] and isinstance(given, dict):
            return block
        new = {**copy_of(block), "id": self.names[here]}
        if not isinstance(given, dict):
            self.report(here[0], "the arguments of a call were not an object")
            new["input"] = _arguments(given)
        return new


def _is_void(block: Any) -> bool:
    """Whether a block of the assistant does not stay where it is."""
    kind = field(block, "type")
    return kind == "tool_result" or _is_blank_text(kind, block)


def _is_blank_text(kind: Any, block: Any) -> bool:
    """Whether a block is a text without words, whichever field its type has it in."""
    row = BLOCKS.get(kind) if isinstance(kind, str) else None
    return (
        row is not None and row.becomes == "text" and is_blank(field(block, row.text))
    )


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _arguments(given: Any) -> dict[str, Any]:
    """What is known of arguments that are not an object: text is read as JSON if it is."""
    if given is None or given == "":
        return {}
    try:
        return arguments_of(given) if isinstance(given, str) else {"input": given}
    except (FormatError, UnicodeError):
        return {"input": given}


# ── who speaks when ──────────────────────────────────────────────────────────────────────


def _begun(messages: list[Any], reading: HistoryRepair) -> list[Any]:
    """The messages with one of the user in front, if they do not begin with one."""
    if messages and field(messages[0], "role") == "user":
        return messages
    if messages and _kind_at(messages[0], 0) == "compaction":
        return messages
    reading.report(0, "the first message was not the user's")
    return [{"role": "user", "content": BEGIN}, *messages]


def _with_system_placed(
    messages: list[Any], reading: HistoryRepair, count: int
) -> list[Any]:
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
            if field(last, "role") != "user" and not _is_server_result(
                _kind_at(last, -1)
            ):
                why = "a system message did not stand behind one of the user"
                reading.report(count + len(made), why)
                made.append({"role": "user", "content": BEGIN})
            made += waiting
            waiting = []
        elif waiting:
            reading.report(
                count + at - 1, "a system message stood before one of the user"
            )
        made += [] if message is _END else [message]
    return made


def _kind_at(message: Any, number: int) -> Any:
    """The type of the first or last block of a message."""
    content = field(message, "content")
    return (
        field(content[number], "type") if isinstance(content, list) and content else ""
    )


def _is_server_call(kind: Any) -> bool:
    """Whether a block of this type is the call of a server tool."""
    return isinstance(kind, str) and kind in SERVER_CALLS


def _is_server_result(kind: Any) -> bool:
    """Whether a block of this type is the result of a server tool."""
    return isinstance(kind, str) and kind.endswith("_tool_result")


def _open_server_tools(
    reading: HistoryRepair, since: int, stop: int
) -> tuple[dict[At, str], bool]:
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
            calls = [(at, n) for n, kind in enumerate(kinds) if _is_server_call(kind)]
            results = [
                (at, n) for n, kind in enumerate(kinds) if _is_server_result(kind)
            ]
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


def _only_answers(reading: HistoryRepair, at: int, caller: int) -> bool:
    """Whether a message holds nothing but results of one batch."""
    blocks, calls = reading.blocks[at], reading.pairs.calls
    return bool(blocks) and all(
        calls.get((at, number), (-1, 0))[0] == caller
        for number in range(len(blocks or ()))
    )


REPAIR = Messages
