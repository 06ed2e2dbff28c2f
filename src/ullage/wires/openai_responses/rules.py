"""The rules of OpenAI Responses, R0 to R14 (`provider-rules` §1.C).

One machine over the items: which calls are open (R1, R2), whether reasoning still waits for
what it was made with (R3), which ids were seen (R5, R6) and whether anything follows a
trigger (R14). What depends on the replies as they were returned (R4, R8 and the other half
of R3) is judged against them, in `returned_problems`.

An asynchronous call may stay open, an output without ``call_id`` answers nothing and asks
nothing, and a reference may stand for any call: then R2 has nothing to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from ullage.history.pairing import At, Pairing
from ullage.wires.block import Block
from ullage.wires.openai_responses.blocks import CALLERS_OWN, CALLS, ITEMS, OUTPUTS, PARTS, ROLES
from ullage.wires.rules.problem import Problem, Report, Wire, kind_of, name_in, plain

__all__ = ["Check", "head_problems", "returned_problems", "spared"]

_Group: TypeAlias = tuple[Wire, list[str], set[str]]
"""An item as returned, the ids of the reasoning it needs, and the names of what follows it."""

CALL_ID_LENGTH = 64

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z").match
_PREFIXES = tuple(row.prefix for row in ITEMS.values() if row.prefix)
_APPROVAL = "mcp_approval_request"
_ANY_ID = CALLERS_OWN | {"item_reference"}
_UNKNOWN = Block("")


class Check:
    """One pass over the items.

    The state is which call each output answers, where the calls stand and what they are called,
    the ids seen, and the reasoning that still waits for the item it was made with. A request for
    approval is a call like others: its answer is the user's.
    """

    def __init__(self) -> None:
        self._report = Report()
        self._count = 0
        self.pairs = Pairing()
        self._asked: dict[At, tuple[str, str]] = {}
        self._ids: set[str] = set()
        self._waiting: str | None = None
        self._trigger: str | None = None

    def feed(self, item: Any) -> None:
        """Judge the next item."""
        at, where = (self._count, 0), f"input[{self._count}]"
        self._count += 1
        item = plain(item)
        kind = _type(item)
        if kind is None:
            self._report.add("R0", where, "an item is an object with a type or a role")
            return
        if self._trigger:
            self._report.add("R14", self._trigger, "something follows the compaction_trigger")
        self._trigger = where if kind == "compaction_trigger" else None
        self.pairs.speaker(is_model=not (kind in CALLERS_OWN or _is_callers(item, kind)))
        if kind == "item_reference":
            self.pairs.reference()
        self._reasoned(item, kind, where)
        self._id(item, kind, where)
        self._shape(item, kind, where)
        if kind in CALLS:
            self._call(item, kind, at, where)
        elif kind in OUTPUTS:
            self._answer(item, kind, at, where)
        elif kind == _APPROVAL:
            self._ask((kind, str(item.get("id"))), at, where)
        elif kind == "mcp_approval_response":
            self._close((_APPROVAL, str(item.get("approval_request_id"))), at, where)

    def close(self) -> list[Problem]:
        """Everything found, and what is still open; may be asked at any point."""
        end = Report()
        if not self._count:
            end.add("R0", "input", "at least one item is asked for")
        for call, may_stay_open in self.pairs.unanswered.items():
            if not may_stay_open:
                kind, call_id = self._asked[call]
                answer = "answer" if kind == _APPROVAL else "output"
                sentence = f"the {kind} {call_id[:64]!r} has no {answer} behind it"
                end.add("R1", f"input[{call[0]}]", sentence)
        if self._waiting:
            end.add("R3", self._waiting, "nothing follows this reasoning")
        return self._report.found + end.found

    def _reasoned(self, item: Wire, kind: str, where: str) -> None:
        """R3: what follows reasoning was made by the model too."""
        if kind == "reasoning":
            self._waiting = self._waiting or where
            return
        if self._waiting and (kind in CALLERS_OWN or _is_callers(item, kind)):
            sentence = "the item it was made with does not follow this reasoning"
            self._report.add("R3", self._waiting, sentence)
        self._waiting = None

    def _id(self, item: Wire, kind: str, where: str) -> None:
        name = item.get("id")
        if name is None:
            return
        if type(name) is not str or not _ID(name):
            self._report.add("R5", f"{where}.id", "the id has characters not allowed in it")
            return
        prefix = ITEMS.get(kind, _UNKNOWN).prefix
        if prefix:
            sentence = f"the id must begin with {prefix!r}"
            self._report.need(name.startswith(prefix), "R5", f"{where}.id", sentence)
        elif kind not in _ANY_ID and name.startswith(_PREFIXES):
            self._report.add("R5", f"{where}.id", "the id is that of an item of another type")
        if name in self._ids:
            self._report.add("R6", f"{where}.id", "an item with this id was sent before")
        self._ids.add(name)

    def _call(self, item: Wire, kind: str, at: At, where: str) -> None:
        call_id = item.get("call_id")
        if type(call_id) is not str or not call_id:
            self._report.add("R0", f"{where}.call_id", "a call names its call_id")
            return
        self._length(call_id, where)
        self._ask((kind, call_id), at, where, late=bool(item.get("async") or item.get("async_")))

    def _ask(self, call: tuple[str, str], at: At, where: str, *, late: bool = False) -> None:
        """R1: something stands here that wants an answer, unless it may come late."""
        if not late and any(self._asked[at] == call for at in self.pairs.unanswered):
            self._report.add("R1", where, "a call with this call_id is still open")
        self._asked[at] = call
        self.pairs.call(at, " ".join(call), late=late, is_whole=True)

    def _length(self, call_id: str, where: str) -> None:
        sentence = f"{len(call_id)} characters, {CALL_ID_LENGTH} are allowed"
        self._report.need(len(call_id) <= CALL_ID_LENGTH, "C6", f"{where}.call_id", sentence)

    def _answer(self, item: Wire, kind: str, at: At, where: str) -> None:
        local = kind == "local_shell_call_output"
        call_id = item.get("call_id") or (item.get("id") if local else None)
        if call_id is None and kind == "function_call_output":
            return
        if type(call_id) is not str:
            self._report.add("R0", f"{where}.call_id", "an output names the call_id it answers")
            return
        self._length(call_id, where)
        self._close((kind.removesuffix("_output"), call_id), at, where, is_free=local)

    def _close(self, call: tuple[str, str], at: At, where: str, *, is_free: bool = False) -> None:
        """R2: what is answered here was asked before."""
        self.pairs.result(at, " ".join(call), is_free=is_free)
        if at in self.pairs.strays:
            sentence = f"no {call[0]} {call[1][:64]!r} stands before this answer"
            self._report.add("R2", where, sentence)

    # ── shapes ───────────────────────────────────────────────────────────────────────

    def _shape(self, item: Wire, kind: str, where: str) -> None:
        self._report.fields("R0", item, ITEMS.get(kind, _UNKNOWN).needs.items(), where)
        if kind == "message":
            role = name_in(item, "role")
            if role not in ROLES:
                self._report.add("R0", f"{where}.role", "no such role in this format")
            else:
                self._content(item.get("content"), role, f"{where}.content")
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._content(item.get("output"), None, f"{where}.output")
        elif kind == "shell_call_output":
            self._chunks(item.get("output"), f"{where}.output")

    def _content(self, content: Any, role: str | None, where: str) -> None:
        """What somebody said or, where nobody's ``role`` is given, what a tool gave."""
        if type(content) is str:
            return
        if not isinstance(content, list):
            sentence = f"content must be text or a list of parts, and it is {kind_of(content)}"
            self._report.add("R0", where, sentence)
            return
        for index, part in enumerate(content):
            row = PARTS.get(name_in(part, "type") or "", _UNKNOWN)
            if not (row.in_result if role is None else role in row.roles):
                sentence = "a part of this type may not stand here"
                self._report.add("R0", f"{where}[{index}].type", sentence)
            elif self._report.fields("R0", part, row.needs.items(), f"{where}[{index}]"):
                sentence = f"one of {', '.join(row.one_of)} is asked for"
                held = not row.one_of or any(map(part.get, row.one_of))
                self._report.need(held, "R0", f"{where}[{index}]", sentence)

    def _chunks(self, chunks: Any, where: str) -> None:
        for index, chunk in enumerate(chunks if isinstance(chunks, list) else (None,)):
            texts = type(chunk) is dict and all(
                type(chunk.get(name)) is str for name in ("stdout", "stderr")
            )
            sentence = "a chunk of output has texts in stdout and stderr"
            self._report.need(texts, "R0", f"{where}[{index}]", sentence)


def _type(item: Any) -> str | None:
    """The type of an item, which messages and references may leave out."""
    kind = name_in(item, "type")
    if kind is not None or type(item) is not dict or item.get("type") is not None:
        return kind
    if "role" in item:
        return "message"
    return "item_reference" if "id" in item else None


def _is_callers(item: Wire, kind: str) -> bool:
    if kind == "tool_search_output":
        return item.get("execution") == "client"
    return kind == "message" and item.get("role") != "assistant"


# ── the head, and what was returned ──────────────────────────────────────────────────────


def spared(body: Wire) -> tuple[str, ...]:
    """The rules about items that do not hold under this head.

    R2, if the server holds what came before this input: the call may stand there.
    """
    return ("R2",) if body.get("previous_response_id") or body.get("conversation") else ()


def head_problems(body: Wire, items: Any) -> list[Problem]:
    """The rules that the items alone do not show: R7 and R10, and that tools are a list."""
    report = Report()
    if body.get("previous_response_id") and body.get("conversation"):
        report.add("R10", "conversation", "both previous_response_id and conversation are given")
    if body.get("tools") is not None and not isinstance(body["tools"], list):
        report.add("R0", "tools", f"tools must be a list, and it is {kind_of(body['tools'])}")
    if body.get("store") is False:
        for at, raw in enumerate(items if isinstance(items, (list, tuple)) else ()):
            if _held_elsewhere(plain(raw)):
                sentence = "with store set to false nothing is held under this id"
                report.add("R7", f"input[{at}]", sentence)
    return report.found


def _held_elsewhere(item: Any) -> bool:
    """Whether an item stands for something that only the server holds."""
    kind = _type(item)
    if kind == "reasoning":
        known = item.get("encrypted_content") or item.get("content")
        return item.get("id") is not None and not known
    return kind == "item_reference"


def returned_problems(items: Any, history: Sequence[Any]) -> list[Problem]:
    """R3, R4 and R8 against the full history, as the provider returned it.

    Within a reply, reasoning and the items that follow it up to the next reasoning are one
    group: the reasoning needs the first of them directly behind it, and each of them that is
    sent with its id needs the reasoning.
    """
    report = Report()
    sent = [plain(item) for item in (items if isinstance(items, (list, tuple)) else ())]
    groups = _groups([plain(item) for item in history])
    present: set[str] = set()
    for at, item in enumerate(sent):
        mine = groups.get(_id_of(item))
        if mine is not None:
            _judge(item, at, sent, mine, present, report)
        if _type(item) == "reasoning":
            present.add(_id_of(item))
    return report.found


def _judge(
    item: Wire,
    at: int,
    sent: list[Any],
    mine: _Group,
    present: set[str],
    report: Report,
) -> None:
    returned, reasoning, follower = mine
    if item.get("encrypted_content") != returned.get("encrypted_content"):
        report.add("R8", f"input[{at}].encrypted_content", "it is not as it was returned")
    if _type(item) == "reasoning":
        after = _names(sent, at + 1)
        if follower and not follower & after:
            report.add("R3", f"input[{at}]", "the item this reasoning was made with is missing")
    elif item.get("id") is not None:
        for name in reasoning:
            if name not in present:
                sentence = f"this item was made with the reasoning {name[:64]!r}, which is missing"
                report.add("R4", f"input[{at}]", sentence)


def _groups(history: list[Any]) -> dict[str, _Group]:
    """Each item of the model by its id: itself, the reasoning it needs, what follows it."""
    found: dict[str, _Group] = {}
    reasoning: list[str] = []
    fresh = False
    for at, item in enumerate(history):
        kind = _type(item)
        if kind is None or kind in CALLERS_OWN or _is_callers(item, kind):
            reasoning, fresh = [], False
            continue
        if kind == "reasoning":
            reasoning, fresh = [*(reasoning if fresh else ()), _id_of(item)], True
        else:
            fresh = False
        follower = _names(history, at + 1) if kind == "reasoning" else set()
        if _id_of(item):
            found[_id_of(item)] = (item, reasoning, follower)
    return found


def _id_of(item: Any) -> str:
    return name_in(item, "id") or ""


def _names(items: list[Any], at: int) -> set[str]:
    """What an item may be known by: its id, and the call_id of a call."""
    item = items[at] if at < len(items) else None
    call = name_in(item, "call_id") if _type(item) in CALLS else None
    return {name for name in (name_in(item, "id"), call) if name}
