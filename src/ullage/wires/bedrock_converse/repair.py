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

    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        content = field(raw, "content")
        blocks = list(content) if isinstance(content, (list, tuple)) else None
        return field(raw, "role"), blocks

    def _pair(self, here: At, block: Any, role: Any) -> None:
        call, result = _body(block, "toolUse"), _body(block, "toolResult")
        if result is not None:
            ours = self._is_ours(block)
            self.answer(here, field(result, "toolUseId"), is_placeholder=ours)
            if self.is_late(here):
                self._outdated.update(self.spoken(self.pairs.calls[here][0], here[0]))
        elif role == "assistant" and call is not None:
            self.call(here, field(call, "toolUseId"))

    def _tool(self, call: At) -> str:
        return str(field(_body(self.block(call), "toolUse"), "name") or "tool")

    def _given_id(self, call: At, field: str) -> Any:
        return _body(self.block(call), "toolUse").get("toolUseId")

    # ── the messages ─────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `HistoryRepair.opens`. What is empty may be left out, so nothing opens with it."""
        role, blocks = self._opened(self.raws[at])
        return role == "assistant" and not all(map(_is_void, blocks or ()))

    def _make(
        self, since: int, stop: int, count: int, last: Any
    ) -> tuple[list[Any], bool]:
        messages, is_closed = super()._make(since, stop, count, last)
        return self._in_turn(messages, count, last), is_closed

    def _in_turn(self, messages: list[Any], count: int, last: Any) -> list[Any]:
        """The messages with the user first, and no two of one role in a row (B1, B2)."""
        made: list[Any] = []
        for message in messages:
            before = made[-1] if made else last
            role, spoke = field(message, "role"), field(before, "role")
            if role == "user" and made and spoke == "user":
                self.report(
                    count + len(made), "two messages of the user stood in a row"
                )
                made[-1] = self.wire.together([before, message])
                continue
            if role == "assistant" and spoke != "user":
                why = (
                    "a reply stood behind another"
                    if spoke
                    else "the first was not the user's"
                )
                self.report(count + len(made), why)
                made.append(self.wire.user(GO_ON if spoke else BEGIN))
            made.append(message)
        return made

    def _content(self, at: int, caller: int | None) -> list[Any]:
        """What is no list of blocks is left to the parser."""
        if self.blocks[at] is None:
            return [self.raws[at]]
        made = super()._content(at, caller)
        self.stale += made if at in self._outdated else []
        return made

    def _emptied(self, at: int) -> list[Any]:
        self.report(at, "the message had no content")
        is_users = self.roles[at] == "user"
        return [self._with_blocks(at, [{"text": EMPTY}])] if is_users else []

    def _with_blocks(self, at: int, blocks: list[Any]) -> Any:
        """A message with other blocks, none of them a cache point in front."""
        while blocks and is_cache_point(blocks[0]):
            blocks = blocks[1:]
        return {**copy_of(self.raws[at]), "content": blocks or [{"text": EMPTY}]}

    def _is_arranged(self, at: int, caller: int, blocks: list[Any]) -> bool:
        return self.is_whole(at, caller)

    def _arranged(self, at: int, caller: int, blocks: list[Any]) -> list[list[Any]]:
        if self.is_whole(at, caller):
            return [blocks]
        others = [block for block in blocks if not self._is_result(block)]
        return [[*self._answers(caller, at), *others]]

    # ── blocks ───────────────────────────────────────────────────────────────────────

    def _is_result(self, block: Any) -> bool:
        return _body(block, "toolResult") is not None

    def _is_ours(self, block: Any) -> bool:
        return is_interrupted(at_path(block, "toolResult.content"))

    def _fitted(self, here: At, block: Any) -> Any:
        if is_blank(field(block, "text")):
            self.report(here[0], "an empty text was left out")
            return None
        if self._is_result(block):
            if here in self.pairs.calls:
                return self._result(here)
            return {"text": self.left_over(here, {"role": "user", "content": [block]})}
        return self._call(here, block) if here in self.names else block

    def _result(self, result: At) -> Any:
        """Under the id of its call, without blank texts, and an error with a content."""
        block, name = self.block(result), self.names[self.pairs.calls[result]]
        body = _body(block, "toolResult")
        content = field(body, "content")
        items = list(content) if isinstance(content, (list, tuple)) else []
        filled = [item for item in items if not is_blank(field(item, "text"))]
        if len(filled) < len(items) or not isinstance(content, (list, tuple)):
            self.report(result[0], "a result held an empty text, or no list")
        if not filled and field(body, "status") == "error":
            self.report(result[0], "an error had no content")
            filled = [{"text": NO_REASON}]
        if field(body, "toolUseId") == name and filled == content:
            return block
        return {
            **copy_of(block),
            "toolResult": {**copy_of(body), "toolUseId": name, "content": filled},
        }

    def _call(self, here: At, block: Any) -> Any:
        body = _body(block, "toolUse")
        given = field(body, "input")
        if field(body, "toolUseId") == self.names[here] and isinstance(given, dict):
            return block
        new = {**copy_of(body), "toolUseId": self.names[here]}
        if not isinstance(given, dict):
            self.report(here[0], "the arguments of a call were not an object")
            new["input"] = _arguments(given)
        return {**copy_of(block), "toolUse": new}


def _body(block: Any, kind: str) -> Any:
    """A call or a result of the caller's own tools in a block; None where it is none."""
    body = field(block, kind) if is_object(block) else None
    return body if isinstance(body, Mapping) and not is_by_server(body) else None


def _is_void(block: Any) -> bool:
    """Whether a block of the assistant does not stay where it is, or says nothing."""
    is_result = _body(block, "toolResult") is not None
    return is_result or is_cache_point(block) or is_blank(field(block, "text"))


def _arguments(given: Any) -> dict[str, Any]:
    """What is known of arguments that are not an object: text is read as JSON if it is."""
    if given is None or given == "":
        return {}
    try:
        return arguments_of(given) if isinstance(given, str) else {"input": given}
    except (FormatError, UnicodeError):
        return {"input": given}


REPAIR = ConverseRepair
