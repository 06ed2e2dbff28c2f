"""A share over many runs: of the sum, and how it spreads from run to run.

A sum favours the longest runs, a mean hides the bad ones (`frontier`, weaknesses 6): so the
median and the worst tenth stand beside them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct


class Spread(Struct, frozen=True, kw_only=True):
    """A share of something, over runs. All are None without a run that has any of it.

    Attributes:
        runs: how many runs have any of it.
        pooled: the share of the sum.
        mean: the mean of the runs' shares.
        median: the share of the median run.
        worst_tenth: a tenth of the runs came out at this or worse.
    """

    runs: int = 0
    pooled: float | None = None
    mean: float | None = None
    median: float | None = None
    worst_tenth: float | None = None


def spread_of(
    parts: Iterable[tuple[float | None, float | None]],
    *,
    worst: Literal["least", "most"],
) -> Spread:
    """The spread of some shares.

    Args:
        parts: of each run the part and the whole. A run without a whole is left out, as is one
            where either is not known (None).
        worst: whether the smallest shares are the worst (evidence), or the largest (cost).
    """
    known = [
        (part, whole) for part, whole in parts if part is not None and whole
    ]
    if not known:
        return Spread()
    shares = sorted(
        (part / whole for part, whole in known), reverse=worst == "least"
    )
    return Spread(
        runs=len(shares),
        pooled=sum(part for part, _ in known)
        / sum(whole for _, whole in known),
        mean=sum(shares) / len(shares),
        median=shares[len(shares) // 2],
        worst_tenth=shares[len(shares) * 9 // 10],
    )
