"""Two matchers of the evidence metric, written apart, on the same runs (`metrics` N4).

    python -m lab.bench.matchers FILE… [--most 8] [--calls 40] [--list differences.txt]

The first is `ullage.tools.replay.evidence`; the second is `tests.replay.second_matcher`, written
from the definition alone. Counted is every value that either of them calls a demand: what the other
says of the same value in the same call, and where both say demand, whether age, kind and source
lines are the same. What both call a demand is then looked for by both in the same views (`--view`:
frames of `lab.replay.frame`, and adversaries). Runs in Chat Completions only, and without the stop
list, which is the same for both.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TextIO

import click
from msgspec import Struct

from lab.replay.adversaries import ADVERSARIES
from lab.replay.frame import FRAMES, frame
from lab.replay.past import Memo, Past
from lab.replay.story import Story
from tests.replay import second_matcher as second
from ullage.tools.replay.calls import boundaries, is_models
from ullage.tools.replay.evidence.atoms import plain, words
from ullage.tools.replay.evidence.demands import (
    Demand,
    Demands,
    HeadText,
    classes_of,
    demands_of,
)
from ullage.tools.replay.evidence.score import ViewReader, lines_of
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Run, read
from ullage.wires import FORMATS

_BUDGET_SHARE = 0.3
_CLASSES = {
    "user/system": "given",
    "generated": "generated",
    "tool name": "schema",
    "stop list": "common",
    "re-use": "reuse",
    "demand": "first",
}
"""The second matcher's classes in the words of the first."""


class Found(Struct, frozen=True):
    """What one matcher says of one value of one call: its class, and if demanded the demand."""

    use: str
    kind: str
    age: int = 0
    lines: tuple[str, ...] = ()
    demand: Any = None


class Difference(Struct, frozen=True):
    """One value that the two do not see alike."""

    group: str
    run: str
    call: int
    value: str
    one: Found | None
    other: Found | None


class Pair:
    """One run, read by both.

    Attributes:
        first: by call and value, what the first says.
        second: the same of the second.
    """

    def __init__(self, run: Run) -> None:
        """Read the run with both."""
        self.run, self.lengths = run, boundaries(run)
        wire = FORMATS[run.format]
        self.story = Story(wire, run.messages)
        self.head = HeadText.of(wire, run.request)
        self.demands = demands_of(self.story, self.lengths, self.head)
        self.first = dict(self._first())
        self.second = dict(self._second())

    def _first(self) -> Iterator[tuple[tuple[int, str], Found]]:
        for number, length in enumerate(self.lengths):
            demands = {demand.atom: demand for demand in self.demands[number]}
            for atom, (use, _) in classes_of(
                self.story, length, self.head
            ).items():
                demand = demands.get(atom)
                yield (number, atom.text), _of_first(use, atom.kind, demand)

    def _second(self) -> Iterator[tuple[tuple[int, str], Found]]:
        before = 1 + is_models(self.run.messages[0])
        for use, it in second.classes(
            self.run.messages, [self.head.text.text], frozenset()
        ):
            lines = tuple(dict.fromkeys((it.source_line, *it.other_lines)))
            found = Found(_CLASSES[use], it.kind, it.age, lines, it)
            yield (it.call_index - before, it.atom), found

    def differences(self, use: str) -> Iterator[Difference]:
        """Every value that at least one gives this use; its group is ``alike`` if both do."""
        keys = {
            key
            for key, found in chain(self.first.items(), self.second.items())
            if found.use == use
        }
        for call, value in sorted(keys):
            one, other = (
                self.first.get((call, value)),
                self.second.get((call, value)),
            )
            yield Difference(
                _group(one, other), self.run.id, call, value, one, other
            )


def _of_first(use: str, kind: str, demand: Demand | None) -> Found:
    if demand is None:
        return Found(use, kind)
    value = demand.atom.plain
    lines = (line.prefix + value + line.suffix for line in lines_of(demand))
    return Found(use, kind, demand.age, tuple(lines), demand)


def _group(one: Found | None, other: Found | None) -> str:
    if one is None or other is None:
        there = one or other
        assert there is not None
        return f"{'second' if one is None else 'first'} only: {there.kind} is no atom of the other"
    if one.use != other.use:
        return f"class: first says {one.use}, second {other.use} ({one.kind})"
    if one.age != other.age:
        return "age"
    return "alike"


def details(pairs: Sequence[Difference]) -> Counter[str]:
    """Of values both demand at the same age: how often kind and newest source line differ."""
    found: Counter[str] = Counter()
    for it in pairs:
        if it.group == "alike" and it.one and it.other:
            if it.one.kind != it.other.kind:
                found[
                    f"kind: first {it.one.kind}, second {it.other.kind}"
                ] += 1
            one, other = (_rows(both.lines) for both in (it.one, it.other))
            found[
                "source lines: "
                + (
                    "first has fewer"
                    if one < other
                    else "second has fewer"
                    if other < one
                    else "neither holds the other"
                )
            ] += one != other
    return found


def _rows(lines: Iterable[str]) -> set[tuple[str, ...]]:
    return {tuple(words(plain(line))) for line in lines}


def visibility(
    pair: Pair, views: Sequence[str], share: float
) -> Iterator[tuple[str, Difference]]:
    """What each shows of the values that both demand, view by view."""
    judge, memo, sight = Judge(), Memo(), ViewReader(pair.story)
    budget = int(share * judge.tokens(pair.run.messages))
    shared: dict[int, list[Difference]] = {}
    for it in pair.differences("first"):
        if it.group == "alike":
            shared.setdefault(it.call, []).append(it)
    for call, wanted in shared.items():
        for name in views:
            past = Past(pair.story, pair.lengths[call], call, judge, memo)
            view = _policy(name, pair.demands)(past, budget).messages
            looked = sight.look(view)
            for it in wanted:
                assert it.one
                assert it.other
                one = sight.shows(it.one.demand, looked)
                other = second.visible(it.other.demand, view)
                group = (
                    "alike"
                    if one == other
                    else f"shown by the {'first' if one else 'second'} only"
                )
                yield (
                    name,
                    Difference(
                        group, it.run, it.call, it.value, it.one, it.other
                    ),
                )


def _policy(name: str, demands: Demands) -> Any:
    return ADVERSARIES.get(name) or frame(name, demands)


def chosen(files: Sequence[str], most: int, calls: int) -> Iterator[Run]:
    """So many runs of each file, drawn by lot from those of enough calls."""
    for file in files:
        runs = (run for run in read(file) if run.format == "openai-chat")
        long = [run for run in runs if len(boundaries(run)) >= calls]
        yield from random.Random(0).sample(long, min(most, len(long)))


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--most", default=8, show_default=True, help="How many runs of each file."
)
@click.option(
    "--calls",
    default=40,
    show_default=True,
    help="The fewest calls of such a run.",
)
@click.option(
    "--view",
    "views",
    multiple=True,
    type=click.Choice([*FRAMES, *ADVERSARIES]),
)
@click.option(
    "--list",
    "listing",
    type=click.File("w", lazy=False),
    help="Where to write every difference.",
)
def main(
    files: Sequence[str],
    most: int,
    calls: int,
    views: Sequence[str],
    listing: TextIO | None,
) -> None:
    """Compare the two on runs drawn by lot from each file."""
    started, runs = time.perf_counter(), 0
    groups: dict[str, Counter[str]] = {
        "demands": Counter(),
        "re-uses": Counter(),
    }
    kinds: Counter[str] = Counter()
    for run in chosen(files, most, calls):
        runs += 1
        pair = Pair(run)
        found = {
            "demands": list(pair.differences("first")),
            "re-uses": list(pair.differences("reuse")),
        }
        kinds.update(details(found["demands"]))
        for name, it in visibility(
            pair, views or ("head_tail", "recency"), _BUDGET_SHARE
        ):
            found.setdefault(f"view {name}", []).append(it)
        for name, differences in found.items():
            groups.setdefault(name, Counter()).update(
                it.group for it in differences
            )
            _write(listing, name, differences)
    click.echo(f"{runs} runs in {time.perf_counter() - started:.0f} s")
    for name, counts in groups.items():
        _table(name, counts)
    click.echo("where both say demand")
    for name, count in kinds.most_common():
        click.echo(f"{count:>8,}  other {name}")


def _table(name: str, counts: Mapping[str, int]) -> None:
    total = sum(counts.values())
    click.echo(
        f"{name}: {counts.get('alike', 0):,} of {total:,} alike", nl=False
    )
    click.echo(f" = {counts.get('alike', 0) / max(total, 1):.2%}")
    for group, count in sorted(counts.items(), key=lambda item: -item[1]):
        if group != "alike":
            click.echo(f"{count:>8,}  {group}")


def _write(
    listing: TextIO | None, name: str, differences: Sequence[Difference]
) -> None:
    for it in differences if listing else ():
        if it.group != "alike":
            lines = [
                found.lines[0] if found and found.lines else ""
                for found in (it.one, it.other)
            ]
            row = (
                name,
                it.group,
                it.run,
                str(it.call),
                repr(it.value),
                *map(repr, lines),
            )
            print("\t".join(row), file=listing)


if __name__ == "__main__":
    main()
