"""``ullage replay PATH…``: what would a policy have done to these recorded runs."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from itertools import product
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ullage.cli._options import json_option, print_json
from ullage.errors import FormatError
from ullage.presets import NAMES
from ullage.replay.cache import PROFILES
from ullage.replay.readers import Damage, Run, read, size_of
from ullage.replay.run import Replayed, replay_run
from ullage.replay.table import Row, rows_of, table_of

__all__ = ["command"]

_REMEDY = "Give trajectories, provider requests or session logs, or a lower --least."
_LEAST_WIDTH = 180


@click.command("replay")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--window", "windows", multiple=True, type=int, help="A window to try, in tokens.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(NAMES),
    help="A policy to try. Default: ours.",
)
@click.option("--least", default=0, help="Leave out runs of fewer messages.")
@click.option("--most", type=int, help="Stop after so many runs of each path.")
@click.option(
    "--cache",
    "profile",
    default="anthropic-5m",
    show_default=True,
    type=click.Choice(list(PROFILES)),
    help="Whose prompt cache to simulate.",
)
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="Processes to use.")
@click.option("--runs", "each", is_flag=True, help="A row for each run, not for each file.")
@json_option
def command(
    paths: tuple[Path, ...],
    windows: tuple[int, ...],
    policies: tuple[str, ...],
    least: int,
    most: int | None,
    profile: str,
    jobs: int,
    each: bool,
    as_json: bool,
) -> None:
    """Replay recorded runs call by call, without any model, and print what came out.

    PATHS are files or folders: trajectories, provider requests, Claude Code session logs;
    JSON or JSON Lines, compressed or not. The status is 1 if any gate was broken, or if
    there was no run.
    """
    console = Console(stderr=True)
    damage: list[Damage] = []
    tries = tuple(product(policies or ("default",), windows or (64_000,)))
    wanted = _wanted(paths, least, most, damage)
    found: list[tuple[str, Replayed]] = []
    with _progress(console) as progress:
        task = progress.add_task("replaying", total=sum(map(size_of, paths)), runs=0)
        for name, replayed, done in _replay(wanted, tries, profile, jobs):
            found.append((name, replayed))
            progress.update(task, completed=done, runs=len(found))
    for broken in damage:
        console.print(f"skipped {broken.file} line {broken.line}: {broken.problem}", style="yellow")
    if not found:
        raise FormatError("the paths", "they hold no run to replay", _REMEDY)
    rows = rows_of(found, each=each)
    if as_json:
        print_json({"cache": profile, "rows": rows, "skipped": damage})
    else:
        width = max(Console().width, _LEAST_WIDTH)  # a pipe counts as 80: too narrow to read
        Console(width=width).print(table_of(rows, profile))
    sys.exit(1 if _is_broken(rows) else 0)


Wanted = Iterator[tuple[str, Run, int]]


def _wanted(paths: tuple[Path, ...], least: int, most: int | None, damage: list[Damage]) -> Wanted:
    """Each run with the name of its file and how many bytes have been read by then."""
    before = 0
    for path in paths:
        read_so_far = [0]
        files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
        for file in files:
            start = read_so_far[0]
            runs = _quietly(file, damage, partial(_note, read_so_far, start))
            count = 0
            for run in runs:
                if len(run.messages) >= least and (most is None or count < most):
                    count += 1
                    yield file.name, run, before + read_so_far[0]
        before += size_of(path)


def _quietly(file: Path, damage: list[Damage], progress: Callable[[int], None]) -> Iterator[Run]:
    """The runs of a file; a file without any is one damage, not the end."""
    try:
        yield from read(file, on_damage=damage.append, progress=progress)
    except FormatError as error:
        damage.append(Damage(file.name, 0, error.rule))


def _note(read_so_far: list[int], start: int, here: int) -> None:
    read_so_far[0] = start + here


def _replay(
    wanted: Wanted, tries: tuple[tuple[str, int], ...], profile: str, jobs: int
) -> Iterator[tuple[str, Replayed, int]]:
    """Replay in several processes, with few runs in memory at a time."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=max(jobs, 1), mp_context=context) as pool:
        running: dict[Future[Replayed], tuple[str, int]] = {}
        for name, run, done in wanted:
            for policy, window in tries:
                future = pool.submit(
                    replay_run, run, window, profile=PROFILES[profile], policy=policy
                )
                running[future] = (name, done)
            while len(running) > 4 * jobs:
                yield from _finished(running)
        while running:
            yield from _finished(running)


def _finished(
    running: dict[Future[Replayed], tuple[str, int]],
) -> Iterator[tuple[str, Replayed, int]]:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        name, read_so_far = running.pop(future)
        yield name, future.result(), read_so_far


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


def _is_broken(rows: list[Row]) -> bool:
    return any(row.broken for row in rows)
