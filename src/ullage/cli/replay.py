"""``ullage replay PATH…``: what would a policy have done to these recorded runs."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path

import click
from msgspec.structs import replace
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ullage.cli._options import json_option, print_json
from ullage.cli._page import write_page
from ullage.cli._prices import price_option, profiles_of
from ullage.errors import FormatError
from ullage.formats import FORMATS
from ullage.presets import NAMES
from ullage.replay.charges import charges_table
from ullage.replay.evidence.adversaries import ADVERSARIES
from ullage.replay.evidence.common import common_in
from ullage.replay.evidence.frame import FRAMES
from ullage.replay.framed import FRAME_NAMES
from ullage.replay.many import Job, Kept, Try, Wanted, replay_all
from ullage.replay.readers import Damage, FormatName, Run, read, size_of
from ullage.replay.report.album import Album, Drawn
from ullage.replay.run import Replayed
from ullage.replay.table import Row, rows_of, table_of

__all__ = ["command"]

_REMEDY = "Give trajectories, provider requests or session logs, or a lower --least."
_LEAST_WIDTH = 230


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
@click.option("--least", default=0, help="Leave out runs of fewer messages.")
@click.option("--most", type=int, help="Stop after so many runs of each path.")
@price_option
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
    least: int,
    most: int | None,
    named: tuple[str, ...],
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
    console = Console(stderr=True)
    damage: list[Damage] = []
    common = common_in(run for _, run, _ in _wanted(paths, least, most, []))
    job = Job(profiles_of(named), wire, tuple(sorted(common)), draws=page is not None)
    album = Album(drawn)
    tries = tuple(product(policies or ("default",), windows or (64_000,)))
    wanted = _wanted(paths, least, most, damage)
    found: list[tuple[str, Replayed]] = []
    with _progress(console) as progress, Kept(kept_at) as kept:
        task = progress.add_task("replaying", total=sum(map(size_of, paths)), runs=0)
        for name, outcome, done in replay_all(wanted, tries, job, jobs, kept):
            if isinstance(outcome, Damage):
                damage.append(outcome)
            elif isinstance(outcome, Drawn):
                album.add(outcome)
                found.append((name, outcome.replayed))
            else:
                found.append((name, outcome))
            progress.update(task, completed=done, runs=len(found))
    for line in _told(damage):
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    if not found:
        raise FormatError("the paths", "they hold no run to replay", _REMEDY)
    rows = rows_of(found, each=each)
    if page is not None:
        asked = _asked(paths, tries, named, wire, least, most)
        write_page(page, rows, job.profiles, album.pictures(tries), asked)
    if as_json:
        print_json({"profiles": job.profiles, "rows": rows, "skipped": damage})
    else:
        _print(rows, job.profiles[0].name)
    sys.exit(_status(rows, damage))


def _asked(
    paths: tuple[Path, ...],
    tries: tuple[Try, ...],
    named: tuple[str, ...],
    wire: FormatName | None,
    least: int,
    most: int | None,
) -> str:
    """The command that prints the same figures again."""
    words = ["ullage", "replay", *map(str, paths)]
    for option, values in (
        ("--policy", dict.fromkeys(policy for policy, _ in tries)),
        ("--window", dict.fromkeys(window for _, window in tries)),
        ("--cache", named),
        ("--format", [wire] if wire else []),
        ("--least", [least] if least else []),
        ("--most", [most] if most is not None else []),
    ):
        for value in values:
            words += [option, str(value)]
    return shlex.join(words)


def _print(rows: list[Row], profile: str) -> None:
    """The table of views, and for each last row of its window and policy one of prices."""
    console = Console(width=max(Console().width, _LEAST_WIDTH))  # a pipe counts as 80
    console.print(table_of(rows, profile))
    totals = {(row.window_tokens, row.policy): row for row in rows}
    for (window, policy), row in totals.items():
        title = f"{row.name} · {policy} · {window // 1000}k: what it costs, raw and shown"
        console.print(charges_table(title, row.charges))


def _wanted(paths: tuple[Path, ...], least: int, most: int | None, damage: list[Damage]) -> Wanted:
    """Each run with the name of its file and how many bytes have been read by then."""
    before = 0
    for path in paths:
        read_so_far = [0]
        files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
        for file in files:
            start = read_so_far[0]
            runs = _quietly(file, file == path, damage, partial(_note, read_so_far, start))
            count = 0
            for run in runs:
                if len(run.messages) >= least and (most is None or count < most):
                    count += 1
                    yield file.name, run, before + read_so_far[0]
        before += size_of(path)


def _quietly(
    file: Path, is_named: bool, damage: list[Damage], progress: Callable[[int], None]
) -> Iterator[Run]:
    """The runs of a file; what is wrong with it is damage, not the end."""

    def note(found: Damage) -> None:
        foreign = found.grade == "foreign" and is_named
        damage.append(replace(found, grade="skipped") if foreign else found)

    with suppress(FormatError):  # no run in it: every such file has told why
        yield from read(file, on_damage=note, progress=progress)


def _note(read_so_far: list[int], start: int, here: int) -> None:
    read_so_far[0] = start + here


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


def _told(damage: list[Damage]) -> Iterator[str]:
    """A line for each loss, and one for all places of a file that were mended alike."""
    mended = Counter((d.file, d.problem) for d in damage if d.grade == "mended")
    for found in damage:
        place = f"{found.file} line {found.line}" if found.line else found.file
        if found.grade != "mended":
            yield f"skipped {place}: {found.problem}"
        elif count := mended.pop((found.file, found.problem), 0):
            more = f" and {count - 1:,} more" if count > 1 else ""
            yield f"read all the same {place}{more}: {found.problem}"


def _status(rows: list[Row], damage: list[Damage]) -> int:
    if any(row.broken for row in rows):
        return 1
    return 3 if any(found.grade == "skipped" for found in damage) else 0
