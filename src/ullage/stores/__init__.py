"""Stores: where what was set aside is kept, and the ledger with it."""

from ullage.stores._base import AsyncStore, Store
from ullage.stores._clean import Bounds, Collected
from ullage.stores._open import directory_of, files_of, open_store, with_files
from ullage.stores.bounded import BoundedStore
from ullage.stores.memory import MemoryStore
from ullage.stores.spill import SpillStore
from ullage.stores.sqlite import SqliteStore

__all__ = [
    "AsyncStore",
    "BoundedStore",
    "Bounds",
    "Collected",
    "MemoryStore",
    "SpillStore",
    "SqliteStore",
    "Store",
    "directory_of",
    "files_of",
    "open_store",
    "with_files",
]
