"""A store in one SQLite file: durable, private, shared by threads and processes.

In WAL mode it is durable, faster to put than synced files, and can be queried. A commit is synced,
because a ref that a model has been shown must outlive a loss of power. Records that hold a newest
value, which the next reply brings again, are not synced by themselves.

The digest is blake3 over the text's UTF-8, all 256 bits, in the same domain as
`ullage.core.history.canon.ref_of`. Each chunk is checked by a seal that binds it to the digest, and
by its counts. Lone surrogates are kept as "surrogatepass" UTF-8, so every str comes back as it
was. Tenants and refs are kept as bytes for the same reason: they come from outside, and may hold
anything.

A ref and a key are marked as used when they are written or read, at most once a day, since a
mark is a write.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ullage.core.errors import RefNotFound, StoreError
from ullage.core.values.carried import Arguments, Portable
from ullage.core.values.effects import Output, Record, Shape
from ullage.core.values.receipts import LAST_DAY, Receipt
from ullage.core.values.spending import SpendingRow, SpendingSum
from ullage.stores import _sqlite_rows as rows
from ullage.stores._base import Transactional, refuse_contradictions
from ullage.stores._clean import DAY_S, Bounds, Collected, clean, is_recent
from ullage.stores._file import PrivateFile, absolute, default_path
from ullage.stores._packing import NewBlob, checked_text, from_utf8, to_utf8
from ullage.stores._sql_clean import SqliteContents
from ullage.stores.objects.in_sqlite import objects_of
from ullage.stores.objects.rows import and_objects, pack_new, with_body

if TYPE_CHECKING:
    from ullage.stores.objects import ObjectStorage

_FORGET_CLEANINGS = (
    "DELETE FROM cleanings WHERE substr(scope, 1, 4) = CAST('one ' AS BLOB) AND substr(scope, 5) "
    "NOT IN (SELECT tenant FROM grants UNION SELECT tenant FROM records)"
)
"""When those were cleaned up of whom nothing is kept: it names them."""


class SqliteStore(Portable, Transactional):
    """Keeps everything in one file. Safe over threads, processes and forks.

    The contract is `ullage.stores.Store`. Stores of one process on one file share a connection.

    Args:
        path: the file, created with mode 0600 if need be; None for ``ullage.db`` in the
            platform's folder for user data.
        busy_timeout_s: how long a call waits while another process writes.
        objects: where the larger bodies are kept; None: in the file with the rest.
        clock: the time in seconds since 1970, for clean-up.

    Raises:
        ConfigError: the path cannot be meant.
        StoreError: the file cannot be opened, is not private, or is not ours.
    """

    name: str = "sqlite"

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        busy_timeout_s: float = 10.0,
        objects: ObjectStorage | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._file = PrivateFile.opened(
            self,
            default_path() if path is None else absolute(path),
            own_folder=path is None,
            wait_s=busy_timeout_s,
        )
        self._objects = objects_of(self, self._file, objects)

    def _made_with(self) -> Arguments:
        _, named = self._arguments
        named = {
            name: value for name, value in named.items() if name != "path"
        }
        return (str(self.path),), named

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`Store.commit` in one transaction; of a lost race the outputs are kept."""
        refuse_contradictions(self.name, records)
        owner = to_utf8(tenant)
        now_s = int(self._clock())
        blobs = self._new_blobs(outputs, owner) if outputs else []
        synced = bool(outputs) or any(record.is_once for record in records)
        if not synced and 0 < len(records) <= rows.MOST_ROWS:
            # what a reply reported, and what was sent for it: one statement needs no transaction
            with self._file.connection(self, "commit") as db:
                self._file.sync(db, is_synced=False)
                rows.write_newest(db, owner, records, now_s)
            return ()
        with self._file.transaction(
            self, "commit", writes=True, synced=synced
        ) as db:
            for blob in blobs:
                rows.write_blob(db, self.name, owner, blob, now_s)
            # of a lost race the outputs are kept: the caller names them again
            conflicts = rows.find_conflicts(db, owner, records)
            if not conflicts:
                rows.write_records(db, owner, records, now_s, self._objects)
        return conflicts

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """`Records.find`."""
        order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        owner = to_utf8(tenant)
        is_one = len(order) <= rows.MOST_VARIABLES  # one statement is one view
        with (self._file.connection if is_one else self._file.transaction)(
            self, "find"
        ) as db:
            matches = rows.records_under(db, owner, tuple(order))
        if not matches:
            return ()
        self._mark("records", "key", owner, matches)
        matches.sort(key=lambda row: (order[row[0]], *row[1:4]))
        return tuple(map(rows.record_of, matches))

    def newest(
        self, tenant: str, kind: str, limit: int
    ) -> tuple[tuple[Record, float], ...]:
        """`Records.newest`."""
        with self._file.connection(self, "newest") as db:
            matches = rows.newest(db, to_utf8(tenant), kind, limit)
        return tuple((rows.record_of(row), float(row[-1])) for row in matches)

    def stat(self, tenant: str, ref: str) -> Shape:
        """`Blobs.stat`. Reads no text."""
        with self._file.transaction(self, "stat") as db:
            digest, kind, size_bytes, chunks, used_s = self._granted(
                db, tenant, ref
            )
            extents = rows.extents_of(db, digest, chunks, size_bytes)
        if extents is None or kind not in ("text", "block"):
            raise self._damaged("stat", ref)
        self._mark("grants", "ref", to_utf8(tenant), [(to_utf8(ref), used_s)])
        return Shape(ref, kind, extents)

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Blobs.chunk`, checked by its seal and its counts."""
        with self._file.transaction(self, "chunk") as db:
            digest, kind, _, chunks, _ = self._granted(db, tenant, ref)
            if not 0 <= n < chunks:
                raise RefNotFound(self.name, ref)
            row = rows.row_of_chunk(db, digest, n)
        text = row and checked_text(
            digest, kind, n, with_body(self._objects, row)
        )
        if text is None:
            raise self._damaged("chunk", ref)
        return text

    def refs(
        self, tenant: str, after: str = "", limit: int = 1_000
    ) -> tuple[str, ...]:
        """`Store.refs`."""
        query = "SELECT ref FROM grants WHERE tenant = ? AND ref > ? ORDER BY ref LIMIT ?"
        with self._file.connection(self, "refs") as db:
            matches = db.execute(
                query, (to_utf8(tenant), to_utf8(after), limit)
            )
            return tuple(from_utf8(ref) for (ref,) in matches)

    def existing_refs(self, refs: Collection[str]) -> frozenset[str]:
        """`Store.existing_refs`."""
        with self._file.connection(self, "existing_refs") as db:
            matches = rows.select_in(
                db,
                "SELECT ref FROM grants WHERE ref IN",
                [*map(to_utf8, refs)],
            )
            return frozenset(from_utf8(ref) for (ref,) in matches)

    @property
    def shared(self) -> object:
        """The object that all stores of this process on one file share."""
        return self._file

    def keep_receipts(self, receipts: Sequence[Receipt]) -> None:
        """`ullage.stores.ReceiptStore.keep_receipts`."""
        with self._file.transaction(
            self, "keep_receipts", writes=True, synced=False
        ) as db:
            rows.write_receipts(db, receipts)

    def receipts(
        self, since: str = "", until: str = LAST_DAY
    ) -> tuple[Receipt, ...]:
        """`ullage.stores.ReceiptStore.receipts`."""
        with self._file.transaction(self, "receipts") as db:
            return tuple(rows.receipts(db, since, until))

    def book_spending(
        self, spending: Sequence[SpendingRow]
    ) -> tuple[SpendingSum, ...]:
        """`ullage.stores.SpendingStore.book_spending`: one transaction, so none misses another."""
        now_s = int(self._clock())
        with self._file.transaction(
            self, "book_spending", writes=True, synced=False
        ) as db:
            return tuple(rows.book_spending(db, spending, now_s))

    def spending(self, since_s: int = 0) -> tuple[SpendingRow, ...]:
        """`ullage.stores.SpendingStore.spending`."""
        with self._file.transaction(self, "spending") as db:
            return tuple(rows.spending(db, since_s))

    @and_objects
    def collect(
        self, tenant: str | None, bounds: Bounds, cursor: str | None = None
    ) -> Collected | None:
        """`Store.collect`. An output's size is that of its compressed chunks.

        The room in the file is used again, but the file does not get smaller: see `shrink`.
        """
        with self._file.transaction(self, "collect", writes=True) as db:
            db.execute("SAVEPOINT begun")
            collected = clean(
                SqliteContents(db, tenant, bounds),
                bounds,
                cursor,
                int(self._clock()),
            )
            if bounds.dry_run:
                db.execute("ROLLBACK TO begun")
            return collected

    def shrink(self) -> None:
        """Return the room of what was removed to the file system. It needs as much room meanwhile.

        Nothing of what was removed is in the file then, nor beside it.

        Raises:
            StoreError: the store failed, or another process holds the file.
        """
        with self._file.connection(self, "shrink") as db:
            db.execute(_FORGET_CLEANINGS)
            db.execute("VACUUM")
            (is_busy, *_) = db.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)"
            ).fetchone()
        if is_busy:
            reason = (
                "another process reads the file. Try again once it is done"
            )
            raise StoreError(self.name, "shrink", reason)

    def close(self) -> None:
        """Let go of the file. May be called twice; waits for a commit that is under way."""
        self._file.release(self)

    def _granted(
        self, db: sqlite3.Connection, tenant: str, ref: str
    ) -> tuple[Any, ...]:
        """Digest, kind, size in bytes, number of chunks, last use of what a tenant holds."""
        row = db.execute(
            "SELECT grants.digest, kind, size_bytes, chunks, used_s FROM grants "
            "LEFT JOIN blobs ON blobs.digest = grants.digest WHERE tenant = ? AND ref = ?",
            (to_utf8(tenant), to_utf8(ref)),
        ).fetchone()
        if row is None:
            raise RefNotFound(self.name, ref)
        if not isinstance(row[3], int):
            raise self._damaged("stat", ref)
        return tuple(row)

    def _damaged(self, operation: str, ref: str) -> StoreError:
        reason = "what is kept there is damaged. Restore the file"
        return StoreError(self.name, operation, reason, ref)

    def _mark(
        self, table: str, column: str, tenant: bytes, used: Sequence[Any]
    ) -> None:
        """Mark rows as used, unless they are marked today.

        Each row begins with the name and ends with the last use. A file that cannot be written now
        can still be read.
        """
        now_s = int(self._clock())
        stale = {
            row[0] for row in used if not is_recent(row[-1], now_s, DAY_S)
        }
        if stale:
            query = f"UPDATE {table} SET used_s = ? WHERE tenant = ? AND {column} = ?"
            with (
                suppress(StoreError),
                self._file.transaction(
                    self, "mark", writes=True, synced=False
                ) as db,
            ):
                db.executemany(
                    query, ((now_s, tenant, name) for name in sorted(stale))
                )

    def _new_blobs(
        self, outputs: Sequence[Output], tenant: bytes
    ) -> list[NewBlob]:
        """The outputs ready to write, in the order of digests; packed if their content is new."""
        unsorted = (NewBlob.of(output, tenant) for output in outputs)
        blobs = sorted(unsorted, key=lambda blob: blob.digest)
        with self._file.connection(self, "commit") as db:
            digests = [*{blob.digest for blob in blobs}]
            query = "SELECT digest FROM blobs WHERE digest IN"
            existing = {
                digest for (digest,) in rows.select_in(db, query, digests)
            }
        return pack_new(self._objects, tenant, blobs, existing)
