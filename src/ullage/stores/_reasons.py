"""What a refusal of SQLite or the system means, and what to do about it."""

from __future__ import annotations

import errno
import sqlite3

from ullage.core.errors import StoreError, StoreFull

_REASONS = {
    sqlite3.SQLITE_FULL: "the disk or its quota is full. Free some space and try again",
    sqlite3.SQLITE_READONLY: "the file may only be read. Check its mode and its file system",
    sqlite3.SQLITE_BUSY: "another process has held the file for too long. Try again",
    sqlite3.SQLITE_LOCKED: "another connection has held the file for too long. Try again",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened. Check its folder and the modes",
    sqlite3.SQLITE_IOERR: "the disk reported an error, or a quota is full. Check the disk",
    sqlite3.SQLITE_CORRUPT: "the file is damaged. Restore it from a copy, or use another path",
    sqlite3.SQLITE_NOTADB: "the file is not an SQLite database. Use another path",
    sqlite3.SQLITE_TOOBIG: "one value is over SQLite's limit of 1 GB. Cut it into pieces",
}

_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
"""SQLite says the second where a quota, or a limit of the process, is what is full."""


def code_of(error: Exception) -> int:
    """SQLite's primary result code; 0 where there is none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def kind_of(error: Exception) -> type[StoreError]:
    """What to raise for it: `StoreFull` where the disk, a quota or a limit leaves no room."""
    no_room = getattr(error, "errno", 0) in (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
    )
    return (
        StoreFull
        if no_room or getattr(error, "sqlite_errorcode", 0) in _NO_ROOM
        else StoreError
    )


def reason_of(error: Exception) -> str:
    """Why, and what to do, without a path and without content."""
    if isinstance(error, OSError):
        return f"{error.strerror or 'the system refused'}. Check the folder and its modes"
    if isinstance(error, OverflowError):
        return _REASONS[sqlite3.SQLITE_TOOBIG]
    return _REASONS.get(code_of(error), f"SQLite says {str(error)!r}")
