"""The options that say in what room policies are tried, and what they must keep."""

from __future__ import annotations

from typing import Any

import click

from ullage.replay.budgets import MOST_SHARE
from ullage.replay.compare.floors import FLOORS, Floor, floors_with

__all__ = ["budget_option", "floor_option", "floors_of"]


def _shares(context: Any, parameter: Any, values: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(map(_share, values))


def _share(value: str) -> float:
    try:
        share = float(value.removesuffix("%")) / 100 if value.endswith("%") else float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no share: write 20% or 0.2.") from None
    if not 0 < share < MOST_SHARE:
        why = f"0% and less than {MOST_SHARE:.0%}, or runs would fit as they are"
        raise click.BadParameter(f"{value!r} must be more than {why}.")
    return share


def _limits(context: Any, parameter: Any, values: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    return tuple(map(_limit, values))


def _limit(value: str) -> tuple[str, float]:
    name, _, limit = value.partition("=")
    try:
        return name, float(limit)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no floor: write far=0.84.") from None


budget_option = click.option(
    "--budget",
    "shares",
    multiple=True,
    metavar="SHARE",
    callback=_shares,
    help="A budget to try, as a share of each run's largest request: 20%.",
)

floor_option = click.option(
    "--floor",
    "limits",
    multiple=True,
    metavar="NAME=LIMIT",
    callback=_limits,
    help="What a policy must keep before its cost is compared. Default: "
    f"{', '.join(f'{floor.name}={floor.limit:g}' for floor in FLOORS)}.",
)


def floors_of(limits: tuple[tuple[str, float], ...]) -> tuple[Floor, ...]:
    """The floors asked for.

    Raises:
        ConfigError: there is no floor of a name.
    """
    return floors_with(dict(limits))
