"""The schema of the SQLite file, as the steps that lead from each version to the next.

A table that is found by its key alone is WITHOUT ROWID: one look-up instead of two. When
something was last used is in seconds since 1970.
"""

from __future__ import annotations

APPLICATION_ID = 0x756C6C67  # "ullg"

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        "CREATE TABLE blobs ("
        " digest BLOB NOT NULL PRIMARY KEY,"  # blake3, 256 bits, of kind and text
        " kind TEXT NOT NULL,"
        " size_bytes INTEGER NOT NULL,"  # of the UTF-8 (surrogatepass), before compression
        " stored_bytes INTEGER NOT NULL,"  # of all bodies
        " chunks INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE chunks ("
        " digest BLOB NOT NULL,"
        " n INTEGER NOT NULL,"
        " coding TEXT NOT NULL,"  # 'raw' or 'zstd'
        " size_bytes INTEGER NOT NULL,"
        " chars INTEGER NOT NULL,"
        " newlines INTEGER NOT NULL,"
        " seal BLOB NOT NULL,"
        " body BLOB NOT NULL,"  # last, so that the numbers are read without it
        " UNIQUE (digest, n))",
        "CREATE TABLE grants ("
        " tenant BLOB NOT NULL,"
        " ref BLOB NOT NULL,"
        " digest BLOB NOT NULL,"
        " used_s INTEGER NOT NULL,"
        " PRIMARY KEY (tenant, ref)) WITHOUT ROWID",
        "CREATE INDEX grants_of ON grants (digest)",
        "CREATE INDEX grants_by_ref ON grants (ref)",
        "CREATE INDEX grants_by_use ON grants (used_s)",
        "CREATE INDEX grants_by_use_of ON grants (tenant, used_s)",
        "CREATE TABLE records ("
        " tenant BLOB NOT NULL,"
        " key BLOB NOT NULL,"
        " kind TEXT NOT NULL,"
        " n INTEGER NOT NULL,"
        " name BLOB NOT NULL,"
        " data BLOB NOT NULL,"
        " used_s INTEGER NOT NULL,"
        " PRIMARY KEY (tenant, key, kind, n, name)) WITHOUT ROWID",
        "CREATE TABLE names ("  # which keys of the ledger need which refs
        " tenant BLOB NOT NULL,"
        " ref BLOB NOT NULL,"
        " key BLOB NOT NULL,"
        " PRIMARY KEY (tenant, ref, key)) WITHOUT ROWID",
        "CREATE INDEX names_by_key ON names (tenant, key)",
        "CREATE TABLE cleanings (scope BLOB NOT NULL PRIMARY KEY, began_s INTEGER NOT NULL)",
    ),
)
"""The steps that lead from each version to the next. Never edited, only added to."""
