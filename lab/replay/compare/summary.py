"""The evidence of many runs: counts summed, shares as the mean over runs.

Each run counts once, whatever its length (`metrics` §0): a sum would favour the longest. Beside
the mean stand the sum, the median and the worst tenth, since runs differ widely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lab.replay.compare.spread import Spread, spread_of
from lab.replay.watch import Evidence, Tally
from ullage.tools.replay.evidence.demands import BUCKETS
from ullage.tools.replay.rows import EvidenceShares, needed_of


class Summary(EvidenceShares, frozen=True, kw_only=True):
    """Evidence over runs. Shares are of first uses of age 4 and more; None without any.

    Attributes:
        runs: runs with a demand of that age.
        er_atom: share of which at least the bare value is somewhere in view.
        recall_1: share not visible that the ref a reader would open first returns.
        recall_3: that one of the first three returns.
        recall_any: that any ref in view returns in one call (the bound, with hindsight).
        words_1: share not visible that the first page of a search by words shows in its line.
        words_2: that one of its first two pages shows.
        far: the headline over the runs: its mean is ``visible``.
        line: share visible of first uses of every age.
        reuse: share visible of values the model had written before, age 4 and more.
        both: share visible of first uses and re-uses of that age together.
        anchors: share visible, whole, of the old texts of edits.
        views: how many views there were.
        unsaid: share of views in which some text of the user or the system was missing.
        reused: counts of re-uses by bucket.
    """

    runs: int
    er_atom: float | None
    recall_1: float | None
    recall_3: float | None
    recall_any: float | None
    words_1: float | None
    words_2: float | None
    far: Spread
    line: Spread
    reuse: Spread
    both: Spread
    anchors: Spread
    views: int
    unsaid: float
    reused: dict[str, Tally]


def summary_of(found: Iterable[Evidence]) -> Summary:
    """What the evidence of these runs comes to."""
    each = list(found)
    far = [evidence.far for evidence in each if evidence.far.demanded]
    views = sum(evidence.views for evidence in each)
    kept = needed_of(each)
    return Summary(
        **{field: getattr(kept, field) for field in kept.__struct_fields__},
        runs=len(far),
        er_atom=_mean(far, lambda tally: tally.mentioned),
        recall_1=_mean(far, lambda tally: tally.recoverable_1),
        recall_3=_mean(far, lambda tally: tally.recoverable_3),
        recall_any=_mean(far, lambda tally: tally.recoverable),
        words_1=_mean(far, lambda tally: tally.found_1),
        words_2=_mean(far, lambda tally: tally.found_2),
        far=_spread(far),
        line=_spread(evidence.line for evidence in each),
        reuse=_spread(evidence.far_reuse for evidence in each),
        both=_spread(evidence.both for evidence in each),
        anchors=_spread(evidence.anchors for evidence in each),
        views=views,
        unsaid=sum(evidence.unsaid for evidence in each) / views
        if views
        else 0.0,
        reused=_sum(evidence.reuse for evidence in each),
    )


def _sum(found: Iterable[dict[str, Tally]]) -> dict[str, Tally]:
    sums: dict[str, Tally] = {}
    for tallies in found:
        for bucket, tally in tallies.items():
            sums[bucket] = sums.get(bucket, Tally()) + tally
    return {bucket: sums[bucket] for bucket in BUCKETS if bucket in sums}


def _mean(
    tallies: Sequence[Tally], part: Callable[[Tally], float]
) -> float | None:
    shares = [part(tally) / tally.demanded for tally in tallies]
    return sum(shares) / len(shares) if shares else None


def _spread(tallies: Iterable[Tally]) -> Spread:
    """The visible share over the runs that demanded anything."""
    return spread_of(
        ((tally.visible, tally.demanded) for tally in tallies), worst="least"
    )
