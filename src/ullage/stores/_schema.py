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

RECEIPTS = (
    "CREATE TABLE IF NOT EXISTS receipts ("
    " day TEXT NOT NULL,"
    " tenant BLOB NOT NULL,"
    " model TEXT NOT NULL,"
    " client TEXT NOT NULL,"
    " is_held_out INTEGER NOT NULL,"
    " writer TEXT NOT NULL,"
    " requests INTEGER NOT NULL,"
    " conversations INTEGER NOT NULL,"
    " unreported INTEGER NOT NULL,"
    " unpriced INTEGER NOT NULL,"
    " recalls INTEGER NOT NULL,"
    " recall_tokens INTEGER NOT NULL,"
    " sent_fresh INTEGER NOT NULL,"
    " sent_read INTEGER NOT NULL,"
    " sent_written INTEGER NOT NULL,"
    " sent_output INTEGER NOT NULL,"
    " raw_fresh INTEGER NOT NULL,"
    " raw_read INTEGER NOT NULL,"
    " raw_written INTEGER NOT NULL,"
    " raw_output INTEGER NOT NULL,"
    " is_open INTEGER NOT NULL,"
    " written_s INTEGER NOT NULL,"
    " sent_usd REAL NOT NULL,"
    " raw_usd REAL NOT NULL,"
    " recall_usd REAL NOT NULL,"
    " PRIMARY KEY (day, tenant, model, client, is_held_out, writer)) WITHOUT ROWID"
)
"""A table that older versions do without: it is made where it is first written to, and is no
version of its own, so that they go on opening the file."""

UNBILLED = (
    "ALTER TABLE receipts ADD COLUMN unbilled INTEGER NOT NULL DEFAULT 0"
)
"""The column that its first form was without."""

SPENDING = (
    "CREATE TABLE IF NOT EXISTS spending ("
    " budget TEXT NOT NULL,"
    " tenant BLOB NOT NULL,"
    " period TEXT NOT NULL,"
    " writer TEXT NOT NULL,"
    " version INTEGER NOT NULL,"
    " tokens INTEGER NOT NULL,"
    " calls INTEGER NOT NULL,"
    " estimated_calls INTEGER NOT NULL,"
    " unpriced_calls INTEGER NOT NULL,"
    " reserved_tokens INTEGER NOT NULL,"
    " lapse_s INTEGER NOT NULL,"
    " limit_tokens INTEGER NOT NULL,"
    " resets_s INTEGER NOT NULL,"
    " written_s INTEGER NOT NULL,"
    " usd REAL NOT NULL,"
    " reserved_usd REAL NOT NULL,"
    " limit_usd REAL NOT NULL,"
    " PRIMARY KEY (budget, tenant, period, writer)) WITHOUT ROWID"
)
"""Another one, as `RECEIPTS` is."""
