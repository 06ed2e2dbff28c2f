"""Policies beside each other for a terminal: what they keep first, then what they cost.

One row a policy and room, over all runs. The cost of what is below a floor stands in brackets,
and the cheapest of what passes is marked; that is never one below a floor.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from lab.replay.compare.cheapest import cheapest_of
from lab.replay.compare.floors import Floor
from lab.replay.compare.rows import JudgedRow
from lab.replay.compare.spread import Spread
from ullage.tools.replay.calls import label_of
from ullage.tools.replay.tables import percent, table_with


def evidence_table(
    rows: Sequence[JudgedRow], floors: Sequence[Floor]
) -> Table:
    """What the policies keep, in each room, and the floors they are held against.

    Args:
        rows: one for each policy and room, over all runs.
        floors: what they are held against; below the table in words.
    """
    notes = [f"{_limit(floor)}: {floor.means}" for floor in floors]
    table = table_with(
        "evidence first: what the policies keep",
        ("policy",),
        _KEEPS,
        notes=notes,
    )
    for row in rows:
        table.add_row(row.policy, *_keeps(row))
    return table


_KEEPS = (
    *(
        "budget",
        "runs",
        "far",
        "its sum, median,\nworst tenth",
        "line",
        "reuse",
        "anchors",
    ),
    *("breaks\n/100", "unsaid", "below"),
)


def _limit(floor: Floor) -> str:
    return f"{floor.name} {'≤' if floor.is_most else '≥'} {floor.limit:g}"


def _keeps(row: JudgedRow) -> list[str]:
    evidence = row.evidence
    return [
        label_of(row.room),
        f"{row.runs:,}",
        percent(evidence.far.mean),
        _beside(evidence.far),
        *(
            percent(each.mean)
            for each in (evidence.line, evidence.reuse, evidence.anchors)
        ),
        f"{row.breaks_per_100:.1f}",
        f"{row.evidence.unsaid:.1%}" if row.evidence.unsaid else "",
        ", ".join(row.below) or ("" if row.passes else "not compared"),
    ]


def cost_table(rows: Sequence[JudgedRow]) -> Table:
    """What the policies cost, in each room.

    Args:
        rows: one for each policy and room, over all runs.
    """
    best = {
        (each.name, each.room): each.policy
        for each in reversed(cheapest_of(rows))
    }
    profile = (
        rows[0].charges[0].profile if rows and rows[0].charges else "no prices"
    )
    title = f"then cost: what they cost under {profile}"
    table = table_with(title, ("policy",), _COSTS, notes=_COSTS_NOTES)
    for row in rows:
        charge = row.charges[0] if row.charges else None
        is_best = best.get((row.name, row.room)) == row.policy
        table.add_row(
            row.policy,
            label_of(row.room),
            _cost(charge.usd_share if charge else None, row, is_best),
            _percents(row.cost.median, row.cost.worst_tenth) if charge else "",
            percent(1 / charge.usd_share - 1)
            if charge and charge.usd_share
            else "",
        )
    return table


_COSTS = ("budget", "cost", "median,\nworst tenth", "σ*")
_COSTS_NOTES = (
    "in brackets below a floor; starred is the cheapest of those that reach every floor",
    "σ*: how many more steps would eat up the saving",
)


def _cost(share: float | None, row: JudgedRow, is_best: bool) -> str:
    """A cost; in brackets below a floor, with a star where it is the least of all that pass."""
    if row.below and share is not None:
        return f"[dim]({percent(share)})[/]"
    return f"[bold]★ {percent(share)}[/]" if is_best else percent(share)


def _beside(spread: Spread) -> str:
    return (
        _percents(spread.pooled, spread.median, spread.worst_tenth)
        if spread.runs
        else ""
    )


def _percents(*shares: float | None) -> str:
    return ", ".join(percent(share) for share in shares)
