"""The ledger of receipts, as rows: one for each place and process, its newest sums in it.

A store may do without (`ullage.stores.receipts_of` finds none then), and a report says so. What is
kept is no tenant's content: a clean-up and `forget` leave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ullage.core.values.receipts import (
    LAST_DAY,
    Receipt,
    ReceiptKey,
    ReceiptTotals,
    TokenCounts,
)
from ullage.stores._packing import from_utf8, to_utf8

KEY = ("day", "tenant", "model", "client", "is_held_out", "writer")
_CLASSES = tuple(TokenCounts.__struct_fields__)
_SIDES = ("sent", "raw")
_COUNTS = (
    "requests",
    "conversations",
    "unreported",
    "unpriced",
    "recalls",
    "recall_tokens",
)
LATER_COLUMNS = (
    "counted",
    "counted_tokens",
    "counted_raw_tokens",
    "unbilled",
)
"""Columns that tables of before do without; in their rows each is nought."""
_COSTS = ("sent_usd", "raw_usd", "recall_usd")
TOKENS = tuple(f"{side}_{name}" for side in _SIDES for name in _CLASSES)
INTEGERS = (*_COUNTS, *TOKENS, "is_open", "written_s", *LATER_COLUMNS)
COLUMNS = (*KEY, *INTEGERS, *_COSTS)


class ReceiptStore(Protocol):
    """The part of a store that keeps receipts. Errors and threads as of `ullage.stores.Blobs`."""

    def keep_receipts(self, receipts: Sequence[Receipt]) -> None:
        """Store a process's receipts, in place of its earlier ones of the same keys.

        Sums of fewer requests than are stored are an earlier state, and left out. They need not
        outlive a loss of power.

        Args:
            receipts: the newest sums.
        """

    def receipts(
        self, since: str = "", until: str = LAST_DAY
    ) -> tuple[Receipt, ...]:
        """Return the receipts of some days, in their order.

        Args:
            since: the first day, as ``2026-11-30``.
            until: the last day.
        """


def row_of(receipt: Receipt) -> tuple[Any, ...]:
    """A receipt as a row of `COLUMNS`."""
    place = receipt.key
    sums = receipt.sums
    tokens = (
        getattr(getattr(sums, side), name)
        for side in _SIDES
        for name in _CLASSES
    )
    return (
        place.day,
        to_utf8(place.tenant),
        place.model,
        place.client,
        int(place.is_held_out),
        receipt.writer,
        *(getattr(sums, name) for name in _COUNTS),
        *tokens,
        int(receipt.is_open),
        receipt.written_s,
        *(getattr(sums, name) for name in LATER_COLUMNS),
        *(getattr(sums, name) for name in _COSTS),
    )


def receipt_of(row: Sequence[Any]) -> Receipt:
    """A receipt from a row of `COLUMNS`."""
    values = dict(zip(COLUMNS, row, strict=True))
    place = ReceiptKey(
        values["day"],
        from_utf8(bytes(values["tenant"])),
        values["model"],
        values["client"],
        bool(values["is_held_out"]),
    )
    sent_tokens, raw_tokens = (
        TokenCounts(**{name: values[f"{side}_{name}"] for name in _CLASSES})
        for side in _SIDES
    )
    counts = {
        name: values[name] for name in (*_COUNTS, *LATER_COLUMNS, *_COSTS)
    }
    return Receipt(
        key=place,
        writer=values["writer"],
        sums=ReceiptTotals(sent=sent_tokens, raw=raw_tokens, **counts),
        is_open=bool(values["is_open"]),
        written_s=values["written_s"],
    )
