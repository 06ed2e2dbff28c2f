"""What many replays showed, summed up: one row a file (or run) and window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct
from rich.table import Table

from ullage.replay.budgets import Room, label_of
from ullage.replay.compare.charges import Charge, charges_of
from ullage.replay.compare.columns import percent, table_with
from ullage.replay.compare.floors import FLOORS, Floor, Judged, judged_by, passes
from ullage.replay.compare.summary import Summary, summary_of
from ullage.replay.run import Replayed

__all__ = ["Row", "kept_table", "rows_of", "sent_table"]

_MANY_FILES = 12


class Row(Struct, frozen=True, kw_only=True):
    """A sum over runs at one window. Tokens are the judge's.

    Attributes:
        name: the file, or the run.
        policy: the policy.
        window_tokens: the window; where it is a share of each run's largest request, the
            largest window.
        share: that share, or None.
        runs: how many runs.
        calls: how many requests were fitted.
        over_window: calls whose raw request was larger than the window (their runs).
        raw_peak_tokens: the largest raw request.
        peak_tokens: the largest view.
        raw_tokens: all raw requests, summed.
        tokens: all views, summed.
        mean_tokens: the mean view.
        output_tokens: all recorded answers.
        charges: what it costs under each price profile and clock; the first is of the one
            that was asked for first.
        breaks_per_100: views in 100 that rewrote something already sent.
        rewritten_tokens: what they rewrote.
        rewritten_share: mean share of the view before that a break rewrote.
        events: how often each kind of event happened.
        over_limit: calls that could not be made to fit.
        broken: how often each gate was broken.
        fit_ms_median: time of a call to ``fit``, median.
        fit_ms_p99: and its 99th percentile.
        evidence: of what the calls demanded, what was in view.
        judged: the policy at each floor.
        below: the floors it does not reach.
        passes: whether its cost may be compared: no floor is missed, and there was evidence to
            judge it by.
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
    output_tokens: int
    charges: list[Charge]
    breaks_per_100: float
    rewritten_tokens: int
    rewritten_share: float
    events: dict[str, int]
    over_limit: int
    broken: dict[str, int]
    fit_ms_median: float
    fit_ms_p99: float
    evidence: Summary
    judged: list[Judged]
    below: list[str]
    passes: bool

    @property
    def room(self) -> Room:
        """The window in tokens, or the share of the largest request."""
        return self.window_tokens if self.share is None else self.share


def rows_of(
    found: Iterable[tuple[str, Replayed]],
    *,
    each: bool = False,
    floors: Sequence[Floor] = FLOORS,
) -> list[Row]:
    """Replays summed by file (or run), room and policy; then all of each room and policy.

    Many files of one run each, as a folder of session logs has, are one row together.

    Args:
        found: the replays, each with the name of its file.
        each: a row for each run, not for each file.
        floors: what a policy must keep before its cost is compared.
    """
    groups: dict[tuple[str, Room, str], list[Replayed]] = {}
    totals: dict[tuple[str, Room, str], list[Replayed]] = {}
    found = list(found)
    together = {} if each else _together(found)
    for name, replayed in found:
        of = (replayed.room, replayed.policy)
        label = replayed.run if each else together.get(name, name)
        groups.setdefault((label, *of), []).append(replayed)
        totals.setdefault(("all", *of), []).append(replayed)
    rows = [_row(name, group, floors) for (name, *_), group in sorted(groups.items())]
    if len(rows) > len(totals):
        rows += [_row(name, group, floors) for (name, *_), group in sorted(totals.items())]
    return rows


def _together(found: Sequence[tuple[str, Replayed]]) -> dict[str, str]:
    """What files that hold one run each are called, where there are many of them."""
    runs: dict[str, set[str]] = {}
    for name, replayed in found:
        runs.setdefault(name, set()).add(replayed.digest)
    single = [name for name, digests in runs.items() if len(digests) == 1]
    if len(single) < _MANY_FILES:
        return {}
    return dict.fromkeys(single, f"{len(single):,} files of a run each")


def _row(name: str, group: Sequence[Replayed], floors: Sequence[Floor]) -> Row:
    times = sorted(ms for replayed in group for ms in replayed.fit_ms) or [0.0]
    calls = sum(replayed.calls for replayed in group)
    raw, shown = sum(r.raw_tokens for r in group), sum(r.tokens for r in group)
    breaks = sum(r.breaks for r in group)
    breaks_per_100 = 100 * _share(breaks, calls)
    over_limit, broken = sum(r.over_limit for r in group), _sum(r.broken for r in group)
    evidence = summary_of(r.evidence for r in group)
    measured = {
        "far": evidence.far.mean,
        "line": evidence.line.mean,
        "reuse": evidence.reuse.mean,
        "anchors": evidence.anchors.mean,
        "breaks": breaks_per_100,
        "unsaid": evidence.unsaid,
        "invalid": over_limit + sum(broken.values()),
    }
    judged = judged_by(floors, measured)
    return Row(
        name=name,
        policy=group[0].policy,
        window_tokens=max(r.window_tokens for r in group),
        share=group[0].share,
        runs=len(group),
        calls=calls,
        over_window=sum(r.raw_peak_tokens > r.window_tokens for r in group),
        raw_peak_tokens=max(r.raw_peak_tokens for r in group),
        peak_tokens=max(r.peak_tokens for r in group),
        raw_tokens=raw,
        tokens=shown,
        mean_tokens=_share(shown, calls),
        output_tokens=sum(r.output_tokens for r in group),
        charges=charges_of([replayed.bills for replayed in group]),
        breaks_per_100=breaks_per_100,
        rewritten_tokens=sum(r.rewritten_tokens for r in group),
        rewritten_share=_share(sum(r.rewritten_share for r in group), breaks),
        events=_sum(r.events for r in group),
        over_limit=over_limit,
        broken=broken,
        fit_ms_median=times[len(times) // 2],
        fit_ms_p99=times[min(len(times) * 99 // 100, len(times) - 1)],
        evidence=evidence,
        judged=judged,
        below=[each.floor for each in judged if each.passes is False],
        passes=passes(judged),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(total)


def sent_table(rows: Sequence[Row], profile: str) -> Table:
    """What was sent, for a terminal; cached and cost are those of the first profile.

    In brackets is the cost of what is below a floor.
    """
    title = f"what was sent · without a model; prompt cache simulated as {profile}"
    table = table_with(title, ("runs of", "policy"), _SENT, notes=_SENT_NOTES)
    for row in rows:
        table.add_row(row.name, row.policy, *_sent(row), style=_style(row))
    return table


_SENT = (
    *("window", "runs", "over", "calls", "peak\nraw", "peak\nview", "tokens", "cached", "cost"),
    *("ms", "p99", "gates"),
)
_SENT_NOTES = (
    "over: runs that would not have fitted · peak: the largest request · tokens: views of raw",
    "requests, summed · cost: of the input, of that of the raw requests; in brackets below a floor",
    "ms, p99: of one fit · gates: legal, within the limit, reproducible, nothing lost, no larger",
)


def _sent(row: Row) -> list[str]:
    broken = ", ".join(f"{gate} {count}" for gate, count in sorted(row.broken.items()))
    over = f"{row.over_limit} over limit" if row.over_limit else ""
    charge = row.charges[0] if row.charges else None
    return [
        label_of(row.room),
        f"{row.runs:,}",
        f"{row.over_window:,}",
        f"{row.calls:,}",
        f"{row.raw_peak_tokens:,}",
        f"{row.peak_tokens:,}",
        f"{_share(row.tokens, row.raw_tokens):.0%}",
        f"{charge.shown.cached_share:.0%}" if charge else "",
        _cost(row, charge),
        f"{row.fit_ms_median:.2f}",
        f"{row.fit_ms_p99:.1f}",
        " ".join(filter(None, (broken, over))) or "kept",
    ]


def kept_table(rows: Sequence[Row]) -> Table:
    """What stayed in view of what was needed, and what was edited, for a terminal."""
    table = table_with("what was kept", ("runs of", "policy"), _KEPT, notes=_KEPT_NOTES)
    for row in rows:
        table.add_row(row.name, row.policy, *_kept(row), style=_style(row))
    return table


_KEPT = (
    *("window", "needed", "visible", "recall@1", "lost"),
    *("cut", "pruned", "condensed", "breaks\n/100", "below"),
)
_KEPT_NOTES = (
    "needed: values the agent took from old results; of them visible, one recall away, or lost",
    "cut at first sight, pruned in batches, condensed near the limit",
    "breaks/100: views in 100 that rewrote something already sent · below: floors not reached",
)


def _kept(row: Row) -> list[str]:
    kinds = (row.events.get(kind, 0) for kind in ("truncated", "pruned", "condensed"))
    return [
        label_of(row.room),
        f"{row.evidence.needed:,}",
        percent(row.evidence.er_line),
        percent(row.evidence.recall_1),
        percent(row.evidence.lost),
        *(f"{count:,}" for count in kinds),
        f"{row.breaks_per_100:.1f}",
        ", ".join(row.below),
    ]


def _style(row: Row) -> str | None:
    return "bold" if row.name == "all" else None


def _cost(row: Row, charge: Charge | None) -> str:
    """The cost; in brackets where a floor was not reached, and then no one may compare it."""
    if charge is None:
        return ""
    return f"[dim]({charge.input_share:.0%})[/]" if row.below else f"{charge.input_share:.0%}"
