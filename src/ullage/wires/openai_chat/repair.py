"""Repairing OpenAI Chat Completions: C1 to C8 (`provider-rules` §1.B).

Results are messages of their own, so every batch is followed by its own, and what is set
aside leaves a message of the user where it stood. Ids may come again in later turns; within
a batch they may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ullage.history.pairing import Pairing
from ullage.wires.base import as_json, field, plain
from ullage.wires.openai_chat.format import OpenAIChat
from ullage.wires.repair.base import (
    BEGIN,
    EMPTY,
    INTERRUPTED,
    At,
    Reading,
    copy_of,
    is_object,
)

__all__ = ["Messages"]

_ID_LENGTH = 40
_ROLES = ("system", "developer", "user", "assistant")
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")
_USERS = ("image_url", "input_audio", "file")
_BESIDE = "[ullage: what a tool gave beside text follows]"
_SEE = "[ullage: what this tool gave is in the next message of the user]"


class Messages(Reading):
    """A history with its calls paired, and the messages that come of it."""

    wire = OpenAIChat()

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        super().__init__(raws, pairs)
        self.roles: dict[int, Any] = {}
        self.names: dict[At, str] = {}

    def read(self, at: int) -> None:
        """See `Reading.read`."""
        raw = self.raws[at]
        self.roles[at] = role = field(raw, "role")
        self.speaker(at, is_model=role == "assistant")
        if role == "assistant":
            for number, call in enumerate(_calls_in(raw)):
                self.pairs.call((at, number), str(field(call, "id") or ""))
        elif role == "tool":
            asked = str(field(raw, "tool_call_id") or "")
            self.answer((at, 0), asked, is_placeholder=_is_ours(raw))

    def tool(self, call: At) -> str:
        """See `Reading.tool`."""
        return self.wire.tool_name(_calls_in(self.raws[call[0]])[call[1]]) or "tool"

    def _batch(self, at: int) -> list[At]:
        calls = _calls_in(self.raws[at]) if self.roles[at] == "assistant" else ()
        return [(at, number) for number in range(len(calls))]

    # ── the messages ─────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `Reading.opens`."""
        return bool(field(self.raws[at], "role") == "assistant")

    def make(self, since: int, stop: int, count: int, last: Any) -> tuple[list[Any], bool]:
        """See `Reading.make`."""
        made: list[Any] = []
        for at in range(since, stop):
            role = self.roles[at]
            if role == "tool":
                made += self._left(at)
            elif role == "assistant":
                made += self._assistant(at) + self._answers(at)
            else:
                made.append(self._other(at))
        return made, True

    def ending(self, last: Any) -> list[Any]:
        """See `Reading.ending`."""
        if last is not None:
            return []
        self.log.report(0, "there was no message")
        return [self.wire.user(BEGIN)]

    def _other(self, at: int) -> Any:
        raw = self.raws[at]
        content = field(raw, "content")
        if self.roles[at] not in _ROLES or (content is not None and content != []):
            return raw
        self.log.report(at, "the message had no content")
        return {**copy_of(raw), "content": EMPTY}

    def _assistant(self, at: int) -> list[Any]:
        """A message of the assistant with ids of its own; none if nothing is in it."""
        raw = self.raws[at]
        new: dict[str, Any] = {}
        calls, content = field(raw, "tool_calls"), field(raw, "content")
        if calls and not isinstance(calls, (list, tuple)):
            return [raw]  # the parser will say so
        if calls:
            self._name(at)
            called = [self._call((at, number), call) for number, call in enumerate(calls)]
            if any(a is not b for a, b in zip(called, calls, strict=True)):
                new["tool_calls"] = called
        if content == [] or (content is None and not self._says_otherwise(raw)):
            self.log.report(at, "the message had no content")
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

    def _name(self, at: int) -> None:
        """Give the calls of a message ids: within it, none may come again."""
        taken: set[str] = set()
        for number, call in enumerate(_calls_in(self.raws[at])):
            own = self.own_id(at, field(call, "id"), taken, _legal_id)
            taken.add(own)
            self.names[at, number] = own

    def _call(self, here: At, raw: Any) -> Any:
        """A call under its own id, with arguments that are text (C7)."""
        kind = field(raw, "type") or "function"
        body = field(raw, kind) if isinstance(kind, str) else None
        if not is_object(raw) or not is_object(body):
            return raw  # the parser will say so
        name = "arguments" if kind == "function" else "input"
        given = field(body, name)
        if field(raw, "id") == self.names[here] and isinstance(given, str):
            return raw
        new = {**copy_of(raw), "id": self.names[here]}
        if not isinstance(given, str):
            self.log.report(here[0], "the arguments of a call were not text")
            text = "" if given is None else as_json(given, f"messages[{here[0]}].tool_calls")
            new[kind] = {**plain(body, kind), name: text}
        return new

    # ── results ──────────────────────────────────────────────────────────────────────

    def _left(self, at: int) -> list[Any]:
        """What stays where a result stood: nothing, or a line about it."""
        if (at, 0) in self.pairs.calls:
            return self.left(at)
        raw = self.raws[at]
        return [] if _is_ours(raw) else [self.wire.user(self.left_over((at, 0), raw))]

    def _answers(self, caller: int) -> list[Any]:
        """The results of a batch: as they stand behind it, or in the order of its calls."""
        calls = self._batch(caller)
        found = sorted(self.pairs.answers[call] for call in calls if call in self.pairs.answers)
        if [at for at, _ in found] == list(range(caller + 1, caller + 1 + len(calls))):
            calls = [self.pairs.calls[result] for result in found]
        behind = caller + 1
        while self.roles.get(behind) == "tool":
            behind += 1
        answers: list[Any] = []
        beside: list[Any] = []
        for call, result in self.answered(calls, lambda result: result[0] <= behind):
            name = self.names[call]
            if result is None:
                answers.append(_interrupted(name))
            else:
                answers.append(self._result(result[0], name, beside))
        return [*answers, *beside]

    def _result(self, at: int, name: str, beside: list[Any]) -> Any:
        """A result under the id of its call, text alone; other parts are moved ``beside``."""
        raw = self.raws[at]
        content = field(raw, "content")
        new: dict[str, Any] = {} if field(raw, "tool_call_id") == name else {"tool_call_id": name}
        if content is None or content == []:
            self.log.report(at, "the content of a result was null")
            new["content"] = EMPTY
        elif isinstance(content, list):
            other = [part for part in content if field(part, "type") in _USERS]
            if other:
                self.log.report(at, "a result held more than text")
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
