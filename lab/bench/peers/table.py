"""The table: one row a window and contestant, over the runs that every contestant finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from rich.table import Table

from lab.bench.peers.judging import Score
from lab.replay.compare.bootstrap import Interval, paired
from lab.replay.compare.rows import JudgedRow, judged_row
from ullage.tools.replay.rows import rows_of

_ULLAGE = "ullage"
_LEAST_RUNS = 5
"""Fewer tell nothing of how a mean would vary."""
Results = Mapping[tuple[int, str], Sequence[Score]]
"""By window and contestant, in the order in which they are shown."""


class Line(Struct, frozen=True):
    """One row.

    Attributes:
        name: the contestant.
        window_tokens: the window.
        runs: how many runs it finished.
        failed: how many it did not.
        views: calls it made a view for.
        illegal: of them not legal on the wire.
        over: of them over the budget.
        unsaid: of them without some user or system text.
        refused: calls without a view.
        row: everything else; None if no run was finished.
        troubles: how it failed, and in how many runs.
        to_ours: what it has in reach (visible, or opened at the first try) less what ullage
            has, over the runs that both finished; None for ullage, or without such a run.
    """

    name: str
    window_tokens: int
    runs: int
    failed: int
    views: int
    illegal: int
    over: int
    unsaid: int
    refused: int
    row: JudgedRow | None
    troubles: dict[str, int]
    to_ours: Interval | None


def lines_of(results: Results) -> list[Line]:
    """A line for each window and contestant."""
    return [
        _line(name, window, scores, results.get((window, _ULLAGE), ()))
        for (window, name), scores in results.items()
    ]


def _line(
    name: str,
    window_tokens: int,
    scores: Sequence[Score],
    ours: Sequence[Score],
) -> Line:
    done = [score.replayed for score in scores if score.replayed is not None]
    rows = rows_of((("all", replayed) for replayed in done), judged_row)
    refused = sum(score.refused for score in scores)
    return Line(
        name,
        window_tokens,
        runs=len(done),
        failed=len(scores) - len(done),
        views=sum(replayed.calls for replayed in done) - refused,
        illegal=sum(replayed.broken.get("G1", 0) for replayed in done),
        over=sum(replayed.over_limit for replayed in done),
        unsaid=sum(score.unsaid for score in scores),
        refused=refused,
        row=rows[0] if rows else None,
        troubles=dict(
            Counter(score.trouble for score in scores if score.trouble)
        ),
        to_ours=None if name == _ULLAGE else _difference(scores, ours),
    )


def _difference(
    theirs: Sequence[Score], ours: Sequence[Score]
) -> Interval | None:
    """A paired bootstrap over runs; both are of the same runs in the same order."""
    reach = (
        (_in_reach(one), _in_reach(other))
        for one, other in zip(theirs, ours, strict=False)
    )
    return paired(
        [
            one - other
            for one, other in reach
            if one is not None and other is not None
        ]
    )


def _in_reach(score: Score) -> float | None:
    """The share of what was needed that was visible, or opened at the first try."""
    far = score.replayed.evidence.far if score.replayed is not None else None
    return (
        (far.visible + far.recoverable_1) / far.demanded
        if far and far.demanded
        else None
    )


_HEADINGS = (
    *("runs", "views", "illegal", "over", "unsaid", "refused"),
    *("peak", "tokens", "cost", "breaks/100"),
    *(
        "needed",
        "visible",
        "recall@1",
        "recall@3",
        "lost",
        "reach to ullage's",
        "ms",
        "p99",
    ),
)


def table_of(lines: Sequence[Line]) -> Table:
    """The lines for a terminal."""
    table = Table(title="the same runs, the same judge")
    table.add_column("window", justify="right")
    table.add_column("policy", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    for line in lines:
        table.add_row(
            f"{line.window_tokens // 1000}k", line.name, *_cells(line)
        )
    return table


def markdown_of(lines: Sequence[Line]) -> str:
    """The lines for a document."""
    rows = [
        ["window", "policy", *_HEADINGS],
        ["--:", "---", *["--:"] * len(_HEADINGS)],
    ]
    rows += [
        [f"{line.window_tokens // 1000}k", line.name, *_cells(line)]
        for line in lines
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(line: Line) -> list[str]:
    """Everything of a line but its window and its name, as it is shown."""
    if line.row is None:
        return [f"0 of {line.failed}", *[""] * (len(_HEADINGS) - 1)]
    row, evidence = line.row, line.row.evidence
    of = f" of {line.runs + line.failed}" if line.failed else ""
    counts = (line.illegal, line.over, line.unsaid)
    return [
        f"{line.runs}{of}",
        f"{line.views:,}",
        *(_share(count, line.views) for count in counts),
        f"{line.refused:,}" if line.refused else "",
        f"{row.peak_tokens:,}",
        f"{row.tokens / max(row.raw_tokens, 1):.0%}",
        " ".join(_costs(row)),
        f"{row.breaks_per_100:.1f}",
        f"{evidence.needed:,}",
        *(
            _percent(share)
            for share in (
                evidence.visible,
                evidence.recall_1,
                evidence.recall_3,
                evidence.lost,
            )
        ),
        _interval(line.to_ours),
        f"{row.fit_ms_median:.2f}",
        f"{row.fit_ms_p99:.1f}",
    ]


def _costs(row: JudgedRow) -> Iterator[str]:
    """What all calls cost under each profile, relative to the whole history; caches warm."""
    for charge in row.charges:
        if charge.clock == "warm" and charge.usd_share is not None:
            yield f"{charge.usd_share:.0%}"


def _share(count: int, whole: int) -> str:
    """A share, never rounded to nothing nor to everything."""
    if not count:
        return ""
    return f"{min(max(100 * count / whole, 0.1), 100 if count == whole else 99.9):.1f}%"


def _interval(found: Interval | None) -> str:
    """In percentage points, with 95 %; in brackets where zero lies within: no difference."""
    if found is None:
        return ""
    if found.n < _LEAST_RUNS:
        return f"{found.mean * 100:+.0f} (of {found.n})"
    told = f"{found.mean * 100:+.0f} ({found.low * 100:+.0f} to {found.high * 100:+.0f})"
    return told if found.is_difference else f"[{told}]"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"
