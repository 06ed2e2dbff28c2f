"""A history put together from what a log tells, in order, of any wire format.

Logs tell of a call and of its result apart: the result may come late, twice, without its
call, or never. A history pairs them again. Each reply is followed by the results of its
calls, in the order of the calls; the raw messages themselves are the reader's.

    told                                      made of it
    ----                                      ----------
    a result of no call, a second result      left out
    a call without a result, later on built   answered by a short error
    the last reply, its calls unanswered      left out, its usage kept
    a reply before anybody said anything      left out
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from ullage.history.pairing import At, Pairing
from ullage.replay.readers._run import FormatName, Report, Run
from ullage.values.usage import Usage

__all__ = ["Asked", "History", "seconds"]

NO_RESULT = "No result was recorded for this call."


T = TypeVar("T")


class Asked(Generic[T]):
    """Who made each call of a log, so that its result finds the way back."""

    def __init__(self) -> None:
        self._pairs = Pairing()
        self._owners: dict[At, T] = {}
        self._newest: dict[str, T] = {}
        self._count = 0

    def ask(self, owner: T, ids: Iterable[str]) -> None:
        """These calls are the owner's. One that a log tells twice is one."""
        self._count += 1
        for number, id in enumerate(ids):
            if self._newest.get(id) is not owner:
                at = (self._count, number)
                self._owners[at] = self._newest[id] = owner
                self._pairs.call(at, id)

    def answer(self, call_id: str) -> tuple[T | None, str]:
        """Who made the call that a result answers; else None, and what is wrong with it."""
        self._count += 1
        here = (self._count, 0)
        call = self._pairs.result(here, call_id)
        if call is not None:
            return self._owners[call], ""
        what = (
            "a second result of one call" if self._pairs.of(here) else "a result without its call"
        )
        return None, f"{what} is left out"


class _Turn:
    """What stands in one place: what was said, or a reply with what answers it."""

    def __init__(self, raws: list[Any], line: int, stamp: float | None) -> None:
        self.raws = raws
        self.line = line
        self.stamp = stamp
        self.usage: Usage | None = None
        self.calls: dict[str, str] | None = None
        self.results: dict[str, Any] = {}

    @property
    def unanswered(self) -> list[str]:
        return [call_id for call_id in self.calls or () if call_id not in self.results]


class History:
    """Gathers one conversation.

    Attributes:
        request: what stands beside its messages; grows as the log tells of it.
    """

    def __init__(self, id: str, format: FormatName, source: str, report: Report) -> None:
        self.id, self.format, self.source = id, format, source
        self.request: dict[str, Any] = {}
        self._report = report
        self._turns: list[_Turn] = []
        self._asked: Asked[_Turn] = Asked()

    @property
    def is_empty(self) -> bool:
        """Nothing was told yet."""
        return not self._turns

    def of_model(self, model: Any) -> None:
        """The log names the model."""
        if isinstance(model, str) and model:
            self.request["model"] = model

    def say(self, raw: Any, line: int, stamp: float | None = None) -> None:
        """The user, or the system, says this."""
        self._turns.append(_Turn([raw], line, stamp))

    def reply(
        self,
        raws: Sequence[Any],
        calls: Mapping[str, str],
        line: int,
        stamp: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        """The model replies. ``calls`` are the names of the tools it calls, by call id."""
        turn = _Turn(list(raws), line, stamp)
        turn.calls, turn.usage = dict(calls), usage
        self._turns.append(turn)
        self._asked.ask(turn, calls)

    def more(self, raw: Any, calls: Mapping[str, str], line: int, stamp: float | None) -> None:
        """One more item of the reply that is being told, or the first of a new one."""
        last = self._turns[-1] if self._turns else None
        if last is None or last.calls is None or last.results:
            self.reply([raw], calls, line, stamp)
            return
        last.raws.append(raw)
        last.calls.update(calls)
        self._asked.ask(last, calls)

    def result(self, call_id: str | None, raw: Callable[[str], Any], line: int) -> None:
        """A result. Without an id it answers the first open call; ``raw`` is given the id."""
        if call_id is None:
            replies = [turn for turn in self._turns if turn.calls is not None]
            call_id = next(iter(replies[-1].unanswered), None) if replies else None
        turn, problem = self._asked.answer(call_id or "")
        if turn is None or call_id is None:
            self._report.repaired(line, problem)
        else:
            turn.results[call_id] = raw(call_id)

    def used(self, usage: Usage | None) -> None:
        """What the provider counted for the last reply."""
        replies = [turn for turn in self._turns if turn.calls is not None]
        if replies and usage is not None:
            replies[-1].usage = usage

    def back(self, turns: int) -> None:
        """The user goes back: what was said and replied since so many turns ago is dropped."""
        starts = [
            at
            for at, turn in enumerate(self._turns)
            if turn.calls is None and at and self._turns[at - 1].calls is not None
        ]
        if turns > 0:
            del self._turns[([0, *starts])[-turns:][0] :]

    def run(self) -> Run | None:
        """The run it makes, or None when the model never replied."""
        turns, cut = self._kept()
        if not any(turn.calls is not None for turn in turns) and cut is None:
            return None
        line = turns[0].line if turns else 0
        run = Run(self.id, self.format, self.request, [], {}, self.source, {}, line)
        for turn in turns:
            self._emit(turn, run)
        if cut is not None and cut.usage is not None:
            run.usage[len(run.messages)] = cut.usage
        return run

    def _kept(self) -> tuple[list[_Turn], _Turn | None]:
        turns = list(self._turns)
        while turns and turns[0].calls is not None:
            self._report.repaired(
                turns.pop(0).line, "the log begins with a reply, which is left out"
            )
        last = max((at for at, turn in enumerate(turns) if turn.calls is not None), default=-1)
        if last < 0 or not turns[last].unanswered:
            return turns, None
        problem = "the last reply has calls without results, left out"
        self._report.repaired(turns[last].line, problem)
        return turns[:last], turns[last]

    def _emit(self, turn: _Turn, run: Run) -> None:
        if turn.stamp is not None:
            run.stamps[len(run.messages)] = turn.stamp
        if turn.usage is not None:
            run.usage[len(run.messages)] = turn.usage
        run.messages.extend(turn.raws)
        for call_id in turn.unanswered:
            problem = "a call without a result is answered by a short error"
            self._report.repaired(turn.line, problem)
            turn.results[call_id] = _missing(self.format, call_id, (turn.calls or {})[call_id])
        results = [turn.results[call_id] for call_id in turn.calls or ()]
        if results and self.format == "gemini":
            results = [{"role": "user", "parts": results}]
        run.messages.extend(results)


def _missing(format: FormatName, call_id: str, tool: str) -> dict[str, Any]:
    """The result of a call that has none; in Responses, ``tool`` is the type of the call."""
    if format == "gemini":
        given = {"id": call_id, "name": tool, "response": {"error": NO_RESULT}}
        return {"functionResponse": given}
    if format == "openai-responses":
        return {"type": f"{tool}_output", "call_id": call_id, "output": NO_RESULT}
    return {"role": "tool", "tool_call_id": call_id, "content": NO_RESULT}


def seconds(stamp: Any) -> float | None:
    """Seconds since 1970 of an ISO time, or of milliseconds; None if it is neither."""
    if isinstance(stamp, (int, float)):
        return stamp / 1e3
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (TypeError, ValueError):
        return None
