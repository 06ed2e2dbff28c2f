"""Recorded runs of agents, from files as they lie around.

    for run in read("recordings/"):
        ...

    kind                     recognised by                                 runs
    ----                     -------------                                 ----
    trajectory               ``format`` and ``messages``                   one a value
    provider request         ``messages`` and a model, tools, response …   one a value
    Claude Code session log  lines with a type and a session or parent     one a session,
                                                                           one a sidechain

JSON, JSON Lines, with or without gzip, in any mixture, told apart by content and never by
name. Values are read one at a time; only a session log has to be read to its end, because
its last line decides which branch was the history. Whatever cannot be read is told and
skipped: a recording of last year must not stop the reading of all others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ullage.errors import FormatError
from ullage.replay.readers import _request, _trajectory
from ullage.replay.readers._claude_code import Log, is_line
from ullage.replay.readers._files import Progress, files_under, values
from ullage.replay.readers._run import Damage, FormatName, OnDamage, Report, Run

__all__ = ["Damage", "FormatName", "Run", "read", "size_of"]


def size_of(path: str | os.PathLike[str]) -> int:
    """Bytes that `read` will read, as they lie on disk (compressed). 0 if there are none."""
    return sum(file.stat().st_size for file in files_under(Path(path)))


def read(
    path: str | os.PathLike[str],
    *,
    on_damage: OnDamage | None = None,
    progress: Progress | None = None,
) -> Iterator[Run]:
    """The runs in a file, or in every file below a folder, sorted by path.

    Args:
        path: a file or a folder; hidden files in a folder are left out.
        on_damage: called for everything that is skipped.
        progress: called with the bytes read so far, of `size_of(path)` in all.

    Raises:
        FormatError: the path does not exist (at once), or nothing under it could be read
            (at the end).
    """
    files = files_under(Path(path))
    if not files:
        name = Path(path).name or "."
        remedy = "Give a JSON or JSON Lines file, compressed or not, or a folder of them."
        raise FormatError(name, "there is no such file, or no file in it", remedy)
    return _read(files, on_damage, progress or (lambda _: None))


def _read(files: list[Path], on_damage: OnDamage | None, progress: Progress) -> Iterator[Run]:
    found, before = False, 0
    for file in files:
        report = Report(file.name, on_damage)
        for run in _runs(file, report, partial(_advance, progress, before)):
            found = True
            yield run
        report.close()
        before += file.stat().st_size
        progress(before)
    if not found:
        name = files[0].name if len(files) == 1 else f"{len(files):,} files"
        remedy = "Readable are trajectories, provider requests and Claude Code session logs."
        raise FormatError(name, "no run in it could be read", remedy)


def _advance(progress: Progress, before: int, here: int) -> None:
    progress(before + here)


def _runs(file: Path, report: Report, progress: Progress) -> Iterator[Run]:
    """The runs in one file; a session log's come last."""
    name = file.name.split(".")[0]
    log = Log(name, report)
    for number, value in values(file, report, progress):
        if not isinstance(value, dict):
            report.add(number, "is not an object")
        elif _trajectory.is_trajectory(value):
            report.readable()
            yield from _trajectory.runs_of(value, name, number, report)
        elif _request.is_request(value):
            report.readable()
            yield from _request.runs_of(value, name, number, report)
        elif is_line(value):
            report.readable()
            log.add(value, number)
        else:
            report.add(number, "is of no kind known here")
    yield from log.runs()
