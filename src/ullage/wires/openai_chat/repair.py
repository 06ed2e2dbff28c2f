"""Repairing OpenAI Chat Completions: C1 to C8 (`provider-rules` §1.B).

Results are messages of their own, so every batch is followed by its own, and what is set
aside leaves a message of the user where it stood. Ids may come again in later turns; within
a batch they may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ullage.core.history.pairing import At, Pairing
from ullage.core.history.raw import field
from ullage.wires.base import plain
from ullage.wires.openai_chat.blocks import CALLS, INSTEAD_OF_CONTENT, PARTS
from ullage.wires.openai_chat.format import OpenAIChat
from ullage.wires.repair.base import (
    EMPTY,
    HistoryRepair,
    copy_of,
    is_interrupted,
    is_object,
)

_ROLES = ("system", "developer", "user", "assistant")
_BESIDE = "[ullage: what a tool gave beside text follows]"
_SEE = "[ullage: what this tool gave is in the next message of the user]"


class Messages(HistoryRepair):
    """A history with its calls paired, and the messages that come of it."""

    wire = OpenAIChat()

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        super().__init__(raws, pairs)
        self._beside: list[Any] = []

    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        """The calls of the assistant, or the message that is a result."""
        role = field(raw, "role")
        calls = field(raw, "tool_calls") if role == "assistant" else None
        if calls and not isinstance(calls, (list, tuple)):
            return role, None
        return role, [raw] if role == "tool" else list(calls or ())

    def _pair(self, here: At, block: Any, role: Any) -> None:
        if role == "assistant":
            self.call(here, field(block, "id"))
        else:
            ours = is_interrupted(field(block, "content"))
            self.answer(here, field(block, "tool_call_id"), is_placeholder=ours)

    def _tool(self, call: At) -> str:
        return self.wire.tool_name(self.block(call)) or "tool"

    # ── the messages ─────────────────────────────────────────────────────────────────

    def _content(self, at: int, caller: int | None) -> list[Any]:
        raw, role = self.raws[at], self.roles[at]
        if role == "assistant":
            return self._assistant(at)
        if role == "tool":
            if (at, 0) in self.pairs.calls:
                return self.left(at)
            ours = is_interrupted(field(raw, "content"))
            return [] if ours else [self.wire.user(self.left_over((at, 0), raw))]
        if role not in _ROLES or field(raw, "content") not in (None, []):
            return [raw]
        self.report(at, "the message had no content")
        return [{**copy_of(raw), "content": EMPTY}]

    def _assistant(self, at: int) -> list[Any]:
        """A message of the assistant with ids of its own; none if nothing is in it."""
        raw, old = self.raws[at], self.blocks[at]
        if old is None:
            return [raw]  # the parser will say so
        new: dict[str, Any] = {}
        calls = [self._call((at, number), call) for number, call in enumerate(old)]
        if any(a is not b for a, b in zip(calls, old, strict=True)):
            new["tool_calls"] = calls
        content = field(raw, "content")
        says = content or any(field(raw, key) for key in INSTEAD_OF_CONTENT)
        if content == [] or (content is None and not says):
            self.report(at, "the message had no content")
            if not says and not field(raw, "reasoning_content"):
                return []
            new["content"] = None if says else EMPTY
        is_bare = not old and field(raw, "tool_calls") is not None
        if not new and not is_bare:
            return [raw]
        kept = {**copy_of(raw), **new}
        return [{key: kept[key] for key in kept if key != "tool_calls" or old}]

    def _call(self, here: At, raw: Any) -> Any:
        """A call under its own id, with arguments that are text (C7)."""
        kind = field(raw, "type") or "function"
        body = field(raw, kind) if isinstance(kind, str) else None
        if not is_object(raw) or not is_object(body):
            return raw  # the parser will say so
        name = CALLS["function" if kind == "function" else "custom"].text
        given = field(body, name)
        if field(raw, "id") == self.names[here] and isinstance(given, str):
            return raw
        new = {**copy_of(raw), "id": self.names[here]}
        if not isinstance(given, str):
            new[kind] = {**plain(body, kind), name: self.text_of(given, here[0])}
        return new

    # ── results ──────────────────────────────────────────────────────────────────────

    def _answers(self, caller: int, host: int | None = None) -> list[Any]:
        """The results of a batch: as they stand behind it, or in the order of its calls."""
        calls = self.batches[caller]
        found = sorted(
            self.pairs.answers[call] for call in calls if call in self.pairs.answers
        )
        if [at for at, _ in found] == list(range(caller + 1, caller + 1 + len(calls))):
            calls = [self.pairs.calls[result] for result in found]
        behind = caller + 1
        while self.roles.get(behind) == "tool":
            behind += 1
        self._beside = []
        return [
            *self.answered(calls, lambda result: result[0] <= behind),
            *self._beside,
        ]

    def _result(self, result: At) -> Any:
        """Text alone (C8); other parts are moved behind the batch."""
        raw, name = self.block(result), self.names[self.pairs.calls[result]]
        content = field(raw, "content")
        new: dict[str, Any] = (
            {} if field(raw, "tool_call_id") == name else {"tool_call_id": name}
        )
        if content is None or content == []:
            self.report(result[0], "the content of a result was null")
            new["content"] = EMPTY
        elif isinstance(content, list):
            other = [part for part in content if _is_medium(part)]
            if other:
                self.report(result[0], "a result held more than text")
                new["content"] = [part for part in content if part not in other] or _SEE
                line = {"type": "text", "text": _BESIDE}
                self._beside.append({"role": "user", "content": [line, *other]})
        return {**copy_of(raw), **new} if new else raw


def _is_medium(part: Any) -> bool:
    kind = field(part, "type")
    return isinstance(kind, str) and kind in PARTS and bool(PARTS[kind].media)


REPAIR = Messages
