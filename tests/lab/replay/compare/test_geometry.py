"""Areas, fronts and hypervolumes, on figures a reader can draw."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.replay.compare.geometry import area, front, hypervolume

points = st.lists(st.tuples(st.floats(0, 2), st.floats(0, 2)), max_size=8)


def test_the_area_is_the_mean_height_over_the_logarithm():
    assert area({8: 0.0, 16: 1.0}) == 0.5
    assert area({8: 0.5, 16: 0.5, 1024: 0.5}) == 0.5
    assert area({8: 0.0, 16: 1.0, 128: 1.0}) == pytest.approx((0.5 + 3) / 4), (
        "later is wider"
    )
    assert area({8: 1.0}) is None


def test_on_the_front_is_what_nothing_beats():
    assert front([(0.1, 0.9), (0.5, 0.5), (0.6, 0.5), (0.9, 0.1)]) == [
        True,
        True,
        False,
        True,
    ]
    assert front([(0.5, 0.5), (0.5, 0.5)]) == [True, True]
    assert front([]) == []


def test_the_hypervolume_is_what_lies_behind_the_points():
    assert hypervolume([(0.5, 0.5)]) == 0.25
    assert hypervolume([(0.5, 0.5), (0.75, 0.25)]) == pytest.approx(
        0.25 + 0.25 * 0.25
    )
    assert hypervolume([(0, 0)]) == 1
    assert hypervolume([(1.5, 0), (0, 1), (1, 1)]) == 0, (
        "behind the reference there is nothing"
    )


@given(points, st.tuples(st.floats(0, 2), st.floats(0, 2)))
def test_a_point_more_never_makes_it_less(found, more):
    assert hypervolume(found) <= hypervolume([*found, more]) <= 1
    assert hypervolume([*found, more]) == hypervolume([more, *found])
