"""Stores: where what was set aside is kept, and the ledger with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.on_demand import names

__all__ = [
    "DAY_S",
    "AsyncPostgresStore",
    "AsyncStore",
    "Blobs",
    "BoundedStore",
    "Bounds",
    "ChunkSize",
    "Collected",
    "MemoryStore",
    "PostgresStore",
    "ReceiptStore",
    "Records",
    "Removed",
    "Shape",
    "SpendingRow",
    "SpendingStore",
    "SpendingSum",
    "SpillStore",
    "SqliteStore",
    "Store",
    "StoreWrapper",
    "Threaded",
    "default_path",
    "directory_of",
    "every_ref",
    "files_of",
    "forget",
    "innermost",
    "is_url",
    "named_in",
    "open_lasting",
    "open_store",
    "owner_of",
    "pieces",
    "receipts_of",
    "ref_of",
    "refs_in",
    "spending_of",
    "spending_totals",
    "tenant_of",
    "with_files",
]

if TYPE_CHECKING:
    from ullage.core.history.canon import ref_of
    from ullage.core.values.effects import ChunkSize, Shape, pieces
    from ullage.core.values.owners import owner_of, tenant_of
    from ullage.core.values.spending import (
        SpendingRow,
        SpendingSum,
        spending_totals,
    )
    from ullage.stores._base import (
        AsyncStore,
        Blobs,
        Records,
        Store,
        StoreWrapper,
        every_ref,
        forget,
    )
    from ullage.stores._clean import (
        DAY_S,
        Bounds,
        Collected,
        Removed,
        named_in,
        refs_in,
    )
    from ullage.stores._file import default_path
    from ullage.stores._open import (
        directory_of,
        files_of,
        innermost,
        is_url,
        open_store,
        receipts_of,
        spending_of,
        with_files,
    )
    from ullage.stores._receipts import ReceiptStore
    from ullage.stores._spending import SpendingStore
    from ullage.stores.bounded import BoundedStore
    from ullage.stores.memory import MemoryStore
    from ullage.stores.objects.opening import open_lasting
    from ullage.stores.postgres.store import AsyncPostgresStore, PostgresStore
    from ullage.stores.spill import SpillStore
    from ullage.stores.sqlite import SqliteStore
    from ullage.stores.threaded import Threaded
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ullage.core.history.canon": "ref_of",
            "ullage.stores._base": (
                "AsyncStore Blobs Records Store StoreWrapper every_ref forget"
            ),
            "ullage.stores._clean": "DAY_S Bounds Collected Removed named_in refs_in",
            "ullage.stores._file": "default_path",
            "ullage.stores._open": (
                "directory_of files_of innermost is_url open_store receipts_of spending_of "
                "with_files"
            ),
            "ullage.stores._receipts": "ReceiptStore",
            "ullage.stores._spending": "SpendingStore",
            "ullage.stores.bounded": "BoundedStore",
            "ullage.stores.memory": "MemoryStore",
            "ullage.stores.objects.opening": "open_lasting",
            "ullage.stores.postgres.store": "AsyncPostgresStore PostgresStore",
            "ullage.stores.spill": "SpillStore",
            "ullage.stores.sqlite": "SqliteStore",
            "ullage.stores.threaded": "Threaded",
            "ullage.core.values.effects": "ChunkSize Shape pieces",
            "ullage.core.values.owners": "owner_of tenant_of",
            "ullage.core.values.spending": (
                "SpendingRow SpendingSum spending_totals"
            ),
        },
    )
