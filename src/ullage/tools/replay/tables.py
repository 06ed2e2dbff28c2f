"""The tables of a replay for a terminal: what was sent, what was kept, what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.table import Column, Table

from ullage.core.installing import install_command
from ullage.core.tokens.models import counter_for
from ullage.tools.replay.calls import label_of
from ullage.tools.replay.cost.prices import OWN
from ullage.tools.replay.gates import JUDGE_MODEL
from ullage.tools.replay.rows import Charge, ReplaySummary, ratio

WIDTH = 120
"""Characters of a pipe, which has no width of its own."""
_LEAST_NAME = 12
"""A name is folded in so many characters, where figures need the room."""


class Figures(Table):
    """A table of figures, as wide as the terminal.

    Where its columns have no room, names are folded, and then the columns that say least are left
    out and named below.

    Attributes:
        optional: the headings of columns that may be left out, the first of them first.
    """

    optional: Sequence[str] = ()

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        table = self
        hidden = list[str]()
        for heading in self.optional:
            if table._width(_LEAST_NAME) <= options.max_width:
                break
            hidden.append(heading)
            table = table._without(heading)
        table = table._with_folded_names(options.max_width)
        if hidden:
            headings = ", ".join(name.replace("\n", " ") for name in hidden)
            notes = [str(self.caption)] if self.caption else []
            notes.append(f"not shown at this width: {headings}")
            table.caption = "\n".join(notes)
        yield from Table.__rich_console__(table, console, options)

    def _without(self, heading: str) -> Figures:
        table = copy(self)
        columns = [
            column for column in self.columns if column.header != heading
        ]
        # rich knows the first and the last column, which have no padding, by their numbers
        table.columns = [
            replace(column, _index=index)
            for index, column in enumerate(columns)
        ]
        return table

    def _with_folded_names(self, width: int) -> Figures:
        """The table with its longest name as narrow as it has to be, and no figure cut."""
        table = copy(self)
        table.columns = [copy(column) for column in self.columns]
        names = [column for column in table.columns if _is_name(column)]
        longest = max(names, key=_longest, default=None)
        excess = self._width(WIDTH) - width
        if longest is not None and excess > 0:
            longest.max_width = max(_longest(longest) - excess, _LEAST_NAME)
        return table

    def _width(self, most_name: int) -> int:
        """The characters of all columns, names folded in so many."""
        width = 2  # the edges
        for column in self.columns:
            longest = _longest(column)
            if _is_name(column):
                longest = min(longest, most_name)
            width += longest + 2
        return width


def _is_name(column: Column) -> bool:
    return column.overflow == "fold"


def _longest(column: Column) -> int:
    """The characters of the longest line in a column, as far as it may be wide.

    A column that takes the room that is left needs no more than its least width.
    """
    if column.ratio is not None:
        return column.min_width or cell_len(str(column.header))
    cells = [str(cell) for cell in (column.header, *column.cells)]
    lines = [line for cell in cells for line in cell.split("\n")]
    longest = max(map(cell_len, lines), default=0)
    return min(longest, column.max_width or longest)


def tables_of(
    rows: Sequence[ReplaySummary],
    totals: Sequence[ReplaySummary],
    *,
    is_short: bool = False,
) -> Iterator[Table]:
    """What was sent, what was kept, and of all runs what they cost."""
    main_charge = totals[-1].charges[0] if totals[-1].charges else None
    owner = _whose(main_charge) if main_charge else "nobody"
    what = "cache" if main_charge and main_charge.is_free else "prices"
    title = f"what was sent · without a model; {what} of {owner}"
    sent_table = table_with(
        title,
        ("runs of", "policy"),
        _SENT,
        notes=(*_SENT_NOTES, *_counter_notes()),
    )
    kept_table = table_with(
        "what was kept", ("runs of", "policy"), _KEPT, notes=_KEPT_NOTES
    )
    for row in rows:
        style = "bold" if row.name == "all" else None
        sent_table.add_row(
            row.name,
            row.policy,
            label_of(row.room),
            *_request_cells(row),
            style=style,
        )
        kept_table.add_row(
            row.name,
            row.policy,
            label_of(row.room),
            *_evidence_cells(row),
            style=style,
        )
    yield sent_table
    yield kept_table
    for row in totals:
        priced, free = _charges_of(row, is_short=is_short)
        if priced:
            yield _costs_table(row, priced, is_last=row is totals[-1])
        if free:
            yield _prefill_table(row, free, is_last=row is totals[-1])
    for row in totals:
        if len(row.bands) > 1 and not row.charges[0].is_free:
            yield _bill_table(row, is_last=row is totals[-1])


def _charges_of(
    row: ReplaySummary, *, is_short: bool
) -> tuple[list[Charge], list[Charge]]:
    """The charges to be shown, those that cost money and those that do not.

    If short, of the first profile alone; the charges of a profile stand together.
    """
    priced = list[Charge]()
    free = list[Charge]()
    for charge in row.charges:
        if is_short and charge.profile != row.charges[0].profile:
            break
        (free if charge.is_free else priced).append(charge)
    return priced, free


def _costs_table(
    row: ReplaySummary, charges: Sequence[Charge], *, is_last: bool
) -> Table:
    """What a row costs at the prices of providers."""
    notes = _COSTS_NOTES if is_last else ()
    table = table_with(
        f"{_title_of(row)}: what it costs, raw and shown",
        ("prices of",),
        _COSTS,
        notes=notes,
    )
    for charge in charges:
        table.add_row(
            *_profile_cells(charge),
            dollars(charge.raw.cost_usd),
            dollars(charge.shown.cost_usd),
            percent(charge.usd_share, "unknown"),
            *_cached_cells(charge),
        )
    return table


def _prefill_table(
    row: ReplaySummary, charges: Sequence[Charge], *, is_last: bool
) -> Table:
    """What a server of one's own works out for a row: no token of it costs money."""
    notes = _PREFILL_NOTES if is_last else ()
    table = table_with(
        f"{_title_of(row)}: what your own server works out",
        ("cache of",),
        _PREFILL,
        notes=notes,
    )
    for charge in charges:
        table.add_row(
            *_profile_cells(charge),
            f"{charge.raw.prefill_tokens:,}",
            f"{charge.shown.prefill_tokens:,}",
            percent(charge.prefill_share),
            *_cached_cells(charge),
        )
    return table


def _title_of(row: ReplaySummary) -> str:
    """Which runs, under which policy, in how large a window."""
    return f"{row.name} · {row.policy} · {label_of(row.room)}"


def _profile_cells(charge: Charge) -> tuple[str, str, str]:
    return charge.profile, charge.clock, f"{charge.runs:,}"


def _cached_cells(charge: Charge) -> tuple[str, str]:
    raw = percent(charge.raw.cached_share)
    return raw, percent(charge.shown.cached_share)


def _bill_table(row: ReplaySummary, *, is_last: bool) -> Table:
    """The whole bill of a row, by how many calls its runs have."""
    title = f"{row.name} · {row.policy} · {label_of(row.room)}: the whole bill, by calls of a run"
    table = table_with(
        title, ("calls",), _BILL, notes=_BILL_NOTES if is_last else ()
    )
    for band in row.bands:
        share = ratio(band.usd, band.raw_usd)
        table.add_row(
            band.calls,
            f"{band.runs:,}",
            dollars(band.raw_usd),
            dollars(band.usd),
            percent(share, "unknown"),
            f"{band.unsaved:,} ({percent(band.unsaved / band.runs)})",
        )
    return table


_SENT = (
    *(
        "window",
        "runs",
        "over",
        "calls",
        "peak\nraw",
        "peak\nview",
        "tokens",
        "cached",
        "cost",
    ),
    *("ms", "p99", "gates"),
)
_SENT_NOTES = (
    "over: runs that would not have fitted · peak: the largest request · ms, p99: of one fit",
    "tokens: of all views, of those of the raw requests · cost: $ of raw $, answers included",
    "gates: legal, within the limit, reproducible, nothing lost, no larger",
)


def _counter_notes() -> tuple[str, ...]:
    """How tokens were counted, where that is an estimate."""
    if counter_for(JUDGE_MODEL).exact:
        return ()
    command = escape(install_command("exact"))
    return (f"tokens are estimated; with `{command}` they are counted",)


_KEPT = (
    *("window", "needed", "visible", "recallable", "lost"),
    *("cut", "pruned", "condensed", "breaks\n/100"),
)
_KEPT_NOTES = (
    "needed: values the agent took from old results; of them in view, recallable, or lost",
    "cut on arrival, pruned in batches, condensed near the limit",
    "breaks/100: views in 100 that rewrote something already sent",
)
_OPTIONAL = (
    *("p99", "ms", "peak\nraw", "condensed", "over", "cut", "cached raw"),
    *("pruned", "peak\nview", "cached", "gaps", "needed", "runs", "calls"),
    *("gates", "breaks\n/100"),
)
"""What a narrow terminal does without, the least first."""
_COSTS = ("gaps", "runs", "raw $", "$", "cost", "cached raw", "cached")
_COSTS_NOTES = (
    "gaps: warm, no pause outlives the cache; lossy, one in twenty does; recorded, by time stamps",
    "cost: $ of raw $, answers included · prices of other providers: --cache NAME, or --json",
)

_PREFILL = (
    "gaps",
    "runs",
    "prefill raw",
    "prefill",
    "share",
    "cached raw",
    "cached",
)
_PREFILL_NOTES = (
    "prefill: prompt tokens that the cache does not hold, in whole blocks; share: of those of the",
    "raw requests, as if their window had been large enough · gaps: as above",
)

_BILL = ("runs", "raw $", "$", "cost", "nothing saved")
_BILL_NOTES = (
    "input and answers at the first prices, no pause outlives the cache; raw: without ullage",
    "nothing saved: runs that cost as much as without it, or more (each has the tool)",
    "what a model would open again is not in it",
)


def _whose(charge: Charge) -> str:
    """A profile, and of each run's own whose they are: the first ones, and how many more."""
    if charge.profile != OWN:
        return charge.profile
    more = [f"{len(charge.models) - 2} more"] if len(charge.models) > 2 else []
    return f"{OWN}: {', '.join([*charge.models[:2], *more])}"


def _request_cells(row: ReplaySummary) -> list[str]:
    broken = [f"{gate} {count}" for gate, count in sorted(row.broken.items())]
    over = [f"{row.over_limit} over limit"] if row.over_limit else []
    charge = row.charges[0] if row.charges else None
    return [
        *(f"{count:,}" for count in (row.runs, row.over_window, row.calls)),
        *(f"{tokens:,}" for tokens in (row.raw_peak_tokens, row.peak_tokens)),
        percent(ratio(row.tokens, row.raw_tokens)),
        percent(charge.shown.cached_share) if charge else "",
        percent(charge.usd_share, "unknown") if charge else "",
        f"{row.fit_ms_median:.2f}",
        f"{row.fit_ms_p99:.1f}",
        ", ".join([*broken, *over]) or "kept",
    ]


def _evidence_cells(row: ReplaySummary) -> list[str]:
    evidence = row.evidence
    return [
        f"{evidence.needed:,}",
        *(
            percent(share)
            for share in (evidence.visible, evidence.recallable, evidence.lost)
        ),
        *(
            f"{row.events.get(kind, 0):,}"
            for kind in ("truncated", "pruned", "condensed")
        ),
        f"{row.breaks_per_100:.1f}",
    ]


def table_with(
    title: str,
    names: Sequence[str],
    figures: Sequence[str],
    *,
    notes: Sequence[str] = (),
) -> Figures:
    """A table without rows: names to the left, figures to the right."""
    table = Figures(
        title=f"\n{title}",
        title_justify="left",
        caption="\n".join(notes) or None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    for heading in names:
        table.add_column(heading, overflow="fold")
    for heading in figures:
        table.add_column(heading, justify="right", no_wrap=True)
    table.optional = tuple(name for name in _OPTIONAL if name in figures)
    return table


def percent(share: float | None, unknown: str = "") -> str:
    """A share as a cell; ``unknown`` where there is none."""
    return unknown if share is None else f"{share:.0%}"


def dollars(usd: float | None) -> str:
    """A sum as a cell."""
    if usd is None:
        return "unknown"
    return f"{usd:,.4f}" if usd < 1 else f"{usd:,.2f}"
