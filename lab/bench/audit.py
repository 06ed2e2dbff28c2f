"""Demands drawn by lot, to be read by a person (`metrics` N5).

    python -m lab.bench.audit FILE… --list audit.txt [--each 25] [--age 1] [--seed 0]

Of each file so many demands, each of another run as far as there are runs: the value, the call
that used it, and the newest line that told it. Whoever reads asks of each: did the value come
from there? The stop list is that of all runs of the files together.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TextIO

import click

from lab.replay.story import Story
from ullage.tools.replay.calls import boundaries
from ullage.tools.replay.evidence.atoms import plain
from ullage.tools.replay.evidence.common import common_in
from ullage.tools.replay.evidence.demands import Demand, HeadText, demands_of
from ullage.tools.replay.evidence.score import lines_of
from ullage.tools.replay.readers import Run, read
from ullage.wires import FORMATS

_CALL_CHARS = 320
_AROUND_CHARS = 160


def drawn(
    runs: Sequence[Run],
    each: int,
    common: frozenset[str],
    *,
    age: int = 1,
    seed: int = 0,
) -> Iterator[tuple[Run, Story, Demand]]:
    """So many demands of these runs, in rounds over the runs in the order of the lot."""
    lot = random.Random(seed)
    left: list[tuple[Run, Story, list[Demand]]] = []
    found = 0
    for run in lot.sample(runs, len(runs)):
        wire, lengths = FORMATS[run.format], boundaries(run)
        story = Story(wire, run.messages)
        demands = demands_of(
            story, lengths, HeadText.of(wire, run.request), common
        )
        first = [
            demand
            for demand in chain.from_iterable(demands)
            if demand.use == "first" and demand.age >= age
        ]
        if first:
            left.append((run, story, lot.sample(first, len(first))))
        if len(left) == each:
            break
    while found < each and any(sample for _, _, sample in left):
        for run, story, sample in left:
            if sample and found < each:
                found += 1
                yield run, story, sample.pop()


def told(run: Run, story: Story, demand: Demand) -> str:
    """One demand, for a reader."""
    value, start = demand.atom, boundaries(run)[demand.call]
    calls = [
        call for message in story.parsed[start:] for call in message.calls
    ]
    asked = next(
        (c for c in calls if value.plain in plain(c.arguments)), calls[0]
    )
    line = lines_of(demand)[0]
    words = plain(asked.arguments)
    at = max(words.find(value.plain) - _CALL_CHARS // 2, 0)
    return "\n".join(
        (
            f"{run.id}  call {demand.call}  age {demand.age}  {value.kind}",
            f"  value: {value.text!r}",
            f"  call:  {asked.name} {words[at : at + _CALL_CHARS]!r}",
            f"  line:  {line.prefix[-_AROUND_CHARS:]}⟦{value.plain[:400]}⟧"
            f"{line.suffix[:_AROUND_CHARS]}",
        )
    )


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--each",
    default=25,
    show_default=True,
    help="How many demands of each file.",
)
@click.option(
    "--age", default=1, show_default=True, help="The least age of a demand."
)
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--list", "listing", type=click.File("w", lazy=False), required=True
)
def main(
    files: Sequence[str], each: int, age: int, seed: int, listing: TextIO
) -> None:
    """Draw demands of each file by lot, and write them down."""
    by_file = [list(read(file)) for file in files]
    common = common_in(run for runs in by_file for run in runs)
    number = 0
    for runs in by_file:
        for found in drawn(runs, each, common, age=age, seed=seed):
            number += 1
            print(f"{number}. {told(*found)}\n", file=listing)
    click.echo(f"{number} demands; stop list of {len(common):,} values")


if __name__ == "__main__":
    main()
