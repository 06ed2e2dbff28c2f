"""Figures: what was measured, its spread, and the target it is held against."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median, quantiles

from msgspec import Struct
from rich.table import Table


class Figure(Struct, frozen=True):
    """One row of a table.

    Attributes:
        group: the table it stands in.
        what: what was measured.
        median: the median, or the one value.
        least: the least of them, nearest to what the code costs on a machine left alone.
        p90: of ten calls, nine took no longer; None for one value.
        p99: None where there were fewer than fifty calls.
        unit: of all of them.
        calls: how many were measured.
        target: the most the median should be, or None.
    """

    group: str
    what: str
    median: float
    least: float | None = None
    p90: float | None = None
    p99: float | None = None
    unit: str = "ms"
    calls: int = 1
    target: float | None = None


def timed_ms(
    work: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> float:
    """Milliseconds that ``work`` takes, the garbage collector as it is.

    Args:
        work: what is measured.
        clock: by which, in seconds. ``time.thread_time`` leaves out what other processes of a
            busy machine take, and waiting for the disk.
    """
    began = clock()
    work()
    return (clock() - began) * 1e3


def of_times(
    group: str,
    what: str,
    times_ms: Sequence[float],
    target: float | None = None,
) -> Figure:
    """The spread of some times."""
    cuts = (
        quantiles(times_ms, n=100, method="inclusive")
        if len(times_ms) > 1
        else None
    )
    return Figure(
        group,
        what,
        median(times_ms),
        min(times_ms),
        cuts[89] if cuts and len(times_ms) >= 5 else None,
        cuts[98] if cuts and len(times_ms) >= 50 else None,
        calls=len(times_ms),
        target=target,
    )


def table(group: str, figures: Sequence[Figure]) -> Table:
    """The figures of one group, with a mark on each that has a target."""
    shown = Table(title=group, title_justify="left", min_width=110)
    shown.add_column("", ratio=1)
    for heading in (
        "median",
        "least",
        "p90",
        "p99",
        "unit",
        "target",
        "calls",
    ):
        shown.add_column(
            heading,
            justify="left" if heading == "unit" else "right",
            no_wrap=True,
        )
    for figure in figures:
        shown.add_row(
            figure.what,
            *(
                _number(value)
                for value in (
                    figure.median,
                    figure.least,
                    figure.p90,
                    figure.p99,
                )
            ),
            figure.unit,
            _verdict(figure),
            f"{figure.calls:,}",
        )
    return shown


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if value < 10 else f"{value:,.1f}"


def _verdict(figure: Figure) -> str:
    if figure.target is None:
        return ""
    met = figure.median <= figure.target
    return f"[{'green' if met else 'red'}]≤ {figure.target:g} {'✓' if met else '✗'}[/]"
