"""What many runs cost, under each price profile: sums, and how they spread over the runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add

from msgspec import Struct
from rich.table import Table

from ullage.replay.compare.columns import percent, table_with
from ullage.replay.compare.spread import ratio, spread_of
from ullage.replay.cost.money import Bill, Clock, Side, break_even

__all__ = ["CHARGES_NOTES", "Charge", "charges_of", "charges_table"]


class Charge(Struct, frozen=True, kw_only=True):
    """What some runs cost under one profile and clock.

    Attributes:
        profile: the price profile.
        clock: which gaps outlived the cache (`ullage.replay.cost.money`).
        runs: how many runs; on the recorded clock, those with time stamps.
        raw: as recorded.
        shown: as shown.
        input_share: input of the views relative to the raw requests, cliffs left out.
        usd_share: cost of the views relative to the raw requests, answers included; None if
            a price is not known.
        usd_share_median: the same of the median run.
        usd_share_worst_tenth: a tenth of the runs came out at this or dearer.
        inflation: break-even step inflation σ*: how many more steps eat up the saving.
    """

    profile: str
    clock: Clock
    runs: int
    raw: Side
    shown: Side
    input_share: float
    usd_share: float | None
    usd_share_median: float | None
    usd_share_worst_tenth: float | None
    inflation: float | None


def charges_of(bills: Iterable[Sequence[Bill]]) -> list[Charge]:
    """The bills of many runs summed by profile and clock, in the order of the first run's."""
    groups: dict[tuple[str, Clock], list[Bill]] = {}
    for of_run in bills:
        for bill in of_run:
            groups.setdefault((bill.profile, bill.clock), []).append(bill)
    return [_charge(*key, group) for key, group in groups.items()]


def _charge(profile: str, clock: Clock, group: Sequence[Bill]) -> Charge:
    raw = reduce(add, (bill.raw for bill in group))
    shown = reduce(add, (bill.shown for bill in group))
    costs = ((bill.shown.cost_usd, bill.raw.cost_usd) for bill in group)
    spread = spread_of(costs, worst="most")
    return Charge(
        profile=profile,
        clock=clock,
        runs=len(group),
        raw=raw,
        shown=shown,
        input_share=ratio(shown.input_units, raw.input_units) or 0.0,
        usd_share=ratio(shown.cost_usd, raw.cost_usd),
        usd_share_median=spread.median,
        usd_share_worst_tenth=spread.worst_tenth,
        inflation=break_even(raw, shown),
    )


def charges_table(title: str, charges: Sequence[Charge]) -> Table:
    """Charges for a terminal: a row for each price profile and clock."""
    table = table_with(title, ("prices of",), _HEADINGS)
    for charge in charges:
        table.add_row(*_cells(charge))
    return table


_HEADINGS = (
    *("gaps", "runs", "raw $", "$", "cost", "median", "worst tenth", "σ*"),
    *("cached raw", "cached"),
)

CHARGES_NOTES = (
    "gaps: warm, no pause outlives the cache; lossy, one in twenty does; recorded, by time stamps\n"
    "cost: $ of raw $, answers included · σ*: how many more steps would eat up the saving"
)
"""What the headings of a table of charges mean; once for many tables."""


def _cells(charge: Charge) -> list[str]:
    shares = (
        *(charge.usd_share, charge.usd_share_median, charge.usd_share_worst_tenth),
        *(charge.inflation, charge.raw.cached_share, charge.shown.cached_share),
    )
    return [
        charge.profile,
        charge.clock,
        f"{charge.runs:,}",
        _dollars(charge.raw.cost_usd),
        _dollars(charge.shown.cost_usd),
        *(percent(share, "unknown") for share in shares),
    ]


def _dollars(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:,.4f}" if usd < 1 else f"{usd:,.2f}"
