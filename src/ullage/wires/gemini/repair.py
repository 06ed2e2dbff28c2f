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
from ullage.wires.gemini.fields import is_content, parts_of, unsigned, with_field
from ullage.wires.gemini.format import Gemini
from ullage.wires.repair.base import BEGIN, EMPTY, GO_ON, is_interrupted, is_object
from ullage.wires.repair.hosted import BlockRepair


class Contents(BlockRepair):
    """A history with its calls paired, and the contents that come of it."""

    wire = Gemini()
    model = "model"
    hosts = ("user", "function")
    names_calls = False

    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        """Who says nothing of a role is the model if he calls."""
        parts = [raw] if isinstance(raw, str) else _readable(raw)
        said = (
            get(raw, "role")
            if not isinstance(raw, (str, list)) and is_content(raw)
            else None
        )
        if said is not None:
            return said, parts
        calls = any(get(part, "functionCall") is not None for part in parts or ())
        return "model" if calls else "user", parts

    def _pair(self, here: At, block: Any, role: Any) -> None:
        call, response = get(block, "functionCall"), get(block, "functionResponse")
        if is_object(call) and role == "model":
            self.call(here, get(call, "id"), _named(call))
            self.names[here] = str(get(call, "id") or "")
        elif is_object(response):
            ours = self._is_ours(block)
            self.answer(
                here, get(response, "id"), _named(response), is_placeholder=ours
            )

    def _tool(self, call: At) -> str:
        return _named(get(self.block(call), "functionCall"))

    # ── the contents ─────────────────────────────────────────────────────────────────

    def _before(self, at: int, last: Any) -> list[Any]:
        """Calls follow the user (G4)."""
        if not self.batches[at] or (last is not None and not self._speaks(last)):
            return []
        self.report(at, "calls did not stand behind the user")
        return [self.wire.user(BEGIN if last is None else GO_ON)]

    def _ending(self, last: Any) -> list[Any]:
        """The model's is not the last (G11)."""
        if last is not None and not self._speaks(last):
            return []
        self.report(max(len(self.raws) - 1, 0), "the last content was not the user's")
        return [self.wire.user(BEGIN if last is None else GO_ON)]

    def _speaks(self, content: Any) -> bool:
        return bool(self._opened(content)[0] == "model")

    def _content(self, at: int, caller: int | None) -> list[Any]:
        """What is no content is left to the parser."""
        known = self.blocks[at] is not None and self.roles[at] in (
            "user",
            "model",
            "function",
        )
        return super()._content(at, caller) if known else [self.raws[at]]

    def _emptied(self, at: int) -> list[Any]:
        self.report(at, "the content had no text")
        if self.roles[at] == "model":
            return []
        is_text = isinstance(self.raws[at], str)
        return [EMPTY if is_text else self._with_blocks(at, [{"text": EMPTY}])]

    def _with_blocks(self, at: int, blocks: list[Any]) -> Any:
        """A dict with a role unless it was a list of parts."""
        raw = self.raws[at]
        if isinstance(raw, dict) and is_content(raw):
            return with_field(raw, "parts", blocks)
        return (
            blocks
            if isinstance(raw, list)
            else {"role": self.roles[at], "parts": blocks}
        )

    def _is_arranged(self, at: int, caller: int, blocks: list[Any]) -> bool:
        """Each response is found by its id or its order (G6)."""
        calls = self.batches[caller]
        found = [self.pairs.answers.get(call, (-1, 0)) for call in calls]
        ids = {self.names[call] for call in calls}
        return self.is_whole(at, caller) and (
            len(ids) == len(calls) or found == sorted(found)
        )

    def _arranged(self, at: int, caller: int, blocks: list[Any]) -> list[list[Any]]:
        others = [block for block in blocks if not self._is_result(block)]
        return [self._answers(caller, at), others]

    # ── parts ────────────────────────────────────────────────────────────────────────

    def _is_result(self, block: Any) -> bool:
        return is_object(get(block, "functionResponse"))

    def _is_ours(self, block: Any) -> bool:
        given = get(get(block, "functionResponse"), "response")
        return isinstance(given, dict) and is_interrupted(field(given, "error"))

    def _fitted(self, here: At, block: Any) -> Any:
        if isinstance(block, str):
            return block or None
        if self._is_result(block):
            if here in self.pairs.calls:
                return self._result(here)
            return {"text": self.left_over(here, {"role": "user", "parts": [block]})}
        sign = get(block, "thoughtSignature")
        if get(block, "text") == "" and not sign:
            self.report(here[0], "an empty text was left out")
            return None
        if sign and here in self.batches[here[0]][1:]:
            self.report(here[0], "a call that was not the first of its step was signed")
            return unsigned(block)
        return block

    def _result(self, result: At) -> Any:
        """Under the name of its call, with a response."""
        part, tool = self.block(result), self._tool(self.pairs.calls[result])
        filled = response = get(part, "functionResponse")
        if get(response, "response") is None:
            self.report(result[0], "a result had no response")
            filled = with_field(filled, "response", {"output": ""})
        if _named(response) != tool:
            self.report(result[0], "a result was of another tool than its call")
            filled = with_field(filled, "name", tool)
        return (
            part if filled is response else with_field(part, "functionResponse", filled)
        )


def _readable(raw: Any) -> list[Any] | None:
    """The parts of a content that the format reads; any other is left to the parser."""
    parts = parts_of(raw)
    is_known = isinstance(raw, (list, dict)) or hasattr(raw, "model_dump")
    return list(parts) if is_known and isinstance(parts, (list, tuple)) else None


def _named(body: Any) -> str:
    return str(get(body, "name") or "")


REPAIR = Contents
