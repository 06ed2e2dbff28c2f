"""Bodies of an SQLite file that may be in object storage, and what the file keeps of that."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection
from typing import TYPE_CHECKING

from ullage.stores._file import PrivateFile
from ullage.stores._packing import MOST_BYTES, decompressed, to_utf8
from ullage.stores.objects.rows import CODINGS, Objects, with_body

if TYPE_CHECKING:
    from ullage.stores.objects.storage import ObjectStorage

BODY = f"CASE WHEN length(body) <= {MOST_BYTES} THEN body END"
"""A body as it is read: never more than a chunk can have."""

_TABLE = "SELECT 1 FROM sqlite_master WHERE name = 'agreed'"
_ID = "SELECT value FROM agreed WHERE name = 'objects'"


def objects_of(
    owner: object, file: PrivateFile, storage: ObjectStorage | None
) -> Objects:
    """The objects that belong to a file.

    The table with the id they are known by is only in files that have objects; no earlier version
    minds it.

    Args:
        owner: the store that holds the file.
        file: the file.
        storage: the bucket; None: the file was opened without one.
    """

    def are_there() -> bool:
        with file.connection(owner, "collect") as db:
            return db.execute(_TABLE).fetchone() is not None

    def named(names: Collection[bytes]) -> set[bytes]:
        with file.connection(owner, "collect") as db:
            return {name for name in names if _is_named(db, name)}

    if storage is None:
        return Objects(are_there)
    with file.transaction(owner, "open", writes=True) as db:
        db.execute(
            "CREATE TABLE IF NOT EXISTS agreed (name TEXT PRIMARY KEY, value BLOB NOT NULL)"
        )
        db.execute(
            "INSERT OR IGNORE INTO agreed VALUES ('objects', ?)",
            (os.urandom(32),),
        )
        (store_id,) = db.execute(_ID).fetchone()
    return storage.of(store_id, named)


def _is_named(db: sqlite3.Connection, name: bytes) -> bool:
    digest = bytes.fromhex(name.decode().rpartition("/")[2].partition(".")[0])
    query = "SELECT 1 FROM chunks WHERE digest = ? AND body = ? AND coding IN (?, ?)"
    return db.execute(query, (digest, name, *CODINGS)).fetchone() is not None


def text_of(
    db: sqlite3.Connection, tenant: bytes, objects: Objects, ref: str
) -> str:
    """An output as the search for refs takes it: what is damaged in it is left out."""
    rows = db.execute(
        f"SELECT coding, {BODY}, chunks.size_bytes FROM grants "
        "JOIN chunks ON chunks.digest = grants.digest WHERE tenant = ? AND ref = ? ORDER BY n",
        (tenant, to_utf8(ref)),
    )
    bodies = (decompressed(*with_body(objects, row)) or b"" for row in rows)
    return b"".join(bodies).decode("latin-1")
