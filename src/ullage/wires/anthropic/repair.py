"""Repairing Anthropic Messages: A1, A3 to A9 and A18 to A20 (`provider-rules` §1.A).

Every batch of calls is followed by one user message with its results. That is the message
that already holds them, if there is one; what else it holds stays behind them. Everything
set aside leaves a line of text where it stood.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ullage.history.pairing import Pairing
from ullage.wires.anthropic import repair_turns as turns
from ullage.wires.anthropic.blocks import SERVER, SERVER_CALLS
from ullage.wires.anthropic.format import Anthropic
from ullage.wires.base import field
from ullage.wires.repair.base import (
    EMPTY,
    INTERRUPTED,
    At,
    Reading,
    copy_of,
    is_blank,
)

__all__ = ["Messages"]

_legal_id = re.compile(r"[a-zA-Z0-9_-]+\Z").match
_loads = msgspec.json.Decoder().decode


class Messages(Reading):
    """A history with its calls paired, and the messages that come of it."""

    wire = Anthropic()

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        super().__init__(raws, pairs)
        self.roles: dict[int, Any] = {}
        self.blocks: dict[int, list[Any] | None] = {}
        self.names: dict[At, str] = {}
        self.batches: dict[int, list[At]] = {}
        self.unserved: dict[At, str] = {}
        self._outdated: set[int] = set()

    def read(self, at: int) -> None:
        """See `Reading.read`."""
        raw = self.raws[at]
        role, blocks = field(raw, "role"), _blocks(raw)
        self.roles[at], self.blocks[at], self.batches[at] = role, blocks, []
        self.speaker(at, is_model=role == "assistant")
        for number, block in enumerate(blocks or ()):
            kind, here = field(block, "type"), (at, number)
            if kind == "tool_use" and role == "assistant":
                self.batches[at].append(here)
                self.pairs.call(here, str(field(block, "id") or ""))
            elif kind == "tool_result":
                asked = str(field(block, "tool_use_id") or "")
                self.answer(here, asked, is_placeholder=_is_ours(block))
                if self.is_late(here):
                    call = self.pairs.calls[here][0]
                    self._outdated.update(said for said in self.said if call < said < at)
            elif role == "assistant" and kind in SERVER_CALLS:
                self.pairs.call(here, f"{SERVER}{field(block, 'id')}")
            elif role == "assistant" and turns.is_server_result(kind):
                asked = f"{SERVER}{field(block, 'tool_use_id')}"
                self.answer(here, asked)

    def tool(self, call: At) -> str:
        """See `Reading.tool`."""
        return str(field((self.blocks[call[0]] or ())[call[1]], "name") or "tool")

    # ── the messages ─────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `Reading.opens`. What is empty may be left out, so nothing opens with it."""
        raw = self.raws[at]
        if field(raw, "role") != "assistant":
            return False
        blocks, content = _blocks(raw), field(raw, "content")
        if blocks is None:
            return bool(content) and not is_blank(content)
        return not all(map(_is_void, blocks))

    def make(self, since: int, stop: int, count: int, last: Any) -> tuple[list[Any], bool]:
        """See `Reading.make`."""
        self.unserved, is_paused = turns.unserved(self, since, stop)
        messages = turns.with_system_placed(self._messages(since, stop), self.log, count)
        if not since:
            messages = turns.begun(messages, self.log)
        return messages, not is_paused

    def _messages(self, since: int, stop: int) -> list[Any]:
        """Every message as it is to be sent, but for the first and for system messages."""
        made: list[Any] = []
        hosts: dict[int, int] = {}
        for at in range(since, stop):
            batch = self.batches[at]
            for call in batch:
                name = str(field((self.blocks[at] or ())[call[1]], "id") or "")
                self.names[call] = self.own_id(at, name, self.ids, _legal_id)
                self.ids[self.names[call]] = at
            content = self._content(at, hosts.get(at))
            made += content
            if at in self._outdated:
                self.stale += content
            if batch and self.roles.get(at + 1) == "user" and at in self.callers(at + 1):
                hosts[at + 1] = at
            elif batch:
                made.append({"role": "user", "content": self._answers(at)})
        return made

    def _content(self, at: int, batch: int | None) -> list[Any]:
        """A message without what may not stand there; none if nothing of it is left."""
        raw, old = self.raws[at], self.blocks[at]
        if old is None:
            return self._empty(at) if is_blank(field(raw, "content")) else [raw]
        kept = [(n, block) for n, block in enumerate(old) if not self._is_moved((at, n), batch)]
        said = [self._block((at, n), block) for n, block in kept]
        new = [block for block in said if block is not None]
        if batch is not None:
            new = self._led(batch, at, new)
        if len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True)):
            return [raw] if new else self._empty(at)
        if new:
            return [{**copy_of(raw), "content": new}]
        return self._empty(at) if len(kept) == len(old) else self.left(at)

    def _empty(self, at: int) -> list[Any]:
        """What becomes of a message without content."""
        raw = self.raws[at]
        if self.roles[at] == "assistant" and at == len(self.raws) - 1 and not field(raw, "content"):
            return [raw]  # the last one of the assistant may be empty
        self.log.report(at, "the message had no text")
        return [{**copy_of(raw), "content": EMPTY}] if self.roles[at] == "user" else []

    # ── results ──────────────────────────────────────────────────────────────────────

    def _is_moved(self, result: At, batch: int | None) -> bool:
        """Whether a block is a result that stands elsewhere, or one of ours left over."""
        block = (self.blocks[result[0]] or ())[result[1]]
        if field(block, "type") != "tool_result":
            return False
        call = self.pairs.calls.get(result)
        return _is_ours(block) if call is None else call[0] != batch

    def _led(self, caller: int, at: int, blocks: list[Any]) -> list[Any]:
        """The blocks of a host with all results of its batch first."""
        calls = self.batches[caller]
        are_here = all(self.pairs.answers.get(call, (-1, 0))[0] == at for call in calls)
        is_result = [field(block, "type") == "tool_result" for block in blocks]
        if are_here and all(is_result[: len(calls)]):
            return blocks
        others = [block for block, is_one in zip(blocks, is_result, strict=True) if not is_one]
        if not are_here:
            return [*self._answers(caller, at), *others]
        self.log.report(at, "results stood behind something else")
        return [*(b for b, is_one in zip(blocks, is_result, strict=True) if is_one), *others]

    def _answers(self, caller: int, host: int | None = None) -> list[Any]:
        """The results of a batch in the order of its calls."""
        pairs = self.answered(self.batches[caller], lambda result: result[0] == host)
        return [
            _interrupted(self.names[call]) if result is None else self._result(result)
            for call, result in pairs
        ]

    def _result(self, result: At) -> Any:
        """A result under the id of its call; the caller's own block if that is its own."""
        block = (self.blocks[result[0]] or ())[result[1]]
        name = self.names[self.pairs.calls[result]]
        void = isinstance(block, dict) and block.get("content", "") is None
        if field(block, "tool_use_id") == name and not void:
            return block
        new = {**copy_of(block), "tool_use_id": name}
        if void:
            self.log.report(result[0], "the content of a result was null")
            del new["content"]
        return new

    # ── blocks ───────────────────────────────────────────────────────────────────────

    def _block(self, here: At, block: Any) -> Any:
        """A block as it may stand where it is; None if it is left out."""
        match field(block, "type"):
            case "text" if is_blank(field(block, "text")):
                self.log.report(here[0], "an empty text was left out")
                return None
            case "tool_result" if here in self.pairs.calls:
                return self._result(here)
            case "tool_result":
                return _text(self.left_over(here, {"role": "user", "content": [block]}))
            case "tool_use" if here in self.names:
                return self._call(here, block)
            case _ if here in self.unserved:
                message = {"role": "assistant", "content": [block]}
                kept = self.wire.parse(message, f"messages[{here[0]}]")
                return _text(self.log.set_aside(here[0], self.unserved[here], kept))
        return block

    def _call(self, here: At, block: Any) -> Any:
        given = field(block, "input")
        if field(block, "id") == self.names[here] and isinstance(given, dict):
            return block
        new = {**copy_of(block), "id": self.names[here]}
        if not isinstance(given, dict):
            self.log.report(here[0], "the arguments of a call were not an object")
            new["input"] = _arguments(given)
        return new


def _blocks(raw: Any) -> list[Any] | None:
    """The blocks of a message, None if its content is a string."""
    content = field(raw, "content")
    return list(content) if isinstance(content, (list, tuple)) else None


def _is_void(block: Any) -> bool:
    """Whether a block of the assistant does not stay where it is."""
    kind = field(block, "type")
    return kind == "tool_result" or (kind == "text" and is_blank(field(block, "text")))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _interrupted(name: str) -> dict[str, Any]:
    """The result of a call that has none: the same bytes every time."""
    content = INTERRUPTED
    return {"type": "tool_result", "tool_use_id": name, "content": content, "is_error": True}


def _is_ours(block: Any) -> bool:
    content = field(block, "content")
    if isinstance(content, (list, tuple)) and len(content) == 1:
        content = field(content[0], "text")
    return isinstance(content, str) and content == INTERRUPTED


def _arguments(given: Any) -> dict[str, Any]:
    """What is known of arguments that are not an object: text is read as JSON if it is."""
    if given is None:
        return {}
    value = given
    if isinstance(given, str):
        try:
            value = _loads(given or "{}")
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            value = given
    return value if isinstance(value, dict) else {"input": given}
