"""Repairing Gemini contents: G2 to G7 and G11 (`provider-rules` §1.D).

Every step of calls is followed by one content with all its responses. Calls are matched by
id, and by tool where there is none, in order. What a content holds beside the responses of a
step stands in a content of its own behind them, if the step had to be repaired at all.
"""

from __future__ import annotations

from typing import Any

from ullage.core.history.pairing import At
from ullage.core.history.raw import field
from ullage.wires.base import get
from ullage.wires.gemini.fields import (
    is_content,
    parts_of,
    unsigned,
    with_field,
)
from ullage.wires.gemini.format import Gemini
from ullage.wires.repair.base import (
    BEGIN,
    EMPTY,
    GO_ON,
    is_interrupted,
    is_object,
)
from ullage.wires.repair.hosted import BlockRepair

_ROLES = ("user", "model", "function")


class GeminiRepair(BlockRepair):
    """A history with its calls paired, and the contents that come of it."""

    wire = Gemini()
    model = "model"
    hosts = ("user", "function")
    names_calls = False

    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        """A content that names no role is the model's if it calls."""
        parts = [raw] if isinstance(raw, str) else _readable(raw)
        if not isinstance(raw, (str, list)) and is_content(raw):
            role = get(raw, "role")
            if role is not None:
                return role, parts
        has_calls = any(
            get(part, "functionCall") is not None for part in parts or ()
        )
        return "model" if has_calls else "user", parts

    def _pair(self, here: At, block: Any, role: Any) -> None:
        call = get(block, "functionCall")
        response = get(block, "functionResponse")
        if is_object(call) and role == "model":
            self.call(here, get(call, "id"), _name_in(call))
            self.names[here] = str(get(call, "id") or "")
        elif is_object(response):
            self.answer(
                here,
                get(response, "id"),
                _name_in(response),
                is_placeholder=self._is_ours(block),
            )

    def _tool(self, call: At) -> str:
        return _name_in(get(self.block(call), "functionCall"))

    # ── the contents ─────────────────────────────────────────────────────────────────

    def _before(self, at: int, previous: Any) -> list[Any]:
        """Calls follow the user (G4)."""
        if not self.batches[at]:
            return []
        if previous is not None and not self._speaks(previous):
            return []
        self.report(at, "calls did not stand behind the user")
        return [self.wire.user(BEGIN if previous is None else GO_ON)]

    def _ending(self, previous: Any) -> list[Any]:
        """The model's is not the last (G11)."""
        if previous is not None and not self._speaks(previous):
            return []
        self.report(
            max(len(self.raws) - 1, 0), "the last content was not the user's"
        )
        return [self.wire.user(BEGIN if previous is None else GO_ON)]

    def _speaks(self, content: Any) -> bool:
        return bool(self._opened(content)[0] == "model")

    def _content(self, at: int, caller: int | None) -> list[Any]:
        """A message that the format cannot read stays as it is: the parser refuses it."""
        is_readable = self.blocks[at] is not None
        if not is_readable or self.roles[at] not in _ROLES:
            return [self.raws[at]]
        return super()._content(at, caller)

    def _emptied(self, at: int) -> list[Any]:
        self.report(at, "the content had no text")
        if self.roles[at] == "model":
            return []
        if isinstance(self.raws[at], str):
            return [EMPTY]
        return [self._with_blocks(at, [{"text": EMPTY}])]

    def _with_blocks(self, at: int, blocks: list[Any]) -> Any:
        """A dict with a role unless it was a list of parts."""
        raw = self.raws[at]
        if isinstance(raw, dict) and is_content(raw):
            return with_field(raw, "parts", blocks)
        if isinstance(raw, list):
            return blocks
        return {"role": self.roles[at], "parts": blocks}

    def _is_arranged(self, at: int, caller: int, blocks: list[Any]) -> bool:
        """Each response is found by its id or its order (G6)."""
        if not self.is_whole(at, caller):
            return False
        calls = self.batches[caller]
        ids = {self.names[call] for call in calls}
        if len(ids) == len(calls):
            return True
        answers = [self.pairs.result_by_call[call] for call in calls]
        return answers == sorted(answers)

    def _arranged(
        self, at: int, caller: int, blocks: list[Any]
    ) -> list[list[Any]]:
        rest = [block for block in blocks if not self._is_result(block)]
        return [self._answers(caller, at), rest]

    # ── parts ────────────────────────────────────────────────────────────────────────

    def _is_result(self, block: Any) -> bool:
        return is_object(get(block, "functionResponse"))

    def _is_ours(self, block: Any) -> bool:
        response = get(get(block, "functionResponse"), "response")
        return isinstance(response, dict) and is_interrupted(
            field(response, "error")
        )

    def _fitted(self, here: At, block: Any) -> Any:
        if isinstance(block, str):
            return block or None
        if self._is_result(block):
            if here in self.pairs.call_by_result:
                return self._result(here)
            content = {"role": "user", "parts": [block]}
            return {"text": self.left_over(here, content)}
        signature = get(block, "thoughtSignature")
        if get(block, "text") == "" and not signature:
            self.report(here[0], "an empty text was left out")
            return None
        # Gemini signs the first call of a step alone (G7).
        if signature and here in self.batches[here[0]][1:]:
            self.report(
                here[0], "a call that was not the first of its step was signed"
            )
            return unsigned(block)
        return block

    def _result(self, result: At) -> Any:
        """Under the name of its call, with a response."""
        part = self.block(result)
        tool = self._tool(self.pairs.call_by_result[result])
        response = get(part, "functionResponse")
        mended = response
        if get(response, "response") is None:
            self.report(result[0], "a result had no response")
            mended = with_field(mended, "response", {"output": ""})
        if _name_in(response) != tool:
            self.report(
                result[0], "a result was of another tool than its call"
            )
            mended = with_field(mended, "name", tool)
        if mended is response:
            return part
        return with_field(part, "functionResponse", mended)


def _readable(raw: Any) -> list[Any] | None:
    """The parts of a content that the format reads; any other is left to the parser."""
    parts = parts_of(raw)
    if not isinstance(parts, (list, tuple)):
        return None
    if not isinstance(raw, (list, dict)) and not hasattr(raw, "model_dump"):
        return None
    return list(parts)


def _name_in(body: Any) -> str:
    return str(get(body, "name") or "")


REPAIR = GeminiRepair
