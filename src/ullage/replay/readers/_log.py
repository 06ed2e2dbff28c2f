"""Session logs: lines of events, of which each becomes what was said, replied or returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from msgspec import Struct

from ullage.replay.readers._history import History
from ullage.replay.readers._run import FormatName, Report, Run

__all__ = ["Event", "Kind", "Lines", "Log"]

Event: TypeAlias = dict[str, Any]
Lines: TypeAlias = list[tuple[Event, int]]
"""Events, each with the number of its line."""


class Kind(Struct, frozen=True, kw_only=True):
    """One kind of session log.

    Attributes:
        source: what its runs are called.
        format: the wire they are read on.
        is_line: whether a value is a line of such a log.
        take: takes an event, with its line, into the history of its session.
        events: the events of a line, each with its session; None: that of the line before,
            "": the file's.
        arranged: the histories in a session: the id of each, and its events as they count in
            the end.
    """

    source: str
    format: FormatName
    is_line: Callable[[Event], bool]
    take: Callable[[History, Event, int], None]
    events: Callable[[Event], Iterable[tuple[str | None, Event]]] = lambda value: ((None, value),)
    arranged: Callable[[str, Lines, Report], Iterable[tuple[str, Lines]]] = lambda id, lines, _: (
        (id, lines),
    )


class Log:
    """Gathers the lines of one file, then gives a run for each session in it."""

    def __init__(self, kind: Kind, name: str, report: Report) -> None:
        self._kind, self._name, self._report = kind, name, report
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
            for id, lines in self._kind.arranged(session, events, self._report):
                run = self._history(id, lines).run()
                if run is not None:
                    yield run

    def _history(self, id: str, lines: Lines) -> History:
        kind = self._kind
        history = History(id, kind.format, kind.source, self._report)
        for event, line in lines:
            with self._report.guarded(line):
                kind.take(history, event, line)
        return history
