"""Session logs: lines of events, and the history put together from them, of any wire format.

An event becomes what was said, replied or returned (`LogKind`). Logs hold a call and its result
apart: the result may come late, twice, without its call, or never. A history pairs them again.
Each reply is followed by the results of its calls, in the order of the calls; the raw messages
themselves are the reader's, or Chat Completions (`say`, `reply`, `answer`).

    in the log                                made of it
    ----------                                ----------
    a result of no call, a second result      left out
    a call without a result, later on built   answered by a short error
    the last reply, its calls unanswered      left out, its request kept
    a reply before anybody said anything      left out
    a reply that says nothing                 left out
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from msgspec import Struct

from ullage.core.history.pairing import At, Pairing
from ullage.doors.host import ToolCall
from ullage.tools.replay.readers._run import DamageReport, FormatName, Run
from ullage.wires import FORMATS

NO_RESULT = "No result was recorded for this call."


class LogTurn:
    """One turn of a log: a message of the user's, or a reply with the results of its calls.

    Attributes:
        calls: the names of the tools it calls, by call id; None: it is not a reply.
        beside: what the user said in the message of the results.
    """

    def __init__(
        self, raws: list[Any], line: int, stamp: float | None
    ) -> None:
        self.raws = raws
        self.line = line
        self.stamp = stamp
        self.calls: dict[str, str] | None = None
        self.results: dict[str, Any] = {}
        self.beside: list[Any] = []
        self.answered_s: float | None = None

    @property
    def unanswered(self) -> list[str]:
        """The calls without a result."""
        return [
            call_id
            for call_id in self.calls or ()
            if call_id not in self.results
        ]


class LoggedConversation:
    """Gathers one conversation.

    Attributes:
        request: what it has beside its messages; grows as the log names it.
        turns: what was said and replied, in order.
        replies: for a reader whose log holds a reply in pieces: the replies by their ids.
        report: takes what is wrong with the log.
        line: the line that is being read, and ``stamp``, when it was written.
    """

    def __init__(
        self, id: str, format: FormatName, report: DamageReport
    ) -> None:
        self.id = id
        self.format = format
        self.line = 0
        self.stamp: float | None = None
        self.request: dict[str, Any] = {}
        self.turns: list[LogTurn] = []
        self.replies: dict[str, LogTurn] = {}
        self.report = report
        self._pairs = Pairing()
        self._owners: dict[At, LogTurn] = {}
        self._newest: dict[str, LogTurn] = {}
        self._count = 0

    def of_model(self, model: Any) -> None:
        """The log names the model."""
        if isinstance(model, str) and model:
            self.request["model"] = model

    def say(self, raw: Any) -> None:
        """The user, or the system, says this."""
        self.turns.append(LogTurn([raw], self.line, self.stamp))

    def reply(self, raws: Sequence[Any], calls: Mapping[str, str]) -> LogTurn:
        """The model replies. ``calls`` are the names of the tools it calls, by call id."""
        turn = LogTurn(list(raws), self.line, self.stamp)
        turn.calls = {}
        self.turns.append(turn)
        self.asks(turn, calls)
        return turn

    def asks(self, turn: LogTurn, calls: Mapping[str, str]) -> None:
        """These calls are the reply's. One that a log holds twice is one."""
        turn.calls = {**(turn.calls or {}), **calls}
        self._count += 1
        for number, id in enumerate(calls):
            if self._newest.get(id) is not turn:
                at = (self._count, number)
                self._owners[at] = self._newest[id] = turn
                self._pairs.add_call(at, id)

    @property
    def open_call(self) -> str:
        """The first call of the last reply that has no result yet; "" if there is none."""
        replies = [turn for turn in self.turns if turn.calls is not None]
        return next(iter(replies[-1].unanswered), "") if replies else ""

    def result(self, call_id: str, raw: Any) -> LogTurn | None:
        """A result; the reply whose call it answers, or None where it is left out."""
        self._count += 1
        here = (self._count, 0)
        call = self._pairs.add_result(here, call_id)
        if call is None:
            of_one = self._pairs.of(here)
            problem = (
                "a second result of one call"
                if of_one
                else "a result without its call"
            )
            self.report.repaired(self.line, f"{problem} is left out")
            return None
        turn = self._owners[call]
        turn.results[call_id] = raw
        return turn

    def run(self) -> Run | None:
        """The run it makes, or None when the model never replied."""
        turns, cut = self._kept()
        if not any(turn.calls is not None for turn in turns) and cut is None:
            return None
        line = turns[0].line if turns else 0
        run = Run(
            self.id, self.format, self.request, [], {}, cut is not None, line
        )
        for turn in turns:
            self._emit(turn, run)
        return run

    def _kept(self) -> tuple[list[LogTurn], LogTurn | None]:
        """The turns that a history can hold, and the last reply if it was cut off."""
        turns = [turn for turn in self.turns if turn.raws]
        while turns and turns[0].calls is not None:
            problem = "the log begins with a reply, which is left out"
            self.report.repaired(turns.pop(0).line, problem)
        reply_index = max(
            (at for at, turn in enumerate(turns) if turn.calls is not None),
            default=-1,
        )
        if reply_index < 0 or not turns[reply_index].unanswered:
            return turns, None
        problem = "the last reply has calls without results, left out"
        self.report.repaired(turns[reply_index].line, problem)
        return turns[:reply_index], turns[reply_index]

    def _emit(self, turn: LogTurn, run: Run) -> None:
        for call_id in turn.unanswered:
            problem = "a call without a result is answered by a short error"
            self.report.repaired(turn.line, problem)
            turn.results[call_id] = self._missing(
                call_id, (turn.calls or {})[call_id]
            )
        results = [
            turn.results[call_id] for call_id in turn.calls or ()
        ] + turn.beside
        carried = FORMATS[self.format].results(results) if results else []
        for raws, stamp in (
            (turn.raws, turn.stamp),
            (carried, turn.answered_s),
        ):
            if raws and stamp is not None:
                run.stamps[len(run.messages)] = stamp
            run.messages.extend(raws)

    def _missing(self, call_id: str, tool: str) -> dict[str, Any]:
        """The result of a call that has none; in Responses, ``tool`` is the type of the call."""
        call = ToolCall(call_id, tool, "", 0)
        result = FORMATS[self.format].result(call, NO_RESULT, is_error=True)
        # In Responses each kind of call has a kind of output of its own.
        if result.get("type") == "function_call_output":
            result["type"] = f"{tool}_output"
        return result


def seconds(stamp: Any) -> float | None:
    """Seconds since 1970 of an ISO time, or of milliseconds; None if it is neither."""
    if isinstance(stamp, (int, float)):
        return stamp / 1e3
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (TypeError, ValueError):
        return None


Event: TypeAlias = dict[str, Any]
Lines: TypeAlias = list[tuple[Event, int]]
"""Events, each with the number of its line."""


class LogKind(Struct, frozen=True, kw_only=True):
    """One kind of session log.

    Attributes:
        format: the wire they are read on.
        is_line: whether a value is a line of such a log.
        take: takes an event into the history of its session.
        events: the events of a line, each with its session; None: that of the line before,
            "": the file's.
        arranged: the histories in a session: the id of each, and its events as they count in
            the end.
    """

    format: FormatName
    is_line: Callable[[Event], bool]
    take: Callable[[LoggedConversation, Event], None]
    events: Callable[[Event], Iterable[tuple[str | None, Event]]] = (
        lambda value: ((None, value),)
    )
    arranged: Callable[
        [str, Lines, DamageReport], Iterable[tuple[str, Lines]]
    ] = lambda id, lines, _: ((id, lines),)


class SessionLog:
    """Gathers the lines of one file, then gives a run for each session in it."""

    def __init__(self, kind: LogKind, name: str, report: DamageReport) -> None:
        self._kind = kind
        self._name = name
        self._report = report
        self._now = name
        self._sessions: dict[str, Lines] = {}

    def add(self, value: Event, line: int) -> Iterator[Run]:
        """Take one line; no session is over before the file is."""
        for session, event in self._kind.events(value):
            self._now = self._now if session is None else session or self._name
            self._sessions.setdefault(self._now, []).append((event, line))
        return iter(())

    def runs(self) -> Iterator[Run]:
        """The runs, in order of their first line."""
        for session, events in self._sessions.items():
            for id, lines in self._kind.arranged(
                session, events, self._report
            ):
                run = self._history(id, lines).run()
                if run is not None:
                    yield run

    def _history(self, id: str, lines: Lines) -> LoggedConversation:
        kind = self._kind
        history = LoggedConversation(id, kind.format, self._report)
        for event, line in lines:
            with self._report.guarded(line):
                history.line = line
                history.stamp = seconds(event.get("timestamp"))
                kind.take(history, event)
        return history


# ── a history of Chat Completions, which most logs are read as ───────────────────────────

Call = tuple[str, str, Any]
"""Id, tool and arguments, the arguments as JSON text or a value."""


def say(history: LoggedConversation, text: str, *, role: str = "user") -> None:
    """The user, or the system, says this, if it is anything."""
    if text:
        history.say({"role": role, "content": text})


def reply(
    history: LoggedConversation, content: Any, calls: list[Call]
) -> None:
    """The model replies; an empty text is left out where there are calls."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": content or ("" if not calls else None),
    }
    if calls:
        message["tool_calls"] = [_call(*call) for call in calls]
    history.reply([message], {id: tool for id, tool, _ in calls})


def _call(id: str, tool: str, arguments: Any) -> dict[str, Any]:
    text = (
        arguments if isinstance(arguments, str) else json_text(arguments or {})
    )
    return {
        "id": id,
        "type": "function",
        "function": {"name": tool, "arguments": text},
    }


def answer(
    history: LoggedConversation, call_id: str | None, text: Any
) -> None:
    """A call returns this; without an id, the first open one."""
    id = history.open_call if call_id is None else call_id
    history.result(id, {"role": "tool", "tool_call_id": id, "content": text})


def calls_in(values: Any, id: str, tool: str, arguments: str) -> list[Call]:
    """The calls among these objects, which are in them under such keys."""
    calls = [value for value in values or () if isinstance(value, dict)]
    return [
        (str(call.get(id)), str(call.get(tool)), call.get(arguments))
        for call in calls
    ]


def text_of(content: Any) -> str:
    """The text of a content: itself, or the texts of its blocks, a line between them."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    texts = (
        block if isinstance(block, str) else fields_of(block).get("text")
        for block in blocks
    )
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def fields_of(value: Any) -> dict[str, Any]:
    """The value where it is an object, else none of its fields."""
    return value if isinstance(value, dict) else {}


def json_text(value: Any) -> str:
    """A value as the JSON text a model would have written."""
    return json.dumps(value, ensure_ascii=False)
