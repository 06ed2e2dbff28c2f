"""Curves and fronts: what several budgets and two figures at once come to, in one number each.

    area under a curve    ER over log2 of the budget, by trapezoids, divided by its width
    front                 the points that no other is at least as good as in both figures
    hypervolume           the share of the unit square that a set of points is better than

Of a point less is better in both figures; the reference of every hypervolume is (1, 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import log2
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]


def area(curve: Mapping[float, float]) -> float | None:
    """The mean height of a curve over log2 of its places; None with fewer than two of them."""
    places = sorted((log2(place), height) for place, height in curve.items())
    if len(places) < 2:
        return None
    slices = (
        0.5 * (one + other) * (b - a)
        for (a, one), (b, other) in pairwise(places)
    )
    return sum(slices) / (places[-1][0] - places[0][0])


def front(points: Sequence[Point]) -> list[bool]:
    """For each point whether no other is better in one figure and no worse in the other."""
    return [
        not any(_dominates(other, point) for other in points)
        for point in points
    ]


def _dominates(one: Point, other: Point) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def hypervolume(points: Iterable[Point]) -> float:
    """The share of the unit square that is no better than some point, in both figures.

    Points on or behind the reference (1, 1) add nothing.
    """
    total, least = 0.0, 1.0
    for x, y in sorted(points):
        if x < 1 and y < least:
            total += (1 - x) * (least - y)
            least = y
    return total
