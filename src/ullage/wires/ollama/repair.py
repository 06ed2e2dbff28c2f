"""Repairing Ollama's chat: O1 to O4.

Results are messages of their own, so every batch is followed by its own, and what is set aside
leaves a message of the user where it stood. Ids are left as they are: a call is known by its tool
and its place as well.
"""

from __future__ import annotations

from typing import Any

from ullage.core.errors import FormatError
from ullage.core.history.pairing import NAMELESS, At
from ullage.core.history.raw import field
from ullage.wires.base import plain
from ullage.wires.block import arguments_of
from ullage.wires.ollama.format import Ollama, named
from ullage.wires.repair.base import (
    HistoryRepair,
    copy_of,
    is_interrupted,
    is_object,
)


class OllamaRepair(HistoryRepair):
    """A history with its calls paired, and the messages that come of it."""

    wire = Ollama()
    names_calls = False

    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        """The calls of the assistant, or the message that is a result."""
        role = field(raw, "role")
        if role == "tool":
            return role, [raw]
        calls = field(raw, "tool_calls") if role == "assistant" else None
        if calls and not isinstance(calls, (list, tuple)):
            return role, None
        return role, list(calls or ())

    def _pair(self, here: At, block: Any, role: Any) -> None:
        if role == "assistant":
            call_id = field(block, "id")
            self.call(here, call_id, self.wire.tool_name(block))
            self.names[here] = str(call_id or "")
            return
        call_id, tool = named(block)
        if not call_id and not tool:
            call_id = NAMELESS
        is_ours = is_interrupted(field(block, "content"))
        self.answer(here, call_id, tool, is_placeholder=is_ours)

    def _tool(self, call: At) -> str:
        return self.wire.tool_name(self.block(call)) or "tool"

    # ── the messages ─────────────────────────────────────────────────────────────────

    def _content(self, at: int, caller: int | None) -> list[Any]:
        raw = self.raws[at]
        role = self.roles[at]
        if role == "assistant":
            return [self._assistant(at)]
        if role != "tool":
            return [raw]
        if (at, 0) in self.pairs.call_by_result:
            return self.left(at)
        if is_interrupted(field(raw, "content")):
            return []
        return [self.wire.user(self.left_over((at, 0), raw))]

    def _assistant(self, at: int) -> Any:
        """A message of the assistant, its calls with arguments that are objects (O4)."""
        raw = self.raws[at]
        raw_calls = self.blocks[at]
        if not raw_calls:
            return raw
        calls = [self._call(at, call) for call in raw_calls]
        pairs = zip(calls, raw_calls, strict=True)
        if all(call is raw_call for call, raw_call in pairs):
            return raw
        return {**copy_of(raw), "tool_calls": calls}

    def _call(self, at: int, raw: Any) -> Any:
        body = field(raw, "function")
        text = field(body, "arguments")
        if not is_object(raw) or not isinstance(text, str):
            return raw  # legal, or the parser will say so
        self.report(at, "the arguments of a call were not an object")
        try:
            arguments = arguments_of(text or "{}")
        except FormatError:
            arguments = {"input": text}
        function = {**plain(body, "function"), "arguments": arguments}
        return {**copy_of(raw), "function": function}

    def _ending(self, previous: Any) -> list[Any]:
        """No message is legal: it loads the model."""
        return []

    # ── results ──────────────────────────────────────────────────────────────────────

    def _answers(self, caller: int, host: int | None = None) -> list[Any]:
        """The results of a batch: as they stand behind it, or in the order of its calls."""
        calls = self.batches[caller]
        if self._is_followed(caller):
            results = sorted(self.pairs.result_by_call[call] for call in calls)
            calls = [self.pairs.call_by_result[result] for result in results]
        end = caller + 1
        while self.roles.get(end) == "tool":
            end += 1
        return list(self.answered(calls, lambda result: result[0] <= end))

    def _result(self, result: At) -> Any:
        """As it is, but under the tool of its call where it is told by its order alone."""
        raw = self.block(result)
        call = self.pairs.call_by_result[result]
        tool = self._tool(call)
        if named(raw) != ("", "") or self._is_followed(call[0]):
            return raw
        return {**copy_of(raw), "tool_name": tool}

    def _is_followed(self, caller: int) -> bool:
        """Whether the results of a batch are all there and stand right behind it."""
        messages = []
        for call in self.batches[caller]:
            result = self.pairs.result_by_call.get(call)
            if result is None:
                return False
            messages.append(result[0])
        start = caller + 1
        return sorted(messages) == list(range(start, start + len(messages)))


REPAIR = OllamaRepair
