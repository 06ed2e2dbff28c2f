"""A row of the table, with what we judge policies by: floors, and how runs spread."""

from __future__ import annotations

from collections.abc import Sequence

from lab.replay.compare.floors import FLOORS, Floor, Judged, judged_by, passes
from lab.replay.compare.spread import Spread, spread_of
from lab.replay.compare.summary import Summary, summary_of
from lab.replay.watch import Evidence
from ullage.tools.replay.rows import ReplaySummary, row_of
from ullage.tools.replay.run import Replayed


class JudgedRow(ReplaySummary, frozen=True, kw_only=True):
    """A sum over runs in one room, held against the floors.

    Attributes:
        cost: what it costs of the raw requests, under the first price profile.
        judged: the policy at each floor.
        below: the floors it does not reach.
        passes: whether its cost may be compared: no floor is missed, and there was evidence to
            judge it by.
    """

    evidence: Summary
    cost: Spread
    judged: list[Judged]
    below: list[str]
    passes: bool


def judged_row(
    name: str, group: Sequence[Replayed], floors: Sequence[Floor] = FLOORS
) -> JudgedRow:
    """Replays of one policy in one room, summed up and held against floors."""
    row = row_of(name, group)
    found = [
        each.evidence for each in group if isinstance(each.evidence, Evidence)
    ]
    evidence = summary_of(found)
    measured = {
        "far": evidence.far.mean,
        "line": evidence.line.mean,
        "reuse": evidence.reuse.mean,
        "anchors": evidence.anchors.mean,
        "breaks": row.breaks_per_100,
        "unsaid": evidence.unsaid,
        "invalid": row.over_limit + sum(row.broken.values()),
    }
    judged = judged_by(floors, measured)
    bills = [each.bills[0] for each in group if each.bills]
    costs = ((bill.shown.cost_usd, bill.raw.cost_usd) for bill in bills)
    fields = {field: getattr(row, field) for field in row.__struct_fields__}
    return JudgedRow(
        **fields | {"evidence": evidence},
        cost=spread_of(costs, worst="most"),
        judged=judged,
        below=[each.floor for each in judged if each.passes is False],
        passes=passes(judged),
    )
