"""``ullage replay PATH…``: what would a policy have done to these recorded runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ullage.cli._judging import budget_option, floor_option, floors_of
from ullage.cli._options import json_option, print_json
from ullage.cli._page import command_of, write_page
from ullage.cli._prices import price_option, profiles_of
from ullage.cli._runs import Choice, damage_lines
from ullage.errors import FormatError
from ullage.presets import NAMES
from ullage.replay.budgets import label_of
from ullage.replay.compare.beside import cost_table, evidence_table
from ullage.replay.compare.charges import CHARGES_NOTES, charges_table
from ullage.replay.compare.cheapest import cheapest_of
from ullage.replay.compare.columns import WIDTH
from ullage.replay.compare.floors import Floor
from ullage.replay.compare.table import Row, kept_table, rows_of, sent_table
from ullage.replay.cost.prices import Profile
from ullage.replay.evidence.common import common_in
from ullage.replay.many import SESSIONS, Engine, Job, Kept, Try, replay_all
from ullage.replay.readers import Damage, FormatName, Run, size_of
from ullage.replay.report import Picture
from ullage.replay.report.album import Album, Drawn
from ullage.replay.run import Replayed
from ullage.wires import FORMATS

__all__ = [
    "Asked",
    "Found",
    "command",
    "json_of",
    "replay_asked",
    "show",
    "status_of",
    "totals_of",
    "write",
]

_REMEDY = "Give trajectories, provider requests or session logs, or a lower --least."


class Asked(Struct, frozen=True, kw_only=True):
    """The options of a replay, each under the name of its parameter."""

    paths: tuple[Path, ...]
    policies: tuple[str, ...]
    windows: tuple[int, ...]
    shares: tuple[float, ...]
    least: int
    most: int | None
    named: tuple[str, ...]
    limits: tuple[tuple[str, float], ...]
    wire: FormatName | None
    kept_at: Path | None
    jobs: int
    page: Path | None
    drawn: int
    each: bool
    as_json: bool

    @property
    def tries(self) -> tuple[Try, ...]:
        """Every policy in every room that was asked for."""
        rooms = (*self.windows, *self.shares) or (64_000,)
        return tuple(product(self.policies or ("default",), rooms))

    @property
    def options(self) -> dict[str, object]:
        """What has to be typed to see the same figures again."""
        return {
            "--policy": tuple(dict.fromkeys(policy for policy, _ in self.tries)),
            "--window": self.windows if self.windows or self.shares else (64_000,),
            "--budget": tuple(map(label_of, self.shares)),
            "--cache": self.named,
            "--format": self.wire,
            "--least": self.least,
            "--most": self.most,
            "--floor": tuple(f"{name}={limit:g}" for name, limit in self.limits),
        }


class Found(Struct, frozen=True, kw_only=True):
    """What came out.

    Attributes:
        rows: the sums, those over all runs last.
        replays: each replay with the name of its file.
        profiles: the price profiles; the first is that of the columns.
        floors: what a policy must keep before its cost is compared.
        pictures: the runs that a page draws.
        damage: what could not be read or replayed.
    """

    rows: list[Row]
    replays: list[tuple[str, Replayed]]
    profiles: tuple[Profile, ...]
    floors: tuple[Floor, ...]
    pictures: list[Picture]
    damage: list[Damage]


@click.command("replay")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--window", "windows", multiple=True, type=int, help="A window to try, in tokens.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(NAMES),
    metavar="NAME",
    help=f"A policy to try: {', '.join(NAMES)}. Default: ours.",
)
@budget_option
@click.option("--least", default=0, help="Leave out runs of fewer messages.")
@click.option("--most", type=int, help="Stop after so many runs of each path.")
@price_option
@floor_option
@click.option(
    "--format",
    "wire",
    type=click.Choice(list(FORMATS)),
    help="Replay each run on this wire. Default: its own.",
)
@click.option(
    "--resume",
    "kept_at",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep what is finished in this file, and do not do again what it holds.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default=True,
    help="Processes to use.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page to look at: every turn, every edit, what was visible when.",
)
@click.option(
    "--draw",
    "drawn",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    help="How many runs the page draws turn by turn: those with the largest requests.",
)
@click.option("--runs", "each", is_flag=True, help="A row for each run, not for each file.")
@json_option
def command(**given: Any) -> None:
    """Replay recorded runs call by call, without any model, and print what came out.

    PATHS are files or folders: session logs of agents, trajectories, provider requests with
    or without their replies; JSON or JSON Lines, compressed or not, told apart by content.

    The status is 1 if any gate was broken, or if there was no run; 3 if something was skipped
    and all else is well. In a folder, files of a kind unknown here are named, and no loss.
    """
    asked = Asked(**given)
    found = replay_asked(asked)
    if asked.page is not None:
        write(asked.page, found, command_of("ullage replay", asked.paths, asked.options))
    if asked.as_json:
        print_json(json_of(found))
    else:
        show(found)
    sys.exit(status_of(found))


def replay_asked(
    asked: Asked, *, engine: Engine = SESSIONS, is_wanted: Callable[[Run], bool] | None = None
) -> Found:
    """Replay what was asked for under a progress bar, and sum it up.

    Args:
        asked: the options.
        engine: how a run is replayed.
        is_wanted: which runs to take; None: all.

    Raises:
        ConfigError: a floor or a price profile is unknown.
        FormatError: there is no run in the paths.
    """
    choice = Choice(paths=asked.paths, least=asked.least, most=asked.most, is_wanted=is_wanted)
    profiles, floors = profiles_of(asked.named), floors_of(asked.limits)
    common = common_in(run for _, run, _ in choice.runs())
    draws = asked.page is not None
    job = Job(profiles, asked.wire, tuple(sorted(common)), draws=draws)
    album, damage = Album(asked.drawn), list[Damage]()
    found = _replayed(asked, choice, job, engine, album, damage)
    return Found(
        rows=rows_of(found, each=asked.each, floors=floors),
        replays=found,
        profiles=profiles,
        floors=floors,
        pictures=album.pictures(asked.tries) if draws else [],
        damage=damage,
    )


def _replayed(
    asked: Asked, choice: Choice, job: Job, engine: Engine, album: Album, damage: list[Damage]
) -> list[tuple[str, Replayed]]:
    """Each replay with the name of its file; what is drawn goes into the album."""
    console, found = Console(stderr=True), list[tuple[str, Replayed]]()
    with _progress(console) as progress, Kept(asked.kept_at, engine.outcome) as kept:
        task = progress.add_task("replaying", total=sum(map(size_of, choice.paths)), runs=0)
        runs = choice.runs(damage)
        for name, outcome, done in replay_all(runs, asked.tries, job, asked.jobs, kept, engine):
            if isinstance(outcome, Damage):
                damage.append(outcome)
            elif isinstance(outcome, Drawn):
                album.add(outcome)
                found.append((name, outcome.replayed))
            else:
                found.append((name, outcome))
            progress.update(task, completed=done, runs=len(found))
    for line in damage_lines(damage):
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    if not found:
        raise FormatError("the paths", "they hold no run to replay", _REMEDY)
    return found


def write(path: Path, found: Found, typed: str) -> None:
    """Write the page of a replay; ``typed`` is the command that prints its figures again.

    Raises:
        ConfigError: the file cannot be written.
    """
    write_page(path, found.rows, found.profiles, found.floors, found.pictures, typed)


def json_of(found: Found) -> dict[str, object]:
    """What came out, for ``--json``."""
    return {
        "profiles": found.profiles,
        "floors": found.floors,
        "rows": found.rows,
        "cheapest": cheapest_of(found.rows),
        "skipped": found.damage,
    }


def totals_of(found: Found) -> list[Row]:
    """The last row of each policy and room: that over all runs."""
    return list({(row.room, row.policy): row for row in found.rows}.values())


def show(found: Found) -> Console:
    """Print what was sent and kept, the policies beside each other, and what they cost."""
    console = Console(width=max(Console().width, WIDTH))  # a pipe counts as 80
    totals = totals_of(found)
    console.print(sent_table(found.rows, found.profiles[0].name))
    console.print(kept_table(found.rows))
    console.print(evidence_table(totals, found.floors))
    console.print(cost_table(totals))
    for row in totals:
        title = f"{row.name} · {row.policy} · {label_of(row.room)}: what it costs, raw and shown"
        console.print(charges_table(title, row.charges))
    console.print(CHARGES_NOTES, style="dim", highlight=False)
    return console


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[runs]} replays"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def status_of(found: Found) -> int:
    """The exit status: 1 if a gate was broken, 3 if something was skipped, else 0."""
    if any(row.broken for row in found.rows):
        return 1
    return 3 if any(each.grade == "skipped" for each in found.damage) else 0
