"""Repairing OpenAI Responses: R1 to R3, R5, R6 and R14 (`provider-rules` §1.C).

A reply is a run of items of the model, and where one ends and the next begins is not written
down: so where a call lacks its output, each output of that run stands directly behind its
call. An output may stand anywhere behind its call and counts as late only if the model spoke
again, after somebody else, before it came. An asynchronous call may stay open, and a
reference may stand for any call: both are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ullage.wires.base import as_json, field
from ullage.wires.openai_responses.format import OpenAIResponses
from ullage.wires.repair.base import (
    BEGIN,
    INTERRUPTED,
    MOVED,
    Growing,
    Location,
    RepairLog,
    copy_of,
    new_id,
    outputs_in,
)

__all__ = ["History"]

_WIRE = OpenAIResponses()
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


class History(Growing):
    """A history with its calls paired, and the items that come of it."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[str] = []
        self.runs: list[int] = []
        self.names: dict[Location, str] = {}
        self.alone: set[Location] = set()
        self.bare: set[int] = set()
        self.nameless: set[int] = set()
        self.batches: dict[int, list[Location]] = {}
        self._mended: dict[int, bool] = {}
        self._taken: set[str] = set()
        self._ids: dict[str, int] = {}
        self._referred = False

    def read(self, at: int) -> None:
        """See `Growing.read`."""
        raw = self.raws[at]
        kind = _kind(raw)
        self.kinds.append(kind)
        begins = self._begins(at)
        self.runs.append((self.runs[-1] if at else 0) + begins)
        self._referred = self._referred or kind == "item_reference"
        if begins:
            self._taken.clear()
        if kind in _CALLS:
            self._name(raw, self._spot(at))
        elif kind in _OUTPUTS:
            self._answer(raw, self._spot(at))
        elif kind == _ASKS:
            self.pairs.call(_key(kind, field(raw, "id")), self._spot(at))
        elif kind == _APPROVES:
            self._join(_key(_ASKS, field(raw, "approval_request_id")), self._spot(at))

    def _begins(self, at: int) -> bool:
        """Whether a reply of the model begins here."""
        speaks = _is_models(self.raws[at], self.kinds[at])
        return speaks and not (at and _is_models(self.raws[at - 1], self.kinds[at - 1]))

    def spots(self, at: int) -> Iterable[Location]:
        """See `Growing.spots`."""
        return (self._spot(at),)

    def place(self, spot: Location) -> int:
        """See `Growing.place`."""
        return spot[1]

    def _spot(self, at: int) -> Location:
        """Where an item stands: its reply, and its own index."""
        return self.runs[at], at

    def _name(self, raw: Any, spot: Location) -> None:
        name = field(raw, "call_id")
        own = new_id(name, self._taken.__contains__, lambda text: 0 < len(text) <= _ID_LENGTH)
        self._taken.add(own)
        self.names[spot] = own
        self.batches.setdefault(spot[0], []).append(spot)
        self.pairs.call(_key(self.kinds[spot[1]], name), spot)
        if own != name:
            self.bench.tell(spot[1], "a call had an id that is not legal or not its own")

    def _answer(self, raw: Any, spot: Location) -> None:
        local = self.kinds[spot[1]] == "local_shell_call_output"
        asked = field(raw, "call_id") or (field(raw, "id") if local else None)
        if asked is None and self.kinds[spot[1]] == "function_call_output":
            self.alone.add(spot)
            return
        self._join(_key(self.kinds[spot[1]], asked), spot, free=local)

    def _join(self, name: str, spot: Location, *, free: bool = False) -> None:
        """An answer stands here; a stray one may answer what is not at hand."""
        self.pairs.result(name, spot, ours=_is_ours(self.raws[spot[1]]))
        if spot in self.pairs.strays and (self._referred or free):
            self.alone.add(spot)

    def _lacks(self, call: Location) -> bool:
        """Whether a call that must be answered is not, or late."""
        spot = self.pairs.answers.get(call)
        if spot is None:
            return self.kinds[call[1]] != "computer_call" and not _is_async(self.raws[call[1]])
        return self._is_late(spot)

    # ── the items ────────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `Growing.opens`."""
        return self._begins(at)

    def make(self, since: int, stop: int, count: int, last: Any) -> tuple[list[Any], bool]:
        """See `Growing.make`."""
        while self._ids and self._ids[next(reversed(self._ids))] >= since:
            self._ids.popitem()
        bare, nameless, is_over = _bare(self.raws[since:stop])
        self.bare, self.nameless = {since + at for at in bare}, {since + at for at in nameless}
        self._mended.clear()
        items, stays = _reasoned(self._items(since, stop), self.bench)
        return items, is_over and stays

    def ending(self, last: Any) -> list[Any]:
        """See `Growing.ending`."""
        if last is not None:
            return []
        self.bench.tell(0, "there was no item")
        return [_WIRE.user(BEGIN)]

    def _items(self, since: int, stop: int) -> list[Any]:
        """Every item as it is to be sent, but for reasoning that nothing follows."""
        made: list[Any] = []
        for at in range(since, stop):
            kind = self.kinds[at]
            if at in self.bare:
                self.bench.put_by(at, _BARE, [self.raws[at]])
            elif kind in _OUTPUTS and self._is_moved(self._spot(at)):
                made += self._left(at)
            elif self._is_orphan(at):
                made.append(self._aside(at, _ORPHANS[kind]))
            else:
                made += self._item(at)
                made += self._answer_to(at) if kind in _CALLS else []
        return made

    def _is_orphan(self, at: int) -> bool:
        """Whether an item goes because no answer can be made up for it, or it answers nothing."""
        kind, spot = self.kinds[at], self._spot(at)
        if kind == _APPROVES:
            return spot not in self.pairs.calls and spot not in self.alone
        return kind in _ORPHANS and spot not in self.pairs.answers

    def _item(self, at: int) -> list[Any]:
        """An item under ids of its own; none if it may not stand there."""
        raw, kind = self.raws[at], self.kinds[at]
        new: dict[str, Any] = {}
        if kind == "compaction_trigger" and at < len(self.raws) - 1:
            self.bench.tell(at, "a compaction_trigger was not the last")
            return []
        name = field(raw, "id")
        own = kind != "message" or field(raw, "role") == "assistant"
        if own and name is not None and not self._is_free(name, kind):
            is_known = isinstance(name, str) and name in self._ids
            if is_known and kind in ("reasoning", "item_reference"):
                self.bench.put_by(at, f"the same {kind} stood twice", [raw])
                return []
            self.bench.tell(at, "an item had an id that is not legal or not its own")
            new["id"] = None
        if at in self.nameless:
            new["id"] = None
        elif own and isinstance(name, str):
            self._ids.setdefault(name, at)
        new.update(self._called(at))
        if not new:
            return [raw]
        kept = {**copy_of(raw), **new}
        return [{key: value for key, value in kept.items() if key != "id" or value is not None}]

    def _is_free(self, name: Any, kind: str) -> bool:
        if not isinstance(name, str) or not _legal_id(name) or name in self._ids:
            return False
        if kind in _PREFIXES or kind in _CALLERS or kind == "item_reference":
            return name.startswith(_PREFIXES.get(kind, ""))
        return not name.startswith(tuple(_PREFIXES.values()))

    def _called(self, at: int) -> dict[str, Any]:
        """What must be set in a call or output: the id of the call, arguments as text."""
        raw, kind, spot = self.raws[at], self.kinds[at], self._spot(at)
        call = spot if kind in _CALLS else self.pairs.calls.get(spot)
        new: dict[str, Any] = {}
        name = None if call is None else self.names.get(call)
        if name is not None and name != (field(raw, "call_id") or field(raw, "id")):
            new["call_id"] = name
        if kind in _TEXTS and not isinstance(field(raw, _TEXTS[kind]), str):
            given = field(raw, _TEXTS[kind])
            self.bench.tell(at, "the arguments of a call were not text")
            new[_TEXTS[kind]] = "" if given is None else as_json(given, f"input[{at}]")
        if call is not None and kind in _OUTPUTS and kind != f"{self.kinds[call[1]]}_output":
            self.bench.tell(at, "a result was of another type than its call")
            new["type"] = f"{self.kinds[call[1]]}_output"
        texts = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
        if kind in texts and field(raw, "output") is None:
            self.bench.tell(at, "a result had no output")
            new["output"] = ""
        return new

    # ── outputs ──────────────────────────────────────────────────────────────────────

    def _is_moved(self, spot: Location) -> bool:
        """Whether an output does not stay where it stands."""
        call = self.pairs.calls.get(spot)
        if call is None:
            return spot not in self.alone
        return self._is_mended(call[0]) and not _is_async(self.raws[call[1]])

    def _is_mended(self, run: int) -> bool:
        """Whether a reply has a call that must be answered and is not, or late."""
        if run not in self._mended:
            self._mended[run] = any(map(self._lacks, self.batches.get(run, ())))
        return self._mended[run]

    def _is_late(self, spot: Location) -> bool:
        """Whether the model spoke between a call that must be answered and this output."""
        call = self.pairs.calls[spot]
        return spot[0] > call[0] and not _is_async(self.raws[call[1]])

    def _left(self, at: int) -> list[Any]:
        """The line in place of an output that does not stay."""
        spot = self._spot(at)
        if spot in self.pairs.calls:
            return [_WIRE.user(MOVED)] if self._is_late(spot) else []
        if _is_ours(self.raws[at]):
            return []
        stray = spot in self.pairs.strays
        what = "a tool result without its call" if stray else "a second result of one call"
        return [self._aside(at, what)]

    def _aside(self, at: int, what: str) -> dict[str, Any]:
        kept = outputs_in(_WIRE.parse(self.raws[at], f"input[{at}]"))
        return _WIRE.user(self.bench.set_aside(at, what, kept))

    def _answer_to(self, at: int) -> list[Any]:
        """What stands directly behind a call: its output, if its reply had to be mended."""
        raw, call = self.raws[at], self._spot(at)
        spot = self.pairs.answers.get(call)
        tool = str(field(raw, "name") or self.kinds[at])
        if spot is None:
            if not self._lacks(call):
                return []
            self.bench.tell(at, "a call had no result", where=tool)
            return [_interrupted(self.kinds[at], self.names[call])]
        if not self._is_moved(spot):
            return []
        if self._is_late(spot):
            self.bench.tell(spot[1], "a result came late", where=f"{tool} result")
        late, new = self.raws[spot[1]], self._called(spot[1])
        return [{**copy_of(late), **new} if new else late]


def _reasoned(items: list[Any], bench: RepairLog) -> tuple[list[Any], bool]:
    """The items without reasoning whose follower was left out in mending.

    And whether that is so whatever else follows.
    """
    bare, nameless, is_over = _bare(items)
    made = []
    for at, item in enumerate(items):
        if at in bare:
            bench.put_by(at, _BARE, [item])
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
