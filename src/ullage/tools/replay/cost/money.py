"""What a run costs with and without ullage, under several price profiles at once (`metrics` M3).

One replay gives one row of requests as recorded and one as shown. Each is measured once
(`ullage.tools.replay.cost.prefix`); every profile and every clock then prices the measures, which
costs microseconds. The answer of a call is the recorded one, and costs the same on both sides.

Three clocks say which gaps outlive a cache:

    warm       no gap does
    lossy      each gap does with p = 0.05, the same gaps for every policy and profile
    recorded   the time stamps of the recording decide, where it has them and the profile
               says how long an entry lives
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Literal, TypeAlias

from msgspec import Struct

from ullage.tools.replay.cost.cache import (
    CacheUse,
    PromptCache,
    input_units,
    sum_usd,
    usd,
)
from ullage.tools.replay.cost.prefix import (
    CountText,
    MeasuredRequest,
    Prefix,
    Wire,
)
from ullage.tools.replay.cost.prices import Profile

Clock: TypeAlias = Literal["warm", "lossy", "recorded"]

_LOST_SHARE = 0.05
"""How many gaps outlive the cache on the lossy clock (`metrics` M3)."""
_LONG_S = 1e9
"""A gap that outlives every cache."""


class Priced(Struct, frozen=True, gc=False):
    """What one view did to the cache, and what it cost, and its request without edits.

    Costs are None where a price is not known.
    """

    profile: Profile
    call: CacheUse
    cost_usd: float | None
    raw_cost_usd: float | None


class BillSide(Struct, frozen=True, kw_only=True):
    """One row of requests under one profile, summed.

    Attributes:
        cached_tokens: read from the cache.
        written_tokens: written to it.
        fresh_tokens: neither.
        input_units: the input in units of the input price, cliffs left out.
        cost_usd: input and output; None if a price is not known.
    """

    cached_tokens: int = 0
    written_tokens: int = 0
    fresh_tokens: int = 0
    input_units: float = 0.0
    cost_usd: float | None = 0.0

    def __add__(self, other: BillSide) -> BillSide:
        cost_usd = sum_usd(self.cost_usd, other.cost_usd)
        counts = [
            name for name in self.__struct_fields__ if name != "cost_usd"
        ]
        return BillSide(
            **{at: getattr(self, at) + getattr(other, at) for at in counts},
            cost_usd=cost_usd,
        )

    @property
    def prefill_tokens(self) -> int:
        """What the server works out before it answers: all that the cache does not hold."""
        return self.written_tokens + self.fresh_tokens

    @property
    def cached_share(self) -> float:
        """Share of the input that was read from the cache."""
        whole = self.cached_tokens + self.written_tokens + self.fresh_tokens
        return self.cached_tokens / whole if whole else 0.0


class Bill(Struct, frozen=True, kw_only=True):
    """What one run costs under one profile and one clock: as recorded, and as shown.

    ``models`` says whose prices they are (`Profile.whose`).
    """

    profile: str
    models: tuple[str, ...] = ()
    clock: Clock
    raw: BillSide
    shown: BillSide


class CostMeter:
    """Prices one run while it is replayed.

    Args:
        heads: tools and system text as recorded, and as shown (`head_of`).
        clocks: the start of each call in seconds, by clock (`clocks_of`).

    Attributes:
        raw, shown: the recorded requests, and the views.
        newest: the newest view under the first profile and clock.
    """

    def __init__(
        self,
        profiles: Sequence[Profile],
        heads: tuple[str, str],
        clocks: Mapping[Clock, Sequence[float]],
        count: CountText,
    ) -> None:
        self.raw = Prefix(count)
        self.shown = Prefix(count)
        self._heads = heads
        self._pricings = [
            _Pricing(profile, clock, starts)
            for profile in profiles
            for clock, starts in clocks.items()
            if _matters(clock, profile)
        ]
        self.newest: Priced | None = None

    def take(
        self,
        number: int,
        history: Sequence[Wire],
        view: Sequence[Wire],
        output_tokens: int,
    ) -> None:
        """Take in call ``number`` of the run: as recorded, as shown, and its answer's tokens."""
        raw = self.raw.measure(history, self._heads[0])
        fitted = self.shown.measure(view, self._heads[1])
        for pricing in self._pricings:
            pricing.take(raw, fitted, output_tokens, number)
        self.newest = self._pricings[0].newest if self._pricings else None

    def bills(self) -> list[Bill]:
        """What each profile and clock came to, in the order of the profiles."""
        return [pricing.bill() for pricing in self._pricings]


def _matters(clock: Clock, profile: Profile) -> bool:
    """Whether a profile can be priced on a clock, and comes to something else there."""
    if profile.hits == "never":
        return clock == "warm"
    return clock != "recorded" or profile.ttl_s is not None


class _Pricing:
    """One profile on one clock."""

    def __init__(
        self, profile: Profile, clock: Clock, starts: Sequence[float]
    ) -> None:
        self.profile = profile
        self.clock = clock
        self._starts = starts
        self._raw = PromptCache(profile)
        self._shown = PromptCache(profile)
        self._sides = (BillSide(), BillSide())
        self.newest: Priced | None = None

    def take(
        self,
        raw: MeasuredRequest,
        fitted: MeasuredRequest,
        output_tokens: int,
        number: int,
    ) -> None:
        now_s = self._starts[number]
        profile = self.profile
        raw_use = self._raw.take(raw, now_s)
        fitted_use = self._shown.take(fitted, now_s)
        costs = [
            usd(call, profile, output_tokens) for call in (raw_use, fitted_use)
        ]
        self._sides = (
            self._sides[0] + _side(raw_use, profile, costs[0]),
            self._sides[1] + _side(fitted_use, profile, costs[1]),
        )
        self.newest = Priced(self.profile, fitted_use, costs[1], costs[0])

    def bill(self) -> Bill:
        raw, fitted = self._sides
        profile = self.profile.name
        models = (self.profile.whose,)
        return Bill(
            profile=profile,
            models=models,
            clock=self.clock,
            raw=raw,
            shown=fitted,
        )


def _side(
    call: CacheUse, profile: Profile, cost_usd: float | None
) -> BillSide:
    return BillSide(
        cached_tokens=call.cached_tokens,
        written_tokens=call.written_tokens,
        fresh_tokens=call.fresh_tokens,
        input_units=input_units(call, profile),
        cost_usd=cost_usd,
    )


def clocks_of(
    name: str, lengths: Sequence[int], stamps: Mapping[int, float]
) -> dict[Clock, list[float]]:
    """The start of each call in seconds, by clock. The run's name seeds the lossy one."""
    chance = Random(f"ullage {name}")
    gaps = [_LONG_S if chance.random() < _LOST_SHARE else 0.0 for _ in lengths]
    clocks: dict[Clock, list[float]] = {"warm": [0.0] * len(lengths)}
    recorded = _recorded(lengths, stamps)
    if recorded is not None:
        clocks["recorded"] = recorded
    clocks["lossy"] = list(accumulate(gaps))
    return clocks


def _recorded(
    lengths: Sequence[int], stamps: Mapping[int, float]
) -> list[float] | None:
    """When each call began: the newest stamp in its history. None if one has none."""
    times = sorted(stamps.items())
    starts = list[float]()
    newest = -math.inf
    at = 0
    for length in lengths:
        while at < len(times) and times[at][0] < length:
            newest = max(newest, times[at][1])
            at += 1
        starts.append(newest)
    return starts if starts and starts[0] > -math.inf else None
