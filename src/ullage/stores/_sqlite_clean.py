"""What clean-up asks of the SQLite file (`ullage.stores._clean`). Runs in a transaction."""

from __future__ import annotations

import sqlite3
from typing import Any

from ullage.stores._clean import Cursor, is_recent
from ullage.stores._packing import from_utf8, to_utf8

__all__ = ["SqliteContents"]

_NEEDED = (
    "EXISTS (SELECT 1 FROM names JOIN records USING (tenant, key) WHERE "
    "names.tenant = grants.tenant AND names.ref = grants.ref AND records.used_s > :last_s)"
)


class SqliteContents:
    """The outputs and records of one tenant, or of all. The contract is `_clean.Contents`."""

    def __init__(self, db: sqlite3.Connection, tenant: str | None) -> None:
        self._db = db
        self._tenant = None if tenant is None else to_utf8(tenant)
        self._of = "" if tenant is None else "AND tenant = :only"

    def begun(self, now_s: float, every_s: float) -> int | None:
        """`Contents.begun`; the keys of the ledger are looked at one by one."""
        scope = b"all" if self._tenant is None else b"one " + self._tenant
        row = self._db.execute("SELECT began_s FROM cleanings WHERE scope = ?", (scope,)).fetchone()
        if row is not None and is_recent(row[0], now_s, every_s):
            return None
        self._db.execute("INSERT OR REPLACE INTO cleanings VALUES (?, ?)", (scope, now_s))
        self._db.execute("UPDATE grants SET used_s = :now WHERE used_s > :now", {"now": now_s})
        query = "SELECT ifnull(sum(stored_bytes), 0) FROM blobs"
        if self._tenant is not None:
            query += " WHERE digest IN (SELECT digest FROM grants WHERE tenant = :only)"
        (size_bytes,) = self._db.execute(query, {"only": self._tenant}).fetchone()
        return int(size_bytes)

    def keys(self, after: Cursor, limit: int) -> list[tuple[str, bytes, float, int]]:
        """`Contents.keys`."""
        rows = self._rows(
            "SELECT tenant, key, max(used_s), count(*) FROM records "
            f"WHERE (tenant, key) > (:tenant, :key) {self._of} "
            "GROUP BY tenant, key ORDER BY tenant, key LIMIT :limit",
            after,
            limit,
        )
        return [(from_utf8(tenant), *row) for tenant, *row in rows]

    def outputs(
        self, after: Cursor, limit: int, last_s: float
    ) -> list[tuple[float, str, str, bool]]:
        """`Contents.outputs`."""
        rows = self._rows(
            f"SELECT used_s, tenant, ref, {_NEEDED} FROM grants "
            f"WHERE (used_s, tenant, ref) > (:used_s, :tenant, :ref) {self._of} "
            "ORDER BY used_s, tenant, ref LIMIT :limit",
            after,
            limit,
            last_s,
        )
        return [(at_s, from_utf8(who), from_utf8(ref), bool(n)) for at_s, who, ref, n in rows]

    def drop(self, tenant: str, key: bytes) -> None:
        """`Contents.drop`."""
        for table in ("records", "names"):
            self._on_key(f"DELETE FROM {table}", tenant, key)

    def used_now(self, tenant: str, key: bytes, now_s: float) -> None:
        """`Contents.used_now`."""
        self._on_key("UPDATE records SET used_s = :now", tenant, key, now_s)

    def remove(self, tenant: str, ref: str) -> tuple[int, int]:
        """`Contents.remove`: the content goes if nobody else holds it."""
        where, place = "WHERE tenant = ? AND ref = ?", (to_utf8(tenant), to_utf8(ref))
        (digest,) = self._db.execute(f"SELECT digest FROM grants {where}", place).fetchone()
        self._db.execute(f"DELETE FROM grants {where}", place)
        query = "SELECT stored_bytes FROM blobs WHERE digest = ?"
        size_bytes = int((self._db.execute(query, (digest,)).fetchone() or (0,))[0])
        held = "SELECT 1 FROM grants WHERE digest = ? LIMIT 1"
        if self._db.execute(held, (digest,)).fetchone() is not None:
            return size_bytes, 0 if self._tenant is None else size_bytes
        for table in ("chunks", "blobs"):
            self._db.execute(f"DELETE FROM {table} WHERE digest = ?", (digest,))
        return size_bytes, size_bytes

    def _rows(self, query: str, after: Cursor, limit: int, last_s: float = 0) -> list[Any]:
        given = {
            "only": self._tenant,
            "used_s": after.used_s,
            "tenant": to_utf8(after.tenant),
            "key": after.key,
            "ref": to_utf8(after.ref),
            "limit": limit,
            "last_s": last_s,
        }
        return self._db.execute(query, given).fetchall()

    def _on_key(self, change: str, tenant: str, key: bytes, now_s: float = 0) -> None:
        given = {"tenant": to_utf8(tenant), "key": key, "now": now_s}
        self._db.execute(f"{change} WHERE tenant = :tenant AND key = :key", given)
