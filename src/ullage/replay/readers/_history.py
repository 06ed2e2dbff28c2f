"""A history put together from what a log holds, in order, of any wire format.

Logs hold a call and its result apart: the result may come late, twice, without its
call, or never. A history pairs them again. Each reply is followed by the results of its
calls, in the order of the calls; the raw messages themselves are the reader's.

    in the log                                made of it
    ----------                                ----------
    a result of no call, a second result      left out
    a call without a result, later on built   answered by a short error
    the last reply, its calls unanswered      left out, its usage kept
    a reply before anybody said anything      left out
    a reply that says nothing                 left out
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ullage.history.pairing import At, Pairing
from ullage.replay.readers._run import FormatName, Report, Run
from ullage.values.usage import Usage
from ullage.wires.usages import Counts, read

__all__ = ["History", "Turn", "seconds", "usage_of"]

NO_RESULT = "No result was recorded for this call."


class Turn:
    """One place: what was said, or a reply with what answers it.

    Attributes:
        calls: the names of the tools it calls, by call id; None: it is no reply.
        beside: what the user said in the message of the results.
    """

    def __init__(self, raws: list[Any], line: int, stamp: float | None) -> None:
        self.raws, self.line, self.stamp = raws, line, stamp
        self.usage: Usage | None = None
        self.calls: dict[str, str] | None = None
        self.results: dict[str, Any] = {}
        self.beside: list[Any] = []
        self.answered_s: float | None = None

    @property
    def unanswered(self) -> list[str]:
        """The calls without a result."""
        return [call_id for call_id in self.calls or () if call_id not in self.results]


class History:
    """Gathers one conversation.

    Attributes:
        request: what it has beside its messages; grows as the log names it.
        turns: what was said and replied, in order.
        replies: for a reader whose log holds a reply in pieces: the replies by their ids.
        report: takes what is wrong with the log.
        line: the line it begins at; 0: that of its first turn.
    """

    def __init__(
        self, id: str, format: FormatName, source: str, report: Report, line: int = 0
    ) -> None:
        self.id, self.format, self.source, self.line = id, format, source, line
        self.request: dict[str, Any] = {}
        self.turns: list[Turn] = []
        self.replies: dict[str, Turn] = {}
        self.report = report
        self._pairs = Pairing()
        self._owners: dict[At, Turn] = {}
        self._newest: dict[str, Turn] = {}
        self._count = 0

    def of_model(self, model: Any) -> None:
        """The log names the model."""
        if isinstance(model, str) and model:
            self.request["model"] = model

    def say(self, raw: Any, line: int, stamp: float | None = None) -> None:
        """The user, or the system, says this."""
        self.turns.append(Turn([raw], line, stamp))

    def reply(
        self,
        raws: Sequence[Any],
        calls: Mapping[str, str],
        line: int,
        stamp: float | None = None,
        usage: Usage | None = None,
    ) -> Turn:
        """The model replies. ``calls`` are the names of the tools it calls, by call id."""
        turn = Turn(list(raws), line, stamp)
        turn.calls, turn.usage = {}, usage
        self.turns.append(turn)
        self.asks(turn, calls)
        return turn

    def asks(self, turn: Turn, calls: Mapping[str, str]) -> None:
        """These calls are the reply's. One that a log holds twice is one."""
        turn.calls = {**(turn.calls or {}), **calls}
        self._count += 1
        for number, id in enumerate(calls):
            if self._newest.get(id) is not turn:
                at = (self._count, number)
                self._owners[at] = self._newest[id] = turn
                self._pairs.call(at, id)

    @property
    def open_call(self) -> str:
        """The first call of the last reply that has no result yet; "" if there is none."""
        replies = [turn for turn in self.turns if turn.calls is not None]
        return next(iter(replies[-1].unanswered), "") if replies else ""

    def result(self, call_id: str, raw: Any, line: int) -> Turn | None:
        """A result; the reply whose call it answers, or None where it is left out."""
        self._count += 1
        here = (self._count, 0)
        call = self._pairs.result(here, call_id)
        if call is None:
            of_one = self._pairs.of(here)
            what = "a second result of one call" if of_one else "a result without its call"
            self.report.repaired(line, f"{what} is left out")
            return None
        turn = self._owners[call]
        turn.results[call_id] = raw
        return turn

    def run(self) -> Run | None:
        """The run it makes, or None when the model never replied."""
        turns, cut = self._kept()
        if not any(turn.calls is not None for turn in turns) and cut is None:
            return None
        line = self.line or (turns[0].line if turns else 0)
        run = Run(self.id, self.format, self.request, [], {}, self.source, {}, line)
        for turn in turns:
            self._emit(turn, run)
        if cut is not None and cut.usage is not None:
            run.usage[len(run.messages)] = cut.usage
        return run

    def _kept(self) -> tuple[list[Turn], Turn | None]:
        """The turns that a history can hold, and the last reply if it was cut off."""
        turns = [turn for turn in self.turns if turn.raws]
        while turns and turns[0].calls is not None:
            problem = "the log begins with a reply, which is left out"
            self.report.repaired(turns.pop(0).line, problem)
        last = max((at for at, turn in enumerate(turns) if turn.calls is not None), default=-1)
        if last < 0 or not turns[last].unanswered:
            return turns, None
        problem = "the last reply has calls without results, left out"
        self.report.repaired(turns[last].line, problem)
        return turns[:last], turns[last]

    def _emit(self, turn: Turn, run: Run) -> None:
        if turn.usage is not None:
            run.usage[len(run.messages)] = turn.usage
        for call_id in turn.unanswered:
            problem = "a call without a result is answered by a short error"
            self.report.repaired(turn.line, problem)
            turn.results[call_id] = _missing(self.format, call_id, (turn.calls or {})[call_id])
        results = [turn.results[call_id] for call_id in turn.calls or ()]
        if results and self.format in _GROUPED:
            results = [{"role": "user", _GROUPED[self.format]: results + turn.beside}]
        for raws, stamp in ((turn.raws, turn.stamp), (results, turn.answered_s)):
            if raws and stamp is not None:
                run.stamps[len(run.messages)] = stamp
            run.messages.extend(raws)


_GROUPED = {"anthropic": "content", "gemini": "parts"}
"""Where all results of a reply are one message: the key they are under."""


def _missing(format: FormatName, call_id: str, tool: str) -> dict[str, Any]:
    """The result of a call that has none; in Responses, ``tool`` is the type of the call."""
    match format:
        case "gemini":
            given = {"id": call_id, "name": tool, "response": {"error": NO_RESULT}}
            return {"functionResponse": given}
        case "openai-responses":
            return {"type": f"{tool}_output", "call_id": call_id, "output": NO_RESULT}
        case "anthropic":
            given = {"type": "tool_result", "tool_use_id": call_id, "content": NO_RESULT}
            return {**given, "is_error": True}
        case "openai-chat":
            return {"role": "tool", "tool_call_id": call_id, "content": NO_RESULT}


def seconds(stamp: Any) -> float | None:
    """Seconds since 1970 of an ISO time, or of milliseconds; None if it is neither."""
    if isinstance(stamp, (int, float)):
        return stamp / 1e3
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (TypeError, ValueError):
        return None


def usage_of(given: Any, counts: Counts) -> Usage | None:
    """What a log counted for a reply, or None if that is no count."""
    is_known = isinstance(given, dict) and isinstance(given.get(counts.prompt), int)
    return read(given, counts) if is_known else None
