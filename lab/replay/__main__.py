"""``python -m lab.replay PATH…``: ``ullage replay`` with more policies, and held-out tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import click
from msgspec.structs import replace

from lab.replay.adversaries import ADVERSARIES
from lab.replay.compare.beside import cost_table, evidence_table
from lab.replay.compare.cheapest import cheapest_of
from lab.replay.compare.comparison import compared
from lab.replay.compare.floors import FLOORS, Floor, floors_with
from lab.replay.compare.rows import JudgedRow, judged_row
from lab.replay.compare.service import (
    SERVICE_NOTES,
    Service,
    service_of,
    service_table,
)
from lab.replay.compare.standings import curves_table, standings_table
from lab.replay.frame import FRAMES, ORACLE
from lab.replay.framed import FRAME_NAMES
from lab.replay.many import SERVED, TRIED, Tried
from lab.replay.service import Serviced
from lab.replay.split import SIDES, Side, is_on
from ullage.core.errors import ConfigError, UllageError, did_you_mean
from ullage.documents import NAMES
from ullage.tools.cli import replay as users
from ullage.tools.cli._options import print_json
from ullage.tools.cli._page import save, typed
from ullage.tools.replay.calls import Room, label_of
from ullage.tools.replay.policies import policy_named
from ullage.tools.replay.report.pages import page_of_replays
from ullage.tools.replay.rows import rows_of


def _policies(
    context: Any, parameter: Any, values: tuple[str, ...]
) -> tuple[str, ...]:
    """The policies as they are typed; looked up here, so that a mistake is told at once."""
    for value in values:
        if ":" in value:
            try:
                policy_named(value)
            except ConfigError as error:
                raise click.BadParameter(str(error)) from None
        elif value not in (*NAMES, *FRAME_NAMES):
            question = did_you_mean(value, (*NAMES, *FRAME_NAMES))
            listed = ", ".join((*NAMES, *FRAME_NAMES))
            raise click.BadParameter(
                f"{value!r} is not known. {question}Use one of {listed}, or module:name."
            )
    return values


_POLICIES = click.Option(
    ["--policy", "policies"],
    multiple=True,
    callback=_policies,
    metavar="NAME",
    help=f"A policy to try: {', '.join(NAMES)}, or module:name of your own. "
    f"To compare with, the frame: {', '.join(FRAMES)}; "
    f"and what must lose: {', '.join(ADVERSARIES)}.",
)
_SPLIT = click.Option(
    ["--split", "side"],
    type=click.Choice(SIDES),
    default="all",
    show_default=True,
    help="Only the runs whose task falls on this side: by a hash of it, half of all tasks each.",
)
_SERVE = click.Option(
    ["--serve", "serves"],
    is_flag=True,
    help="Replay at full service too: pay for misses.",
)
_SHARED = [each for each in users.command.params if each.name != "policies"]


def _limits(
    context: Any, parameter: Any, values: tuple[str, ...]
) -> tuple[tuple[str, float], ...]:
    return tuple(map(_limit, values))


def _limit(value: str) -> tuple[str, float]:
    name, _, limit = value.partition("=")
    try:
        return name, float(limit)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no floor: write far=0.84."
        ) from None


_FLOOR = click.Option(
    ["--floor", "limits"],
    multiple=True,
    metavar="NAME=LIMIT",
    callback=_limits,
    help="What a policy must keep before its cost is compared. Default: "
    f"{', '.join(f'{floor.name}={floor.limit:g}' for floor in FLOORS)}.",
)


@click.command(
    "lab.replay", params=[*_SHARED, _POLICIES, _FLOOR, _SPLIT, _SERVE]
)
def command(
    side: Side,
    serves: bool,
    limits: tuple[tuple[str, float], ...],
    **given: Any,
) -> None:
    """Replay recorded runs, and put the policies beside each other.

    The status is that of ``ullage replay``.
    """
    asked, floors = users.ReplayOptions(**given), floors_with(dict(limits))
    replayer = SERVED if serves else TRIED
    found = users.run_replay(
        asked, replayer=replayer, is_wanted=partial(is_on, side)
    )
    rows = [
        replace(row, passes=row.passes and row.policy != ORACLE)
        for row in rows_of(
            found.replays,
            partial(judged_row, floors=floors),
            by_run=asked.by_run,
        )
    ]
    found = replace(found, rows=rows)
    if asked.page is not None:
        page = page_of_replays(
            found, command=typed("python -m lab.replay"), share=asked.share
        )
        save(asked.page, page)
    _print(asked, found, rows, floors)
    sys.exit(users.status_of(found))


def _print(
    asked: users.ReplayOptions,
    found: users.ReplayOutcome,
    rows: Sequence[JudgedRow],
    floors: Sequence[Floor],
) -> None:
    tried = [
        (name, each) for name, each in found.replays if isinstance(each, Tried)
    ]
    comparison = compared(tried, rows, asked.tries[0][0])
    services = _services(each for _, each in tried)
    if asked.as_json:
        sums = [
            {"policy": policy, "room": room, "service": service}
            for (policy, room), service in services.items()
        ]
        judged = {"floors": floors, "cheapest": cheapest_of(rows)}
        print_json(
            users.json_of(found)
            | judged
            | {"compared": comparison, "services": sums}
        )
        return
    console, totals = users.show(found), users.totals_of(rows)
    console.print(evidence_table(totals, floors))
    console.print(cost_table(totals))
    console.print(standings_table(totals, comparison, services))
    if comparison.curves:
        console.print(curves_table(comparison.curves))
    for (policy, room), service in services.items():
        console.print(
            service_table(
                f"{policy} · {label_of(room)} at full service", service
            )
        )
    if services:
        console.print(SERVICE_NOTES, style="dim", highlight=False)


def _services(found: Iterable[Tried]) -> dict[tuple[str, Room], Service]:
    """What full service comes to, by policy and room; empty where it was not asked for."""
    groups: dict[tuple[str, Room], list[Serviced]] = {}
    for tried in found:
        if tried.served is not None:
            groups.setdefault((tried.policy, tried.room), []).append(
                tried.served
            )
    summed = {key: service_of(each) for key, each in groups.items()}
    return {
        key: service for key, service in summed.items() if service is not None
    }


def main() -> None:
    """Run the command; our errors are shown as ours."""
    try:
        command.main(prog_name="python -m lab.replay", standalone_mode=True)
    except UllageError as error:
        raise SystemExit(f"Error: {error}") from None


if __name__ == "__main__":
    main()
