"""Run the fuzzer for a time, in several processes, and say what was tried."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count as count_from
from pathlib import Path
from secrets import randbits

import click
from msgspec import json as packed

from lab.fuzz.coverage import empty, table
from lab.fuzz.histories import FORMATS
from lab.fuzz.tally import (
    BATCH,
    Tally,
    add,
    be_quiet,
    drawn,
    seen_of,
    try_batch,
)
from lab.fuzz.trial import try_case

MOST_FINDINGS = 20


def run(
    tally: Tally,
    seconds: float,
    until: int,
    jobs: int,
    resume: Path | None,
    formats: Sequence[str] = FORMATS,
) -> None:
    """Try batches until the time is over or enough is held; write the file after each."""
    begun, before = time.monotonic(), tally.tried
    with ProcessPoolExecutor(max_workers=jobs, initializer=be_quiet) as pool:
        starts = count_from(tally.next, BATCH)
        attempt = partial(
            try_batch,
            formats=formats,
            borders=tally.borders,
            policies=tally.policies,
        )
        running = deque(
            pool.submit(attempt, tally.seed, next(starts))
            for _ in range(2 * jobs)
        )
        while (
            running
        ):  # in order, so that a file holds all histories before its next one
            add(tally, running.popleft().result())
            if resume is not None:
                _write(tally, resume)
            over = time.monotonic() - begun > seconds or tally.held >= until
            if not over and len(tally.found) < MOST_FINDINGS:
                running.append(pool.submit(attempt, tally.seed, next(starts)))
    took = max(time.monotonic() - begun, 1e-9)
    click.echo(
        f"{(tally.tried - before) / took:,.0f} histories a second, with {jobs} processes"
    )


def _write(tally: Tally, file: Path) -> None:
    beside = file.with_suffix(".new")
    beside.write_bytes(packed.encode(tally))
    beside.replace(file)


def say(tally: Tally, coverage: bool) -> None:
    """Print what was tried and found."""
    click.echo(
        f"seed {tally.seed}: {tally.tried:,} histories, {tally.held:,} of them not trivial and "
        f"without violation, {tally.refused:,} refused, {len(tally.found)} wrong"
    )
    for name, count in sorted(tally.edits.items()):
        click.echo(f"{count:>10,}  {name.replace('|', ' × ')}")
    seen = seen_of(tally)
    click.echo(
        f"{len(empty(seen))} cells of rule × feature × edit could be filled and are empty"
    )
    if coverage:
        for line in table(seen):
            click.echo(line)
        for row in empty(seen):
            click.echo(f"empty: {' × '.join(row)}")
    for number, wrong in tally.found[:MOST_FINDINGS]:
        click.echo(f"history {number}: {', '.join(wrong)}")


@click.command()
@click.option("--seconds", default=60.0, show_default=True)
@click.option(
    "--until", default=10**9, help="Stop when so many histories are held."
)
@click.option(
    "--seed",
    type=int,
    help="Of the histories; without it one that nobody chose.",
)
@click.option(
    "--start",
    default=0,
    show_default=True,
    help="Number of the first history.",
)
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="Go on from, and write, this file.",
)
@click.option(
    "--coverage",
    is_flag=True,
    help="Print the table of rules, features and edits.",
)
@click.option(
    "--borders/--plain",
    default=True,
    help="With joined, seeded, changed histories.",
)
@click.option(
    "--policies",
    default=40,
    show_default=True,
    help="So many edit at random; 0: each history has one of its own.",
)
@click.option(
    "--wire", type=click.Choice(FORMATS), help="Histories of this wire alone."
)
@click.option(
    "--only", type=int, help="Try one history, and say what is wrong with it."
)
def main(
    seconds: float,
    until: int,
    seed: int | None,
    start: int,
    jobs: int,
    resume: Path | None,
    coverage: bool,
    borders: bool,
    policies: int,
    wire: str | None,
    only: int | None,
) -> None:
    """Fuzz for a time; the status is 1 if anything was found."""
    be_quiet()
    seed = randbits(32) if seed is None else seed
    formats = FORMATS if wire is None else (wire,)
    if only is not None:
        one = drawn(seed, only, formats, borders=borders, policies=policies)
        click.echo(json.dumps(one.messages, indent=1, ensure_ascii=False))
        click.echo(
            f"{one.format}, {', '.join(sorted(one.features))}: {try_case(one)}"
        )
        return
    tally = Tally(seed, start, borders=borders, policies=policies)
    if resume is not None and resume.exists():
        tally = packed.decode(resume.read_bytes(), type=Tally)
    run(tally, seconds, until, jobs, resume, formats)
    say(tally, coverage)
    raise SystemExit(1 if tally.found else 0)


if __name__ == "__main__":
    main()
