"""Policies beside each other on the same runs: the frame figures of `metrics` M1.

    skill         (ER - ER of recency) / (ER of the oracle - ER of recency)
    differences   to the policy that was asked for first, paired over runs, by bootstrap
    area          ER over log2 of the budget, where several were replayed
    front         no other is as good in both: tokens and ER; cost at full service and failures

ER is the share visible at age 4 and more, the mean over runs. Skill, areas and fronts are of the
runs that count at their budget (`ullage.tools.replay.calls`); differences are of all. On a front is
only what passes the floors, and never the oracle, which knows the future.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from statistics import fmean
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lab.replay.compare.bootstrap import Interval, paired
from lab.replay.compare.geometry import Point, area, front, hypervolume
from lab.replay.compare.rows import JudgedRow
from lab.replay.frame import BASE, ORACLE
from lab.replay.many import Tried
from lab.replay.service import cost_usd
from ullage.tools.replay.calls import LEAST_PEAK, Room
from ullage.tools.replay.rows import ratio


class Compared(Struct, frozen=True, kw_only=True):
    """One policy in one room, beside the others there. None is what cannot be said.

    Attributes:
        policy: the policy.
        room: the window in tokens, or the share of the largest request.
        runs: how many runs count at this budget and demanded anything.
        er_line: share visible over them.
        tokens: their mean view, of the mean raw request.
        skill: 0 is recency, 1 the oracle; None if either was not replayed.
        visible: what of the evidence it shows more than the first policy.
        cost: what of the raw cost it costs more than the first policy, under the first profile;
            None where either is below a floor.
        service: the same at full service.
        on_front: whether nothing that passes shows as much with as few tokens.
        on_service_front: whether nothing that passes costs as little and fails as seldom.
    """

    policy: str
    room: Room
    runs: int
    er_line: float | None
    tokens: float | None
    skill: float | None
    visible: Interval | None
    cost: Interval | None
    service: Interval | None
    on_front: bool = False
    on_service_front: bool = False


class Curve(Struct, frozen=True, kw_only=True):
    """One policy over several budgets of one kind.

    Attributes:
        policy: the policy.
        rooms: the budgets: windows in tokens, or shares of the largest request.
        runs: how many runs count at each of them.
        auc: the mean of ER over log2 of the budget.
        auc_to_first: what more it is than that of the first policy.
        hypervolume: of tokens and ER; the reference is as many tokens as raw, and nothing seen.
        service_hypervolume: of cost at full service and failed calls, over the budgets at which
            it passes the floors; the reference is the cost of keeping everything, and no call
            served. None without full service, or where it never passes.
    """

    policy: str
    rooms: tuple[Room, ...]
    runs: int
    auc: float | None
    auc_to_first: Interval | None
    hypervolume: float
    service_hypervolume: float | None


class Comparison(Struct, frozen=True):
    """All policies, in each room and over several."""

    points: list[Compared]
    curves: list[Curve]


_Runs: TypeAlias = Mapping[tuple[str, str], Tried]
_Value: TypeAlias = Callable[[Tried], float | None]


def compared(
    found: Iterable[tuple[str, Tried]], rows: Sequence[JudgedRow], first: str
) -> Comparison:
    """Put the policies beside each other, over all runs.

    Args:
        found: the replays, each with the name of its file.
        rows: their sums (`rows_of`); the last of each room and policy is that over all runs.
        first: the policy that the others are held against.
    """
    runs: dict[tuple[str, Room], dict[tuple[str, str], Tried]] = {}
    for _, replayed in found:
        of_try = runs.setdefault((replayed.policy, replayed.room), {})
        of_try[replayed.run, replayed.digest] = replayed
    totals = {(row.policy, row.room): row for row in rows}
    passing = {
        key
        for key, row in totals.items()
        if row.passes and row.policy != ORACLE
    }
    points = [
        _compared(policy, room, runs, passing, first) for policy, room in runs
    ]
    return Comparison(
        _with_fronts(points, runs, passing), _curves(runs, passing, first)
    )


def _compared(
    policy: str,
    room: Room,
    runs: Mapping[tuple[str, Room], _Runs],
    passing: Set[tuple[str, Room]],
    first: str,
) -> Compared:
    mine, theirs = runs[policy, room], runs.get((first, room), {})
    counting = _counting(mine)
    others = theirs if policy != first else {}
    rivals = others if {(policy, room), (first, room)} <= passing else {}
    return Compared(
        policy=policy,
        room=room,
        runs=len(counting),
        er_line=_mean(counting, _seen),
        tokens=_tokens(counting),
        skill=_skill(
            counting, runs.get((BASE, room), {}), runs.get((ORACLE, room), {})
        ),
        visible=_difference(mine, others, _seen),
        cost=_difference(mine, rivals, _cost),
        service=_difference(mine, rivals, _service),
    )


def _counting(runs: _Runs) -> _Runs:
    """The runs that count at their budget and demanded anything."""
    return {
        key: run
        for key, run in runs.items()
        if _counts(run) and _seen(run) is not None
    }


def _counts(run: Tried) -> bool:
    return (
        run.share is not None
        or run.raw_peak_tokens > LEAST_PEAK * run.window_tokens
    )


def _seen(run: Tried) -> float | None:
    return run.evidence.far.er_line


def _cost(run: Tried) -> float | None:
    bill = run.bills[0] if run.bills else None
    return ratio(bill.shown.cost_usd, bill.raw.cost_usd) if bill else None


def _service(run: Tried) -> float | None:
    return (
        ratio(*cost_usd(run.served))
        if run.served is not None and run.served.totals
        else None
    )


def _values(runs: _Runs, value: _Value) -> dict[tuple[str, str], float]:
    found = ((key, value(run)) for key, run in runs.items())
    return {key: number for key, number in found if number is not None}


def _mean(runs: _Runs, value: _Value) -> float | None:
    values = _values(runs, value)
    return fmean(values.values()) if values else None


def _tokens(runs: _Runs) -> float | None:
    """The mean over runs of all views' tokens, of all raw requests'."""
    shares = [ratio(run.tokens, run.raw_tokens) for run in runs.values()]
    known = [share for share in shares if share is not None]
    return fmean(known) if known else None


def _difference(mine: _Runs, theirs: _Runs, value: _Value) -> Interval | None:
    one, other = _values(mine, value), _values(theirs, value)
    return paired([one[key] - other[key] for key in one if key in other])


def _skill(mine: _Runs, base: _Runs, oracle: _Runs) -> float | None:
    columns = [_values(runs, _seen) for runs in (mine, base, oracle)]
    keys = [
        key for key in columns[0] if all(key in column for column in columns)
    ]
    er, least, most = (sum(column[key] for key in keys) for column in columns)
    return (er - least) / (most - least) if most > least else None


def _with_fronts(
    points: Sequence[Compared],
    runs: Mapping[tuple[str, Room], _Runs],
    passing: Set[tuple[str, Room]],
) -> list[Compared]:
    """The points, those of a room on its fronts marked."""
    marked = list(points)
    for room in dict.fromkeys(point.room for point in points):
        places = [
            at
            for at, point in enumerate(points)
            if point.room == room and (point.policy, room) in passing
        ]
        counting = [_counting(runs[points[at].policy, room]) for at in places]
        for name, point_of in (
            ("on_front", _seen_point),
            ("on_service_front", _service_point),
        ):
            found = [
                (at, point_of(of))
                for at, of in zip(places, counting, strict=True)
            ]
            known = [(at, point) for at, point in found if point is not None]
            for (at, _), is_on in zip(
                known, front([point for _, point in known]), strict=True
            ):
                marked[at] = replace(marked[at], **{name: is_on})
    return marked


def _seen_point(runs: _Runs) -> Point | None:
    """Tokens, and what is not visible."""
    tokens, seen = _tokens(runs), _mean(runs, _seen)
    return (
        (tokens, 1 - seen) if tokens is not None and seen is not None else None
    )


def _service_point(runs: _Runs) -> Point | None:
    """Cost at full service, and the share of calls that fail."""
    cost = _mean(runs, _service)
    failed = [
        run.served.failed / run.served.calls
        for run in runs.values()
        if run.served
    ]
    return (cost, fmean(failed)) if cost is not None else None


def _curves(
    runs: Mapping[tuple[str, Room], _Runs],
    passing: Set[tuple[str, Room]],
    first: str,
) -> list[Curve]:
    """A curve for each policy and kind of budget of which there are several."""
    found = []
    for kind in (int, float):
        budgets = {room for _, room in runs if not isinstance(room, str)}
        rooms = sorted(room for room in budgets if isinstance(room, kind))
        policies = dict.fromkeys(policy for policy, _ in runs)
        if len(rooms) > 1:
            areas = {
                policy: _areas(runs, policy, rooms) for policy in policies
            }
            found += [
                _curve(policy, tuple(rooms), runs, passing, areas, first)
                for policy in policies
            ]
    return found


def _areas(
    runs: Mapping[tuple[str, Room], _Runs], policy: str, rooms: Sequence[float]
) -> dict[tuple[str, str], float]:
    """The area of each run that counts in every room."""
    columns = [
        _values(_counting(runs.get((policy, room), {})), _seen)
        for room in rooms
    ]
    curves = {
        key: {
            room: column[key]
            for room, column in zip(rooms, columns, strict=True)
        }
        for key in columns[0]
        if all(key in column for column in columns)
    }
    areas = ((key, area(curve)) for key, curve in curves.items())
    return {key: each for key, each in areas if each is not None}


def _curve(
    policy: str,
    rooms: tuple[Room, ...],
    runs: Mapping[tuple[str, Room], _Runs],
    passing: Set[tuple[str, Room]],
    areas: Mapping[str, Mapping[tuple[str, str], float]],
    first: str,
) -> Curve:
    mine, theirs = (
        areas[policy],
        areas.get(first, {}) if policy != first else {},
    )
    counting = {
        room: _counting(runs.get((policy, room), {})) for room in rooms
    }
    seen = map(_seen_point, counting.values())
    compared_at = [
        of for room, of in counting.items() if (policy, room) in passing
    ]
    served = [
        point
        for point in map(_service_point, compared_at)
        if point is not None
    ]
    return Curve(
        policy=policy,
        rooms=rooms,
        runs=len(mine),
        auc=fmean(mine.values()) if mine else None,
        auc_to_first=paired(
            [mine[key] - theirs[key] for key in mine if key in theirs]
        ),
        hypervolume=hypervolume(point for point in seen if point is not None),
        service_hypervolume=hypervolume(served) if served else None,
    )
