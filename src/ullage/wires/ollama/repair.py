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
from ullage.wires.repair.base import HistoryRepair, copy_of, is_interrupted, is_object


class OllamaRepair(HistoryRepair):
    """A history with its calls paired, and the messages that come of it."""

    wire = Ollama()
    names_calls = False

    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        """The calls of the assistant, or the message that is a result."""
        role = field(raw, "role")
        calls = field(raw, "tool_calls") if role == "assistant" else None
        if calls and not isinstance(calls, (list, tuple)):
            return role, None
        return role, [raw] if role == "tool" else list(calls or ())

    def _pair(self, here: At, block: Any, role: Any) -> None:
        if role == "assistant":
            call_id = field(block, "id")
            self.call(here, call_id, self.wire.tool_name(block))
            self.names[here] = str(call_id or "")
            return
        call_id, tool = named(block)
        ours = is_interrupted(field(block, "content"))
        self.answer(
            here, call_id or ("" if tool else NAMELESS), tool, is_placeholder=ours
        )

    def _tool(self, call: At) -> str:
        return self.wire.tool_name(self.block(call)) or "tool"

    # ── the messages ─────────────────────────────────────────────────────────────────

    def _content(self, at: int, caller: int | None) -> list[Any]:
        raw, role = self.raws[at], self.roles[at]
        if role == "assistant":
            return [self._assistant(at)]
        if role != "tool":
            return [raw]
        if (at, 0) in self.pairs.calls:
            return self.left(at)
        ours = is_interrupted(field(raw, "content"))
        return [] if ours else [self.wire.user(self.left_over((at, 0), raw))]

    def _assistant(self, at: int) -> Any:
        """A message of the assistant, its calls with arguments that are objects (O4)."""
        raw, old = self.raws[at], self.blocks[at]
        if not old:
            return raw
        calls = [self._call(at, call) for call in old]
        same = all(new is call for new, call in zip(calls, old, strict=True))
        return raw if same else {**copy_of(raw), "tool_calls": calls}

    def _call(self, at: int, raw: Any) -> Any:
        body = field(raw, "function")
        given = field(body, "arguments")
        if not is_object(raw) or not isinstance(given, str):
            return raw  # legal, or the parser will say so
        self.report(at, "the arguments of a call were not an object")
        try:
            arguments = arguments_of(given or "{}")
        except FormatError:
            arguments = {"input": given}
        return {
            **copy_of(raw),
            "function": {**plain(body, "function"), "arguments": arguments},
        }

    def _ending(self, last: Any) -> list[Any]:
        """No message is legal: it loads the model."""
        return []

    # ── results ──────────────────────────────────────────────────────────────────────

    def _answers(self, caller: int, host: int | None = None) -> list[Any]:
        """The results of a batch: as they stand behind it, or in the order of its calls."""
        calls = self.batches[caller]
        results = sorted(
            self.pairs.answers[call] for call in calls if call in self.pairs.answers
        )
        if [at for at, _ in results] == list(
            range(caller + 1, caller + 1 + len(calls))
        ):
            calls = [self.pairs.calls[result] for result in results]
        behind = caller + 1
        while self.roles.get(behind) == "tool":
            behind += 1
        return list(self.answered(calls, lambda result: result[0] <= behind))

    def _result(self, result: At) -> Any:
        """As it is, but under the tool of its call where it is told by its order alone."""
        raw, tool = self.block(result), self._tool(self.pairs.calls[result])
        if named(raw) != ("", "") or self._stands(result):
            return raw
        return {**copy_of(raw), "tool_name": tool}

    def _stands(self, result: At) -> bool:
        """Whether the batch of a result's call is whole and stands right behind it."""
        caller = self.pairs.calls[result][0]
        calls = self.batches[caller]
        places = sorted(self.pairs.answers.get(call, (-1, 0))[0] for call in calls)
        return places == list(range(caller + 1, caller + 1 + len(calls)))


REPAIR = OllamaRepair
