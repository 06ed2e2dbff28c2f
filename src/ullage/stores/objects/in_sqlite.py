"""What an SQLite file whose bodies are in object storage keeps of it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection

from ullage.stores._sqlite_records import marks, some
from ullage.stores.objects.rows import CODINGS, not_given

__all__ = ["id_of", "named", "refuse_some"]


def id_of(db: sqlite3.Connection) -> bytes:
    """What the file's objects are known by, made the first time. Runs in a transaction.

    The table is only in files that have objects, and no earlier version minds it.
    """
    db.execute("CREATE TABLE IF NOT EXISTS agreed (name TEXT PRIMARY KEY, value BLOB NOT NULL)")
    db.execute("INSERT OR IGNORE INTO agreed VALUES ('objects', ?)", (os.urandom(32),))
    (found,) = db.execute("SELECT value FROM agreed WHERE name = 'objects'").fetchone()
    return bytes(found)


def refuse_some(db: sqlite3.Connection) -> None:
    """Refuse a clean-up of a file that has objects: they would stay.

    Raises:
        StoreError: it has.
    """
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'agreed'").fetchone() is not None:
        raise not_given("collect")


def named(db: sqlite3.Connection, names: Collection[bytes]) -> set[bytes]:
    """Those of some objects that a row names."""
    digests = {name: bytes.fromhex(_digest(name)) for name in names}
    return {
        body
        for part in some(tuple({*digests.values()}))
        for (body,) in db.execute(
            f"SELECT body FROM chunks WHERE digest IN ({marks(part)}) AND coding IN (?, ?)",
            (*part, *CODINGS),
        )
    }


def _digest(name: bytes) -> str:
    return name.decode().rpartition("/")[2].partition(".")[0]
