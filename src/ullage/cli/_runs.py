"""Which recorded runs a command is asked for, and what is wrong with the files they are in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ullage.replay.many import Wanted
from ullage.replay.readers import Damage, Run, is_address, logs_under, runs_of


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
        note = partial(_note, damage, is_named=is_named)
        for file in files:
            count = 0
            for run, read_bytes in runs_of(file, note):
                is_long = len(run.messages) >= least
                if is_long and (is_wanted is None or is_wanted(run)) and count != most:
                    count += 1
                    yield file.name, run, before + read_bytes
            before += file.size_bytes


def _note(damage: list[Damage], found: Damage, *, is_named: bool) -> None:
    """Add what is wrong with a file; of one that was named nothing is foreign."""
    is_foreign = found.grade == "foreign" and is_named
    damage.append(replace(found, grade="skipped") if is_foreign else found)


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
