"""``python -m lab.replay PATH…``: ``ullage replay`` with more policies, and held-out tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

import click
from msgspec.structs import replace

from lab.replay.adversaries import ADVERSARIES
from lab.replay.compare.comparison import compared
from lab.replay.compare.service import SERVICE_NOTES, Service, service_of, service_table
from lab.replay.compare.standings import curves_table, standings_table
from lab.replay.frame import FRAMES, ORACLE
from lab.replay.framed import FRAME_NAMES
from lab.replay.many import SERVED, TRIED, Tried
from lab.replay.service import Serviced
from lab.replay.split import SIDES, Side, is_on
from ullage.cli import replay as users
from ullage.cli._options import print_json
from ullage.cli._page import command_of
from ullage.errors import UllageError
from ullage.presets import NAMES
from ullage.replay.budgets import Room, label_of

__all__ = ["command"]

_POLICIES = click.Option(
    ["--policy", "policies"],
    multiple=True,
    type=click.Choice((*NAMES, *FRAME_NAMES)),
    metavar="NAME",
    help=f"A policy to try: {', '.join(NAMES)}. To compare with, the frame: {', '.join(FRAMES)}; "
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
    ["--serve", "serves"], is_flag=True, help="Replay at full service too: pay for misses."
)
_SHARED = [each for each in users.command.params if each.name != "policies"]


@click.command("lab.replay", params=[*_SHARED, _POLICIES, _SPLIT, _SERVE])
def command(side: Side, serves: bool, **given: Any) -> None:
    """Replay recorded runs, and put the policies beside each other.

    The status is that of ``ullage replay``.
    """
    asked = users.Asked(**given)
    engine = SERVED if serves else TRIED
    found = users.replay_asked(asked, engine=engine, is_wanted=partial(is_on, side))
    rows = [replace(row, passes=row.passes and row.policy != ORACLE) for row in found.rows]
    found = replace(found, rows=rows)
    if asked.page is not None:
        more = {"--split": side if side != "all" else None, "--serve": serves}
        typed = command_of("python -m lab.replay", asked.paths, asked.options | more)
        users.write(asked.page, found, typed)
    _tell(asked, found)
    sys.exit(users.status_of(found))


def _tell(asked: users.Asked, found: users.Found) -> None:
    tried = [(name, each) for name, each in found.replays if isinstance(each, Tried)]
    comparison = compared(tried, found.rows, asked.tries[0][0])
    services = _services(each for _, each in tried)
    if asked.as_json:
        sums = [
            {"policy": policy, "room": room, "service": service}
            for (policy, room), service in services.items()
        ]
        print_json(users.json_of(found) | {"compared": comparison, "services": sums})
        return
    console = users.show(found)
    console.print(standings_table(users.totals_of(found), comparison, services))
    if comparison.curves:
        console.print(curves_table(comparison.curves))
    for (policy, room), service in services.items():
        console.print(service_table(f"{policy} · {label_of(room)} at full service", service))
    if services:
        console.print(SERVICE_NOTES, style="dim", highlight=False)


def _services(found: Iterable[Tried]) -> dict[tuple[str, Room], Service]:
    """What full service comes to, by policy and room; empty where it was not asked for."""
    groups: dict[tuple[str, Room], list[Serviced]] = {}
    for tried in found:
        if tried.served is not None:
            groups.setdefault((tried.policy, tried.room), []).append(tried.served)
    summed = {key: service_of(each) for key, each in groups.items()}
    return {key: service for key, service in summed.items() if service is not None}


def main() -> None:
    """Run the command; our errors are shown as ours."""
    try:
        command.main(prog_name="python -m lab.replay", standalone_mode=True)
    except UllageError as error:
        raise SystemExit(f"Error: {error}") from None


if __name__ == "__main__":
    main()
