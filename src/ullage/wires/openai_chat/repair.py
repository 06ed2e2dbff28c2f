"""Repairing OpenAI Chat Completions: C1 to C8 (`provider-rules` §1.B).

Results are messages of their own, so every batch is followed by its own, and what is set
aside leaves a message of the user where it stood. Ids may come again in later turns; within
a batch they may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ullage.wires.base import as_json, field, plain
from ullage.wires.openai_chat.format import OpenAIChat
from ullage.wires.repair.base import (
    BEGIN,
    EMPTY,
    INTERRUPTED,
    MOVED,
    Growing,
    Location,
    copy_of,
    is_object,
    new_id,
    outputs_in,
)

__all__ = ["History"]

_WIRE = OpenAIChat()
_ID_LENGTH = 40
_ROLES = ("system", "developer", "user", "assistant")
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")
_USERS = ("image_url", "input_audio", "file")
_BESIDE = "[ullage: what a tool gave beside text follows]"
_SEE = "[ullage: what this tool gave is in the next message of the user]"


class History(Growing):
    """A history with its calls paired, and the messages that come of it."""

    def __init__(self) -> None:
        super().__init__()
        self.roles: list[Any] = []
        self.names: dict[Location, str] = {}
        self.batches: list[list[Location]] = []
        self.spoken: list[int] = []

    def read(self, at: int) -> None:
        """See `Growing.read`."""
        raw = self.raws[at]
        role = field(raw, "role")
        self.roles.append(role)
        self.batches.append([])
        self.spoken.append((self.spoken[-1] if at else 0) + (role == "assistant"))
        if role == "assistant":
            self._name(at)
        elif role == "tool":
            asked = str(field(raw, "tool_call_id") or "")
            self.pairs.result(asked, (at, 0), ours=_is_ours(raw))

    def _name(self, at: int) -> None:
        taken: set[str] = set()
        for number, call in enumerate(_calls_in(self.raws[at])):
            name, spot = field(call, "id"), (at, number)
            own = new_id(name, taken.__contains__, _legal_id)
            taken.add(own)
            self.names[spot] = own
            self.batches[at].append(spot)
            self.pairs.call(str(name or ""), spot)
            if own != name:
                self.bench.tell(at, "a call had an id that is not legal or not its own")

    # ── the messages ─────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `Growing.opens`."""
        return bool(self.roles[at] == "assistant")

    def make(self, since: int, stop: int, count: int, last: Any) -> tuple[list[Any], bool]:
        """See `Growing.make`."""
        made: list[Any] = []
        for at in range(since, stop):
            role = self.roles[at]
            if role == "tool":
                made += self._left(at)
                continue
            made += self._assistant(at) if role == "assistant" else [self._other(at)]
            if self.batches[at]:
                made += self._answers(at)
        return made, True

    def ending(self, last: Any) -> list[Any]:
        """See `Growing.ending`."""
        if last is not None:
            return []
        self.bench.tell(0, "there was no message")
        return [_WIRE.user(BEGIN)]

    def _other(self, at: int) -> Any:
        raw = self.raws[at]
        content = field(raw, "content")
        if self.roles[at] not in _ROLES or (content is not None and content != []):
            return raw
        self.bench.tell(at, "the message had no content")
        return {**copy_of(raw), "content": EMPTY}

    def _assistant(self, at: int) -> list[Any]:
        """A message of the assistant with ids of its own; none if nothing is in it."""
        raw = self.raws[at]
        new: dict[str, Any] = {}
        calls, content = field(raw, "tool_calls"), field(raw, "content")
        if calls and not isinstance(calls, (list, tuple)):
            return [raw]  # the parser will say so
        if calls:
            called = [self._call(spot, call) for spot, call in self._calls(at)]
            if any(a is not b for a, b in zip(called, calls, strict=True)):
                new["tool_calls"] = called
        if content == [] or (content is None and not self._says_otherwise(raw)):
            self.bench.tell(at, "the message had no content")
            says = self._says_otherwise(raw)
            if not says and not field(raw, "reasoning_content"):
                return []
            new["content"] = None if says else EMPTY
        if not new and (calls or calls is None):
            return [raw]
        kept = copy_of(raw)
        if not calls:
            kept.pop("tool_calls", None)
        return [{**kept, **new}]

    def _says_otherwise(self, raw: Any) -> bool:
        return any(field(raw, name) for name in _INSTEAD_OF_CONTENT)

    def _calls(self, at: int) -> list[tuple[Location, Any]]:
        return list(zip(self.batches[at], _calls_in(self.raws[at]), strict=True))

    def _call(self, spot: Location, raw: Any) -> Any:
        """A call under its own id, with arguments that are text (C7)."""
        kind = field(raw, "type") or "function"
        body = field(raw, kind) if isinstance(kind, str) else None
        if not is_object(raw) or not is_object(body):
            return raw  # the parser will say so
        name = "arguments" if kind == "function" else "input"
        given = field(body, name)
        if field(raw, "id") == self.names[spot] and isinstance(given, str):
            return raw
        new = {**copy_of(raw), "id": self.names[spot]}
        if not isinstance(given, str):
            self.bench.tell(spot[0], "the arguments of a call were not text")
            text = "" if given is None else as_json(given, f"messages[{spot[0]}].tool_calls")
            new[kind] = {**plain(body, kind), name: text}
        return new

    # ── results ──────────────────────────────────────────────────────────────────────

    def _left(self, at: int) -> list[Any]:
        """What stays where a result stood: nothing, or a line about it."""
        spot = (at, 0)
        if spot in self.pairs.calls:
            return [_WIRE.user(MOVED)] if self._is_late(spot) else []
        if _is_ours(self.raws[at]):
            return []
        kept = outputs_in(_WIRE.parse(self.raws[at], f"messages[{at}]"))
        stray = spot in self.pairs.strays
        what = "a tool result without its call" if stray else "a second result of one call"
        return [_WIRE.user(self.bench.set_aside(at, what, kept))]

    def _is_late(self, spot: Location) -> bool:
        """Whether the model spoke between a call and this result."""
        return self.spoken[spot[0]] > self.spoken[self.pairs.calls[spot][0]]

    def _answers(self, caller: int) -> list[Any]:
        """The results of a batch: as they stand behind it, or in the order of its calls."""
        calls = self.batches[caller]
        spots = [self.pairs.answers.get(call) for call in calls]
        found = sorted(spot for spot in spots if spot is not None)
        if [spot[0] for spot in found] == list(range(caller + 1, caller + 1 + len(calls))):
            calls = [self.pairs.calls[spot] for spot in found]
        behind = caller + 1
        while behind < len(self.roles) and self.roles[behind] == "tool":
            behind += 1
        answers: list[Any] = []
        beside: list[Any] = []
        for call in calls:
            spot = self.pairs.answers.get(call)
            if spot is None:
                self.bench.tell(caller, "a call had no result", where=self._tool(call))
                answers.append(_interrupted(self.names[call]))
                continue
            if spot[0] > behind:
                late = self._is_late(spot)
                why = "a result came late" if late else "a result did not stand behind its call"
                self.bench.tell(spot[0], why, where=f"{self._tool(call)} result")
            answers.append(self._result(spot, self.names[call], beside))
        return [*answers, *beside]

    def _tool(self, call: Location) -> str:
        raw = _calls_in(self.raws[call[0]])[call[1]]
        return _WIRE.tool_name(raw) or "tool"

    def _result(self, spot: Location, name: str, beside: list[Any]) -> Any:
        """A result under the id of its call, text alone; other parts are moved ``beside``."""
        raw = self.raws[spot[0]]
        content = field(raw, "content")
        new: dict[str, Any] = {} if field(raw, "tool_call_id") == name else {"tool_call_id": name}
        if content is None or content == []:
            self.bench.tell(spot[0], "the content of a result was null")
            new["content"] = EMPTY
        elif isinstance(content, list):
            other = [part for part in content if field(part, "type") in _USERS]
            if other:
                self.bench.tell(spot[0], "a result held more than text")
                new["content"] = [part for part in content if part not in other] or _SEE
                line = {"type": "text", "text": _BESIDE}
                beside.append({"role": "user", "content": [line, *other]})
        return {**copy_of(raw), **new} if new else raw


def _calls_in(raw: Any) -> Sequence[Any]:
    calls = field(raw, "tool_calls")
    return calls if isinstance(calls, (list, tuple)) else ()


def _legal_id(name: str) -> bool:
    return 0 < len(name) <= _ID_LENGTH


def _interrupted(name: str) -> dict[str, Any]:
    """The result of a call that has none: the same bytes every time."""
    return {"role": "tool", "tool_call_id": name, "content": INTERRUPTED}


def _is_ours(raw: Any) -> bool:
    content = field(raw, "content")
    if isinstance(content, list) and len(content) == 1:
        content = field(content[0], "text")
    return isinstance(content, str) and content == INTERRUPTED
