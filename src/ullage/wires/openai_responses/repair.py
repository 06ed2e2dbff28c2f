"""Repairing OpenAI Responses: R1 to R3, R5, R6 and R14 (`provider-rules` §1.C).

A reply is a run of items of the model, and where one ends and the next begins is not written
down: so where a call lacks its output, each output of that run stands directly behind its
call. An output may stand anywhere behind its call and counts as late only if the model spoke
again, after somebody else, before it came. An asynchronous call may stay open, and a
reference may stand for any call: both are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ullage.core.history.pairing import INTERRUPTED, At, Pairing
from ullage.core.history.raw import field
from ullage.wires.openai_responses.blocks import (
    CALLERS_OWN,
    CALLS,
    ITEMS,
    OUTPUTS,
    is_callers,
    paired_by,
)
from ullage.wires.openai_responses.format import OpenAIResponses
from ullage.wires.repair.base import HistoryRepair, copy_of, is_interrupted

_is_legal = re.compile(r"[a-zA-Z0-9_-]+\Z").match
_TEXTS = {row.kind: row.text for row in ITEMS.values() if row.becomes == "call"}
_PREFIXES = {row.kind: row.prefix for row in ITEMS.values() if row.prefix}
_ANY_ID = CALLERS_OWN | {"item_reference"}
_ASKS, _APPROVES = "mcp_approval_request", "mcp_approval_response"

_ORPHANS = {
    "computer_call": "an interrupted call of the computer",
    _ASKS: "a request for approval without an answer",
    _APPROVES: "an approval without its request",
}
_UNFOLLOWED = "reasoning stood without what it was made with"


class Items(HistoryRepair):
    """A history with its calls paired, and the items that come of it. Each is its one block."""

    wire = OpenAIResponses()

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        super().__init__(raws, pairs)
        self.kinds: dict[int, str] = {}
        self._nameless: set[int] = set()
        self._runs: dict[int, int] = {}
        self._repaired: dict[int, bool] = {}

    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        """The provider's tools speak as the model."""
        return "assistant" if _is_models(raw) else "user", [raw]

    def _pair(self, here: At, block: Any, role: Any) -> None:
        """A run of items of the model is known by its first."""
        at = here[0]
        kind = self.kinds[at] = _kind(block)
        begins = role == "assistant" and self.roles.get(at - 1) != "assistant"
        run = self._runs[at] = at if begins else self._runs.get(at - 1, at)
        if kind == "item_reference":
            self.pairs.reference()
        elif kind in CALLS:
            self.batches.setdefault(run, []).append(here)
            self.pairs.call(
                here, paired_by(kind, field(block, "call_id")), is_whole=True
            )
        elif kind in OUTPUTS:
            local = kind == "local_shell_call_output"
            asked = field(block, "call_id") or (field(block, "id") if local else None)
            if asked is not None or kind != "function_call_output":
                ours = is_interrupted(field(block, "output"))
                self.answer(
                    here, paired_by(kind, asked), is_placeholder=ours, is_free=local
                )
        elif kind == _ASKS:
            self.pairs.call(here, paired_by(kind, field(block, "id")), is_whole=True)
        elif kind == _APPROVES:
            self.answer(here, paired_by(kind, field(block, "approval_request_id")))

    def opens(self, at: int) -> bool:
        """See `HistoryRepair.opens`: its run begins."""
        return _is_models(self.raws[at]) and not (at and _is_models(self.raws[at - 1]))

    def _tool(self, call: At) -> str:
        return str(field(self.block(call), "name") or self.kinds[call[0]])

    def is_late(self, result: At) -> bool:
        """Whether the model spoke between a call that must be answered and this output."""
        call = self.pairs.calls.get(result)
        if call is None or _is_async(self.block(call)):
            return False
        return self._runs[result[0]] > self._runs[call[0]]

    # ── the items ────────────────────────────────────────────────────────────────────

    def _make(
        self, since: int, stop: int, count: int, last: Any
    ) -> tuple[list[Any], bool]:
        """What is left out in repair may leave reasoning alone (R3)."""
        alone, nameless, is_over = _unfollowed(self.raws[since:stop])
        self._nameless = {since + at for at in nameless}
        self._repaired.clear()
        made: list[Any] = []
        for at in range(since, stop):
            if at - since in alone:
                self.remove(at, _UNFOLLOWED, self.raws[at])
            else:
                made += self._content(at, None) + self._answer_to(at)
        alone, nameless, stays = _unfollowed(made)
        for at in alone:
            self.remove(at, _UNFOLLOWED, made[at])
        items = [
            _without_id(item) if at in nameless else item
            for at, item in enumerate(made)
        ]
        return [
            item for at, item in enumerate(items) if at not in alone
        ], is_over and stays

    def _content(self, at: int, caller: int | None) -> list[Any]:
        raw, kind, here = self.raws[at], self.kinds[at], (at, 0)
        if kind in OUTPUTS and self._is_moved(here):
            if here in self.pairs.calls:
                return self.left(at)
            ours = is_interrupted(field(raw, "output"))
            return [] if ours else [self.wire.user(self.left_over(here, raw))]
        left = (
            self._is_left_over(here)
            if kind == _APPROVES
            else here not in self.pairs.answers
        )
        if kind in _ORPHANS and left:
            return [self.wire.user(self.set_aside(at, _ORPHANS[kind], raw))]
        if kind in CALLS:
            batch = self.batches[self._runs[at]]
            taken = {
                self.names[call]: call[0]
                for call in batch
                if call < here and call in self.names
            }
            for name, index in [*self.open_ids.items()]:
                if self._is_open((index, 0), here):
                    taken[name] = index
                else:
                    del self.open_ids[name]
            self._name(here, taken, "call_id")
            if _is_async(raw):
                self.open_ids[self.names[here]] = at
        if kind == "compaction_trigger" and at < len(self.raws) - 1:
            self.report(at, "a compaction_trigger was not the last")
            return []
        return self._item(at, kind)

    def _is_open(self, call: At, here: At) -> bool:
        """Whether no output of a call stands before an item: its id is in use so long (R1)."""
        output = self.pairs.answers.get(call)
        return output is None or output > here

    def _item(self, at: int, kind: str) -> list[Any]:
        """An item under ids of its own; none if it stood before."""
        raw = self.raws[at]
        name = field(raw, "id")
        own = name is not None and (
            kind != "message" or field(raw, "role") == "assistant"
        )
        if own and not self._is_free(name, kind):
            is_known = isinstance(name, str) and name in self.ids
            if is_known and kind in ("reasoning", "item_reference"):
                self.remove(at, f"the same {kind} stood twice", raw)
                return []
            self.report(at, "an item had an id that is not legal or not its own")
            raw = _without_id(raw)
        if at in self._nameless:
            raw = _without_id(raw)
        elif own and isinstance(name, str):
            self.ids.setdefault(name, at)
        new = self._called(at)
        return [{**copy_of(raw), **new} if new else raw]

    def _is_free(self, name: Any, kind: str) -> bool:
        """Whether an item of this type may have this id (R5, R6)."""
        if not isinstance(name, str) or not _is_legal(name) or name in self.ids:
            return False
        if kind in _PREFIXES or kind in _ANY_ID:
            return name.startswith(_PREFIXES.get(kind, ""))
        return not name.startswith(tuple(_PREFIXES.values()))

    def _called(self, at: int) -> dict[str, Any]:
        """What must be set in a call or output: the id of the call, arguments as text."""
        raw, kind, here = self.raws[at], self.kinds[at], (at, 0)
        call = here if kind in CALLS else self.pairs.calls.get(here)
        new: dict[str, Any] = {}
        name = None if call is None else self.names.get(call)
        if name is not None and name != (field(raw, "call_id") or field(raw, "id")):
            new["call_id"] = name
        if kind in _TEXTS and not isinstance(field(raw, _TEXTS[kind]), str):
            new[_TEXTS[kind]] = self.text_of(field(raw, _TEXTS[kind]), at)
        if (
            call is not None
            and kind in OUTPUTS
            and kind != f"{self.kinds[call[0]]}_output"
        ):
            self.report(at, "a result was of another type than its call")
            new["type"] = f"{self.kinds[call[0]]}_output"
        texts = (
            "function_call_output",
            "custom_tool_call_output",
            "local_shell_call_output",
        )
        if kind in texts and field(raw, "output") is None:
            self.report(at, "a result had no output")
            new["output"] = ""
        return new

    # ── outputs ──────────────────────────────────────────────────────────────────────

    def _is_moved(self, result: At) -> bool:
        """Whether an output does not stay where it stands."""
        call = self.pairs.calls.get(result)
        if call is None:
            return self._is_left_over(result)
        return self._is_repaired(self._runs[call[0]]) and not _is_async(
            self.block(call)
        )

    def _is_left_over(self, here: At) -> bool:
        """Whether an answer stands where it answers nothing."""
        return here in self.pairs.strays or here in self.pairs.seconds

    def _is_repaired(self, run: int) -> bool:
        """Whether a reply has a call that must be answered and is not, or late."""
        if run not in self._repaired:
            self._repaired[run] = any(map(self._lacks, self.batches.get(run, ())))
        return self._repaired[run]

    def _lacks(self, call: At) -> bool:
        """Whether a call that must be answered is not, or late."""
        result = self.pairs.answers.get(call)
        if result is None:
            return self.kinds[call[0]] != "computer_call" and not _is_async(
                self.block(call)
            )
        return self.is_late(result)

    def _answer_to(self, at: int) -> list[Any]:
        """What stands directly behind a call: its output, if its reply had to be repaired."""
        call = (at, 0)
        result = self.pairs.answers.get(call)
        if self.kinds[at] not in CALLS or not (
            self._is_moved(result) if result else self._lacks(call)
        ):
            return []
        return list(self.answered([call], lambda result: not self.is_late(result)))

    def _result(self, result: At) -> Any:
        raw, new = self.block(result), self._called(result[0])
        return {**copy_of(raw), **new} if new else raw

    def _interrupted(self, call: At) -> Any:
        kind, name = self.kinds[call[0]], self.names[call]
        output: dict[str, Any] = {
            "type": f"{kind}_output",
            "call_id": name,
            "output": INTERRUPTED,
        }
        if kind == "shell_call":
            outcome = {"type": "exit", "exit_code": 1}
            output["output"] = [
                {"stdout": "", "stderr": INTERRUPTED, "outcome": outcome}
            ]
        elif kind == "apply_patch_call":
            output["status"] = "failed"
        elif kind == "local_shell_call":
            output["id"] = output.pop("call_id")
        return output


def _unfollowed(items: Sequence[Any]) -> tuple[set[int], set[int], bool]:
    """Reasoning that nothing of the model follows (R3), and what is then sent without its id.

    That is the rest of the reply: with its id it would ask for the reasoning (R4). And whether
    both are so whatever else follows.
    """
    alone: set[int] = set()
    nameless: set[int] = set()
    waiting: list[int] = []
    cut = False
    for at, item in enumerate(items):
        kind = _kind(item)
        if kind == "reasoning":
            waiting.append(at)
            continue
        speaks = _is_models(item, kind)
        if waiting:
            alone.update(() if speaks else waiting)
            waiting, cut = [], not speaks
        elif cut and not speaks and _is_models(items[at - 1]):
            cut = False  # that reply is over
        if cut and speaks and kind in _PREFIXES and field(item, "id") is not None:
            nameless.add(at)
    return alone | set(waiting), nameless, not waiting and not cut


def _without_id(item: Any) -> dict[str, Any]:
    return {key: value for key, value in copy_of(item).items() if key != "id"}


def _kind(raw: Any) -> str:
    kind = field(raw, "type")
    if isinstance(kind, str):
        return kind
    if field(raw, "role") is not None:
        return "message"
    return "item_reference" if field(raw, "id") is not None else ""


def _is_models(raw: Any, kind: str | None = None) -> bool:
    """Whether an item was made by the model or by a tool of the provider."""
    return not is_callers(raw, _kind(raw) if kind is None else kind)


def _is_async(raw: Any) -> bool:
    return bool(field(raw, "async") or field(raw, "async_"))


REPAIR = Items
