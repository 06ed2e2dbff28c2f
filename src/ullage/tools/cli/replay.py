"""``ullage replay PATH…``: what would a policy have done to these recorded runs."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ullage.core.errors import ConfigError, FormatError
from ullage.documents import NAMES
from ullage.doors.host import named_tools
from ullage.stores import is_url
from ullage.tools.cli._options import (
    TokenCount,
    count_option,
    harmless,
    json_option,
    print_json,
    user_tools_option,
)
from ullage.tools.cli._page import FILE, page_options, profiles_of, save, typed
from ullage.tools.replay.calls import MOST_SHARE, OWN_WINDOW, Room
from ullage.tools.replay.cost.prices import Profile
from ullage.tools.replay.cost.prices import Wanted as WantedProfile
from ullage.tools.replay.engines import NAMES as ENGINES
from ullage.tools.replay.engines import open_engine
from ullage.tools.replay.evidence.common import common_in
from ullage.tools.replay.many import (
    SESSIONS,
    Job,
    Outcomes,
    Replayer,
    ResultFile,
    Try,
    Wanted,
    replay_all,
)
from ullage.tools.replay.parquet import write_parquet
from ullage.tools.replay.readers import Damage, Run, logs_under, runs_of, size_of
from ullage.tools.replay.report import Album, DrawnReplay, Picture
from ullage.tools.replay.report.pages import page_of_replays
from ullage.tools.replay.report.plot import plot_of
from ullage.tools.replay.report.words import in_words
from ullage.tools.replay.rows import ReplaySummary, row_of, rows_of
from ullage.tools.replay.run import Replayed
from ullage.tools.replay.tables import WIDTH, tables_of

R = TypeVar("R", bound=ReplaySummary)
T = TypeVar("T")
_REMEDY = "Give trajectories, provider requests or session logs, or a lower --least."


class ReplayOptions(Struct, frozen=True, kw_only=True):
    """The options of a replay, each under the name of its parameter."""

    paths: tuple[Path | str, ...]
    policies: tuple[str, ...]
    windows: tuple[int | Literal["own"], ...]
    shares: tuple[float, ...]
    least: int
    most: int | None
    named: tuple[str, ...]
    user_tools: tuple[str, ...] = ()
    kept_at: Path | None
    engine: str
    jobs: int | None
    out: Path | None
    page: Path | None
    share: bool = False
    plot: Path | None = None
    drawn: int
    each: bool
    as_json: bool

    @property
    def tries(self) -> tuple[Try, ...]:
        """Every policy in every room that was asked for."""
        rooms: tuple[Room, ...] = (*self.windows, *self.shares) or (OWN_WINDOW,)
        return tuple(product(self.policies or ("default",), rooms))


class ReplayOutcome(Struct, frozen=True, kw_only=True):
    """What came out: sums, those over all runs last, and each replay with the name of its file.

    The first profile is that of the columns; ``pictures`` are the runs that a page draws.
    """

    rows: Sequence[ReplaySummary]
    replays: list[tuple[str, Replayed]]
    profiles: tuple[WantedProfile, ...]
    pictures: list[Picture]
    damage: list[Damage]


class LogPath(click.Path):
    """A file or a folder that is there, as a path; or an address of objects, as it was typed."""

    def __init__(self) -> None:
        super().__init__(exists=True, path_type=Path)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """See `click.Path`."""
        return value if is_url(value) else super().convert(value, param, ctx)


def _window(value: str) -> int | Literal["own"]:
    """A window as it is typed: a number of tokens, or ``own``."""
    return (
        OWN_WINDOW if value == OWN_WINDOW else TokenCount().convert(value, None, None)
    )


def _share(value: str) -> float:
    try:
        share = (
            float(value.removesuffix("%")) / 100
            if value.endswith("%")
            else float(value)
        )
    except ValueError:
        raise click.BadParameter(f"{value!r} is no share: write 20% or 0.2.") from None
    if not 0 < share < MOST_SHARE:
        why = f"0% and less than {MOST_SHARE:.0%}, or runs would fit as they are"
        raise click.BadParameter(f"{value!r} must be more than {why}.")
    return share


@click.command("replay", short_help="Try a policy on recorded runs: no model.")
@click.argument("paths", nargs=-1, required=True, type=LogPath())
@click.option(
    "--window",
    "windows",
    multiple=True,
    metavar="TOKENS",
    callback=lambda _context, _option, values: tuple(map(_window, values)),
    help="A window to try: 64000, 64k, or own (the default), that of each run's model.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(NAMES),
    metavar="NAME",
    help=f"A policy to try: {', '.join(NAMES)}. Default: ours.",
)
@click.option(
    "--budget",
    "shares",
    multiple=True,
    metavar="SHARE",
    callback=lambda _context, _option, values: tuple(map(_share, values)),
    help="A budget to try, as a share of each run's largest request: 20%.",
)
@click.option(
    "--least",
    default=0,
    type=click.IntRange(0),
    help="Leave out runs of fewer messages.",
)
@click.option(
    "--most", type=click.IntRange(1), help="Stop after so many runs of each path."
)
@click.option(
    "--resume", "kept_at", type=FILE, help="Keep here what is done; do no run twice."
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=ENGINES[0],
    show_default=True,
    help="Where to work: in processes here, or on the Ray cluster of RAY_ADDRESS.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="How many replays at once. Default: one for each core.",
)
@click.option("--out", type=FILE, help="Write a row for each replay, as Parquet.")
@user_tools_option
@page_options
@count_option(
    "--draw",
    "drawn",
    least=0,
    default=8,
    help="How many runs the page draws turn by turn: those with the largest requests.",
)
@click.option(
    "--runs", "each", is_flag=True, help="A row for each run, not for each file."
)
@json_option
def command(**given: Any) -> None:
    """Replay recorded runs call by call, without any model, and print what came out.

    PATHS are files or folders, here or in an object store (s3://bucket/folder): session logs of
    agents, trajectories, provider requests with or without their replies; JSON or JSON Lines,
    compressed or not, recognised by content.

    The status is 1 if any gate was broken, or if there was no run; 3 if something was skipped,
    or no view of a call could be made to fit, and all else is well. In a folder, files of a kind
    unknown here are named, and no loss.
    """
    asked = ReplayOptions(**given)
    found = replay_asked(asked)
    if asked.page is not None:
        save(asked.page, page_of_replays(found, command=typed(), share=asked.share))
    if asked.plot is not None:
        plot(asked.plot, found)
    if asked.as_json:
        print_json(json_of(found))
    else:
        show(found, is_short=not asked.named)
    sys.exit(status_of(found))


def replay_asked(
    asked: ReplayOptions,
    *,
    replayer: Replayer = SESSIONS,
    is_wanted: Callable[[Run], bool] | None = None,
) -> ReplayOutcome:
    """Replay what was asked for, or of it the runs that are wanted, under a progress bar.

    Raises:
        ConfigError: a price profile is unknown.
        FormatError: there is no run in the paths.
    """
    runs = partial(
        runs_in, asked.paths, least=asked.least, most=asked.most, is_wanted=is_wanted
    )
    profiles = profiles_of(asked.named)
    draws = asked.page is not None or asked.plot is not None
    album, damage = Album(asked.drawn), list[Damage]()
    with open_engine(asked.engine, asked.jobs) as engine:
        read = (run for _, run in _under_bar("reading", "runs", asked, runs([])))
        common = common_in(read, engine)
        user_tools = named_tools(asked.user_tools)
        job = Job(profiles, tuple(sorted(common)), draws=draws, user_tools=user_tools)
        finished = ResultFile(asked.kept_at, replayer.outcome)
        done = replay_all(runs(damage), asked.tries, job, engine, finished, replayer)
        found = _replayed(asked, done, album, damage)
    if asked.out is not None:
        write_parquet(asked.out, found, replayer.outcome)
    return ReplayOutcome(
        rows=rows_of(found, row_of, each=asked.each),
        replays=found,
        profiles=profiles,
        pictures=album.pictures(asked.tries) if draws else [],
        damage=damage,
    )


def _replayed(
    asked: ReplayOptions, outcomes: Outcomes, album: Album, damage: list[Damage]
) -> list[tuple[str, Replayed]]:
    """Each replay with the name of its file; what is drawn goes into the album."""
    found = list[tuple[str, Replayed]]()
    for name, outcome in _under_bar("replaying", "replays", asked, outcomes):
        if isinstance(outcome, Damage):
            damage.append(outcome)
        elif isinstance(outcome, DrawnReplay):
            album.add(outcome)
            found.append((name, outcome.replayed))
        else:
            found.append((name, outcome))
    console = Console(stderr=True)
    for line in damage_lines(damage):
        console.print(harmless(line), style="yellow", markup=False, soft_wrap=True)
    if not found:
        raise FormatError("the paths", "they hold no run to replay", _REMEDY)
    return found


def _under_bar(
    doing: str, things: str, asked: ReplayOptions, found: Iterable[tuple[str, T, int]]
) -> Iterator[tuple[str, T]]:
    """What is found in the paths, each with the name of its file, under a progress bar."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        total = sum(map(size_of, asked.paths))
        task = progress.add_task(doing, total=total, count=f"0 {things}")
        for count, (name, each, read_bytes) in enumerate(found, 1):
            progress.update(task, completed=read_bytes, count=f"{count} {things}")
            yield name, each


def plot(path: Path, found: ReplayOutcome) -> None:
    """Write the picture of the largest run, under the first policy in the first room.

    Raises:
        ConfigError: it cannot be written, or no run was replayed now.
    """
    if not found.pictures:
        why = "every run was taken over from the file of --resume, without its turns"
        raise ConfigError("--plot", why, "Leave --resume out.")
    save(path, plot_of(found.pictures[0].first), "--plot")


def json_of(found: ReplayOutcome) -> dict[str, object]:
    """What came out, for ``--json``."""
    return {
        "profiles": [each for each in found.profiles if isinstance(each, Profile)],
        "rows": found.rows,
        "skipped": found.damage,
    }


def totals_of(rows: Iterable[R]) -> list[R]:
    """The last row of each policy and room: that over all runs."""
    return list({(row.room, row.policy): row for row in rows}.values())


def show(found: ReplayOutcome, *, is_short: bool = False) -> Console:
    """Print what came of it in words, then in tables; if short, at no prices but the first ones."""
    console = Console()
    if not (console.is_terminal or "COLUMNS" in os.environ):
        console = Console(width=WIDTH)  # a pipe has no width
    totals = totals_of(found.rows)
    for row in totals:
        console.print(in_words(row), highlight=False, markup=False)
    for table in tables_of(found.rows, totals, is_short=is_short):
        console.print(table)
    return console


def status_of(found: ReplayOutcome) -> int:
    """The exit status: 1 if a gate was broken, 3 if something was skipped or unfit, else 0."""
    if any(row.broken for row in found.rows):
        return 1
    is_skipped = any(each.grade == "skipped" for each in found.damage)
    return 3 if is_skipped or any(row.over_limit for row in found.rows) else 0


def runs_in(
    paths: Sequence[Path | str],
    damage: list[Damage],
    *,
    least: int = 0,
    most: int | None = None,
    is_wanted: Callable[[Run], bool] | None = None,
) -> Wanted:
    """Each run with the name of its file and how many bytes have been read by then.

    What is wrong with the files is added to ``damage``. Runs of fewer than ``least`` messages are
    left out, and of each file what comes after the first ``most``.
    """
    before = 0
    for path in paths:
        files = logs_under(path)
        is_named = [file.name for file in files] == [Path(path).name]
        note = partial(_note, damage, is_named=is_named)
        for file in files:
            count = 0
            for run, read_bytes in runs_of(file, note):
                is_long = len(run.messages) >= least
                if is_long and (is_wanted is None or is_wanted(run)) and count != most:
                    count += 1
                    yield file.name, run, before + read_bytes
            before += file.size_bytes


def _note(damage: list[Damage], found: Damage, *, is_named: bool) -> None:
    """Add what is wrong with a file; of one that was named nothing is foreign."""
    is_foreign = found.grade == "foreign" and is_named
    damage.append(replace(found, grade="skipped") if is_foreign else found)


def damage_lines(damage: list[Damage]) -> Iterator[str]:
    """A line for each loss, and one for all places of a file that were repaired alike."""
    repaired = Counter((d.file, d.problem) for d in damage if d.grade == "repaired")
    for found in damage:
        place = f"{found.file} line {found.line}" if found.line else found.file
        if found.grade != "repaired":
            yield f"skipped {place}: {found.problem}"
        elif count := repaired.pop((found.file, found.problem), 0):
            more = f" and {count - 1:,} more" if count > 1 else ""
            yield f"read all the same {place}{more}: {found.problem}"
