"""``ullage replay PATH…``: what would a policy have done to these recorded runs."""

from __future__ import annotations

import os
import sys
from itertools import product
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ullage.cli._judging import budget_option, floor_option, floors_of
from ullage.cli._options import json_option, print_json
from ullage.cli._page import command_of, write_page
from ullage.cli._prices import price_option, profiles_of
from ullage.cli._runs import Choice, told
from ullage.errors import FormatError
from ullage.presets import NAMES
from ullage.replay.budgets import label_of
from ullage.replay.compare.charges import CHARGES_TOLD, charges_table
from ullage.replay.compare.cheapest import cheapest_of
from ullage.replay.compare.columns import WIDTH
from ullage.replay.compare.comparison import Comparison, compared
from ullage.replay.compare.floors import Floor
from ullage.replay.compare.service import SERVICE_TOLD, service_table
from ullage.replay.compare.standings import cost_table, curves_table, evidence_table
from ullage.replay.compare.table import Row, kept_table, rows_of, sent_table
from ullage.replay.evidence.adversaries import ADVERSARIES
from ullage.replay.evidence.common import common_in
from ullage.replay.evidence.frame import FRAMES
from ullage.replay.framed import FRAME_NAMES
from ullage.replay.many import Job, Kept, Try, replay_all
from ullage.replay.readers import Damage, FormatName, size_of
from ullage.replay.report.album import Album, Drawn
from ullage.replay.run import Replayed
from ullage.replay.split import SIDES, Side
from ullage.wires import FORMATS

__all__ = ["command"]

_REMEDY = "Give trajectories, provider requests or session logs, or a lower --least."


@click.command("replay")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--window", "windows", multiple=True, type=int, help="A window to try, in tokens.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice((*NAMES, *FRAME_NAMES)),
    metavar="NAME",
    help=f"A policy to try: {', '.join(NAMES)}. Default: ours. To compare with, the frame: "
    f"{', '.join(FRAMES)}; and what must lose: {', '.join(ADVERSARIES)}.",
)
@budget_option
@click.option("--least", default=0, help="Leave out runs of fewer messages.")
@click.option("--most", type=int, help="Stop after so many runs of each path.")
@click.option(
    "--split",
    "side",
    type=click.Choice(SIDES),
    default="all",
    show_default=True,
    help="Only the runs whose task falls on this side: by a hash of it, half of all tasks each.",
)
@price_option
@floor_option
@click.option("--serve", "serves", is_flag=True, help="Replay at full service too: pay for misses.")
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
def command(
    paths: tuple[Path, ...],
    windows: tuple[int, ...],
    policies: tuple[str, ...],
    shares: tuple[float, ...],
    least: int,
    most: int | None,
    side: Side,
    named: tuple[str, ...],
    limits: tuple[tuple[str, float], ...],
    serves: bool,
    wire: FormatName | None,
    kept_at: Path | None,
    jobs: int,
    page: Path | None,
    drawn: int,
    each: bool,
    as_json: bool,
) -> None:
    """Replay recorded runs call by call, without any model, and print what came out.

    PATHS are files or folders: session logs of agents, trajectories, provider requests with
    or without their replies; JSON or JSON Lines, compressed or not, told apart by content.

    The status is 1 if any gate was broken, or if there was no run; 3 if something was skipped
    and all else is well. In a folder, files of a kind unknown here are named, and no loss.
    """
    choice = Choice(paths=paths, least=least, most=most, side=side)
    profiles, floors = profiles_of(named), floors_of(limits)
    common = common_in(run for _, run, _ in choice.runs())
    job = Job(profiles, wire, tuple(sorted(common)), draws=page is not None, serves=serves)
    rooms = (*windows, *shares) or (64_000,)
    tries = tuple(product(policies or ("default",), rooms))
    album, damage = Album(drawn), list[Damage]()
    found = _replayed(choice, tries, job, jobs, kept_at, album, damage)
    rows = rows_of(found, each=each, floors=floors)
    comparison = compared(found, rows, tries[0][0])
    if page is not None:
        asked = _asked(choice, tries, named, wire, limits, serves)
        write_page(page, rows, profiles, floors, album.pictures(tries), asked)
    if as_json:
        told_all = {"profiles": profiles, "floors": floors, "rows": rows}
        beside = {"cheapest": cheapest_of(rows), "compared": comparison, "skipped": damage}
        print_json(told_all | beside)
    else:
        _print(rows, comparison, floors, profiles[0].name)
    sys.exit(_status(rows, damage))


def _replayed(
    choice: Choice,
    tries: tuple[Try, ...],
    job: Job,
    jobs: int,
    kept_at: Path | None,
    album: Album,
    damage: list[Damage],
) -> list[tuple[str, Replayed]]:
    """Replay everything under a progress bar; what is drawn goes into the album."""
    console, found = Console(stderr=True), list[tuple[str, Replayed]]()
    with _progress(console) as progress, Kept(kept_at) as kept:
        size = sum(map(size_of, choice.paths))
        task = progress.add_task("replaying", total=size, runs=0)
        for name, outcome, done in replay_all(choice.runs(damage), tries, job, jobs, kept):
            if isinstance(outcome, Damage):
                damage.append(outcome)
            elif isinstance(outcome, Drawn):
                album.add(outcome)
                found.append((name, outcome.replayed))
            else:
                found.append((name, outcome))
            progress.update(task, completed=done, runs=len(found))
    for line in told(damage):
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    if not found:
        raise FormatError("the paths", "they hold no run to replay", _REMEDY)
    return found


def _asked(
    choice: Choice,
    tries: tuple[Try, ...],
    named: tuple[str, ...],
    wire: FormatName | None,
    limits: tuple[tuple[str, float], ...],
    serves: bool,
) -> str:
    """The command that prints the same figures again."""
    rooms = tuple(dict.fromkeys(room for _, room in tries))
    options = {
        "--policy": tuple(dict.fromkeys(policy for policy, _ in tries)),
        "--window": tuple(room for room in rooms if isinstance(room, int)),
        "--budget": tuple(label_of(room) for room in rooms if isinstance(room, float)),
        "--cache": named,
        "--format": wire,
        "--least": choice.least,
        "--most": choice.most,
        "--split": choice.side if choice.side != "all" else None,
        "--floor": tuple(f"{name}={limit:g}" for name, limit in limits),
        "--serve": serves,
    }
    return command_of("replay", choice.paths, options)


def _print(
    rows: list[Row], comparison: Comparison, floors: tuple[Floor, ...], profile: str
) -> None:
    """What was sent and kept; the policies beside each other; prices for each of the last rows."""
    console = Console(width=max(Console().width, WIDTH))  # a pipe counts as 80
    console.print(sent_table(rows, profile))
    console.print(kept_table(rows))
    totals = list({(row.room, row.policy): row for row in rows}.values())
    console.print(evidence_table(totals, floors))
    console.print(cost_table(totals, comparison))
    if comparison.curves:
        console.print(curves_table(comparison.curves))
    for row in totals:
        title = f"{row.name} · {row.policy} · {label_of(row.room)}: what it costs"
        console.print(charges_table(f"{title}, raw and shown", row.charges))
        if row.service is not None:
            console.print(service_table(f"{title} at full service", row.service))
    console.print(CHARGES_TOLD, style="dim", highlight=False)
    if any(row.service for row in totals):
        console.print(SERVICE_TOLD, style="dim", highlight=False)


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


def _status(rows: list[Row], damage: list[Damage]) -> int:
    if any(row.broken for row in rows):
        return 1
    return 3 if any(found.grade == "skipped" for found in damage) else 0
