"""Repairing Converse: B1 to B7.

Every batch of calls is followed by one user message with its results, which what the user says
follows in the same message. Everything set aside leaves a line of text where it stood. Messages
that one role says in a row become one of the user's, or get one between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ullage.core.errors import FormatError
from ullage.core.history.pairing import At, Pairing
from ullage.core.history.raw import field
from ullage.wires.base import at_path
from ullage.wires.bedrock_converse.blocks import is_by_server, is_cache_point
from ullage.wires.bedrock_converse.format import NO_REASON, BedrockConverse
from ullage.wires.block import arguments_of
from ullage.wires.repair.base import (
    BEGIN,
    EMPTY,
    GO_ON,
    RepairedPrefix,
    copy_of,
    is_blank,
    is_interrupted,
    is_object,
)
from ullage.wires.repair.hosted import BlockRepair


class ConverseRepair(BlockRepair):
    """A history with its calls paired, and the messages that come of it."""

    wire = BedrockConverse()
    hosts = ("user",)
    ids_once = True

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        super().__init__(raws, pairs)
        self._outdated: set[int] = set()
        self._spoke = ""

    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        role = field(raw, "role")
        content = field(raw, "content")
        if isinstance(content, (list, tuple)):
            return role, list(content)
        return role, None

    def _pair(self, here: At, block: Any, role: Any) -> None:
        call = _body(block, "toolUse")
        result = _body(block, "toolResult")
        if result is not None:
            is_ours = self._is_ours(block)
            self.answer(
                here, field(result, "toolUseId"), is_placeholder=is_ours
            )
            if self.is_late(here):
                caller = self.pairs.call_by_result[here][0]
                self._outdated.update(self.spoken(caller, here[0]))
        elif role == "assistant" and call is not None:
            self.call(here, field(call, "toolUseId"))

    def _tool(self, call: At) -> str:
        body = _body(self.block(call), "toolUse")
        return str(field(body, "name") or "tool")

    def _given_id(self, call: At, key: str) -> Any:
        return _body(self.block(call), "toolUse").get("toolUseId")

    # ── the messages ─────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `HistoryRepair.opens`. What is empty may be left out, so nothing opens with it."""
        role, blocks = self._opened(self.raws[at])
        if role != "assistant":
            return False
        return not all(_is_void(block) for block in blocks or ())

    def made(
        self, stop: int, prefix: RepairedPrefix
    ) -> tuple[RepairedPrefix, bool]:
        """See `HistoryRepair.made`: who spoke last before is asked behind system messages too."""
        self._spoke = ""
        for entry in reversed(prefix.messages):
            message = self.raws[entry] if type(entry) is int else entry
            role = field(message, "role")
            if role != "system":
                self._spoke = str(role or "")
                break
        return super().made(stop, prefix)

    def _make(
        self, start: int, stop: int, count: int, previous: Any
    ) -> tuple[list[Any], bool]:
        messages, is_closed = super()._make(start, stop, count, previous)
        return self._in_turn(messages, count), is_closed

    def _in_turn(self, messages: list[Any], count: int) -> list[Any]:
        """The messages with the user first, and no two of one role in a row (B1, B2).

        What the system says stands between them, and is no turn.
        """
        alternating: list[Any] = []
        spoke = self._spoke
        users_index: int | None = None
        for message in messages:
            role = field(message, "role")
            at = count + len(alternating)
            if role == "user" and spoke == "user" and users_index is not None:
                self.report(at, "two messages of the user stood in a row")
                both = [alternating[users_index], message]
                alternating[users_index] = self.wire.together(both)
                continue
            if role == "assistant" and spoke != "user":
                alternating.append(
                    self._users_turn(at, has_previous=bool(spoke))
                )
            if role == "user":
                users_index = len(alternating)
            if role != "system":
                spoke = role
            alternating.append(message)
        return alternating

    def _users_turn(self, at: int, *, has_previous: bool) -> Any:
        """A message of the user before a reply that has none."""
        if has_previous:
            self.report(at, "a reply stood behind another")
            return self.wire.user(GO_ON)
        self.report(at, "the first was not the user's")
        return self.wire.user(BEGIN)

    def _content(self, at: int, caller: int | None) -> list[Any]:
        """What is no list of blocks is left to the parser."""
        if self.blocks[at] is None:
            return [self.raws[at]]
        messages = super()._content(at, caller)
        if at in self._outdated:
            self.stale += messages
        return messages

    def _emptied(self, at: int) -> list[Any]:
        self.report(at, "the message had no content")
        if self.roles[at] != "user":
            return []
        return [self._with_blocks(at, [{"text": EMPTY}])]

    def _with_blocks(self, at: int, blocks: list[Any]) -> Any:
        """A message with other blocks, none of them a cache point in front."""
        while blocks and is_cache_point(blocks[0]):
            blocks = blocks[1:]
        return {
            **copy_of(self.raws[at]),
            "content": blocks or [{"text": EMPTY}],
        }

    def _is_arranged(self, at: int, caller: int, blocks: list[Any]) -> bool:
        return self.is_whole(at, caller)

    def _arranged(
        self, at: int, caller: int, blocks: list[Any]
    ) -> list[list[Any]]:
        if self.is_whole(at, caller):
            return [blocks]
        user_blocks = [block for block in blocks if not self._is_result(block)]
        return [[*self._answers(caller, at), *user_blocks]]

    # ── blocks ───────────────────────────────────────────────────────────────────────

    def _is_result(self, block: Any) -> bool:
        return _body(block, "toolResult") is not None

    def _is_ours(self, block: Any) -> bool:
        return is_interrupted(at_path(block, "toolResult.content"))

    def _fitted(self, here: At, block: Any) -> Any:
        if is_blank(field(block, "text")):
            self.report(here[0], "an empty text was left out")
            return None
        if is_cache_point(block) and self._answers_nothing(here[0]):
            self.report(here[0], "a cache point of a second result")
            return None
        if self._is_result(block) and here in self.pairs.call_by_result:
            return self._result(here)
        if self._is_result(block):
            message = {"role": "user", "content": [block]}
            return {"text": self.left_over(here, message)}
        if here in self.names:
            return self._call(here, block)
        return block

    def _answers_nothing(self, at: int) -> bool:
        """Whether a message holds results, and each is left over.

        It is there twice, and so is its cache point: four are allowed (B10).
        """
        results = [
            (at, number)
            for number, block in enumerate(self.blocks[at] or ())
            if self._is_result(block)
        ]
        if not results:
            return False
        return not any(
            result in self.pairs.call_by_result for result in results
        )

    def _result(self, result: At) -> Any:
        """Under the id of its call, without blank texts, and an error with a content."""
        block = self.block(result)
        call_id = self.names[self.pairs.call_by_result[result]]
        body = _body(block, "toolResult")
        content = field(body, "content")
        is_list = isinstance(content, (list, tuple))
        items = list(content) if is_list else []
        filled = [item for item in items if not is_blank(field(item, "text"))]
        if len(filled) < len(items) or not is_list:
            self.report(result[0], "a result held an empty text, or no list")
        if not filled and field(body, "status") == "error":
            self.report(result[0], "an error had no content")
            filled = [{"text": NO_REASON}]
        if field(body, "toolUseId") == call_id and filled == content:
            return block
        repaired = {**copy_of(body), "toolUseId": call_id, "content": filled}
        return {**copy_of(block), "toolResult": repaired}

    def _call(self, here: At, block: Any) -> Any:
        body = _body(block, "toolUse")
        arguments = field(body, "input")
        is_object = isinstance(arguments, dict)
        call_id = self.names[here]
        if field(body, "toolUseId") == call_id and is_object:
            return block
        repaired = {**copy_of(body), "toolUseId": call_id}
        if not is_object:
            self.report(here[0], "the arguments of a call were not an object")
            repaired["input"] = _arguments(arguments)
        return {**copy_of(block), "toolUse": repaired}


def _body(block: Any, kind: str) -> Any:
    """A call or a result of the caller's own tools in a block; None where it is none."""
    body = field(block, kind) if is_object(block) else None
    if isinstance(body, Mapping) and not is_by_server(body):
        return body
    return None


def _is_void(block: Any) -> bool:
    """Whether a block of the assistant does not stay where it is, or says nothing."""
    if _body(block, "toolResult") is not None:
        return True
    return is_cache_point(block) or is_blank(field(block, "text"))


def _arguments(value: Any) -> dict[str, Any]:
    """What is known of arguments that are not an object: text is read as JSON if it is."""
    if value is None or value == "":
        return {}
    if not isinstance(value, str):
        return {"input": value}
    try:
        return arguments_of(value)
    except (FormatError, UnicodeError):
        return {"input": value}


REPAIR = ConverseRepair
