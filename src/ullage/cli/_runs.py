"""Which recorded runs a command is asked for, and what is wrong with the files they are in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ullage.errors import FormatError
from ullage.replay.many import Wanted
from ullage.replay.readers import Damage, LogFile, Run, is_address, logs_under, read_logs

__all__ = ["Logs", "damage_lines", "runs_in"]


class Logs(click.Path):
    """A file or a folder that is there, as a path; or an address of objects, as it was typed."""

    def __init__(self) -> None:
        super().__init__(exists=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.Path`."""
        return value if is_address(value) else super().convert(value, param, ctx)


def runs_in(
    paths: Sequence[Path | str],
    damage: list[Damage],
    *,
    least: int = 0,
    most: int | None = None,
    is_wanted: Callable[[Run], bool] | None = None,
) -> Wanted:
    """Each run with the name of its file and how many bytes have been read by then.

    What is wrong with the files is added to ``damage``. Runs of fewer than ``least`` messages are
    left out, and of each file what comes after the first ``most``.
    """
    before = 0
    for path in paths:
        files = logs_under(path)
        is_named = [file.name for file in files] == [Path(path).name]
        for file in files:
            here, count = [0], 0
            for run in _of_file(file, is_named, damage, here):
                is_long = len(run.messages) >= least
                if is_long and (is_wanted is None or is_wanted(run)) and count != most:
                    count += 1
                    yield file.name, run, before + here[0]
            before += file.size_bytes


def _of_file(file: LogFile, is_named: bool, damage: list[Damage], here: list[int]) -> Iterator[Run]:
    """The runs of a file; what is wrong with it is damage, not the end."""

    def note(found: Damage) -> None:
        foreign = found.grade == "foreign" and is_named
        damage.append(replace(found, grade="skipped") if foreign else found)

    def progress(bytes_read: int) -> None:
        here[0] = bytes_read

    with suppress(FormatError):  # no run in it: every such file has said why
        yield from read_logs([file], note, progress)


def damage_lines(damage: list[Damage]) -> Iterator[str]:
    """A line for each loss, and one for all places of a file that were repaired alike."""
    repaired = Counter((d.file, d.problem) for d in damage if d.grade == "repaired")
    for found in damage:
        place = f"{found.file} line {found.line}" if found.line else found.file
        if found.grade != "repaired":
            yield f"skipped {place}: {found.problem}"
        elif count := repaired.pop((found.file, found.problem), 0):
            more = f" and {count - 1:,} more" if count > 1 else ""
            yield f"read all the same {place}{more}: {found.problem}"
