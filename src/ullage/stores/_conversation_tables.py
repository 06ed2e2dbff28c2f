"""The tables of a conversation store, on a database that may be a chat service's own.

What is missing is added, in one transaction; nothing that is there is ever changed. A second
run finds nothing to do, and writes nothing.

    Messages            as the service has it, with two columns more:
      IsCompacted       1 once a summary replaces the message (three-layer, Database Schema)
      Wire              the message as JSON, as its provider takes it; NULL in older rows
    CompactionParts     the summaries, each with the first message it does not replace
"""

from __future__ import annotations

import sqlite3

from ullage.errors import StoreError

__all__ = ["NAME", "columns_of", "prepare"]

NAME = "conversations"

_MESSAGES = """CREATE TABLE IF NOT EXISTS Messages (
    Id TEXT PRIMARY KEY,
    SessionId TEXT NOT NULL,
    Role TEXT NOT NULL,
    Content TEXT NOT NULL,
    ToolCallsJson TEXT,
    CreatedAt TEXT NOT NULL
)"""
_PARTS = """CREATE TABLE IF NOT EXISTS CompactionParts (
    Id TEXT PRIMARY KEY,
    MessageId TEXT NOT NULL,
    Summary TEXT NOT NULL,
    CompactedMessageCount INTEGER NOT NULL,
    CompactedTokenCount INTEGER NOT NULL,
    CreatedAt TEXT NOT NULL,
    FOREIGN KEY (MessageId) REFERENCES Messages(Id)
)"""
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS idx_compaction_message ON CompactionParts(MessageId)",
    # ours: what is loaded is one range of it, in order
    "CREATE INDEX IF NOT EXISTS idx_messages_session ON Messages(SessionId, IsCompacted)",
)
_ADDED = {"IsCompacted": "INTEGER DEFAULT 0", "Wire": "TEXT"}
_NEEDED = frozenset(("id", "sessionid", "role", "content"))
_THERE = "SELECT count(*) FROM sqlite_master WHERE name COLLATE NOCASE IN (?, ?, ?, ?)"
_NAMES = ("Messages", "CompactionParts", "idx_compaction_message", "idx_messages_session")


def columns_of(db: sqlite3.Connection) -> frozenset[str]:
    """The columns of ``Messages`` in lower case; none if there is no such table."""
    return frozenset(row[1].lower() for row in db.execute("PRAGMA table_info(Messages)"))


def prepare(db: sqlite3.Connection) -> None:
    """Add what is missing. To be called outside of a transaction.

    Raises:
        StoreError: there is a table ``Messages`` that is not one of conversations.
    """
    if _is_complete(db):
        return
    db.execute("BEGIN IMMEDIATE")
    db.execute(_MESSAGES)
    columns = columns_of(db)
    if lacking := _NEEDED - columns:
        raise _foreign(f"it has no column {', '.join(sorted(lacking))}")
    if not _counts_rows(db):
        raise _foreign("it is a view or WITHOUT ROWID, so that its order is not known")
    for column, kind in _ADDED.items():
        if column.lower() not in columns:
            db.execute(f"ALTER TABLE Messages ADD COLUMN {column} {kind}")
    db.execute(_PARTS)
    for index in _INDEXES:
        db.execute(index)
    db.execute("COMMIT")


def _is_complete(db: sqlite3.Connection) -> bool:
    (there,) = db.execute(_THERE, _NAMES).fetchone()
    return there == len(_NAMES) and {name.lower() for name in _ADDED} <= columns_of(db)


def _counts_rows(db: sqlite3.Connection) -> bool:
    """Whether rows have a number that grows: the order in which they were written."""
    (kind,) = db.execute(
        "SELECT type FROM sqlite_master WHERE name = 'Messages' COLLATE NOCASE"
    ).fetchone()
    try:
        db.execute("SELECT rowid FROM Messages LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return bool(kind == "table")


def _foreign(why: str) -> StoreError:
    reason = f"there is a table Messages that cannot be used: {why}. Name another file"
    return StoreError(NAME, "open", reason)
