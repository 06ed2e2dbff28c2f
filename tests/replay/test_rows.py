"""Which rows a table has."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.replay.test_run import small_run
from ullage.tools.replay.cost.money import Bill, BillSide
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.rows import row_of, rows_of
from ullage.tools.replay.run import replay_run


@cache
def done_under(policy):
    run = small_run("openai-chat", 2)
    return replay_run(run, 16_000, profiles=[PROFILES["none"]], policy=policy)


def replays(files, policies=("default",)):
    """One small run for each file, under each policy."""
    for policy in policies:
        done = done_under(policy)
        yield from ((name, replace(done, digest=name)) for name in files)


def test_each_file_has_a_row_and_then_all_of_them():
    rows = rows_of(replays(["b.jsonl", "a.jsonl"]), row_of)
    assert [(row.name, row.runs) for row in rows] == [
        ("a.jsonl", 1),
        ("b.jsonl", 1),
        ("all", 2),
    ]


def test_a_folder_of_session_logs_is_one_row():
    logs = [f"{number:02}.jsonl" for number in range(20)]
    many = [
        ("set.jsonl", replace(done, digest=f"{n}"))
        for n in range(3)
        for _, done in replays("x")
    ]
    rows = rows_of(
        [*replays(logs, ("default", "continuation")), *many], row_of
    )
    assert [(row.name, row.policy, row.runs) for row in rows] == [
        ("20 files of a run each", "continuation", 20),
        ("20 files of a run each", "default", 20),
        ("set.jsonl", "default", 3),
        ("all", "continuation", 20),
        ("all", "default", 23),
    ]


def test_each_run_has_a_row_where_that_is_asked_for():
    rows = rows_of(
        replays([f"{number:02}.jsonl" for number in range(20)]),
        row_of,
        by_run=True,
    )
    assert {row.name for row in rows} == {small_run("openai-chat", 2).id}


def bill(raw_usd, usd, clock="warm"):
    raw, shown = BillSide(cost_usd=raw_usd), BillSide(cost_usd=usd)
    return Bill(profile="own", clock=clock, raw=raw, shown=shown)


def replayed(calls, *bills):
    (_, done) = next(replays("x"))
    return replace(done, calls=calls, bills=list(bills))


COSTS = st.tuples(st.integers(1, 600), st.floats(0, 100), st.floats(0, 100))


@given(st.lists(COSTS, min_size=1, max_size=30))
def test_the_bands_are_the_whole_bill(costs):
    runs = [
        replayed(calls, bill(raw, usd), bill(9, 9, "lossy"))
        for calls, raw, usd in costs
    ]
    row = row_of("all", runs)
    assert sum(band.runs for band in row.bands) == len(costs)
    assert sum(band.usd for band in row.bands) == pytest.approx(
        sum(usd for _, _, usd in costs)
    )
    assert sum(band.raw_usd for band in row.bands) == pytest.approx(
        sum(c[1] for c in costs)
    )
    assert row.unsaved == sum(usd >= raw for _, raw, usd in costs)


def test_a_run_belongs_to_the_band_of_its_calls():
    row = row_of(
        "all",
        [
            replayed(calls, bill(1, 1))
            for calls in (59, 60, 119, 120, 249, 250)
        ],
    )
    named = {band.calls: band.runs for band in row.bands}
    assert named == {
        "under 60": 1,
        "60 to 119": 2,
        "120 to 249": 2,
        "250 and more": 1,
    }


def test_a_price_that_is_not_known_is_no_saving():
    (band,) = row_of(
        "all", [replayed(1, bill(None, None)), replayed(2, bill(2, 1))]
    ).bands
    assert (band.raw_usd, band.usd, band.unsaved) == (None, None, 0)
    assert row_of("all", [replayed(1)]).bands == []
