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

from ullage.history.pairing import Pairing
from ullage.wires.base import as_json, field
from ullage.wires.openai_responses.format import OpenAIResponses
from ullage.wires.repair.base import (
    BEGIN,
    INTERRUPTED,
    At,
    Reading,
    RepairLog,
    copy_of,
)

__all__ = ["Items"]

_ID_LENGTH = 64
_legal_id = re.compile(r"[a-zA-Z0-9_-]+\Z").match
_TEXTS = {"function_call": "arguments", "custom_tool_call": "input"}
_CALLS = (*_TEXTS, "shell_call", "local_shell_call", "apply_patch_call", "computer_call")
_OUTPUTS = tuple(f"{kind}_output" for kind in _CALLS)
_CALLERS = (
    *_OUTPUTS,
    "mcp_approval_response",
    "configuration_update",
    "additional_tools",
    "compaction_trigger",
)
_PREFIXES = {
    "message": "msg_",
    "reasoning": "rs_",
    "function_call": "fc_",
    "custom_tool_call": "ctc_",
}
_ASKS, _APPROVES = "mcp_approval_request", "mcp_approval_response"

_ORPHANS = {
    "computer_call": "an interrupted call of the computer",
    _ASKS: "a request for approval without an answer",
    _APPROVES: "an approval without its request",
}
_BARE = "reasoning stood without what it was made with"


class Items(Reading):
    """A history with its calls paired, and the items that come of it."""

    wire = OpenAIResponses()

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        super().__init__(raws, pairs)
        self.kinds: dict[int, str] = {}
        self.names: dict[At, str] = {}
        self.bare: set[int] = set()
        self.nameless: set[int] = set()
        self._runs: dict[int, int] = {}
        self._batches: dict[int, list[At]] = {}
        self._repaired: dict[int, bool] = {}

    def read(self, at: int) -> None:
        """See `Reading.read`. A run of items of the model is known by its first."""
        raw, here = self.raws[at], (at, 0)
        kind = self.kinds[at] = _kind(raw)
        run = self._runs[at] = at if self.opens(at) else self._runs.get(at - 1, at)
        self.speaker(at, is_model=_is_models(raw, kind))
        if kind == "item_reference":
            self.pairs.reference()
        elif kind in _CALLS:
            self._batches.setdefault(run, []).append(here)
            self.pairs.call(here, _key(kind, field(raw, "call_id")), is_whole=True)
        elif kind in _OUTPUTS:
            self._output(raw, kind, here)
        elif kind == _ASKS:
            self.pairs.call(here, _key(kind, field(raw, "id")), is_whole=True)
        elif kind == _APPROVES:
            self.answer(here, _key(_ASKS, field(raw, "approval_request_id")))

    def _output(self, raw: Any, kind: str, here: At) -> None:
        local = kind == "local_shell_call_output"
        asked = field(raw, "call_id") or (field(raw, "id") if local else None)
        if asked is not None or kind != "function_call_output":
            ours = _is_ours(raw)
            self.answer(here, _key(kind, asked), is_placeholder=ours, is_free=local)

    def opens(self, at: int) -> bool:
        """See `Reading.opens`."""
        raws = self.raws
        speaks = _is_models(raws[at], _kind(raws[at]))
        return speaks and not (at and _is_models(raws[at - 1], _kind(raws[at - 1])))

    def tool(self, call: At) -> str:
        """See `Reading.tool`."""
        return str(field(self.raws[call[0]], "name") or self.kinds[call[0]])

    def is_late(self, result: At) -> bool:
        """Whether the model spoke between a call that must be answered and this output."""
        call = self.pairs.calls.get(result)
        if call is None or _is_async(self.raws[call[0]]):
            return False
        return self._runs[result[0]] > self._runs[call[0]]

    def _lacks(self, call: At) -> bool:
        """Whether a call that must be answered is not, or late."""
        result = self.pairs.answers.get(call)
        if result is None:
            return self.kinds[call[0]] != "computer_call" and not _is_async(self.raws[call[0]])
        return self.is_late(result)

    def _is_left_over(self, here: At) -> bool:
        """Whether an answer stands where it answers nothing, here or elsewhere."""
        return here in self.pairs.strays or here in self.pairs.seconds

    # ── the items ────────────────────────────────────────────────────────────────────

    def make(self, since: int, stop: int, count: int, last: Any) -> tuple[list[Any], bool]:
        """See `Reading.make`."""
        bare, nameless, is_over = _bare(self.raws[since:stop])
        self.bare, self.nameless = {since + at for at in bare}, {since + at for at in nameless}
        self._repaired.clear()
        items, stays = _reasoned(self._items(since, stop), self.log)
        return items, is_over and stays

    def ending(self, last: Any) -> list[Any]:
        """See `Reading.ending`."""
        if last is not None:
            return []
        self.log.report(0, "there was no item")
        return [self.wire.user(BEGIN)]

    def _items(self, since: int, stop: int) -> list[Any]:
        """Every item as it is to be sent, but for reasoning that nothing follows."""
        made: list[Any] = []
        for at in range(since, stop):
            kind = self.kinds[at]
            if at in self.bare:
                self.log.remove(at, _BARE, self.raws[at])
            elif kind in _OUTPUTS and self._is_moved((at, 0)):
                made += self._left(at)
            elif self._is_orphan(at):
                message = self.wire.parse(self.raws[at], f"input[{at}]")
                made.append(self.wire.user(self.log.set_aside(at, _ORPHANS[kind], message)))
            elif kind in _CALLS:
                self._name(at)
                made += self._item(at) + self._answer_to(at)
            else:
                made += self._item(at)
        return made

    def _is_orphan(self, at: int) -> bool:
        """Whether an item goes because no answer can be made up for it, or it answers nothing."""
        kind, here = self.kinds[at], (at, 0)
        if kind == _APPROVES:
            return self._is_left_over(here)
        return kind in _ORPHANS and here not in self.pairs.answers

    def _name(self, at: int) -> None:
        """Give a call an id: within its reply, none may come again."""
        here, batch = (at, 0), self._batches[self._runs[at]]
        taken = {self.names[call] for call in batch if call < here}
        own = self.own_id(at, field(self.raws[at], "call_id"), taken, _legal_call_id)
        self.names[here] = own

    def _item(self, at: int) -> list[Any]:
        """An item under ids of its own; none if it may not stand there."""
        raw, kind = self.raws[at], self.kinds[at]
        new: dict[str, Any] = {}
        if kind == "compaction_trigger" and at < len(self.raws) - 1:
            self.log.report(at, "a compaction_trigger was not the last")
            return []
        name = field(raw, "id")
        own = kind != "message" or field(raw, "role") == "assistant"
        if own and name is not None and not self._is_free(name, kind):
            is_known = isinstance(name, str) and name in self.ids
            if is_known and kind in ("reasoning", "item_reference"):
                self.log.remove(at, f"the same {kind} stood twice", raw)
                return []
            self.log.report(at, "an item had an id that is not legal or not its own")
            new["id"] = None
        if at in self.nameless:
            new["id"] = None
        elif own and isinstance(name, str):
            self.ids.setdefault(name, at)
        new.update(self._called(at))
        if not new:
            return [raw]
        kept = {**copy_of(raw), **new}
        return [{key: value for key, value in kept.items() if key != "id" or value is not None}]

    def _is_free(self, name: Any, kind: str) -> bool:
        if not isinstance(name, str) or not _legal_id(name) or name in self.ids:
            return False
        if kind in _PREFIXES or kind in _CALLERS or kind == "item_reference":
            return name.startswith(_PREFIXES.get(kind, ""))
        return not name.startswith(tuple(_PREFIXES.values()))

    def _called(self, at: int) -> dict[str, Any]:
        """What must be set in a call or output: the id of the call, arguments as text."""
        raw, kind, here = self.raws[at], self.kinds[at], (at, 0)
        call = here if kind in _CALLS else self.pairs.calls.get(here)
        new: dict[str, Any] = {}
        name = None if call is None else self.names.get(call)
        if name is not None and name != (field(raw, "call_id") or field(raw, "id")):
            new["call_id"] = name
        if kind in _TEXTS and not isinstance(field(raw, _TEXTS[kind]), str):
            given = field(raw, _TEXTS[kind])
            self.log.report(at, "the arguments of a call were not text")
            new[_TEXTS[kind]] = "" if given is None else as_json(given, f"input[{at}]")
        if call is not None and kind in _OUTPUTS and kind != f"{self.kinds[call[0]]}_output":
            self.log.report(at, "a result was of another type than its call")
            new["type"] = f"{self.kinds[call[0]]}_output"
        texts = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
        if kind in texts and field(raw, "output") is None:
            self.log.report(at, "a result had no output")
            new["output"] = ""
        return new

    # ── outputs ──────────────────────────────────────────────────────────────────────

    def _is_moved(self, result: At) -> bool:
        """Whether an output does not stay where it stands."""
        call = self.pairs.calls.get(result)
        if call is None:
            return self._is_left_over(result)
        return self._is_repaired(self._runs[call[0]]) and not _is_async(self.raws[call[0]])

    def _is_repaired(self, run: int) -> bool:
        """Whether a reply has a call that must be answered and is not, or late."""
        if run not in self._repaired:
            self._repaired[run] = any(map(self._lacks, self._batches.get(run, ())))
        return self._repaired[run]

    def _left(self, at: int) -> list[Any]:
        """The line in place of an output that does not stay."""
        raw = self.raws[at]
        if (at, 0) in self.pairs.calls:
            return self.left(at)
        return [] if _is_ours(raw) else [self.wire.user(self.left_over((at, 0), raw))]

    def _answer_to(self, at: int) -> list[Any]:
        """What stands directly behind a call: its output, if its reply had to be repaired."""
        call = (at, 0)
        result = self.pairs.answers.get(call)
        if not (self._is_moved(result) if result else self._lacks(call)):
            return []
        ((_, result),) = self.answered([call], lambda result: not self.is_late(result))
        if result is None:
            return [_interrupted(self.kinds[at], self.names[call])]
        moved, new = self.raws[result[0]], self._called(result[0])
        return [{**copy_of(moved), **new} if new else moved]


def _reasoned(items: list[Any], log: RepairLog) -> tuple[list[Any], bool]:
    """The items without reasoning whose follower was left out in repair.

    And whether that is so whatever else follows.
    """
    bare, nameless, is_over = _bare(items)
    made = []
    for at, item in enumerate(items):
        if at in bare:
            log.remove(at, _BARE, item)
        elif at in nameless:
            made.append({key: value for key, value in copy_of(item).items() if key != "id"})
        else:
            made.append(item)
    return made, is_over


def _bare(items: Sequence[Any]) -> tuple[set[int], set[int], bool]:
    """Reasoning that nothing of the model follows (R3), and what is then sent without its id.

    That is the rest of the reply: with its id it would ask for the reasoning (R4). And whether
    both are so whatever else follows.
    """
    bare: set[int] = set()
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
            bare.update(() if speaks else waiting)
            waiting, cut = [], not speaks
        elif cut and not speaks and _is_models(items[at - 1], _kind(items[at - 1])):
            cut = False  # that reply is over
        if cut and speaks and kind in _PREFIXES and field(item, "id") is not None:
            nameless.add(at)
    return bare | set(waiting), nameless, not waiting and not cut


def _legal_call_id(name: str) -> bool:
    return 0 < len(name) <= _ID_LENGTH


def _kind(raw: Any) -> str:
    kind = field(raw, "type")
    if isinstance(kind, str):
        return kind
    if field(raw, "role") is not None:
        return "message"
    return "item_reference" if field(raw, "id") is not None else ""


def _key(kind: str, name: Any) -> str:
    """What a call and its answer are paired by. Two types of calls are answered alike."""
    call = kind.removesuffix("_output")
    return f"{'' if call in _TEXTS else call} {name or ''}"


def _is_models(raw: Any, kind: str) -> bool:
    """Whether an item was made by the model or by a tool of the provider."""
    if kind == "message":
        return bool(field(raw, "role") == "assistant")
    if kind == "tool_search_output":
        return bool(field(raw, "execution") != "client")
    return kind not in _CALLERS


def _is_async(raw: Any) -> bool:
    return bool(field(raw, "async") or field(raw, "async_"))


def _interrupted(kind: str, name: str) -> dict[str, Any]:
    """The output of a call that has none: the same bytes every time."""
    output: dict[str, Any] = {"type": f"{kind}_output", "call_id": name, "output": INTERRUPTED}
    if kind == "shell_call":
        outcome = {"type": "exit", "exit_code": 1}
        output["output"] = [{"stdout": "", "stderr": INTERRUPTED, "outcome": outcome}]
    elif kind == "apply_patch_call":
        output["status"] = "failed"
    elif kind == "local_shell_call":
        output["id"] = output.pop("call_id")
    return output


def _is_ours(raw: Any) -> bool:
    given = field(raw, "output")
    if isinstance(given, list) and len(given) == 1:
        given = field(given[0], "stderr") or field(given[0], "text")
    return isinstance(given, str) and given == INTERRUPTED
