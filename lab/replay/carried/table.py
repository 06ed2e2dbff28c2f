"""The figures of carried runs, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from lab.replay.carried.carry import Carried
from lab.replay.carried.sums import READS, Sums
from lab.replay.compare.bootstrap import Interval, paired

Figures = dict[str, float]
NOTES = """
serviced: cost with every miss paid for, sum over sum of keeping everything, at three read prices.
bare: the same without the misses, at the first. median, worst: of the runs at the first read price,
worst the mean of the worst tenth. far, lines: far values shown, and shown in their line.
anchors: old texts of edits shown whole. breaks: in 100 requests. lost: misses that nothing in the
view opens. unsaid: requests in which something is missing that a user said; fits: of these, such as
half the limit holds all that was said. In %, but for breaks, faults, lost, unsaid, fits.""".strip()


def _share(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 100.0


def figures_of(found: Sequence[Carried]) -> Figures:
    """The figures of some runs."""
    shown, raw = Sums(), Sums()
    for each in found:
        shown, raw = shown + each.shown, raw + each.raw
    each_run = sorted(_share(one.shown.cost(READS[0]), one.raw.cost(READS[0])) for one in found)
    worst = each_run[-max(len(each_run) // 10, 1) :]
    serviced = {f"serviced {at:g}": _share(shown.cost(at), raw.cost(at)) for at in READS}
    return serviced | {
        "bare": _share(shown.cost(READS[0], serviced=False), raw.cost(READS[0])),
        "median": each_run[len(each_run) // 2] if each_run else 0.0,
        "worst": sum(worst) / max(len(worst), 1),
        "far": _share(shown.far_shown, shown.far),
        "lines": _share(shown.far_lines, shown.far),
        "anchors": _share(shown.anchors_shown, shown.anchors),
        "breaks": _share(shown.breaks, shown.calls) if shown.calls else 0.0,
        "faults": shown.faults,
        "lost": shown.lost,
        "unsaid": shown.unsaid,
        "fits": shown.unsaid_fits,
        "over limit": sum(each.over_limit for each in found),
    }


def table_of(rows: Sequence[tuple[str, str, int, Figures]]) -> Table:
    """A table of policy, window, how many runs, and their figures."""
    table = Table(box=None, pad_edge=False)
    table.add_column("policy")
    for name in ("window", "runs", *(rows[0][3] if rows else ())):
        table.add_column(name.replace("serviced ", "at "), justify="right")
    for policy, window, runs, figures in rows:
        shown = (
            f"{value:.1f}" if isinstance(value, float) else str(value) for value in figures.values()
        )
        table.add_row(policy, window, str(runs), *shown)
    return table


def paired_table(pairs: Sequence[tuple[str, str, Sequence[Carried], Sequence[Carried]]]) -> Table:
    """What policies have more than another, run by run, with the interval of 95 % of the mean.

    Args:
        pairs: of each a name, a window, what it carried, and what the other did of the same runs.
    """
    table = Table(box=None, pad_edge=False, title="more than the first policy, paired over runs")
    for name in ("policy", "window", "runs", *_SHARES):
        table.add_column(name, justify="left" if name == "policy" else "right")
    for policy, window, theirs, firsts in pairs:
        both = list(zip(theirs, firsts, strict=True))
        shares = [(_shares(their), _shares(first)) for their, first in both]
        differences = [
            [their[at] - first[at] for their, first in shares] for at in range(len(_SHARES))
        ]
        table.add_row(policy, window, str(len(both)), *map(_interval, map(paired, differences)))
    return table


_SHARES = ("cost", "far", "anchors")


def _shares(one: Carried) -> tuple[float, ...]:
    """Of a run the cost at the first read price, the far values and the anchors shown, in %."""
    shown = one.shown
    cost = _share(shown.cost(READS[0]), one.raw.cost(READS[0]))
    far = _share(shown.far_shown, shown.far)
    return cost, far, _share(shown.anchors_shown, shown.anchors)


def _interval(of: Interval | None) -> str:
    return "" if of is None else f"{of.mean:+.1f} ({of.low:+.1f} to {of.high:+.1f})"
