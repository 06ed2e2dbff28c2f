"""Repairing Gemini contents: G2 to G7 and G11 (`provider-rules` §1.D).

Every step of calls is followed by one content with all its responses. Calls are matched by
id, and by tool where there is none, in order. What a content holds beside the responses of a
step stands in a content of its own behind them, if the step had to be mended at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ullage.values.messages import ToolCall
from ullage.wires.base import field
from ullage.wires.gemini.fields import get, is_content, parts_of, unsigned, with_field
from ullage.wires.gemini.format import Gemini
from ullage.wires.repair.base import (
    BEGIN,
    EMPTY,
    GO_ON,
    INTERRUPTED,
    MOVED,
    Growing,
    Location,
    Pairs,
    outputs_in,
)

__all__ = ["History"]

_WIRE = Gemini()


class _Steps(Pairs):
    """Pairs by id, or by tool where call or response has no id.

    Attributes:
        ids: the id of each call on the wire, ``""`` where it has none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[Location, str] = {}

    def step(self, name: str, wire_id: str, spot: Location) -> None:
        """A call of this tool stands here."""
        self.ids[spot] = wire_id
        self.call(name, spot)

    def response(self, name: str, wire_id: str, spot: Location, *, ours: bool) -> None:
        """A response of this tool stands here."""
        waiting = self.open.get(name)
        fits = waiting or []
        if wire_id:
            exact = [call for call in fits if self.ids[call] == wire_id]
            fits = exact or [call for call in fits if not self.ids[call]]
        if waiting is None:
            self.strays.add(spot)
        call = self.join([c for c in fits if not (ours and c in self.answers)], spot)
        if call is not None and not ours and waiting is not None:
            waiting.remove(call)


class History(Growing):
    """A history with its calls paired, and the contents that come of it."""

    pairs: _Steps

    def __init__(self) -> None:
        super().__init__()
        self.pairs = _Steps()
        self.parts: list[list[Any]] = []
        self.roles: list[Any] = []
        self.steps: list[list[Location]] = []
        self.spoken: list[int] = []

    def read(self, at: int) -> None:
        """See `Growing.read`."""
        parts = _parts(self.raws[at])
        role = _role(self.raws[at], parts)
        self.parts.append(parts)
        self.roles.append(role)
        self.steps.append([])
        self.spoken.append((self.spoken[-1] if at else 0) + (role == "model"))
        for number, part in enumerate(parts):
            self._pair((at, number), part, model=role == "model")

    def look_again(self, at: int) -> None:
        """See `Growing.look_again`."""
        self.parts[at] = _parts(self.raws[at])

    def spots(self, at: int) -> Iterable[Location]:
        """See `Growing.spots`."""
        return ((at, number) for number in range(len(self.parts[at])))

    def _pair(self, spot: Location, part: Any, *, model: bool) -> None:
        call, response = get(part, "functionCall"), get(part, "functionResponse")
        if call is not None and model:
            self.steps[spot[0]].append(spot)
            self.pairs.step(_name(call), str(get(call, "id") or ""), spot)
        elif response is not None:
            given = str(get(response, "id") or "")
            self.pairs.response(_name(response), given, spot, ours=_is_ours(response))

    # ── the contents ─────────────────────────────────────────────────────────────────

    def opens(self, at: int) -> bool:
        """See `Growing.opens`."""
        return bool(self.roles[at] == "model")

    def make(self, since: int, stop: int, count: int, last: Any) -> tuple[list[Any], bool]:
        """See `Growing.make`."""
        made: list[Any] = []
        hosts: dict[int, int] = {}
        for at in range(since, stop):
            step, before = self.steps[at], made[-1] if made else last
            if step and (before is None or self._speaks(before)):
                self.bench.tell(at, "calls did not stand behind the user")
                made.append(_WIRE.user(BEGIN if before is None else GO_ON))
            made += self._content(at, hosts.get(at))
            if not step:
                continue
            if self._is_host(at + 1, at):
                hosts[at + 1] = at
            else:
                made.append({"role": "user", "parts": self._answers(at)})
        return made, True

    def ending(self, last: Any) -> list[Any]:
        """See `Growing.ending`."""
        if last is not None and not self._speaks(last):
            return []
        self.bench.tell(max(len(self.raws) - 1, 0), "the last content was not the user's")
        return [_WIRE.user(BEGIN if last is None else GO_ON)]

    def _speaks(self, content: Any) -> bool:
        return bool(_role(content, _parts(content)) == "model")

    def _is_host(self, at: int, caller: int) -> bool:
        """Whether a content stands right behind a step and holds some of its responses."""
        if at >= len(self.raws) or self.roles[at] == "model":
            return False
        here = ((at, number) for number in range(len(self.parts[at])))
        return any(self.pairs.calls.get(spot, (-1, 0))[0] == caller for spot in here)

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
        return self._left(at) if any(moved) else self._empty(at)

    def _empty(self, at: int) -> list[Any]:
        self.bench.tell(at, "the content had no text")
        raw = self.raws[at]
        if self.roles[at] == "model":
            return []
        return [EMPTY if isinstance(raw, str) else _with_parts(raw, "user", [{"text": EMPTY}])]

    def _left(self, at: int) -> list[Any]:
        """What becomes of a content whose responses went to their calls."""
        here = ((at, number) for number in range(len(self.parts[at])))
        return [_WIRE.user(MOVED)] if any(map(self._is_late, here)) else []

    def _is_late(self, spot: Location) -> bool:
        """Whether the model spoke between a call and this response."""
        call = self.pairs.calls.get(spot)
        return call is not None and self.spoken[spot[0]] > self.spoken[call[0]]

    # ── responses ────────────────────────────────────────────────────────────────────

    def _is_moved(self, spot: Location, step: int | None) -> bool:
        """Whether a part is a response that stands elsewhere, or one of ours left over."""
        response = get(self.parts[spot[0]][spot[1]], "functionResponse")
        if response is None:
            return False
        call = self.pairs.calls.get(spot)
        return _is_ours(response) if call is None else call[0] != step

    def _is_whole(self, caller: int, at: int) -> bool:
        """Whether a content holds the responses of a step, each findable by its id."""
        calls = self.steps[caller]
        found = [self.pairs.answers.get(call, (-1, 0)) for call in calls]
        if any(spot[0] != at for spot in found):
            return False
        ids = [self.pairs.ids[call] for call in calls]
        return len(set(ids)) == len(ids) or found == sorted(found)

    def _answers(self, caller: int, host: int | None = None) -> list[Any]:
        """The responses of a step in the order of its calls."""
        answers = []
        for call in self.steps[caller]:
            tool = _name(get(self.parts[call[0]][call[1]], "functionCall"))
            spot = self.pairs.answers.get(call)
            if spot is None:
                self.bench.tell(caller, "a call had no result", where=tool)
                asked = ToolCall(self.pairs.ids[call], tool, "{}", 0)
                answers.append(_WIRE.result(asked, INTERRUPTED, is_error=True))
                continue
            if spot[0] != host:
                late = self._is_late(spot)
                why = "a result came late" if late else "a result did not stand behind its call"
                self.bench.tell(spot[0], why, where=f"{tool} result")
            answers.append(self._part(spot, self.parts[spot[0]][spot[1]]))
        return answers

    # ── parts ────────────────────────────────────────────────────────────────────────

    def _part(self, spot: Location, part: Any) -> Any:
        """A part as it may stand where it is; None if it is left out."""
        if isinstance(part, str):
            return part or None
        response = get(part, "functionResponse")
        if response is not None:
            if spot not in self.pairs.calls:
                return self._stray(spot, part)
            if get(response, "response") is None:
                self.bench.tell(spot[0], "a result had no response")
                filled = with_field(response, "response", {"output": ""})
                return with_field(part, "functionResponse", filled)
        sign = get(part, "thoughtSignature")
        if get(part, "text") == "" and not sign:
            self.bench.tell(spot[0], "an empty text was left out")
            return None
        if sign and spot in self.steps[spot[0]][1:]:
            self.bench.tell(spot[0], "a call that was not the first of its step was signed")
            return unsigned(part)
        return part

    def _stray(self, spot: Location, part: Any) -> Any:
        """The line in place of a response that answers no call, or one that has an answer."""
        raw = {"role": "user", "parts": [part]}
        kept = outputs_in(_WIRE.parse(raw, f"contents[{spot[0]}]"))
        stray = spot in self.pairs.strays
        what = "a tool result without its call" if stray else "a second result of one call"
        return {"text": self.bench.set_aside(spot[0], what, kept)}


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


def _name(body: Any) -> str:
    return str(get(body, "name") or "")


def _is_ours(response: Any) -> bool:
    given = get(response, "response")
    return isinstance(given, dict) and field(given, "error") == INTERRUPTED
