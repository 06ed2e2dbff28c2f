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

from msgspec import Struct

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
_TEXTS = {
    row.kind: row.text for row in ITEMS.values() if row.becomes == "call"
}
_PREFIXES = {row.kind: row.prefix for row in ITEMS.values() if row.prefix}
_ANY_ID = CALLERS_OWN | {"item_reference"}
_REQUEST = "mcp_approval_request"
_RESPONSE = "mcp_approval_response"

_ORPHANS = {
    "computer_call": "an interrupted call of the computer",
    _REQUEST: "a request for approval without an answer",
    _RESPONSE: "an approval without its request",
}
_TEXT_OUTPUTS = (
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
)
"""Items whose output is a text, or begins as one: it may be empty, and not null."""
_UNFOLLOWED = "reasoning stood without what it was made with"


class ResponsesRepair(HistoryRepair):
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
        kind = _kind(block)
        self.kinds[at] = kind
        if role == "assistant" and self.roles.get(at - 1) != "assistant":
            run = at
        else:
            run = self._runs.get(at - 1, at)
        self._runs[at] = run

        if kind == "item_reference":
            self.pairs.add_reference()
        elif kind in CALLS:
            self.batches.setdefault(run, []).append(here)
            name = paired_by(kind, field(block, "call_id"))
            self.pairs.add_call(here, name, is_whole=True)
        elif kind in OUTPUTS:
            self._pair_output(here, block, kind)
        elif kind == _REQUEST:
            name = paired_by(kind, field(block, "id"))
            self.pairs.add_call(here, name, is_whole=True)
        elif kind == _RESPONSE:
            self.answer(
                here, paired_by(kind, field(block, "approval_request_id"))
            )

    def _pair_output(self, here: At, block: Any, kind: str) -> None:
        """An output answers by its call_id, one of a local shell by its id as well."""
        is_local = kind == "local_shell_call_output"
        call_id = field(block, "call_id")
        if not call_id:
            call_id = field(block, "id") if is_local else None
        if call_id is None and kind == "function_call_output":
            return
        self.answer(
            here,
            paired_by(kind, call_id),
            is_placeholder=is_interrupted(field(block, "output")),
            is_free=is_local,
        )

    def opens(self, at: int) -> bool:
        """See `HistoryRepair.opens`: its run begins."""
        if not _is_models(self.raws[at]):
            return False
        return at == 0 or not _is_models(self.raws[at - 1])

    def _tool(self, call: At) -> str:
        return str(field(self.block(call), "name") or self.kinds[call[0]])

    def is_late(self, result: At) -> bool:
        """Whether the model spoke between a call that must be answered and this output."""
        call = self.pairs.call_by_result.get(result)
        if call is None or _is_async(self.block(call)):
            return False
        return self._runs[result[0]] > self._runs[call[0]]

    # ── the items ────────────────────────────────────────────────────────────────────

    def _make(
        self,
        start: int,
        stop: int,
        count: int,
        previous: Any,
    ) -> tuple[list[Any], bool]:
        """See the base. Reasoning is looked at twice: repair may leave some alone (R3)."""
        raw_flaws = _unfollowed(self.raws[start:stop])
        self._nameless = {start + at for at in raw_flaws.nameless}
        self._repaired.clear()
        repaired: list[Any] = []
        for at in range(start, stop):
            if at - start in raw_flaws.alone:
                self.remove(at, _UNFOLLOWED, self.raws[at])
            else:
                repaired += self._content(at, None)
                repaired += self._answer_to(at)

        flaws = _unfollowed(repaired)
        items = []
        for at, item in enumerate(repaired):
            if at in flaws.alone:
                self.remove(at, _UNFOLLOWED, item)
            elif at in flaws.nameless:
                items.append(_without_id(item))
            else:
                items.append(item)
        return items, raw_flaws.is_settled and flaws.is_settled

    def _content(self, at: int, caller: int | None) -> list[Any]:
        raw = self.raws[at]
        kind = self.kinds[at]
        here = (at, 0)
        if kind in OUTPUTS and self._is_moved(here):
            return self._left_output(at)
        if kind in _ORPHANS and self._is_orphan(here, kind):
            return [self.wire.user(self.set_aside(at, _ORPHANS[kind], raw))]
        if kind in CALLS:
            self._name(here, self._names_in_use(here), "call_id")
            if _is_async(raw):
                self.open_ids[self.names[here]] = at
        if kind == "compaction_trigger" and at < len(self.raws) - 1:
            self.report(at, "a compaction_trigger was not the last")
            return []
        return self._item(at, kind)

    def _left_output(self, at: int) -> list[Any]:
        """The items in the place of an output: none if it was our own."""
        here = (at, 0)
        raw = self.raws[at]
        if here in self.pairs.call_by_result:
            return self.left(at)
        if is_interrupted(field(raw, "output")):
            return []
        return [self.wire.user(self.left_over(here, raw))]

    def _is_orphan(self, here: At, kind: str) -> bool:
        """Whether what asks has no answer, or what answers was not asked."""
        if kind == _RESPONSE:
            return self._is_left_over(here)
        return here not in self.pairs.result_by_call

    def _names_in_use(self, here: At) -> dict[str, int]:
        """The ids that a call may not have, and where they stand.

        Those are of the calls of its reply that stand before it, and of asynchronous calls whose
        output does not.
        """
        names = {}
        for call in self.batches[self._runs[here[0]]]:
            if call < here and call in self.names:
                names[self.names[call]] = call[0]
        for name, index in [*self.open_ids.items()]:
            if self._is_open((index, 0), here):
                names[name] = index
            else:
                del self.open_ids[name]
        return names

    def _is_open(self, call: At, here: At) -> bool:
        """Whether no output of a call stands before an item: its id is in use so long (R1)."""
        output = self.pairs.result_by_call.get(call)
        return output is None or output > here

    def _item(self, at: int, kind: str) -> list[Any]:
        """An item under ids of its own; none if it stood before."""
        raw = self.raws[at]
        item_id = field(raw, "id")
        is_message = kind == "message"
        has_id = item_id is not None
        if is_message and field(raw, "role") != "assistant":
            has_id = False  # of what the user says the id means nothing
        if has_id and not self._is_free(item_id, kind):
            is_repeated = isinstance(item_id, str) and item_id in self.ids
            if is_repeated and kind in ("reasoning", "item_reference"):
                self.remove(at, f"the same {kind} stood twice", raw)
                return []
            self.report(
                at, "an item had an id that is not legal or not its own"
            )
            raw = _without_id(raw)
        if at in self._nameless:
            raw = _without_id(raw)
        elif has_id and isinstance(item_id, str):
            self.ids.setdefault(item_id, at)
        changes = self._changes(at)
        return [{**copy_of(raw), **changes} if changes else raw]

    def _is_free(self, name: Any, kind: str) -> bool:
        """Whether an item of this type may have this id (R5, R6)."""
        if not isinstance(name, str) or not _is_legal(name):
            return False
        if name in self.ids:
            return False
        if kind in _PREFIXES or kind in _ANY_ID:
            return name.startswith(_PREFIXES.get(kind, ""))
        return not name.startswith(tuple(_PREFIXES.values()))

    def _changes(self, at: int) -> dict[str, Any]:
        """The fields to be set in a call or output: the id of the call, arguments as text."""
        raw = self.raws[at]
        kind = self.kinds[at]
        here = (at, 0)
        call = here if kind in CALLS else self.pairs.call_by_result.get(here)
        changes: dict[str, Any] = {}
        call_id = None if call is None else self.names.get(call)
        raw_id = field(raw, "call_id") or field(raw, "id")
        if call_id is not None and call_id != raw_id:
            changes["call_id"] = call_id
        if kind in _TEXTS:
            name = _TEXTS[kind]
            if not isinstance(field(raw, name), str):
                changes[name] = self.text_of(field(raw, name), at)
        if call is not None and kind in OUTPUTS:
            legal_kind = f"{self.kinds[call[0]]}_output"
            if kind != legal_kind:
                self.report(at, "a result was of another type than its call")
                changes["type"] = legal_kind
        if kind in _TEXT_OUTPUTS and field(raw, "output") is None:
            self.report(at, "a result had no output")
            changes["output"] = ""
        return changes

    # ── outputs ──────────────────────────────────────────────────────────────────────

    def _is_moved(self, result: At) -> bool:
        """Whether an output does not stay where it stands."""
        call = self.pairs.call_by_result.get(result)
        if call is None:
            return self._is_left_over(result)
        if _is_async(self.block(call)):
            return False
        return self._is_repaired(self._runs[call[0]])

    def _is_left_over(self, here: At) -> bool:
        """Whether an answer stands where it answers nothing."""
        return here in self.pairs.strays or here in self.pairs.seconds

    def _is_repaired(self, run: int) -> bool:
        """Whether a reply has a call that must be answered and is not, or late."""
        if run not in self._repaired:
            calls = self.batches.get(run, ())
            self._repaired[run] = any(self._lacks(call) for call in calls)
        return self._repaired[run]

    def _lacks(self, call: At) -> bool:
        """Whether a call that must be answered is not, or late."""
        result = self.pairs.result_by_call.get(call)
        if result is not None:
            return self.is_late(result)
        if self.kinds[call[0]] == "computer_call":
            return False
        return not _is_async(self.block(call))

    def _answer_to(self, at: int) -> list[Any]:
        """The output directly behind a call, if its reply had to be repaired; else none."""
        call = (at, 0)
        if self.kinds[at] not in CALLS:
            return []
        result = self.pairs.result_by_call.get(call)
        is_repaired = self._is_moved(result) if result else self._lacks(call)
        if not is_repaired:
            return []
        return list(
            self.answered([call], lambda result: not self.is_late(result))
        )

    def _result(self, result: At) -> Any:
        raw = self.block(result)
        changes = self._changes(result[0])
        if changes:
            return {**copy_of(raw), **changes}
        return raw

    def _interrupted(self, call: At) -> Any:
        kind = self.kinds[call[0]]
        output: dict[str, Any] = {
            "type": f"{kind}_output",
            "call_id": self.names[call],
            "output": INTERRUPTED,
        }
        if kind == "shell_call":
            chunk = {
                "stdout": "",
                "stderr": INTERRUPTED,
                "outcome": {"type": "exit", "exit_code": 1},
            }
            output["output"] = [chunk]
        elif kind == "apply_patch_call":
            output["status"] = "failed"
        elif kind == "local_shell_call":
            output["id"] = output.pop("call_id")
        return output


class _Flaws(Struct, frozen=True):
    """What is wrong with the reasoning of some items.

    Attributes:
        alone: the places of reasoning that nothing of the model follows (R3).
        nameless: the rest of its reply, which is sent without ids: with one it would ask for the
            reasoning (R4).
        is_settled: whether both are so whatever else follows.
    """

    alone: set[int]
    nameless: set[int]
    is_settled: bool


def _unfollowed(items: Sequence[Any]) -> _Flaws:
    """Look for reasoning that stands without what it was made with."""
    alone: set[int] = set()
    nameless: set[int] = set()
    waiting: list[int] = []
    is_cut = False  # whether the reply that goes on here lost its reasoning
    for at, item in enumerate(items):
        kind = _kind(item)
        if kind == "reasoning":
            waiting.append(at)
            continue
        speaks = _is_models(item, kind)
        if waiting:
            if not speaks:
                alone.update(waiting)
            waiting = []
            is_cut = not speaks
        elif is_cut and not speaks and _is_models(items[at - 1]):
            is_cut = False  # that reply is over
        has_id = kind in _PREFIXES and field(item, "id") is not None
        if is_cut and speaks and has_id:
            nameless.add(at)
    return _Flaws(
        alone=alone.union(waiting),
        nameless=nameless,
        is_settled=not waiting and not is_cut,
    )


def _without_id(item: Any) -> dict[str, Any]:
    return {key: value for key, value in copy_of(item).items() if key != "id"}


def _kind(raw: Any) -> str:
    kind = field(raw, "type")
    if isinstance(kind, str):
        return kind
    if field(raw, "role") is not None:
        return "message"
    if field(raw, "id") is not None:
        return "item_reference"
    return ""


def _is_models(raw: Any, kind: str | None = None) -> bool:
    """Whether an item was made by the model or by a tool of the provider."""
    if kind is None:
        kind = _kind(raw)
    return not is_callers(raw, kind)


def _is_async(raw: Any) -> bool:
    return bool(field(raw, "async") or field(raw, "async_"))


REPAIR = ResponsesRepair
