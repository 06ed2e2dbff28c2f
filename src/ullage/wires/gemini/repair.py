"""Repairing Gemini contents: G2 to G7 and G11 (`provider-rules` §1.D).

Every step of calls is followed by one content with all its responses. Calls are matched by
id, and by tool where there is none, in order. What a content holds beside the responses of a
step stands in a content of its own behind them, if the step had to be repaired at all.
"""

from __future__ import annotations

from typing import Any

from ullage.wires.base import field, get
from ullage.wires.gemini.fields import is_content, parts_of, unsigned, with_field
from ullage.wires.gemini.format import Gemini
from ullage.wires.repair.base import BEGIN, EMPTY, GO_ON, At, is_interrupted
from ullage.wires.repair.hosted import Hosted

__all__ = ["Contents"]


class Contents(Hosted):
    """A history with its calls paired, and the contents that come of it."""

    wire = Gemini()
    model = "model"

    def opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        """See `Reading.opened`: who says nothing of a role is the model if he calls."""
        parts = [raw] if isinstance(raw, str) else _readable(raw)
        said = get(raw, "role") if not isinstance(raw, (str, list)) and is_content(raw) else None
        if said is not None:
            return said, parts
        calls = any(get(part, "functionCall") is not None for part in parts or ())
        return "model" if calls else "user", parts

    def pair(self, here: At, block: Any, role: Any) -> None:
        """See `Reading.pair`."""
        call, response = get(block, "functionCall"), get(block, "functionResponse")
        if call is not None and role == "model":
            self.call(here, get(call, "id"), _name(call))
            self.names[here] = str(get(call, "id") or "")
        elif response is not None:
            ours = self.is_ours(block)
            self.answer(here, get(response, "id"), _name(response), is_placeholder=ours)

    def tool(self, call: At) -> str:
        """See `Reading.tool`."""
        return _name(get(self.block(call), "functionCall"))

    # ── the contents ─────────────────────────────────────────────────────────────────

    def before(self, at: int, last: Any) -> list[Any]:
        """See `Reading.before`: calls follow the user (G4)."""
        if not self.batches[at] or (last is not None and not self._speaks(last)):
            return []
        self.report(at, "calls did not stand behind the user")
        return [self.wire.user(BEGIN if last is None else GO_ON)]

    def ending(self, last: Any) -> list[Any]:
        """See `Reading.ending`: the model's is not the last (G11)."""
        if last is not None and not self._speaks(last):
            return []
        self.report(max(len(self.raws) - 1, 0), "the last content was not the user's")
        return [self.wire.user(BEGIN if last is None else GO_ON)]

    def _speaks(self, content: Any) -> bool:
        return bool(self.opened(content)[0] == "model")

    def is_host(self, at: int) -> bool:
        """See `Reading.is_host`."""
        return bool(self.roles.get(at, "model") != "model")

    def name(self, call: At, taken: dict[str, int], field: str = "id") -> None:
        """See `Reading.name`: a call may do without an id, and with that of another."""

    def content(self, at: int, caller: int | None) -> list[Any]:
        """See `Reading.content`. What is no content is left to the parser."""
        known = self.blocks[at] is not None and self.roles[at] in ("user", "model", "function")
        return super().content(at, caller) if known else [self.raws[at]]

    def emptied(self, at: int) -> list[Any]:
        """See `Hosted.emptied`."""
        self.report(at, "the content had no text")
        if self.roles[at] == "model":
            return []
        is_text = isinstance(self.raws[at], str)
        return [EMPTY if is_text else self.with_blocks(at, [{"text": EMPTY}])]

    def with_blocks(self, at: int, blocks: list[Any]) -> Any:
        """See `Hosted.with_blocks`: a dict with a role unless it was a list of parts."""
        raw = self.raws[at]
        if isinstance(raw, dict) and is_content(raw):
            return with_field(raw, "parts", blocks)
        return blocks if isinstance(raw, list) else {"role": self.roles[at], "parts": blocks}

    def is_led(self, at: int, caller: int, blocks: list[Any]) -> bool:
        """See `Hosted.is_led`: each response is found by its id or its order (G6)."""
        calls = self.batches[caller]
        found = [self.pairs.answers.get(call, (-1, 0)) for call in calls]
        ids = {self.names[call] for call in calls}
        return self.is_whole(at, caller) and (len(ids) == len(calls) or found == sorted(found))

    def led(self, at: int, caller: int, blocks: list[Any]) -> list[list[Any]]:
        """See `Hosted.led`."""
        others = [block for block in blocks if not self.is_result(block)]
        return [self.answers(caller, at), others]

    # ── parts ────────────────────────────────────────────────────────────────────────

    def is_result(self, block: Any) -> bool:
        """See `Hosted.is_result`."""
        return get(block, "functionResponse") is not None

    def is_ours(self, block: Any) -> bool:
        """See `Hosted.is_ours`."""
        given = get(get(block, "functionResponse"), "response")
        return isinstance(given, dict) and is_interrupted(field(given, "error"))

    def fitted(self, here: At, block: Any) -> Any:
        """See `Hosted.fitted`."""
        if isinstance(block, str):
            return block or None
        if self.is_result(block):
            if here in self.pairs.calls:
                return self.result(here)
            return {"text": self.left_over(here, {"role": "user", "parts": [block]})}
        sign = get(block, "thoughtSignature")
        if get(block, "text") == "" and not sign:
            self.report(here[0], "an empty text was left out")
            return None
        if sign and here in self.batches[here[0]][1:]:
            self.report(here[0], "a call that was not the first of its step was signed")
            return unsigned(block)
        return block

    def result(self, result: At) -> Any:
        """See `Reading.result`: under the name of its call, with a response."""
        part, tool = self.block(result), self.tool(self.pairs.calls[result])
        filled = response = get(part, "functionResponse")
        if get(response, "response") is None:
            self.report(result[0], "a result had no response")
            filled = with_field(filled, "response", {"output": ""})
        if _name(response) != tool:
            self.report(result[0], "a result was of another tool than its call")
            filled = with_field(filled, "name", tool)
        return part if filled is response else with_field(part, "functionResponse", filled)


def _readable(raw: Any) -> list[Any] | None:
    """The parts of a content that the format reads; any other is left to the parser."""
    parts = parts_of(raw)
    is_known = isinstance(raw, (list, dict)) or hasattr(raw, "model_dump")
    return list(parts) if is_known and isinstance(parts, (list, tuple)) else None


def _name(body: Any) -> str:
    return str(get(body, "name") or "")
