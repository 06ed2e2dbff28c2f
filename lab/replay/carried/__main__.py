"""``python -m lab.replay.carried PATH…``: what policies cost that have to carry everything."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import click
from msgspec.structs import replace
from rich.console import Console

from lab.replay.carried.carry import Carried, Carrier
from lab.replay.carried.policies import POLICIES
from lab.replay.carried.table import (
    NOTES,
    Figures,
    figures_of,
    paired_table,
    recall_of,
    table_of,
)
from lab.replay.split import SIDES, Side, is_on
from ullage.core.history.canon import canonical_json
from ullage.tools.cli.replay import runs_in
from ullage.tools.replay.readers import Damage, Run

_OWN = "own"
Row: TypeAlias = tuple[str, str, int, Figures]


def window_of(
    context: object, parameter: object, values: tuple[str, ...]
) -> tuple[int | None, ...]:
    try:
        return tuple(None if value == _OWN else int(value) for value in values)
    except ValueError:
        raise click.BadParameter(
            f"write tokens, or {_OWN} for that of a run's model."
        ) from None


@click.command("lab.replay.carried")
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--policy", "names", multiple=True, type=click.Choice(tuple(POLICIES))
)
@click.option(
    "--window", "windows", multiple=True, callback=window_of, default=(_OWN,)
)
@click.option(
    "--split",
    "side",
    type=click.Choice(SIDES),
    default="dev",
    show_default=True,
)
@click.option(
    "--least-tokens",
    default=60_000,
    show_default=True,
    help="Of the largest request.",
)
@click.option("--most-tokens", type=int, help="Of the largest request.")
@click.option("--sample", type=int, help="So many runs, drawn by lot.")
@click.option(
    "--uncut", is_flag=True, help="Only where a policy never cuts anything."
)
@click.option(
    "--oracle",
    "with_oracle",
    is_flag=True,
    help="What knowing all wants would come to.",
)
@click.option("--seed", default=0, show_default=True, help="Of the lot.")
def command(
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    windows: tuple[int | None, ...],
    side: Side,
    least_tokens: int,
    most_tokens: int | None,
    sample: int | None,
    seed: int,
    uncut: bool,
    with_oracle: bool,
) -> None:
    """Carry recorded runs under policies, and print what it costs beside keeping everything."""
    damage: list[Damage] = []
    wanted = partial(is_wanted, side, least_tokens, most_tokens)
    runs = [
        (file, run)
        for file, run, _ in runs_in(paths, damage, is_wanted=wanted)
    ]
    if sample is not None and sample < len(runs):
        runs = random.Random(seed).sample(runs, sample)
    found: dict[tuple[str, int | None, str], list[Carried]] = {}
    for file, run in runs:
        carrier = Carrier(run)
        for name in names or ("default",):
            for window in windows:
                carried = carrier.under(
                    POLICIES[name](), window, with_oracle=with_oracle
                )
                if uncut and carried.shown.cut:
                    continue
                found.setdefault((name, window, file), []).append(carried)
                if carried.known is not None:
                    known = replace(carried, shown=carried.known)
                    found.setdefault(
                        (f"{name} + oracle", window, file), []
                    ).append(known)
    console = Console(width=180)
    console.print(table_of(rows_of(found, figures_of)))
    console.print()
    console.print(table_of(rows_of(found, recall_of)))
    console.print(NOTES, style="dim", highlight=False)
    if len(dict.fromkeys(names)) > 1:
        console.print(paired_table(list(pairs_of(found))))


def is_wanted(side: Side, least: int, most: int | None, run: Run) -> bool:
    if not is_on(side, run):
        return False
    tokens = len(canonical_json(run.messages).encode("utf-8", "replace")) // 4
    return least <= tokens and (most is None or tokens <= most)


def pairs_of(
    found: dict[tuple[str, int | None, str], list[Carried]],
) -> Iterator[tuple[str, str, list[Carried], list[Carried]]]:
    """Every policy but the first in each window, over all files, and the first beside it."""
    over_all: dict[tuple[str, int | None], list[Carried]] = {}
    for (name, window, _), of in found.items():
        over_all.setdefault((name, window), []).extend(of)
    first = next(iter(over_all))[0]
    for (name, window), of in over_all.items():
        if name != first:
            label = _OWN if window is None else f"{window:,}"
            yield name, label, of, over_all[first, window]


def rows_of(
    found: dict[tuple[str, int | None, str], list[Carried]],
    figures: Callable[[Sequence[Carried]], Figures] = figures_of,
) -> Sequence[Row]:
    """A row for each file, and one for all where there are several."""
    rows = list[Row]()
    files = list(dict.fromkeys(file for _, _, file in found))
    for name, window in dict.fromkeys(
        (name, window) for name, window, _ in found
    ):
        label = _OWN if window is None else f"{window:,}"
        groups = [
            (file, found.get((name, window, file), [])) for file in files
        ]
        if len(groups) > 1:
            groups.append(("all", [each for _, of in groups for each in of]))
        rows += [
            (f"{name} · {file}", label, len(of), figures(of))
            for file, of in groups
        ]
    return rows


if __name__ == "__main__":
    command()
