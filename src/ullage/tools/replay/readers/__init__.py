"""Recorded runs of agents, from files as they lie around.

    for run in read("recordings/"):
        ...

    kind                      recognised by                                 runs
    ----                      -------------                                 ----
    trajectory                ``format`` and ``messages``                   one a value
    ATIF                      ``schema_version`` and ``steps``              one a value
    SWE-agent trajectory      ``trajectory`` and ``history``                one a value
    inspect log               samples with an ``epoch``; a zip of them      one a sample
    LangChain messages        messages with a type, such as ``AIMessage``   one a value
    Pydantic AI messages      messages with a ``kind`` and ``parts``        one a value
    requests and replies      ``request`` and ``response`` or ``reply``     one a conversation
    provider request          ``messages``, ``input`` or ``contents``       one a conversation
    Codex rollout             lines with a type and a payload               one a session
    Gemini CLI session        ``sessionId`` and ``projectHash``             one a session
    opencode session          ``info`` and ``parts``                        one a session
    Copilot CLI session       events with a dotted type and data            one a file
    pi session                entries with a type and a time                one a session
    Claude Code session log   lines with a type and a session or parent     one a session,
                                                                            one a sidechain

JSON, JSON Lines, with or without gzip, in any mixture, recognised by content and never by
name. Values are read one at a time; only a session log has to be read to its end, because
its last line decides which branch was the history. No reader guesses what a log leaves out:
a run without tools, system text or calls is one. Whatever cannot be read is reported
and skipped: a recording of last year must not stop the reading of all others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ullage.core.errors import FormatError
from ullage.tools.replay.readers import _documents, _exchanges, _request
from ullage.tools.replay.readers._claude_code import CLAUDE_CODE
from ullage.tools.replay.readers._codex import CODEX
from ullage.tools.replay.readers._events import COPILOT, PI
from ullage.tools.replay.readers._files import LogFile, logs_under, values
from ullage.tools.replay.readers._gemini_cli import GEMINI_CLI
from ullage.tools.replay.readers._log import SessionLog
from ullage.tools.replay.readers._opencode import OPENCODE
from ullage.tools.replay.readers._run import (
    Damage,
    DamageReport,
    FormatName,
    Grade,
    OnDamage,
    Run,
)

__all__ = [
    "Damage",
    "FormatName",
    "Grade",
    "LogFile",
    "Run",
    "logs_under",
    "read",
    "runs_of",
    "size_of",
]


def size_of(path: str | os.PathLike[str]) -> int:
    """Bytes that `read` will read, as they lie on disk (compressed). 0 if there are none."""
    return sum(file.size_bytes for file in logs_under(path))


def read(
    path: str | os.PathLike[str], *, on_damage: OnDamage | None = None
) -> Iterator[Run]:
    """The runs in a file, or in every file below a folder, sorted by path.

    Args:
        path: a file, a folder, or an address as ``s3://bucket/folder``; hidden files in a
            folder are left out.
        on_damage: called for everything that is skipped.

    Raises:
        FormatError: the path does not exist (at once), or nothing under it could be read
            (at the end).
    """
    files = logs_under(path)
    if not files:
        name = Path(path).name or "."
        remedy = "Give a JSON or JSON Lines file, compressed or not, or a folder of them."
        raise FormatError(
            name, "there is no such file, or no file in it", remedy
        )
    return _read(files, on_damage)


def _read(
    files: Sequence[LogFile], on_damage: OnDamage | None
) -> Iterator[Run]:
    has_runs = False
    for file in files:
        for run, _ in runs_of(file, on_damage):
            has_runs = True
            yield run
    if not has_runs:
        name = files[0].name if len(files) == 1 else f"{len(files):,} files"
        request = '{"model": …, "messages": […]}'
        remedy = f"Readable are trajectories, provider requests ({request}), logs of agents."
        raise FormatError(name, "no run in it could be read", remedy)


def runs_of(
    file: LogFile, on_damage: OnDamage | None
) -> Iterator[tuple[Run, int]]:
    """The runs in one file, each with the bytes read by then; those of session logs come last."""
    report = DamageReport(file.name, on_damage)
    name = file.name.split(".")[0]
    logs: dict[int, _Log] = {}
    has_runs = False
    read_bytes = 0
    for number, value, read_bytes in values(file, report):
        with report.guarded(number):
            for run in _taken(value, number, name, report, logs):
                has_runs = True
                yield run, read_bytes
    for log in logs.values():
        with report.guarded(0):
            for run in log.runs():
                has_runs = True
                yield run, read_bytes
    report.close(has_runs=has_runs)


_Log: TypeAlias = SessionLog | _exchanges.ExchangeLog

# The first that knows a value has it: those that look for more come before those for less.
_WHOLE = (
    (_request.is_trajectory, _request.trajectory_of),
    (_documents.is_document, _documents.runs_of),
)
"""Kinds whose runs are one value each."""
_LOGS: tuple[
    tuple[
        Callable[[dict[str, Any]], bool], Callable[[str, DamageReport], _Log]
    ],
    ...,
] = (
    (_exchanges.is_line, _exchanges.ExchangeLog),
    *(
        (kind.is_line, partial(SessionLog, kind))
        for kind in (CODEX, GEMINI_CLI, OPENCODE, COPILOT, CLAUDE_CODE, PI)
    ),
)


def _taken(
    value: Any,
    number: int,
    name: str,
    report: DamageReport,
    logs: dict[int, _Log],
) -> Iterator[Run]:
    """The runs that a value gives at once: its own, or those of its log that are over."""
    if not isinstance(value, dict):
        report.add(number, "is not an object", "foreign")
        return
    for is_known, runs_in in _WHOLE:
        if is_known(value):
            report.is_readable = True
            yield from runs_in(value, name, number, report)
            return
    for at, (is_line, new_log) in enumerate(_LOGS):
        if is_line(value):
            report.is_readable = True
            if at not in logs:
                logs[at] = new_log(name, report)
            yield from logs[at].add(value, number)
            return
    report.add(number, "is of no kind known here", "foreign")
