"""Try every history of a length, in several processes, and print the counts."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from pathlib import Path

import click
from msgspec import Struct, field
from msgspec import json as packed

from lab.enumerate.families import MAKERS, families
from lab.enumerate.letters import alphabet
from lab.enumerate.walk import Tally, Unit, add, try_unit, units
from lab.fuzz.tally import be_quiet

_MOST_FINDINGS = 20
_SAVE_EVERY_S = 10.0


class Progress(Struct):
    """The file that a run goes on from.

    Attributes:
        length: of the histories.
        every: whether every row of the block tables is a letter.
        done: units tried, in their order.
        seconds: how long that took.
        tally: what was tried.
    """

    length: int
    every: bool
    done: int = 0
    seconds: float = 0.0
    tally: Tally = field(default_factory=Tally)


def run(
    progress: Progress, seconds: float, jobs: int, resume: Path | None
) -> bool:
    """Try units until all are tried or the time is over; returns whether all are."""
    left = islice(
        units(progress.length, basic=not progress.every), progress.done, None
    )
    start = saved = time.monotonic()
    with ProcessPoolExecutor(max_workers=jobs, initializer=be_quiet) as pool:
        waiting: deque[Future[Tally]] = deque(_submitted(pool, left, 4 * jobs))
        while waiting and len(progress.tally.found) < _MOST_FINDINGS:
            add(progress.tally, waiting.popleft().result())
            progress.done += 1
            now = time.monotonic()
            if now - start < seconds:
                waiting.extend(_submitted(pool, left, 1))
            if resume is not None and (
                now - saved > _SAVE_EVERY_S or not waiting
            ):
                saved = now
                _save(progress, resume)
    progress.seconds += time.monotonic() - start
    if resume is not None:
        _save(progress, resume)
    return next(left, None) is None and not waiting


def _submitted(
    pool: ProcessPoolExecutor, left: Iterator[Unit], count: int
) -> Iterator[Future[Tally]]:
    return (pool.submit(try_unit, unit) for unit in islice(left, count))


def _save(progress: Progress, path: Path) -> None:
    beside = path.with_suffix(".new")
    beside.write_bytes(packed.encode(progress))
    beside.replace(path)


def say(progress: Progress, is_whole: bool) -> None:
    """Print what was tried and found."""
    tally = progress.tally
    letters = "every letter" if progress.every else "the small alphabet"
    whole = (
        "all of them" if is_whole else f"{progress.done:,} beginnings of them"
    )
    click.echo(
        f"length {progress.length}, {letters}, {whole}: {tally.histories:,} legal histories, "
        f"{tally.illegal:,} illegal ones, {tally.faulty:,} with a fault, {tally.views:,} views "
        f"judged, {len(tally.found)} wrong, in {progress.seconds:,.0f} s"
    )
    for name, count in sorted(tally.edited.items()):
        click.echo(f"{count:>10,}  views edited: {name}")
    for what in tally.found[:_MOST_FINDINGS]:
        click.echo(what)


def show() -> None:
    """Print letters and families."""
    for format in MAKERS:
        small, every = alphabet(format, basic=True), alphabet(format)
        click.echo(
            f"{format}: {len(small)} letters, {len(every)} with every row"
        )
        click.echo(f"    {', '.join(letter.name for letter in small)}")
        for family in families(format):
            click.echo(
                f"    {family.name}, for {len(family.models)} models with its rules"
            )


@click.command()
@click.option(
    "--length", default=2, show_default=True, help="Letters of a history."
)
@click.option(
    "--every", is_flag=True, help="Each row of the block tables is a letter."
)
@click.option("--seconds", default=float("inf"), help="Stop after so long.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="Go on from, and write, this file.",
)
@click.option(
    "--list", "lists", is_flag=True, help="Print the letters and the families."
)
def main(
    length: int,
    every: bool,
    seconds: float,
    jobs: int,
    resume: Path | None,
    lists: bool,
) -> None:
    """Enumerate; the status is 1 if anything was found."""
    if lists:
        show()
        return
    progress = Progress(length, every)
    if resume is not None and resume.exists():
        progress = packed.decode(resume.read_bytes(), type=Progress)
    is_whole = run(progress, seconds, jobs, resume)
    say(progress, is_whole)
    raise SystemExit(1 if progress.tally.found else 0)


if __name__ == "__main__":
    main()
