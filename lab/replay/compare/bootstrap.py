"""Whether a difference between two policies is one: a paired bootstrap over runs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

ROUNDS = 10_000


class Interval(Struct, frozen=True):
    """A mean over runs, and where it lies in 95 of 100 drawings.

    Attributes:
        mean: the mean.
        low: the lower end of the interval.
        high: the upper end.
        n: how many runs.
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def is_difference(self) -> bool:
        """Whether zero lies outside: inside, it is no difference."""
        return self.low > 0 or self.high < 0


def paired(
    differences: Sequence[float], *, rounds: int = ROUNDS, seed: int = 0
) -> Interval | None:
    """The mean difference of two policies over the same runs; None without runs.

    Args:
        differences: one of each run: of the one policy less the other.
        rounds: how often as many runs are drawn again, with replacement.
        seed: of the drawing.
    """
    n = len(differences)
    if not n:
        return None
    drawn = iter(random.Random(seed).choices(differences, k=n * rounds))
    means = sorted(sum(islice(drawn, n)) / n for _ in range(rounds))
    low, high = (
        means[int(rounds * 0.025)],
        means[min(int(rounds * 0.975), rounds - 1)],
    )
    return Interval(sum(differences) / n, low, high, n)
