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

from ullage import __version__
from ullage.core.errors import ConfigError, FormatError
from ullage.documents import NAMES
from ullage.doors.host import named_tools
from ullage.stores import is_url
from ullage.tools.cli._bar import WorkBar
from ullage.tools.cli._choices import NamedChoice
from ullage.tools.cli._options import (
    TokenCount,
    count_option,
    harmless,
    json_option,
    print_json,
    user_tools_option,
)
from ullage.tools.cli._page import (
    FILE,
    page_options,
    profiles_of,
    save,
    save_pages,
    typed,
)
from ullage.tools.replay.calls import MOST_SHARE, OWN_WINDOW, Room
from ullage.tools.replay.cost.prices import Profile
from ullage.tools.replay.cost.prices import ProfileChoice as WantedProfile
from ullage.tools.replay.engines import NAMES as ENGINES
from ullage.tools.replay.engines import open_engine
from ullage.tools.replay.evidence.common import common_in
from ullage.tools.replay.gates import tokeniser
from ullage.tools.replay.many import (
    SESSIONS,
    Job,
    Outcome,
    Replayer,
    ResultFile,
    RunSource,
    Try,
    replay_all,
)
from ullage.tools.replay.parquet import write_parquet
from ullage.tools.replay.policies import policy_named
from ullage.tools.replay.readers import (
    Damage,
    Run,
    logs_under,
    runs_of,
    size_of,
)
from ullage.tools.replay.report import Album, DrawnReplay, Picture
from ullage.tools.replay.report.pages import page_of_replays, pages_of_replays
from ullage.tools.replay.report.plot import plot_of
from ullage.tools.replay.report.words import in_words
from ullage.tools.replay.rows import ReplaySummary, row_of, rows_of
from ullage.tools.replay.run import Replayed
from ullage.tools.replay.tables import WIDTH, tables_of

R = TypeVar("R", bound=ReplaySummary)
_JSON_FORMAT = 1
"""The number of what ``--json`` prints: another where a field is gone or means another thing."""
_REMEDY = (
    "Give trajectories, provider requests or session logs, or a lower --least."
)


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
    folder: Path | None = None
    share: bool = False
    plot: Path | None = None
    drawn: int
    by_run: bool
    as_json: bool

    @property
    def draws(self) -> bool:
        """Whether runs are drawn turn by turn."""
        targets = (self.page, self.folder, self.plot)
        return any(target is not None for target in targets)

    @property
    def tries(self) -> tuple[Try, ...]:
        """Every policy in every room that was asked for."""
        rooms: tuple[Room, ...] = (*self.windows, *self.shares) or (
            OWN_WINDOW,
        )
        return tuple(product(self.policies or ("default",), rooms))


class ReplayOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a replay: sums, those over all runs last, and each run with its file's name.

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
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """See `click.Path`."""
        return value if is_url(value) else super().convert(value, param, ctx)


def _window(value: str) -> int | Literal["own"]:
    """A window as it is typed: a number of tokens, or ``own``."""
    return (
        OWN_WINDOW
        if value == OWN_WINDOW
        else TokenCount().convert(value, None, None)
    )


def _policy(value: str) -> str:
    """A policy as it is typed; it is looked up here, so that a mistake is told at once."""
    policy_named(value)
    return value


def _share(value: str) -> float:
    try:
        share = (
            float(value.removesuffix("%")) / 100
            if value.endswith("%")
            else float(value)
        )
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no share: write 20% or 0.2."
        ) from None
    if not 0 < share < MOST_SHARE:
        bounds = (
            f"0% and less than {MOST_SHARE:.0%}, or runs would fit as they are"
        )
        raise click.BadParameter(f"{value!r} must be more than {bounds}.")
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
    metavar="NAME",
    callback=lambda _context, _option, values: tuple(map(_policy, values)),
    help=f"A policy to try: {', '.join(NAMES)}, or module:name of your own. Default: default.",
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
    "--most",
    type=click.IntRange(1),
    help="Stop after so many runs of each path.",
)
@click.option(
    "--resume",
    "kept_at",
    type=FILE,
    help="Keep here what is done; do no run twice.",
)
@click.option(
    "--engine",
    type=NamedChoice(ENGINES),
    default=ENGINES[0],
    show_default=True,
    help="Where to work: in processes here, or on the Ray cluster of RAY_ADDRESS.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="How many replays at once. Default: one for each core.",
)
@click.option(
    "--out", type=FILE, help="Write a row for each replay, as Parquet."
)
@user_tools_option
@page_options
@click.option(
    "--pages",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write a page of the sums to look at, and a page for each run drawn.",
)
@count_option(
    "--draw",
    "drawn",
    least=0,
    default=8,
    help="How many runs the page draws turn by turn: those with the largest requests.",
)
@click.option(
    "--runs",
    "by_run",
    is_flag=True,
    help="A row for each run, not for each file.",
)
@json_option
def command(**fields: Any) -> None:
    """Replay recorded runs call by call, without any model, and print what came out.

    PATHS are files or folders, here or in an object store (s3://bucket/folder): session logs of
    agents, trajectories, provider requests with or without their replies; JSON or JSON Lines,
    compressed or not, recognised by content.

    The status is 1 if any gate was broken, or if there was no run; 3 if something was skipped,
    or no view of a call could be made to fit, and all else is well. In a folder, files of a kind
    unknown here are named, and no loss.
    """
    options = ReplayOptions(**fields)
    outcome = run_replay(options)
    if options.page is not None:
        save(
            options.page,
            page_of_replays(outcome, command=typed(), share=options.share),
        )
    if options.folder is not None:
        pages = pages_of_replays(outcome, command=typed(), share=options.share)
        save_pages(options.folder, pages)
    if options.plot is not None:
        plot(options.plot, outcome)
    if options.as_json:
        print_json(json_of(outcome))
    else:
        show(outcome, is_short=not options.named)
    sys.exit(status_of(outcome))


def run_replay(
    options: ReplayOptions,
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
        runs_in,
        options.paths,
        least=options.least,
        most=options.most,
        is_wanted=is_wanted,
    )
    profiles = profiles_of(options.named)
    draws = options.draws
    album, damage = Album(options.drawn), list[Damage]()
    bar = WorkBar[Run, Outcome](
        sum(map(size_of, options.paths)), len(options.tries)
    )
    with open_engine(options.engine, options.jobs) as engine, bar:
        common = common_in(bar.reading(runs([])), engine)
        user_tools = named_tools(options.user_tools)
        job = Job(
            profiles, tuple(sorted(common)), draws=draws, user_tools=user_tools
        )
        finished = ResultFile(options.kept_at, replayer.outcome)
        outcomes = replay_all(
            runs(damage), options.tries, job, engine, finished, replayer
        )
        replays = _collect(bar.replaying(outcomes), album, damage)
    _tell_damage(damage)
    if not replays:
        raise FormatError(
            "the paths", "no recorded run was found in them", _REMEDY
        )
    if options.out is not None:
        write_parquet(options.out, replays, replayer.outcome)
    return ReplayOutcome(
        rows=rows_of(replays, row_of, by_run=options.by_run),
        replays=replays,
        profiles=profiles,
        pictures=album.pictures(options.tries) if draws else [],
        damage=damage,
    )


def _collect(
    outcomes: Iterable[tuple[str, Outcome]],
    album: Album,
    damage: list[Damage],
) -> list[tuple[str, Replayed]]:
    """Each replay with the name of its file; what is drawn goes into the album."""
    replays = list[tuple[str, Replayed]]()
    for name, outcome in outcomes:
        if isinstance(outcome, Damage):
            damage.append(outcome)
        elif isinstance(outcome, DrawnReplay):
            album.add(outcome)
            replays.append((name, outcome.replayed))
        else:
            replays.append((name, outcome))
    return replays


def _tell_damage(damage: list[Damage]) -> None:
    console = Console(stderr=True)
    for line in damage_lines(damage):
        console.print(
            harmless(line), style="yellow", markup=False, soft_wrap=True
        )


def plot(path: Path, outcome: ReplayOutcome) -> None:
    """Write the picture of the largest run, under the first policy in the first room.

    Raises:
        ConfigError: it cannot be written, or no run was replayed now.
    """
    if not outcome.pictures:
        reason = "every run was taken over from the file of --resume, without its turns"
        raise ConfigError("--plot", reason, "Leave --resume out.")
    save(path, plot_of(outcome.pictures[0].first), "--plot")


def json_of(outcome: ReplayOutcome) -> dict[str, object]:
    """The outcome as ``--json`` prints it; docs/replay.md has a table of its fields."""
    return {
        "format": _JSON_FORMAT,
        "version": __version__,
        "tokeniser": tokeniser(),
        "profiles": [
            profile
            for profile in outcome.profiles
            if isinstance(profile, Profile)
        ],
        "rows": outcome.rows,
        "skipped": outcome.damage,
    }


def totals_of(rows: Iterable[R]) -> list[R]:
    """The last row of each policy and room: that over all runs."""
    return list({(row.room, row.policy): row for row in rows}.values())


def show(outcome: ReplayOutcome, *, is_short: bool = False) -> Console:
    """Print the outcome in words, then in tables; if short, at the first prices alone."""
    console = Console()
    if not (console.is_terminal or "COLUMNS" in os.environ):
        console = Console(width=WIDTH)  # a pipe has no width
    totals = totals_of(outcome.rows)
    for row in totals:
        console.print(in_words(row), highlight=False, markup=False)
    for table in tables_of(outcome.rows, totals, is_short=is_short):
        console.print(table)
    return console


def status_of(outcome: ReplayOutcome) -> int:
    """The exit status: 1 if a gate was broken, 3 if something was skipped or unfit, else 0."""
    if any(row.broken for row in outcome.rows):
        return 1
    is_skipped = any(damage.grade == "skipped" for damage in outcome.damage)
    return (
        3 if is_skipped or any(row.over_limit for row in outcome.rows) else 0
    )


def runs_in(
    paths: Sequence[Path | str],
    damage: list[Damage],
    *,
    least: int = 0,
    most: int | None = None,
    is_wanted: Callable[[Run], bool] | None = None,
) -> RunSource:
    """Each run with the name of its file and how many bytes have been read by then.

    What is wrong with the files is added to ``damage``. Runs of fewer than ``least`` messages are
    left out, and of each file what comes after the first ``most``.
    """
    earlier_bytes = 0
    for path in paths:
        files = logs_under(path)
        is_named = [file.name for file in files] == [Path(path).name]
        note = partial(_note, damage, is_named=is_named)
        for file in files:
            count = 0
            for run, read_bytes in runs_of(file, note):
                is_long = len(run.messages) >= least
                if (
                    is_long
                    and (is_wanted is None or is_wanted(run))
                    and count != most
                ):
                    count += 1
                    yield file.name, run, earlier_bytes + read_bytes
            earlier_bytes += file.size_bytes


def _note(damage: list[Damage], problem: Damage, *, is_named: bool) -> None:
    """Add what is wrong with a file; of one that was named nothing is foreign."""
    is_foreign = problem.grade == "foreign" and is_named
    damage.append(replace(problem, grade="skipped") if is_foreign else problem)


def damage_lines(damage: list[Damage]) -> Iterator[str]:
    """A line for each loss, and one for all places of a file that were repaired alike."""
    repaired = Counter(
        (d.file, d.problem) for d in damage if d.grade == "repaired"
    )
    for problem in damage:
        place = (
            f"{problem.file} line {problem.line}"
            if problem.line
            else problem.file
        )
        if problem.grade != "repaired":
            yield f"skipped {place}: {problem.problem}"
        elif count := repaired.pop((problem.file, problem.problem), 0):
            more = f" and {count - 1:,} more" if count > 1 else ""
            yield f"read anyway {place}{more}: {problem.problem}"
