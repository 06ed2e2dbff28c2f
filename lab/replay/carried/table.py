"""The figures of carried runs, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan

from rich.table import Table

from lab.replay.carried.carry import Carried
from lab.replay.carried.sums import READS, Sums
from lab.replay.compare.bootstrap import Interval, paired

Figures = dict[str, float]
NOTES = """
serviced: cost with every miss paid for by the pages that a reader needs, sum over sum of keeping
everything, at three read prices. edits: the same at the first price, where the text that holds an
old text of an edit is read again if that is not in view. one page: as serviced at the first price,
where each result that holds what is missed takes one page: the bound. bare: without the misses.
median, worst: of the runs at the first read price, worst the mean of the worst tenth. far, lines:
far values shown, and shown in their line. anchors: old texts of edits shown whole. breaks: in 100
requests. unsaid: requests in which something is missing that a user said; fits: of these, such as
half the limit holds all that was said.

missed: values that views did not show. faults: results that hold them. pages: that a reader needs,
for each fault. by ref: missed values whose line the ref that a reader would open first shows in one
page. by words: those that one page of a search by words shows, and one of two pages; nothing where
no tool takes words. lost: faults that nothing in the view opens. user, model, results: passages of
eight words that replies repeat from far back and that are in view, by who wrote them.
In %, but for breaks, missed, pages, faults, lost, unsaid, fits.""".strip()


def _share(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 100.0


def figures_of(found: Sequence[Carried]) -> Figures:
    """The figures of some runs."""
    shown, raw = Sums(), Sums()
    for each in found:
        shown, raw = shown + each.shown, raw + each.raw
    first = READS[0]
    each_run = sorted(
        _share(one.shown.cost(first), one.raw.cost(first)) for one in found
    )
    worst = each_run[-max(len(each_run) // 10, 1) :]
    serviced = {
        f"serviced {at:g}": _share(shown.cost(at), raw.cost(at))
        for at in READS
    }
    return serviced | {
        "edits": _share(shown.cost(first, "edits"), raw.cost(first)),
        "one page": _share(shown.cost(first, "bound"), raw.cost(first)),
        "bare": _share(shown.cost(first, "none"), raw.cost(first)),
        "median": each_run[len(each_run) // 2] if each_run else 0.0,
        "worst": sum(worst) / max(len(worst), 1),
        "far": _share(shown.far_shown, shown.far),
        "lines": _share(shown.far_lines, shown.far),
        "anchors": _share(shown.anchors_shown, shown.anchors),
        "breaks": _share(shown.breaks, shown.calls) if shown.calls else 0.0,
        "unsaid": shown.unsaid,
        "fits": shown.unsaid_fits,
        "over limit": sum(each.over_limit for each in found),
    }


def recall_of(found: Sequence[Carried]) -> Figures:
    """What it takes to bring back what was missed, and what of repeated passages is in view."""
    shown = sum((each.shown for each in found), Sums())
    searched = shown.searched
    words = shown.by_words, shown.by_words + shown.by_words_2
    one, two = (_share(some, searched) if searched else nan for some in words)
    return {
        "missed": shown.missed,
        "faults": shown.faults,
        "pages": shown.pages / shown.faults if shown.faults else nan,
        "by ref": _share(shown.by_ref, shown.missed) if shown.missed else nan,
        "by words": one,
        "in two": two,
        "lost": shown.lost,
        "user": _share(shown.user_shown, shown.user),
        "model": _share(shown.model_shown, shown.model),
        "results": _share(shown.result_shown, shown.result),
    }


def table_of(rows: Sequence[tuple[str, str, int, Figures]]) -> Table:
    """A table of policy, window, how many runs, and their figures."""
    table = Table(box=None, pad_edge=False)
    table.add_column("policy")
    for name in ("window", "runs", *(rows[0][3] if rows else ())):
        table.add_column(name.replace("serviced ", "at "), justify="right")
    for policy, window, runs, figures in rows:
        table.add_row(
            policy, window, str(runs), *map(_figure, figures.values())
        )
    return table


def _figure(value: float) -> str:
    """A figure as a cell; nothing where there is none."""
    if isinstance(value, int):
        return f"{value:,}"
    return "" if isnan(value) else f"{value:.1f}"


def paired_table(
    pairs: Sequence[tuple[str, str, Sequence[Carried], Sequence[Carried]]],
) -> Table:
    """What policies have more than another, run by run, with the interval of 95 % of the mean.

    Args:
        pairs: of each a name, a window, what it carried, and what the other did of the same runs.
    """
    table = Table(
        box=None,
        pad_edge=False,
        title="more than the first policy, paired over runs",
    )
    for name in ("policy", "window", "runs", *_SHARES):
        table.add_column(name, justify="left" if name == "policy" else "right")
    for policy, window, theirs, firsts in pairs:
        both = list(zip(theirs, firsts, strict=True))
        shares = [(_shares(their), _shares(first)) for their, first in both]
        differences = [
            [their[at] - first[at] for their, first in shares]
            for at in range(len(_SHARES))
        ]
        table.add_row(
            policy,
            window,
            str(len(both)),
            *map(_interval, map(paired, differences)),
        )
    return table


_SHARES = ("cost", "far", "anchors")


def _shares(one: Carried) -> tuple[float, ...]:
    """Of a run the cost at the first read price, the far values and the anchors shown, in %."""
    shown = one.shown
    cost = _share(shown.cost(READS[0]), one.raw.cost(READS[0]))
    far = _share(shown.far_shown, shown.far)
    return cost, far, _share(shown.anchors_shown, shown.anchors)


def _interval(of: Interval | None) -> str:
    return (
        ""
        if of is None
        else f"{of.mean:+.1f} ({of.low:+.1f} to {of.high:+.1f})"
    )
