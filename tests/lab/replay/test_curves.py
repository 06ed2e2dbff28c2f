"""How long what a tool said is needed; and when a difference is one."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.replay.compare.bootstrap import paired
from lab.replay.curves import (
    Life,
    Touch,
    farthest,
    least_recent,
    lives,
    survival,
    touches,
    waste,
)
from tests.replay.evidence.conversation import call, errand, run_of, told, user

RUN = run_of(
    user("Go."),
    call("list_due", "invoice_4711", month="March"),
    call("read", "nothing", path="x"),
    call("pay", "paid", number="invoice_4711"),
)


def test_a_result_lives_until_something_of_it_is_demanded():
    story, lengths, demands = told(RUN)
    seen = touches(story, lengths, demands, len)
    assert seen == [
        Touch(0, 12, False),
        Touch(1, 7, False),
        Touch(0, 12, True),
    ]
    assert lives(story, lengths, seen, demands) == [
        Life(2, 7, True, 12),
        Life(1, 0, False, 7),
    ]
    assert waste(lives(story, lengths, seen, demands)) == pytest.approx(7 / 19)


def test_what_was_cut_off_by_the_end_counts_as_long_as_it_was_there():
    assert survival([(1, True), (2, False), (3, True), (3, False)]) == [
        (1, 0.75),
        (3, 0.375),
    ]
    assert survival([]) == []


def told_and_needed(*results, tokens=10):
    seen, found = set(), []
    for result in results:
        found.append(Touch(result, tokens, result in seen))
        seen.add(result)
    return found


def test_the_oracle_forgets_what_is_needed_last():
    found = told_and_needed(1, 2, 3, 1, 2, 3)
    assert least_recent(found, 20) == 0
    assert farthest(found, 20) == pytest.approx(2 / 3)
    assert least_recent(found, 30) == farthest(found, 30) == 1
    assert least_recent([], 30) is farthest([], 30) is None


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 70))
def test_the_oracle_is_never_worse(results, capacity):
    found = told_and_needed(*results)
    if any(touch.demanded for touch in found):
        assert farthest(found, capacity) >= least_recent(found, capacity)


def test_errands_reach_back_as_far_as_they_were_made_to():
    story, lengths, demands = told(errand(1))
    seen = touches(story, lengths, demands, len)
    needed = {
        life.calls
        for life in lives(story, lengths, seen, demands)
        if life.needed
    }
    assert 4 <= max(needed) <= 10
    assert sum(touch.demanded for touch in seen) >= sum(
        each.use == "first" for each in chain.from_iterable(demands)
    )


def test_the_same_for_every_run_is_certain():
    found = paired([0.2] * 9, rounds=100)
    assert (found.mean, found.low, found.high, found.n) == pytest.approx(
        (0.2, 0.2, 0.2, 9)
    )
    assert found.is_difference


def test_a_difference_that_may_be_chance_is_none():
    found = paired([0.5, -0.5, 0.4, -0.4, 0.1], rounds=1_000)
    assert found.low < 0 < found.high
    assert not found.is_difference
    assert paired([]) is None
    assert paired([0.5, -0.5, 0.4, -0.4, 0.1], rounds=1_000) == found
