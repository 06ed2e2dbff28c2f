"""Repairing Anthropic Messages: A1, A3 to A9 and A18 to A20 (`provider-rules` §1.A).

Every batch of calls is followed by one user message with its results. That is the message
that already holds them, if there is one; what else it holds stays behind them. Everything
set aside leaves a line of text where it stood.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ullage.errors import FormatError
from ullage.history.pairing import Pairing
from ullage.wires.anthropic import repair_turns as turns
from ullage.wires.anthropic.blocks import SERVER
from ullage.wires.anthropic.format import Anthropic
from ullage.wires.base import field
from ullage.wires.block import arguments_of
from ullage.wires.repair.base import EMPTY, At, copy_of, is_blank, is_interrupted
from ullage.wires.repair.hosted import Hosted

__all__ = ["Messages"]


class Messages(Hosted):
    """A history with its calls paired, and the messages that come of it."""

    wire = Anthropic()
    hosts = ("user",)
    legal_id = re.compile(r"[a-zA-Z0-9_-]+\Z")
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
            self.answer(here, field(block, "tool_use_id"), is_placeholder=self._is_ours(block))
            if self.is_late(here):
                self._outdated.update(self.spoken(self.pairs.calls[here][0], here[0]))
        elif role == "assistant" and kind == "tool_use":
            self.call(here, field(block, "id"))
        elif role == "assistant" and turns.is_server_call(kind):
            self.pairs.call(here, f"{SERVER}{field(block, 'id')}")
        elif role == "assistant" and turns.is_server_result(kind):
            self.answer(here, f"{SERVER}{field(block, 'tool_use_id')}")

    def _tool(self, call: At) -> str:
        return str(field(self.block(call), "name") or "tool")

    # ── the messages ─────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `Reading.opens`. What is empty may be left out, so nothing opens with it."""
        role, blocks = self._opened(self.raws[at])
        content = field(self.raws[at], "content")
        if blocks is None:
            return role == "assistant" and bool(content) and not is_blank(content)
        return role == "assistant" and not all(map(_is_void, blocks))

    def _make(self, since: int, stop: int, count: int, last: Any) -> tuple[list[Any], bool]:
        self._server_tools, is_paused = turns.open_server_tools(self, since, stop)
        messages, _ = super()._make(since, stop, count, last)
        messages = turns.with_system_placed(messages, self, count)
        return messages if since else turns.begun(messages, self), not is_paused

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
        if role == "assistant" and at == len(self.raws) - 1 and not field(raw, "content"):
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
            case "text" if is_blank(field(block, "text")):
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
    return kind == "tool_result" or (kind == "text" and is_blank(field(block, "text")))


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
