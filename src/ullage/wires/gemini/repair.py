"""Repairing Gemini contents: G2 to G7 and G11 (`provider-rules` §1.D).

Every step of calls is followed by one content with all its responses. Calls are matched by
id, and by tool where there is none, in order. What a content holds beside the responses of a
step stands in a content of its own behind them, if the step had to be repaired at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ullage.history.pairing import Pairing
from ullage.values.messages import ToolCall
from ullage.wires.base import field, get
from ullage.wires.gemini.fields import is_content, parts_of, unsigned, with_field
from ullage.wires.gemini.format import Gemini
from ullage.wires.repair.base import (
    BEGIN,
    EMPTY,
    GO_ON,
    INTERRUPTED,
    At,
    Reading,
)

__all__ = ["Contents"]


class Contents(Reading):
    """A history with its calls paired, and the contents that come of it."""

    wire = Gemini()

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        super().__init__(raws, pairs)
        self.parts: dict[int, list[Any]] = {}
        self.roles: dict[int, Any] = {}
        self.steps: dict[int, list[At]] = {}

    def read(self, at: int) -> None:
        """See `Reading.read`."""
        parts = self.parts[at] = _parts(self.raws[at])
        role = self.roles[at] = _role(self.raws[at], parts)
        self.steps[at] = []
        self.speaker(at, is_model=role == "model")
        for number, part in enumerate(parts):
            call, response = get(part, "functionCall"), get(part, "functionResponse")
            if call is not None and role == "model":
                self.steps[at].append((at, number))
                self.pairs.call((at, number), _id(call), _name(call))
            elif response is not None:
                ours = _is_ours(response)
                here, given = (at, number), _id(response)
                self.answer(here, given, _name(response), is_placeholder=ours)

    def tool(self, call: At) -> str:
        """See `Reading.tool`."""
        return _name(self._body(call))

    def _body(self, call: At) -> Any:
        return get(self.parts[call[0]][call[1]], "functionCall")

    # ── the contents ─────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `Reading.opens`."""
        return self._speaks(self.raws[at])

    def make(self, since: int, stop: int, count: int, last: Any) -> tuple[list[Any], bool]:
        """See `Reading.make`."""
        made: list[Any] = []
        hosts: dict[int, int] = {}
        for at in range(since, stop):
            step, behind = self.steps[at], made[-1] if made else last
            if step and (behind is None or self._speaks(behind)):
                self.log.report(at, "calls did not stand behind the user")
                made.append(self.wire.user(BEGIN if behind is None else GO_ON))
            made += self._content(at, hosts.get(at))
            if step and self.roles.get(at + 1, "model") != "model" and at in self.callers(at + 1):
                hosts[at + 1] = at
            elif step:
                made.append({"role": "user", "parts": self._answers(at)})
        return made, True

    def ending(self, last: Any) -> list[Any]:
        """See `Reading.ending`."""
        if last is not None and not self._speaks(last):
            return []
        self.log.report(max(len(self.raws) - 1, 0), "the last content was not the user's")
        return [self.wire.user(BEGIN if last is None else GO_ON)]

    def _speaks(self, content: Any) -> bool:
        return bool(_role(content, _parts(content)) == "model")

    def _content(self, at: int, step: int | None) -> list[Any]:
        """A content without what may not stand there; none if nothing of it is left."""
        raw, old = self.raws[at], self.parts[at]
        if not _is_readable(raw) or self.roles[at] not in ("user", "model", "function"):
            return [raw]
        moved = [self._is_moved((at, number), step) for number in range(len(old))]
        said = [self._part((at, n), part) for n, part in enumerate(old) if not moved[n]]
        new = [part for part in said if part is not None]
        same = len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))
        if same and (step is None or self._is_whole(step, at)):
            return [raw] if new else self._empty(at)
        if step is not None:
            others = [part for part in new if get(part, "functionResponse") is None]
            answers = _with_parts(raw, "user", self._answers(step, at))
            return [answers, {"role": "user", "parts": others}] if others else [answers]
        if new:
            return [_with_parts(raw, self.roles[at], new)]
        return self.left(at) if any(moved) else self._empty(at)

    def _empty(self, at: int) -> list[Any]:
        self.log.report(at, "the content had no text")
        raw = self.raws[at]
        if self.roles[at] == "model":
            return []
        return [EMPTY if isinstance(raw, str) else _with_parts(raw, "user", [{"text": EMPTY}])]

    # ── responses ────────────────────────────────────────────────────────────────────

    def _is_moved(self, result: At, step: int | None) -> bool:
        """Whether a part is a response that stands elsewhere, or one of ours left over."""
        response = get(self.parts[result[0]][result[1]], "functionResponse")
        if response is None:
            return False
        call = self.pairs.calls.get(result)
        return _is_ours(response) if call is None else call[0] != step

    def _is_whole(self, caller: int, at: int) -> bool:
        """Whether a content holds the responses of a step, each findable by its id."""
        calls = self.steps[caller]
        found = [self.pairs.answers.get(call, (-1, 0)) for call in calls]
        if any(result[0] != at for result in found):
            return False
        ids = [_id(self._body(call)) for call in calls]
        return len(set(ids)) == len(ids) or found == sorted(found)

    def _answers(self, caller: int, host: int | None = None) -> list[Any]:
        """The responses of a step in the order of its calls."""
        answers = []
        for call, result in self.answered(self.steps[caller], lambda result: result[0] == host):
            if result is None:
                asked = ToolCall(_id(self._body(call)), self.tool(call), "{}", 0)
                answers.append(self.wire.result(asked, INTERRUPTED, is_error=True))
            else:
                answers.append(self._part(result, self.parts[result[0]][result[1]]))
        return answers

    # ── parts ────────────────────────────────────────────────────────────────────────

    def _part(self, here: At, part: Any) -> Any:
        """A part as it may stand where it is; None if it is left out."""
        if isinstance(part, str):
            return part or None
        response = get(part, "functionResponse")
        if response is not None:
            return self._response(here, part, response)
        sign = get(part, "thoughtSignature")
        if get(part, "text") == "" and not sign:
            self.log.report(here[0], "an empty text was left out")
            return None
        if sign and here in self.steps[here[0]][1:]:
            self.log.report(here[0], "a call that was not the first of its step was signed")
            return unsigned(part)
        return part

    def _response(self, here: At, part: Any, response: Any) -> Any:
        """A response under the name of its call; a line where it answers none."""
        call = self.pairs.calls.get(here)
        if call is None:
            return {"text": self.left_over(here, {"role": "user", "parts": [part]})}
        filled = response
        if get(response, "response") is None:
            self.log.report(here[0], "a result had no response")
            filled = with_field(filled, "response", {"output": ""})
        if _name(response) != self.tool(call):
            self.log.report(here[0], "a result was of another tool than its call")
            filled = with_field(filled, "name", self.tool(call))
        return part if filled is response else with_field(part, "functionResponse", filled)


def _is_readable(raw: Any) -> bool:
    """Whether a content is one that the format reads; any other is left to the parser."""
    if isinstance(raw, (str, list)):
        return True
    parts = parts_of(raw)
    known = isinstance(raw, dict) or hasattr(raw, "model_dump")
    return known and isinstance(parts, (list, tuple))


def _parts(raw: Any) -> list[Any]:
    if isinstance(raw, str):
        return [raw]
    return list(parts_of(raw)) if _is_readable(raw) else []


def _role(raw: Any, parts: Sequence[Any]) -> Any:
    """Who speaks: as the content says, else the model if it calls."""
    said = get(raw, "role") if not isinstance(raw, (str, list)) and is_content(raw) else None
    if said is not None:
        return said
    return "model" if any(get(part, "functionCall") is not None for part in parts) else "user"


def _with_parts(raw: Any, role: str, parts: list[Any]) -> Any:
    """A content with other parts: a dict with a role unless it was a list of parts."""
    if isinstance(raw, dict) and is_content(raw):
        return with_field(raw, "parts", parts)
    return parts if isinstance(raw, list) else {"role": role, "parts": parts}


def _id(body: Any) -> str:
    return str(get(body, "id") or "")


def _name(body: Any) -> str:
    return str(get(body, "name") or "")


def _is_ours(response: Any) -> bool:
    given = get(response, "response")
    return isinstance(given, dict) and field(given, "error") == INTERRUPTED
