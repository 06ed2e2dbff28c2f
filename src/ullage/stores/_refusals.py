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
    """The error of a commit whose ref already names something else."""
    return StoreError(
        store,
        "commit",
        "the ref is taken by different content. Derive refs with ullage.history.canon.ref_of",
        ref,
    )


def refuse_contradictions(store: str, records: Iterable[Record]) -> None:
    """Refuse two batches of one commit that want the same place with different data.

    Raises:
        StoreError: there are such batches. Neither could be said to stand.
    """
    places: dict[tuple[bytes, int], bytes] = {}
    for record in records:
        if record.kind != "batch":
            continue
        if places.setdefault((record.key, record.n), record.data) != record.data:
            raise StoreError(
                store,
                "commit",
                f"two different batches have number {record.n} under one key. Number them apart",
            )
