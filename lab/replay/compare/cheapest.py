"""Which policy costs least, of those that reach every floor (`lab.replay.compare.floors`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from lab.replay.compare.rows import JudgedRow
from ullage.tools.replay.calls import Room
from ullage.tools.replay.cost.money import Clock


class Cheapest(Struct, frozen=True, kw_only=True):
    """Which of several policies costs least under one profile and clock.

    Attributes:
        name: the file, the run, or all.
        room: the window in tokens, or the share of the largest request.
        profile: the price profile.
        clock: which gaps outlived the cache.
        policy: the cheapest of those that pass the floors; None if none does.
        passing: how many do.
    """

    name: str
    room: Room
    profile: str
    clock: Clock
    policy: str | None
    passing: int


def cheapest_of(rows: Iterable[JudgedRow]) -> list[Cheapest]:
    """For each group and room with several policies, and each profile, the cheapest that passes."""
    groups: dict[tuple[str, Room], list[JudgedRow]] = {}
    for row in rows:
        groups.setdefault((row.name, row.room), []).append(row)
    return [
        _cheapest(name, room, at, group)
        for (name, room), group in groups.items()
        if len(group) > 1
        for at in range(len(group[0].charges))
    ]


def _cheapest(
    name: str, room: Room, at: int, group: Sequence[JudgedRow]
) -> Cheapest:
    passing = [row for row in group if row.passes]
    costs = [(row.charges[at].usd_share, row.policy) for row in passing]
    known = [(cost, policy) for cost, policy in costs if cost is not None]
    charge = group[0].charges[at]
    return Cheapest(
        name=name,
        room=room,
        profile=charge.profile,
        clock=charge.clock,
        policy=min(known)[1] if known else None,
        passing=len(passing),
    )
