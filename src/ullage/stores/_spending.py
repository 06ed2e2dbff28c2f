"""What teams spend, as rows: one for each budget, tenant, period and process.

A store may do without (`ullage.stores.spending_of` finds none then). What is kept is no tenant's
content: a clean-up and `forget` leave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ullage.core.values.spending import (
    SpendingKey,
    SpendingRow,
    SpendingSum,
)
from ullage.stores._packing import from_utf8, to_utf8

PLACE = ("budget", "tenant", "period", "writer")
FLOATS = ("usd", "reserved_usd", "limit_usd")
INTEGERS = (
    *("version", "tokens", "calls", "estimated_calls", "unpriced_calls"),
    *("reserved_tokens", "lapse_s", "limit_tokens", "resets_s", "written_s"),
)
SPENDING_COLUMNS = (*PLACE, *INTEGERS, *FLOATS)


class SpendingStore(Protocol):
    """The part of a store that keeps what teams spend. Errors and threads as of `Blobs`."""

    def book_spending(
        self, rows: Sequence[SpendingRow]
    ) -> tuple[SpendingSum, ...]:
        """Store a process's rows in place of its earlier ones, and sum up those of all others.

        A row of an older version than the stored one is left out, and so is one of version 0.
        They need not outlive a loss of power. A store that can do so writes and reads in one step,
        so that of two processes that reserve at once one sees the other.

        Args:
            rows: the newest sums, in the order of their keys.

        Returns:
            For each row what other processes have spent and reserved under its key.
        """

    def spending(self, since_s: int = 0) -> tuple[SpendingRow, ...]:
        """Return the rows of periods that end after a time, in the order of their keys.

        Args:
            since_s: seconds since 1970.
        """


def spending_row(row: SpendingRow, written_s: int) -> tuple[Any, ...]:
    """A row in the order of `SPENDING_COLUMNS`."""
    place = row.key
    return (
        *(place.budget, to_utf8(place.tenant), place.period, row.writer),
        *(getattr(row, name) for name in INTEGERS[:-1]),
        written_s,
        *(getattr(row, name) for name in FLOATS),
    )


def row_of_spending(values: Sequence[Any]) -> SpendingRow:
    """The row of values in the order of `SPENDING_COLUMNS`."""
    budget, tenant, period, writer, *rest = values
    names = (*INTEGERS, *FLOATS)
    return SpendingRow(
        key=SpendingKey(budget, from_utf8(bytes(tenant)), period),
        writer=writer,
        **dict(zip(names, rest, strict=True)),
    )
