"""Repairing Anthropic Messages: A1, A3 to A9 and A18 to A20 (`provider-rules` §1.A).

Every batch of calls is followed by one user message with its results. That is the message
that already holds them, if there is one; what else it holds stays behind them. Everything
set aside leaves a line of text where it stood.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ullage.wires.anthropic import repair_turns as turns
from ullage.wires.anthropic.format import Anthropic
from ullage.wires.base import field
from ullage.wires.repair.base import (
    EMPTY,
    INTERRUPTED,
    MOVED,
    Growing,
    Location,
    copy_of,
    is_blank,
    new_id,
    outputs_in,
)

__all__ = ["History"]

_WIRE = Anthropic()
_legal_id = re.compile(r"[a-zA-Z0-9_-]+\Z").match
_loads = msgspec.json.Decoder().decode


class History(Growing):
    """A history with its calls paired, and the messages that come of it."""

    def __init__(self) -> None:
        super().__init__()
        self.roles: list[Any] = []
        self.blocks: list[list[Any] | None] = []
        self.names: dict[Location, str] = {}
        self.batches: list[list[Location]] = []
        self.spoken: list[int] = []
        self.unserved: Mapping[Location, str] = {}
        self._taken: set[str] = set()
        self._outdated: set[int] = set()

    def read(self, at: int) -> None:
        """See `Growing.read`."""
        raw = self.raws[at]
        assistant, blocks = field(raw, "role") == "assistant", _blocks(raw)
        self.roles.append(field(raw, "role"))
        self.blocks.append(blocks)
        self.batches.append([])
        self.spoken.append((self.spoken[-1] if at else 0) + assistant)
        for number, block in enumerate(blocks or ()):
            kind, spot = field(block, "type"), (at, number)
            if kind == "tool_use" and assistant:
                self._name(str(field(block, "id") or ""), spot)
            elif kind == "tool_result":
                self._answer(block, spot)

    def look_again(self, at: int) -> None:
        """See `Growing.look_again`."""
        self.blocks[at] = _blocks(self.raws[at])

    def spots(self, at: int) -> Iterable[Location]:
        """See `Growing.spots`."""
        return ((at, number) for number in range(len(self.blocks[at] or ())))

    def _answer(self, block: Any, spot: Location) -> None:
        asked = str(field(block, "tool_use_id") or "")
        self.pairs.result(asked, spot, ours=_is_ours(block))
        if self._is_late(spot):
            between = range(self.pairs.calls[spot][0] + 1, spot[0])
            self._outdated.update(at for at in between if self.roles[at] == "assistant")

    def _name(self, name: str, spot: Location) -> None:
        own = new_id(name, self._taken.__contains__, lambda text: bool(_legal_id(text)))
        self._taken.add(own)
        self.names[spot] = own
        self.batches[spot[0]].append(spot)
        self.pairs.call(name, spot)
        if own != name:
            self.bench.tell(spot[0], "a call had an id that is not legal or not its own")

    # ── the messages ─────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `Growing.opens`. What is empty may be left out, so nothing opens with it."""
        if self.roles[at] != "assistant":
            return False
        blocks = self.blocks[at]
        if blocks is None:
            content = field(self.raws[at], "content")
            return bool(content) and not is_blank(content)
        return not all(map(_is_void, blocks))

    def make(self, since: int, stop: int, count: int, last: Any) -> tuple[list[Any], bool]:
        """See `Growing.make`."""
        self.stale.clear()
        self.unserved, paused = turns.unserved(
            self.roles, self.blocks, self.pairs.calls, self.batches, range(since, stop)
        )
        messages = turns.settled(self._messages(since, stop), self.bench, count)
        if not since:
            messages = turns.begun(messages, self.bench)
        return messages, not paused

    def _messages(self, since: int, stop: int) -> list[Any]:
        """Every message as it is to be sent, but for the first and for system messages."""
        made: list[Any] = []
        hosts: dict[int, int] = {}
        for at in range(since, stop):
            batch, content = self.batches[at], self._content(at, hosts.get(at))
            made += content
            if at in self._outdated:
                self.stale += content
            if not batch:
                continue
            if self._is_host(at + 1, at):
                hosts[at + 1] = at
            else:
                made.append({"role": "user", "content": self._answers(at)})
        return made

    def _is_host(self, at: int, caller: int) -> bool:
        """Whether a message stands right behind a batch and holds some of its results."""
        if at >= len(self.raws) or self.roles[at] != "user":
            return False
        here = ((at, number) for number in range(len(self.blocks[at] or ())))
        return any(self.pairs.calls.get(spot, (-1, 0))[0] == caller for spot in here)

    def _content(self, at: int, batch: int | None) -> list[Any]:
        """A message without what may not stand there; none if nothing of it is left."""
        raw, old = self.raws[at], self.blocks[at]
        if old is None:
            return self._string(at)
        kept = [(n, block) for n, block in enumerate(old) if not self._is_moved((at, n), batch)]
        said = [self._block((at, n), block) for n, block in kept]
        new = [block for block in said if block is not None]
        if batch is not None:
            new = self._led(batch, at, new)
        if len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True)):
            return [raw] if new else self._empty(at)
        if new:
            return [{**copy_of(raw), "content": new}]
        return self._empty(at) if len(kept) == len(old) else self._left(at)

    def _string(self, at: int) -> list[Any]:
        content = field(self.raws[at], "content")
        return self._empty(at) if is_blank(content) else [self.raws[at]]

    def _empty(self, at: int) -> list[Any]:
        """What becomes of a message without content."""
        raw = self.raws[at]
        if self.roles[at] == "assistant" and at == len(self.raws) - 1 and not field(raw, "content"):
            return [raw]  # the last one of the assistant may be empty
        self.bench.tell(at, "the message had no text")
        return [{**copy_of(raw), "content": EMPTY}] if self.roles[at] == "user" else []

    def _left(self, at: int) -> list[Any]:
        """What becomes of a message whose results went to their calls."""
        here = ((at, number) for number in range(len(self.blocks[at] or ())))
        return [_WIRE.user(MOVED)] if any(map(self._is_late, here)) else []

    def _is_late(self, spot: Location) -> bool:
        """Whether the model spoke between a call and this result."""
        call = self.pairs.calls.get(spot)
        return call is not None and self.spoken[spot[0]] > self.spoken[call[0]]

    # ── results ──────────────────────────────────────────────────────────────────────

    def _is_moved(self, spot: Location, batch: int | None) -> bool:
        """Whether a block is a result that stands elsewhere, or one of ours left over."""
        block = (self.blocks[spot[0]] or ())[spot[1]]
        if field(block, "type") != "tool_result":
            return False
        call = self.pairs.calls.get(spot)
        return _is_ours(block) if call is None else call[0] != batch

    def _led(self, caller: int, at: int, blocks: list[Any]) -> list[Any]:
        """The blocks of a host with all results of its batch first."""
        calls = self.batches[caller]
        here = [self.pairs.answers.get(call, (-1, 0))[0] == at for call in calls]
        results = [block for block in blocks if field(block, "type") == "tool_result"]
        first = [field(block, "type") == "tool_result" for block in blocks[: len(calls)]]
        if all(here) and all(first):
            return blocks
        others = [block for block in blocks if field(block, "type") != "tool_result"]
        if all(here):
            self.bench.tell(at, "results stood behind something else")
            return [*results, *others]
        return [*self._answers(caller, at), *others]

    def _answers(self, caller: int, host: int | None = None) -> list[Any]:
        """The results of a batch in the order of its calls."""
        answers = []
        for call in self.batches[caller]:
            spot = self.pairs.answers.get(call)
            if spot is None:
                self.bench.tell(caller, "a call had no result", where=self._tool(call))
                answers.append(_interrupted(self.names[call]))
                continue
            if spot[0] != host:
                late = self._is_late(spot)
                why = "a result came late" if late else "a result did not stand behind its call"
                self.bench.tell(spot[0], why, where=f"{self._tool(call)} result")
            answers.append(self._result(spot))
        return answers

    def _tool(self, call: Location) -> str:
        return str(field((self.blocks[call[0]] or ())[call[1]], "name") or "tool")

    def _result(self, spot: Location) -> Any:
        """A result under the id of its call; the caller's own block if that is its own."""
        block = (self.blocks[spot[0]] or ())[spot[1]]
        name = self.names[self.pairs.calls[spot]]
        void = isinstance(block, dict) and block.get("content", "") is None
        if field(block, "tool_use_id") == name and not void:
            return block
        new = {**copy_of(block), "tool_use_id": name}
        if void:
            self.bench.tell(spot[0], "the content of a result was null")
            del new["content"]
        return new

    # ── blocks ───────────────────────────────────────────────────────────────────────

    def _block(self, spot: Location, block: Any) -> Any:
        """A block as it may stand where it is; None if it is left out."""
        match field(block, "type"):
            case "text" if is_blank(field(block, "text")):
                self.bench.tell(spot[0], "an empty text was left out")
                return None
            case "tool_result":
                return self._result(spot) if spot in self.pairs.calls else self._stray(spot, block)
            case "tool_use" if spot in self.names:
                return self._call(spot, block)
            case _ if spot in self.unserved:
                raw = {"role": "assistant", "content": [block]}
                kept = outputs_in(_WIRE.parse(raw, f"messages[{spot[0]}]"))
                return _text(self.bench.set_aside(spot[0], self.unserved[spot], kept))
        return block

    def _call(self, spot: Location, block: Any) -> Any:
        given = field(block, "input")
        if field(block, "id") == self.names[spot] and isinstance(given, dict):
            return block
        new = {**copy_of(block), "id": self.names[spot]}
        if not isinstance(given, dict):
            self.bench.tell(spot[0], "the arguments of a call were not an object")
            new["input"] = _arguments(given)
        return new

    def _stray(self, spot: Location, block: Any) -> Any:
        """The line in place of a result that answers no call, or one that has an answer."""
        where = f"messages[{spot[0]}]"
        kept = outputs_in(_WIRE.parse({"role": "user", "content": [block]}, where))
        stray = spot in self.pairs.strays
        what = "a tool result without its call" if stray else "a second result of one call"
        return _text(self.bench.set_aside(spot[0], what, kept))


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
