"""Stores: where what was set aside is kept, and the ledger with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.on_demand import names

__all__ = [
    "AsyncStore",
    "BoundedStore",
    "Bounds",
    "Collected",
    "CompactionPart",
    "ConversationStore",
    "MemoryStore",
    "SpillStore",
    "SqliteStore",
    "Store",
    "StoredMessage",
    "directory_of",
    "files_of",
    "open_store",
    "with_files",
]

if TYPE_CHECKING:
    from ullage.stores._base import AsyncStore, Store
    from ullage.stores._clean import Bounds, Collected
    from ullage.stores._open import directory_of, files_of, open_store, with_files
    from ullage.stores.bounded import BoundedStore
    from ullage.stores.conversations import CompactionPart, ConversationStore, StoredMessage
    from ullage.stores.memory import MemoryStore
    from ullage.stores.spill import SpillStore
    from ullage.stores.sqlite import SqliteStore
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ullage.stores._base": "AsyncStore Store",
            "ullage.stores._clean": "Bounds Collected",
            "ullage.stores._open": "directory_of files_of open_store with_files",
            "ullage.stores.bounded": "BoundedStore",
            "ullage.stores.conversations": "CompactionPart ConversationStore StoredMessage",
            "ullage.stores.memory": "MemoryStore",
            "ullage.stores.spill": "SpillStore",
            "ullage.stores.sqlite": "SqliteStore",
        },
    )
