"""The sum, the mean, the median and the worst tenth."""

import pytest

from lab.replay.compare.spread import Spread, spread_of


def test_the_sum_favours_the_longest_and_the_median_does_not():
    found = spread_of([(900, 1000), *[(1, 10)] * 4], worst="least")
    assert found.pooled == pytest.approx(904 / 1040)
    assert found.mean == pytest.approx(0.26)
    assert (found.median, found.worst_tenth, found.runs) == (0.1, 0.1, 5)


@pytest.mark.parametrize(("worst", "tenth"), [("least", 0.0), ("most", 0.9)])
def test_the_worst_tenth_is_at_the_end_that_is_worse(worst, tenth):
    found = spread_of([(n, 10) for n in range(10)], worst=worst)
    assert found.worst_tenth == tenth


def test_runs_without_any_of_it_are_left_out():
    assert spread_of([(None, 1), (1, None), (0, 0)], worst="most") == Spread()
