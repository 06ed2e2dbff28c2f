"""Run the fuzzer for a time, in several processes, and say what was tried."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import click
from msgspec import Struct, field
from msgspec import json as packed

from fuzz.coverage import Row, empty, rows_of, table
from fuzz.histories import case
from fuzz.trial import try_case

BATCH = 400
MOST_FINDINGS = 20


class Tally(Struct):
    """What was tried so far; also the file that a run goes on from.

    Attributes:
        next: number of the next history.
        tried: histories tried.
        held: those that were not trivial, in which nothing was wrong.
        refused: those of which a view could not fit.
        edits: histories by format and kind of edit.
        seen: histories by format, rule, feature and kind of edit, joined by ``|``.
        found: numbers of histories, and what is wrong with each.
    """

    seed: int
    next: int = 0
    tried: int = 0
    held: int = 0
    refused: int = 0
    edits: dict[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    found: list[tuple[int, list[str]]] = field(default_factory=list)


def try_batch(seed: int, start: int, count: int = BATCH) -> Tally:
    """Histories ``start`` to ``start + count``."""
    tally = Tally(seed, start + count, count)
    edits, seen = Counter[str](), Counter[Row]()
    for number in range(start, start + count):
        one = case(seed, number)
        tried = try_case(one)
        tally.refused += tried.refused
        tally.held += not tried.wrong and not tried.refused and not is_trivial(one, tried)
        edits.update(f"{one.format}|{kind}" for kind in tried.edits)
        seen.update(rows_of(one.format, one.features, tried.cells))
        if tried.wrong:
            tally.found.append((number, sorted(set(tried.wrong))))
    tally.edits = dict(edits)
    tally.seen = {"|".join(row): n for row, n in seen.items()}
    return tally


def is_trivial(one: Any, tried: Any) -> bool:
    """A history counts if at least one edit was made in it and it has two features or more."""
    return not tried.edits or len(one.features) < 2


def add(total: Tally, more: Tally) -> None:
    """Take the tally of a batch into the total."""
    total.next = max(total.next, more.next)
    total.tried += more.tried
    total.held += more.held
    total.refused += more.refused
    total.found += more.found
    for mine, theirs in ((total.edits, more.edits), (total.seen, more.seen)):
        for name, count in theirs.items():
            mine[name] = mine.get(name, 0) + count


def seen_of(tally: Tally) -> Counter[Row]:
    """The tally's coverage by row."""
    split = ((name.split("|"), count) for name, count in tally.seen.items())
    return Counter({(f, rule, feature, kind): n for (f, rule, feature, kind), n in split})


def run(tally: Tally, seconds: float, until: int, jobs: int, resume: Path | None) -> None:
    """Try batches until the time is over or enough is held; write the file after each round."""
    end = time.monotonic() + seconds
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        while time.monotonic() < end and tally.held < until and len(tally.found) < MOST_FINDINGS:
            starts = [tally.next + BATCH * n for n in range(2 * jobs)]
            for more in pool.map(try_batch, [tally.seed] * len(starts), starts):
                add(tally, more)
            if resume is not None:
                beside = resume.with_suffix(".new")
                beside.write_bytes(packed.encode(tally))
                beside.replace(resume)


def say(tally: Tally, coverage: bool) -> None:
    """Print what was tried and found."""
    click.echo(
        f"seed {tally.seed}: {tally.tried:,} histories, {tally.held:,} of them not trivial and "
        f"without violation, {tally.refused:,} refused, {len(tally.found)} wrong"
    )
    for name, count in sorted(tally.edits.items()):
        click.echo(f"{count:>10,}  {name.replace('|', ' × ')}")
    seen = seen_of(tally)
    click.echo(f"{len(empty(seen))} cells of rule × feature × edit could be filled and are empty")
    if coverage:
        for line in table(seen):
            click.echo(line)
        for row in empty(seen):
            click.echo(f"empty: {' × '.join(row)}")
    for number, wrong in tally.found[:MOST_FINDINGS]:
        click.echo(f"history {number}: {', '.join(wrong)}")


@click.command()
@click.option("--seconds", default=60.0, show_default=True)
@click.option("--until", default=10**9, help="Stop when so many histories are held.")
@click.option("--seed", default=1, show_default=True)
@click.option("--start", default=0, show_default=True, help="Number of the first history.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True)
@click.option("--resume", type=click.Path(path_type=Path), help="Go on from, and write, this file.")
@click.option("--coverage", is_flag=True, help="Print the table of rules, features and edits.")
@click.option("--only", type=int, help="Try one history, and say what is wrong with it.")
def main(
    seconds: float,
    until: int,
    seed: int,
    start: int,
    jobs: int,
    resume: Path | None,
    coverage: bool,
    only: int | None,
) -> None:
    """Fuzz for a time; the status is 1 if anything was found."""
    if only is not None:
        one = case(seed, only)
        click.echo(json.dumps(one.messages, indent=1, ensure_ascii=False))
        click.echo(f"{one.format}, {', '.join(sorted(one.features))}: {try_case(one)}")
        return
    tally = Tally(seed, start)
    if resume is not None and resume.exists():
        tally = packed.decode(resume.read_bytes(), type=Tally)
    run(tally, seconds, until, jobs, resume)
    say(tally, coverage)
    raise SystemExit(1 if tally.found else 0)


if __name__ == "__main__":
    main()
