"""Policies beside each other on the same runs."""

from functools import partial

import pytest
from msgspec.structs import replace

from lab.replay.compare.comparison import compared
from lab.replay.compare.floors import FLOORS
from lab.replay.compare.rows import judged_row
from lab.replay.compare.standings import curves_table, standings_table
from lab.replay.many import SERVED, TRIED
from tests.replay.evidence.conversation import errand
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.engines import LocalEngine
from ullage.tools.replay.many import Job, ResultFile, replay_all
from ullage.tools.replay.rows import rows_of

POLICIES = ("recency", "belady", "last_call", "default")
FREE = [
    replace(floor, limit=100.0 if floor.is_most else 0.0) for floor in FLOORS
]
"""Floors that everything passes."""


def found_with(policies, rooms, runs=(1, 2), replayer=TRIED):
    wanted = (
        ("errands", replace(errand(seed), id=f"errand {seed}"), 0)
        for seed in runs
    )
    tries = tuple((policy, room) for policy in policies for room in rooms)
    kept = ResultFile(None)
    all_of = replay_all(
        wanted,
        tries,
        Job((PROFILES["anthropic-5m"],)),
        LocalEngine(),
        kept,
        replayer,
    )
    return [(name, outcome) for name, outcome, _ in all_of]


@pytest.fixture(scope="module")
def found():
    return found_with(POLICIES, (0.2, 0.4))


def points_of(found, first="recency", floors=FREE):
    comparison = compared(
        found, rows_of(found, partial(judged_row, floors=floors)), first
    )
    return {
        (point.policy, point.room): point for point in comparison.points
    }, comparison


def test_recency_has_no_skill_and_the_oracle_all_there_is(found):
    points, _ = points_of(found)
    assert [points[policy, 0.2].skill for policy in ("recency", "belady")] == [
        0,
        1,
    ]
    assert points["last_call", 0.2].skill < 0
    assert points["default", 0.2].skill < 1


def test_without_both_ends_of_the_scale_there_is_no_skill(found):
    points, _ = points_of(
        [each for each in found if each[1].policy != "belady"]
    )
    assert points["default", 0.2].skill is None


def test_differences_are_to_the_first_policy_over_the_same_runs(found):
    points, _ = points_of(found)
    assert points["recency", 0.2].visible is None
    other = points["last_call", 0.2]
    assert other.visible.n == 2
    assert other.visible.is_difference
    assert other.visible.mean == pytest.approx(
        other.er_line - points["recency", 0.2].er_line
    )
    assert other.cost.mean < 0
    behind_floors, _ = points_of(found, floors=FLOORS)
    assert behind_floors["last_call", 0.2].visible == other.visible
    assert behind_floors["last_call", 0.2].cost is None, (
        "what is below a floor has no price"
    )
    swapped, _ = points_of(found, first="last_call")
    assert swapped["recency", 0.2].visible.mean == pytest.approx(
        -other.visible.mean
    )


def test_more_room_shows_more_and_a_curve_lies_between_its_ends(found):
    points, comparison = points_of(found)
    curve = next(
        each for each in comparison.curves if each.policy == "recency"
    )
    ends = [points["recency", room].er_line for room in (0.2, 0.4)]
    assert ends[0] < curve.auc < ends[1]
    assert curve.auc == pytest.approx(sum(ends) / 2), (
        "over log2 two budgets weigh alike"
    )
    assert curve.rooms == (0.2, 0.4)
    assert 0 < curve.hypervolume < 1
    assert comparison.curves[0].auc_to_first is None


def test_on_the_front_is_no_oracle_and_nothing_below_a_floor(found):
    points, _ = points_of(found)
    on = {
        policy
        for policy, room in points
        if room == 0.2 and points[policy, room].on_front
    }
    assert "last_call" in on, "it shows nothing, with the fewest tokens"
    assert "belady" not in on
    points, _ = points_of(found, floors=FLOORS)
    assert not any(point.on_front for point in points.values())


def test_a_run_counts_only_where_it_is_larger_than_the_budget():
    found = found_with(("recency",), (8_000, 200_000))
    points, comparison = points_of(found)
    assert points["recency", 8_000].runs == 2
    assert points["recency", 200_000].runs == 0
    assert points["recency", 200_000].er_line is None
    assert comparison.curves[0].runs == 0


def test_full_service_is_compared_where_it_was_asked_for(found):
    points, _ = points_of(found)
    assert points["default", 0.2].service is None
    served = found_with(
        ("recency", "last_call"), (0.2, 0.4), runs=(1,), replayer=SERVED
    )
    points, comparison = points_of(served)
    assert points["last_call", 0.2].service is not None
    assert (
        points["last_call", 0.2].on_service_front
        or points["recency", 0.2].on_service_front
    )
    assert all(
        curve.service_hypervolume is not None for curve in comparison.curves
    )
    _, behind_floors = points_of(served, floors=FLOORS)
    assert all(
        curve.service_hypervolume is None for curve in behind_floors.curves
    )


def test_the_standings_tell_the_scale_and_the_curves_every_policy(found):
    rows = rows_of(found, judged_row)
    comparison = compared(found, rows, "recency")
    cells = {
        str(c.header): [*c.cells]
        for c in standings_table(rows, comparison, {}).columns
    }
    shown = zip(
        *(cells[name] for name in ("policy", "budget", "skill")), strict=True
    )
    assert {("recency", "20%", "+0.00"), ("belady", "20%", "+1.00")} <= set(
        shown
    )
    assert [*curves_table(comparison.curves).columns[0].cells] == list(
        POLICIES
    )
