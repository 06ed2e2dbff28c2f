"""The rules of OpenAI Responses, R0 to R14 (`provider-rules` §1.C).

One pass over the items: which calls are open (R1, R2), whether reasoning still waits for what it
was made with (R3), which ids were seen (R5, R6) and whether anything follows a trigger (R14).

An asynchronous call may stay open, an output without ``call_id`` answers nothing and asks
nothing, and a reference may stand for any call: then R2 has nothing to say.
"""

from __future__ import annotations

import re
from typing import Any

from ullage.core.history.pairing import At
from ullage.wires.block import Block
from ullage.wires.models import is_elsewhere
from ullage.wires.openai_responses.blocks import (
    CALL_ID_LENGTH,
    CALLERS_OWN,
    CALLS,
    ITEMS,
    OUTPUTS,
    PARTS,
    ROLES,
    is_callers,
)
from ullage.wires.rules.problem import (
    Check,
    JsonObject,
    items_of,
    kind_of,
    name_in,
)

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z").match
_PREFIXES = tuple(row.prefix for row in ITEMS.values() if row.prefix)
_APPROVAL = "mcp_approval_request"
_ANY_ID = CALLERS_OWN | {"item_reference"}
_UNKNOWN = Block("")
_CHUNK = Block("chunk", needs={"stdout": str, "stderr": str})


class ResponsesCheck(Check):
    """One pass over the items.

    The state is which call each output answers, what the calls are called, the ids seen, and the
    reasoning that still waits for the item it was made with. A request for approval is a call
    like others: its answer is the user's.
    """

    key = "input"
    holds = ("content", "output", "summary")
    asks_one = ("R0", "at least one item is asked for")

    def __init__(self, head: JsonObject | None = None) -> None:
        super().__init__(head)
        self._names: dict[At, str] = {}
        self._ids: set[str] = set()
        self._waiting = ""
        self._trigger = ""
        self._holds_nothing = self.head.get("store") is False
        self._is_continued = bool(
            self.head.get("previous_response_id")
            or self.head.get("conversation")
        )

    @classmethod
    def listed(cls, history: Any) -> Any:
        """See `Check.listed`: a text alone is what the user says."""
        if type(history) is str:
            return [{"role": "user", "content": history}]
        return history

    def _judge(self, item: Any, at: int, path: str) -> None:
        kind = type_of(item)
        if kind is None:
            self.add("R0", path, "an item is an object with a type or a role")
            return
        if self._trigger:
            self.add(
                "R14",
                self._trigger,
                "something follows the compaction_trigger",
            )
        self._trigger = path if kind == "compaction_trigger" else ""
        is_model = not is_callers(item, kind)
        self.pairs.begin_message(is_model=is_model)
        if self._waiting and not is_model:
            self.add(
                "R3",
                self._waiting,
                "the item it was made with does not follow this reasoning",
            )
        if kind != "reasoning":
            self._waiting = ""
        elif not self._waiting:
            self._waiting = path
        if self._holds_nothing and _is_held_elsewhere(item, kind):
            self.add(
                "R7",
                path,
                "with store set to false nothing is held under this id",
            )
        self._id(item, kind, path)
        self._shape(item, kind, path)
        self._pair(item, kind, (at, 0), path)

    def _end(self) -> None:
        """Calls without an answer, reasoning without what follows."""
        for call, may_stay_open in self.pairs.unanswered.items():
            if not may_stay_open:
                self.add(
                    "R1",
                    f"input[{call[0]}]",
                    f"the {self._names[call]} has no answer behind it",
                )
        if self._waiting:
            self.add("R3", self._waiting, "nothing follows this reasoning")

    def _request(self, head: JsonObject) -> None:
        """R10, and that tools are a list."""
        if head.get("previous_response_id") and head.get("conversation"):
            self.add(
                "R10",
                "conversation",
                "both previous_response_id and conversation are given",
            )
        if head.get("tools") is not None:
            self.fields("R0", head, {"tools": list}, "tools")

    def _id(self, item: JsonObject, kind: str, path: str) -> None:
        item_id = item.get("id")
        if item_id is None:
            return
        path = f"{path}.id"
        if type(item_id) is not str:
            self.add("R5", path, "the id has characters not allowed in it")
            return
        prefix = ITEMS.get(kind, _UNKNOWN).prefix
        if not _ID(item_id):
            self.add("R5", path, "the id has characters not allowed in it")
        elif prefix:
            self.need(
                item_id.startswith(prefix),
                "R5",
                path,
                f"the id must begin with {prefix!r}",
            )
        elif kind not in _ANY_ID and item_id.startswith(_PREFIXES):
            self.add("R5", path, "the id is that of an item of another type")
        if item_id in self._ids:
            self.add("R6", path, "an item with this id was sent before")
        self._ids.add(item_id)

    # ── calls and answers ────────────────────────────────────────────────────────────

    def _pair(self, item: JsonObject, kind: str, at: At, path: str) -> None:
        """R1 and R2: an answer is known by the type of its call and the id."""
        if kind == "item_reference":
            self.pairs.add_reference()
        elif kind == _APPROVAL:
            self._ask(f"{kind} {str(item.get('id'))[:64]!r}", at, path)
        elif kind == "mcp_approval_response":
            request_id = str(item.get("approval_request_id"))
            self._answer(f"{_APPROVAL} {request_id[:64]!r}", at, path)
        elif kind in CALLS or kind in OUTPUTS:
            self._pair_by_call_id(item, kind, at, path)

    def _pair_by_call_id(
        self, item: JsonObject, kind: str, at: At, path: str
    ) -> None:
        """A call or an output; that of a local shell may have the id of its call as its own."""
        is_call = kind in CALLS
        is_local = kind == "local_shell_call_output"
        call_id = item.get("call_id")
        if not call_id:
            call_id = item.get("id") if is_local else None
        if call_id is None and kind == "function_call_output":
            return
        place = f"{path}.call_id"
        if type(call_id) is not str or (is_call and not call_id):
            self.add("R0", place, "it names the call_id of its call")
            return
        is_short = len(call_id) <= CALL_ID_LENGTH
        self.need(
            is_short or is_elsewhere(self.head.get("model")),
            "C6",
            place,
            f"{len(call_id)} characters, {CALL_ID_LENGTH} are allowed",
        )
        name = f"{kind.removesuffix('_output')} {call_id!r}"
        if is_call:
            late = bool(item.get("async") or item.get("async_"))
            self._ask(name, at, path, late=late)
        else:
            self._answer(name, at, path, is_free=is_local)

    def _ask(
        self, name: str, at: At, path: str, *, late: bool = False
    ) -> None:
        """R1: something stands here that wants an answer, unless it may come late."""
        if not late and any(
            self._names[at] == name for at in self.pairs.unanswered
        ):
            self.add("R1", path, "a call with this call_id is still open")
        self._names[at] = name
        self.pairs.add_call(at, name, late=late, is_whole=True)

    def _answer(
        self, name: str, at: At, path: str, *, is_free: bool = False
    ) -> None:
        """R2: what is answered here was asked before."""
        self.pairs.add_result(at, name, is_free=is_free or self._is_continued)
        if at in self.pairs.strays:
            self.add("R2", path, f"no {name} stands before this answer")

    # ── shapes ───────────────────────────────────────────────────────────────────────

    def _shape(self, item: JsonObject, kind: str, path: str) -> None:
        self.block("R0", item, ITEMS.get(kind, _UNKNOWN), path)
        if kind == "message":
            role = name_in(item, "role")
            if role in ROLES:
                self._content(item.get("content"), role, f"{path}.content")
            else:
                self.add("R0", f"{path}.role", "no such role in this format")
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._content(item.get("output"), None, f"{path}.output")
        elif kind == "shell_call_output":
            self._chunks(item.get("output"), path)

    def _chunks(self, chunks: Any, path: str) -> None:
        """The chunks of a shell's output."""
        if type(chunks) is not list:
            chunks = [chunks]
        for index, chunk in enumerate(chunks):
            fields = chunk if type(chunk) is dict else {}
            self.block("R0", fields, _CHUNK, f"{path}.output[{index}]")

    def _content(self, content: Any, role: str | None, path: str) -> None:
        """R0: the content of a message, or of an output where ``role`` is None."""
        if not isinstance(content, (str, list)):
            self.add(
                "R0",
                path,
                (
                    f"content must be text or a list of parts, and it is {kind_of(content)}"
                ),
            )
        for index, part in enumerate(items_of(content)):
            row = PARTS.get(name_in(part, "type") or "", _UNKNOWN)
            is_legal = row.in_result if role is None else role in row.roles
            place = f"{path}[{index}]"
            if is_legal:
                self.block("R0", part, row, place)
            else:
                self.add(
                    "R0",
                    f"{place}.type",
                    "a part of this type may not stand here",
                )


def type_of(item: Any) -> str | None:
    """The type of an item, which messages and references may leave out."""
    kind = name_in(item, "type")
    if (
        kind is not None
        or type(item) is not dict
        or item.get("type") is not None
    ):
        return kind
    if "role" in item:
        return "message"
    if "id" in item:
        return "item_reference"
    return None


def _is_held_elsewhere(item: JsonObject, kind: str) -> bool:
    """Whether an item stands for something that only the server holds."""
    if kind != "reasoning":
        return kind == "item_reference"
    is_whole = item.get("encrypted_content") or item.get("content")
    return item.get("id") is not None and not is_whole


CHECK = ResponsesCheck
