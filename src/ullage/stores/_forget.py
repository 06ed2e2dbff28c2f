"""Erasure: all that a store holds of one tenant, whether or not a live ledger needs it."""

from __future__ import annotations

from ullage.stores._base import Store
from ullage.stores._clean import Bounds, Collected

__all__ = ["forget"]

_EVERYTHING = Bounds(older_than_s=-1)


def forget(store: Store, tenant: str) -> Collected:
    """Let go of a tenant's outputs and ledger, in the store and in files beside it.

    Content that another tenant holds too stays theirs. To have the bytes leave an SQLite file as
    well, `SqliteStore.shrink` follows.

    Args:
        store: the store. Nothing may be written for the tenant meanwhile.
        tenant: whose; ``""`` for the unnamed one.

    Returns:
        What went.

    Raises:
        StoreError: the store failed. What went until then is gone.
    """
    done = Collected((), 0, 0)
    for _ in range(2):  # what was used later than now counts as used now, and goes after that
        step = store.collect(tenant, _EVERYTHING)
        while step is not None:
            done = done.then(step)
            step = store.collect(tenant, _EVERYTHING, step.cursor) if step.cursor else None
    return done
