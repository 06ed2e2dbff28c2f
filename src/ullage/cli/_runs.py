"""Which recorded runs a command is asked for, and what is wrong with the files they are in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ullage.errors import FormatError
from ullage.replay.many import Wanted
from ullage.replay.readers import Damage, Run, read, size_of

__all__ = ["Choice", "damage_lines"]


class Choice(Struct, frozen=True, kw_only=True):
    """The runs that are wanted.

    Attributes:
        paths: files or folders.
        least: the fewest messages of a run.
        most: how many runs of each file, or None for all.
        is_wanted: which of them; None: all.
    """

    paths: tuple[Path, ...]
    least: int = 0
    most: int | None = None
    is_wanted: Callable[[Run], bool] | None = None

    def runs(self, damage: list[Damage] | None = None) -> Wanted:
        """Each run with the name of its file and how many bytes have been read by then.

        Args:
            damage: what is wrong with the files is added to it.
        """
        found, before = [] if damage is None else damage, 0
        for path in self.paths:
            read_so_far = [0]
            files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
            for file in files:
                note = partial(_note, read_so_far, read_so_far[0])
                for run in self._of(_quietly(file, file == path, found, note)):
                    yield file.name, run, before + read_so_far[0]
            before += size_of(path)

    def _of(self, runs: Iterator[Run]) -> Iterator[Run]:
        count = 0
        for run in runs:
            is_wanted = self.is_wanted is None or self.is_wanted(run)
            is_long = len(run.messages) >= self.least
            if is_long and is_wanted and (self.most is None or count < self.most):
                count += 1
                yield run


def _quietly(
    file: Path, is_named: bool, damage: list[Damage], progress: Callable[[int], None]
) -> Iterator[Run]:
    """The runs of a file; what is wrong with it is damage, not the end."""

    def note(found: Damage) -> None:
        foreign = found.grade == "foreign" and is_named
        damage.append(replace(found, grade="skipped") if foreign else found)

    with suppress(FormatError):  # no run in it: every such file has said why
        yield from read(file, on_damage=note, progress=progress)


def _note(read_so_far: list[int], start: int, here: int) -> None:
    read_so_far[0] = start + here


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
