"""Policies beside each other for a terminal: against recency, the oracle, and the first of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from lab.replay.compare.bootstrap import Interval
from lab.replay.compare.comparison import Comparison, Curve
from lab.replay.compare.rows import JudgedRow
from lab.replay.compare.service import Service
from ullage.tools.replay.calls import Room, label_of
from ullage.tools.replay.tables import percent, table_with


def standings_table(
    rows: Sequence[JudgedRow],
    comparison: Comparison,
    services: Mapping[tuple[str, Room], Service],
) -> Table:
    """How the policies stand to each other in each room.

    Args:
        rows: one for each policy and room, over all runs.
        comparison: the same policies beside each other.
        services: what full service comes to, by policy and room, where it was asked for.
    """
    points = {(point.policy, point.room): point for point in comparison.points}
    table = table_with(
        "beside each other", ("policy",), _HEADINGS, notes=_NOTES
    )
    for row in rows:
        point, service = (
            points[row.policy, row.room],
            services.get((row.policy, row.room)),
        )
        usd = next(iter(service.usd.values()), None) if service else None
        share = percent(usd.pooled) if usd else ""
        table.add_row(
            row.policy,
            label_of(row.room),
            f"[dim]({share})[/]" if row.below and share else share,
            f"{service.failed:,}" if service else "",
            "" if point.skill is None else f"{point.skill:+.2f}",
            _interval(point.visible),
            _interval(point.cost),
        )
    return table


_HEADINGS = (
    *("budget", "full\nservice", "failed\ncalls", "skill"),
    *("visible\nto first", "cost\nto first"),
)
_NOTES = (
    "full service: with every miss paid for · skill: 0 is as good as recency, 1 as an oracle",
    "to first: percentage points beside the first policy, and where 95 in 100 drawings lie",
)


def _interval(found: Interval | None) -> str:
    """In percentage points, with where it lies in 95 of 100 drawings."""
    if found is None:
        return ""
    return f"{found.mean * 100:+.0f} ({found.low * 100:+.0f} to {found.high * 100:+.0f})"


def curves_table(curves: Sequence[Curve]) -> Table:
    """The policies over several budgets."""
    notes = (
        "AUC: the mean of what is visible over the budgets · hypervolume: of tokens and visible",
        "together, the larger the better",
    )
    headings = (
        "budgets",
        "runs",
        "AUC",
        "to first",
        "hypervolume",
        "at full service",
    )
    table = table_with(
        "over several budgets", ("policy",), headings, notes=notes
    )
    for curve in curves:
        service = curve.service_hypervolume
        table.add_row(
            curve.policy,
            _rooms(curve.rooms),
            f"{curve.runs:,}",
            percent(curve.auc),
            _interval(curve.auc_to_first),
            f"{curve.hypervolume:.2f}",
            "" if service is None else f"{service:.2f}",
        )
    return table


def _rooms(rooms: Sequence[Room]) -> str:
    return " ".join(map(label_of, rooms))
