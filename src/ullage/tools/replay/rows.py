"""What many replays showed, summed up: one row a file (or run), policy and room.

Each run counts once in what was kept, whatever its length (`metrics` §0): a sum would favour
the longest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import TypeVar

from msgspec import Struct

from ullage.tools.replay.calls import Room, room_of
from ullage.tools.replay.cost.cache import sum_usd
from ullage.tools.replay.cost.money import Bill, Clock
from ullage.tools.replay.evidence.demands import BUCKETS
from ullage.tools.replay.evidence.score import DemandTally, EvidenceScore
from ullage.tools.replay.run import Replayed

R = TypeVar("R", bound="ReplaySummary")
_MANY_FILES = 12
_NEAR = ("1", "2-3")
_BANDS = (60, 120, 250)
"""Calls of a run: ullage saves little below the first, and half and more above the last."""
_BAND_NAMES = ("under 60", "60 to 119", "120 to 249", "250 and more")


class EvidenceShares(Struct, frozen=True, kw_only=True):
    """How much of what calls needed from old results was in view. Shares are None without any.

    Attributes:
        needed: first uses of age 4 and more.
        visible: share of them whose line was in view: the headline.
        lost: share that nothing in view led to. What is neither could be recalled.
        first: counts of first uses by bucket of age.
    """

    needed: int
    visible: float | None
    lost: float | None
    first: dict[str, DemandTally]

    @property
    def recallable(self) -> float | None:
        """Share that was not in view, and that something in view led to."""
        return (
            None
            if self.visible is None or self.lost is None
            else 1 - self.visible - self.lost
        )


class Charge(Bill, frozen=True, kw_only=True):
    """What some runs cost under one profile and clock, summed.

    Attributes:
        runs: how many runs; on the recorded clock, those with time stamps.
        input_share: input of the views relative to the raw requests, cliffs left out.
        usd_share: cost of the views relative to the raw requests, answers included; None if
            a price is not known.
    """

    runs: int
    input_share: float
    usd_share: float | None

    @property
    def is_free(self) -> bool:
        """Whether no token costs money: a server of one's own, whose work is what counts."""
        return self.raw.cost_usd == 0

    @property
    def prefill_share(self) -> float | None:
        """What the server works out for the views, of what it would for the raw requests."""
        return ratio(self.shown.prefill_tokens, self.raw.prefill_tokens)


class Band(Struct, frozen=True, kw_only=True):
    """The whole bill of the runs of so many calls, at the first prices and with warm caches.

    Attributes:
        calls: how many calls they have, in words.
        runs: how many runs.
        raw_usd: what they cost without ullage, answers included; None if a price is not known.
        usd: what they cost with it.
        unsaved: runs in which nothing was saved: they cost as much, or more.
    """

    calls: str
    runs: int
    raw_usd: float | None
    usd: float | None
    unsaved: int


class ReplaySummary(Struct, frozen=True, kw_only=True):
    """A sum over runs in one room: the figures of `Replayed`, summed or the largest.

    Attributes:
        name: the file, or the run.
        window_tokens: the window; where it is that of each run's model (``is_own``), or a share
            of its largest request, the largest window.
        over_window: runs whose largest raw request was larger than their window.
        mean_tokens: the mean view.
        charges: what it costs under each price profile and clock; the first is of the one
            that was asked for first.
        bands: the whole bill by number of calls, under the first of the charges.
        breaks_per_100: views in 100 that rewrote something already sent.
        rewritten_share: mean share of the view before that a break rewrote.
    """

    name: str
    policy: str
    window_tokens: int
    share: float | None
    runs: int
    calls: int
    over_window: int
    raw_peak_tokens: int
    peak_tokens: int
    raw_tokens: int
    tokens: int
    mean_tokens: float
    charges: list[Charge]
    bands: list[Band]
    breaks_per_100: float
    rewritten_share: float
    events: dict[str, int]
    over_limit: int
    broken: dict[str, int]
    fit_ms_median: float
    fit_ms_p99: float
    evidence: EvidenceShares
    is_own: bool = False

    @property
    def room(self) -> Room:
        """The window in tokens, the models' own, or the share of the largest request."""
        return room_of(self.window_tokens, self.share, is_own=self.is_own)

    @property
    def unsaved(self) -> int:
        """Runs in which nothing was saved, of those with known prices."""
        return sum(band.unsaved for band in self.bands)


def rows_of(
    replays: Iterable[tuple[str, Replayed]],
    row: Callable[[str, Sequence[Replayed]], R],
    *,
    by_run: bool = False,
) -> list[R]:
    """Replays summed by file (or run), room and policy; then all of each room and policy.

    Many files of one run each, as a folder of session logs has, are one row together.
    """
    groups: dict[tuple[str, Room, str], list[Replayed]] = {}
    totals: dict[tuple[str, Room, str], list[Replayed]] = {}
    replays = list(replays)
    together = {} if by_run else _together(replays)
    for name, replayed in replays:
        key = (replayed.room, replayed.policy)
        label = replayed.run if by_run else together.get(name, name)
        groups.setdefault((label, *key), []).append(replayed)
        totals.setdefault(("all", *key), []).append(replayed)
    tables = [groups, totals] if len(groups) > len(totals) else [groups]
    rows = []
    for table in tables:
        for group_key in sorted(table, key=_in_order):
            rows.append(row(group_key[0], table[group_key]))
    return rows


def _in_order(key: tuple[str, Room, str]) -> tuple[str, bool, float, str]:
    """By name, room and policy; the models' own windows behind all others."""
    name, room, policy = key
    is_own = isinstance(room, str)
    return name, is_own, 0.0 if isinstance(room, str) else room, policy


def _together(replays: Sequence[tuple[str, Replayed]]) -> dict[str, str]:
    """What files that hold one run each are called, where there are many of them."""
    runs: dict[str, set[str]] = {}
    for name, replayed in replays:
        runs.setdefault(name, set()).add(replayed.digest)
    single = [name for name, digests in runs.items() if len(digests) == 1]
    if len(single) < _MANY_FILES:
        return {}
    return dict.fromkeys(single, f"{len(single):,} files of a run each")


def row_of(name: str, group: Sequence[Replayed]) -> ReplaySummary:
    """Replays of one policy in one room, summed up."""
    times = sorted(ms for replayed in group for ms in replayed.fit_ms) or [0.0]
    calls = sum(r.calls for r in group)
    breaks = sum(r.breaks for r in group)
    tokens = sum(r.tokens for r in group)
    return ReplaySummary(
        name=name,
        policy=group[0].policy,
        window_tokens=max(r.window_tokens for r in group),
        share=group[0].share,
        runs=len(group),
        calls=calls,
        over_window=sum(r.raw_peak_tokens > r.window_tokens for r in group),
        raw_peak_tokens=max(r.raw_peak_tokens for r in group),
        peak_tokens=max(r.peak_tokens for r in group),
        raw_tokens=sum(r.raw_tokens for r in group),
        tokens=tokens,
        mean_tokens=ratio(tokens, calls) or 0.0,
        charges=charges_of([replayed.bills for replayed in group]),
        bands=bands_of(group),
        breaks_per_100=100 * (ratio(breaks, calls) or 0.0),
        rewritten_share=ratio(sum(r.rewritten_share for r in group), breaks)
        or 0.0,
        events=_sum(r.events for r in group),
        over_limit=sum(r.over_limit for r in group),
        broken=_sum(r.broken for r in group),
        fit_ms_median=times[len(times) // 2],
        fit_ms_p99=times[min(len(times) * 99 // 100, len(times) - 1)],
        evidence=needed_of([r.evidence for r in group]),
        is_own=group[0].is_own,
    )


def needed_of(scores: Sequence[EvidenceScore]) -> EvidenceShares:
    """What the evidence of these runs comes to: counts summed, shares as the mean over runs."""
    far = [evidence.far for evidence in scores if evidence.far.demanded]
    tallies = {
        b: [score.first[b] for score in scores if b in score.first]
        for b in BUCKETS
    }
    tallies_by_age = {
        bucket: reduce(add, score)
        for bucket, score in tallies.items()
        if score
    }
    return EvidenceShares(
        needed=int(
            sum(
                tally.demanded
                for name, tally in tallies_by_age.items()
                if name not in _NEAR
            )
        ),
        visible=_mean([tally.visible / tally.demanded for tally in far]),
        lost=_mean([tally.lost / tally.demanded for tally in far]),
        first=tallies_by_age,
    )


def charges_of(bills: Iterable[Sequence[Bill]]) -> list[Charge]:
    """The bills of many runs summed by profile and clock, in the order of the first run's."""
    groups: dict[tuple[str, Clock], list[Bill]] = {}
    for of_run in bills:
        for bill in of_run:
            groups.setdefault((bill.profile, bill.clock), []).append(bill)
    charges = []
    for (profile, clock), group in groups.items():
        raw = reduce(add, (bill.raw for bill in group))
        fitted = reduce(add, (bill.shown for bill in group))
        charges.append(
            Charge(
                profile=profile,
                models=tuple(
                    sorted({model for bill in group for model in bill.models})
                ),
                clock=clock,
                runs=len(group),
                raw=raw,
                shown=fitted,
                input_share=ratio(fitted.input_units, raw.input_units) or 0.0,
                usd_share=ratio(fitted.cost_usd, raw.cost_usd),
            )
        )
    return charges


def bands_of(group: Iterable[Replayed]) -> list[Band]:
    """The whole bill by number of calls, at the prices and on the clock that come first."""
    bills: dict[str, list[Bill]] = {}
    for replayed in group:
        at = bisect_right(_BANDS, replayed.calls)
        bills.setdefault(_BAND_NAMES[at], []).extend(replayed.bills[:1])
    return [
        _band(name, bills[name]) for name in _BAND_NAMES if bills.get(name)
    ]


def _band(name: str, bills: Sequence[Bill]) -> Band:
    costs = [(bill.raw.cost_usd, bill.shown.cost_usd) for bill in bills]
    return Band(
        calls=name,
        runs=len(bills),
        raw_usd=reduce(sum_usd, (raw for raw, _ in costs)),
        usd=reduce(sum_usd, (fitted for _, fitted in costs)),
        unsaved=sum(
            raw is not None and fitted is not None and fitted >= raw
            for raw, fitted in costs
        ),
    )


def ratio(part: float | None, whole: float | None) -> float | None:
    """A part of a whole; None where either is not known, or the whole is nothing."""
    return part / whole if part is not None and whole else None


def _mean(shares: Sequence[float]) -> float | None:
    return sum(shares) / len(shares) if shares else None


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, counts), Counter[str]()))
