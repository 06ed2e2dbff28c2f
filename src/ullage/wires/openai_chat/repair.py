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


class ChatRepair(HistoryRepair):
    """A history with its calls paired, and the messages that come of it."""

    wire = OpenAIChat()

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        super().__init__(raws, pairs)
        self._beside: list[Any] = []

    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        """The calls of the assistant, or the message that is a result."""
        role = field(raw, "role")
        if role == "tool":
            return role, [raw]
        if role != "assistant":
            return role, []
        calls = field(raw, "tool_calls") or ()
        if not isinstance(calls, (list, tuple)):
            return role, None
        return role, list(calls)

    def _pair(self, here: At, block: Any, role: Any) -> None:
        if role == "assistant":
            self.call(here, field(block, "id"))
            return
        self.answer(
            here,
            field(block, "tool_call_id"),
            is_placeholder=is_interrupted(field(block, "content")),
        )

    def _tool(self, call: At) -> str:
        return self.wire.tool_name(self.block(call)) or "tool"

    # ── the messages ─────────────────────────────────────────────────────────────────

    def _content(self, at: int, caller: int | None) -> list[Any]:
        raw = self.raws[at]
        role = self.roles[at]
        if role == "assistant":
            return self._assistant(at)
        if role == "tool":
            return self._left_result(at)
        if role not in _ROLES or field(raw, "content") not in (None, []):
            return [raw]
        self.report(at, "the message had no content")
        return [{**copy_of(raw), "content": EMPTY}]

    def _left_result(self, at: int) -> list[Any]:
        """The messages in the place of a result: none if it went to its call, or was our own."""
        raw = self.raws[at]
        here = (at, 0)
        if here in self.pairs.call_by_result:
            return self.left(at)
        if is_interrupted(field(raw, "content")):
            return []
        return [self.wire.user(self.left_over(here, raw))]

    def _assistant(self, at: int) -> list[Any]:
        """A message of the assistant with ids of its own; none if nothing is in it."""
        raw = self.raws[at]
        old_calls = self.blocks[at]
        if old_calls is None:
            return [raw]  # the parser will say so
        changes: dict[str, Any] = {}
        calls = [self._call((at, n), call) for n, call in enumerate(old_calls)]
        if any(
            call is not raw_call
            for call, raw_call in zip(calls, old_calls, strict=True)
        ):
            changes["tool_calls"] = calls

        content = field(raw, "content")
        says = content or any(field(raw, key) for key in INSTEAD_OF_CONTENT)
        if content == [] or (content is None and not says):
            self.report(at, "the message had no content")
            if not says and not field(raw, "reasoning_content"):
                return []
            changes["content"] = None if says else EMPTY

        has_empty_calls = (
            not old_calls and field(raw, "tool_calls") is not None
        )
        if not changes and not has_empty_calls:
            return [raw]
        message = {**copy_of(raw), **changes}
        if not old_calls:  # an empty list of calls is refused (C4)
            message.pop("tool_calls", None)
        return [message]

    def _call(self, here: At, raw: Any) -> Any:
        """A call under its own id, with arguments that are text (C7)."""
        kind = field(raw, "type") or "function"
        body = field(raw, kind) if isinstance(kind, str) else None
        if not is_object(raw) or not is_object(body):
            return raw  # the parser will say so
        row = CALLS["function" if kind == "function" else "custom"]
        arguments = field(body, row.text)
        call_id = self.names[here]
        if field(raw, "id") == call_id and isinstance(arguments, str):
            return raw
        call = {**copy_of(raw), "id": call_id}
        if not isinstance(arguments, str):
            text = self.text_of(arguments, here[0])
            call[kind] = {**plain(body, kind), row.text: text}
        return call

    # ── results ──────────────────────────────────────────────────────────────────────

    def _answers(self, caller: int, host: int | None = None) -> list[Any]:
        """The results of a batch: as they stand behind it, or in the order of its calls."""
        calls = self.batches[caller]
        answers = self.pairs.result_by_call
        results = sorted(answers[call] for call in calls if call in answers)
        places = [at for at, _ in results]
        # Results that stand together behind their calls are legal in any order: they stay so.
        if places == list(range(caller + 1, caller + 1 + len(calls))):
            calls = [self.pairs.call_by_result[result] for result in results]
        end = caller + 1
        while self.roles.get(end) == "tool":
            end += 1
        self._beside = []
        messages = list(self.answered(calls, lambda result: result[0] <= end))
        return messages + self._beside

    def _result(self, result: At) -> Any:
        """Text alone (C8); other parts are moved behind the batch."""
        raw = self.block(result)
        call_id = self.names[self.pairs.call_by_result[result]]
        content = field(raw, "content")
        changes: dict[str, Any] = {}
        if field(raw, "tool_call_id") != call_id:
            changes["tool_call_id"] = call_id
        if content is None or content == []:
            self.report(result[0], "the content of a result was null")
            changes["content"] = EMPTY
        elif isinstance(content, list):
            media = [part for part in content if _is_medium(part)]
            if media:
                self.report(result[0], "a result held more than text")
                texts = [part for part in content if part not in media]
                changes["content"] = texts or _SEE
                line = {"type": "text", "text": _BESIDE}
                self._beside.append(
                    {"role": "user", "content": [line, *media]}
                )
        if not changes:
            return raw
        return {**copy_of(raw), **changes}


def _is_medium(part: Any) -> bool:
    kind = field(part, "type")
    if not isinstance(kind, str) or kind not in PARTS:
        return False
    return bool(PARTS[kind].media)


REPAIR = ChatRepair
