"""What every store refuses, in the same words."""

from __future__ import annotations

from collections.abc import Iterable

from ullage.errors import StoreError
from ullage.values.effects import Record

__all__ = ["closed", "refuse_contradictions", "taken"]


def closed(store: str, operation: str) -> StoreError:
    """The error of a store that is used after `close`."""
    return StoreError(store, operation, "the store is closed. Open a new one")


def taken(store: str, ref: str) -> StoreError:
    """The error of an output whose ref already names something else."""
    return StoreError(
        store,
        "put",
        "the ref is taken by different content. Derive refs with ullage.stores.ref_of",
        ref,
    )


def refuse_contradictions(store: str, records: Iterable[Record]) -> None:
    """Refuse two records of one append that are written once, at one place, and differ.

    Raises:
        StoreError: there are such records. Neither could be said to be the first.
    """
    places: dict[tuple[bytes, str, int, str], bytes] = {}
    for record in records:
        if record.is_once and places.setdefault(record.place, record.data) != record.data:
            raise StoreError(
                store,
                "append",
                f"two different records are number {record.n} of their kind under one key. "
                "Number them apart",
            )
