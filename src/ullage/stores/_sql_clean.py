"""What clean-up asks of a database (`ullage.stores._clean`). Runs in a transaction."""

from __future__ import annotations

from typing import Any, ClassVar

from ullage.core.values.owners import PART
from ullage.stores._clean import Bounds, Cursor, is_recent
from ullage.stores._packing import from_utf8, to_utf8

_PART = to_utf8(PART)
_BEHIND_PART = to_utf8(chr(ord(PART) + 1))
"""The first character behind it: all that begins with a tenant and its part comes before."""


class SqlContents:
    """The outputs and records of one tenant, or of all.

    It has those methods of `_clean.StoreContents` that are one query.

    Args:
        db: the connection.
        tenant: whose; None: everybody's.
        bounds: of the clean-up.

    Attributes:
        only: the tenant, None for all.
        owners: whose they are, as values of a query.
        scope: what the database calls them.
    """

    of: ClassVar[str]
    keys_query: ClassVar[str]
    outputs_query: ClassVar[str]

    def __init__(self, db: Any, tenant: str | None, bounds: Bounds) -> None:
        self.db = db
        self.only = None if tenant is None else to_utf8(tenant)
        first = behind = self.only
        if self.only is not None and bounds.has_conversations:
            first = self.only + _PART
            behind = self.only + _BEHIND_PART
        self.owners = {"only": self.only, "first": first, "behind": behind}
        self.scope = b"all" if self.only is None else b"one " + self.only

    def keys(
        self, after: Cursor, limit: int
    ) -> list[tuple[str, bytes, float, int]]:
        """`StoreContents.keys`."""
        rows = self._behind(self.keys_query, after, limit)
        return [(from_utf8(tenant), *row) for tenant, *row in rows]

    def outputs(
        self, after: Cursor, limit: int, last_s: float
    ) -> list[tuple[float, str, str, bool]]:
        """`StoreContents.outputs`."""
        rows = self._behind(self.outputs_query, after, limit, last_s)
        return [
            (at_s, from_utf8(who), from_utf8(ref), bool(n))
            for at_s, who, ref, n in rows
        ]

    def _behind(
        self, query: str, after: Cursor, limit: int, last_s: float = 0
    ) -> list[Any]:
        values = {
            **self.owners,
            "used": int(after.used_s),
            "tenant": to_utf8(after.tenant),
            "key": after.key,
            "ref": to_utf8(after.ref),
            "limit": limit,
            "last": last_s,
        }
        statement = query.format(of="" if self.only is None else self.of)
        return list(self.db.execute(statement, values).fetchall())


class SqliteContents(SqlContents):
    """Those of an SQLite file. The contract is `_clean.StoreContents`."""

    within = "(tenant = :only OR tenant >= :first AND tenant < :behind)"
    of = f"AND {within}"
    keys_query = (
        "SELECT tenant, key, max(used_s), count(*) FROM records "
        "WHERE (tenant, key) > (:tenant, :key) {of} "
        "GROUP BY tenant, key ORDER BY tenant, key LIMIT :limit"
    )
    outputs_query = (
        "SELECT used_s, tenant, ref, EXISTS ("
        "SELECT 1 FROM names JOIN records USING (tenant, key) WHERE "
        "names.tenant = grants.tenant AND names.ref = grants.ref AND records.used_s > :last"
        ") FROM grants WHERE (used_s, tenant, ref) > (:used, :tenant, :ref) {of} "
        "ORDER BY used_s, tenant, ref LIMIT :limit"
    )

    def begun(self, now_s: float, every_s: float) -> int | None:
        """`StoreContents.begun`; the keys of the ledger are looked at one by one."""
        row = self.db.execute(
            "SELECT began_s FROM cleanings WHERE scope = ?", (self.scope,)
        ).fetchone()
        if row is not None and is_recent(row[0], now_s, every_s):
            return None
        self.db.execute(
            "INSERT OR REPLACE INTO cleanings VALUES (?, ?)",
            (self.scope, now_s),
        )
        self.db.execute(
            "UPDATE grants SET used_s = :now WHERE used_s > :now",
            {"now": now_s},
        )
        query = "SELECT ifnull(sum(stored_bytes), 0) FROM blobs"
        if self.only is not None:
            query += f" WHERE digest IN (SELECT digest FROM grants WHERE {self.within})"
        (size_bytes,) = self.db.execute(query, self.owners).fetchone()
        return int(size_bytes)

    def drop(self, tenant: str, key: bytes) -> None:
        """`StoreContents.drop`."""
        for table in ("records", "names"):
            self._on_key(f"DELETE FROM {table}", tenant, key)

    def used_now(self, tenant: str, key: bytes, now_s: float) -> None:
        """`StoreContents.used_now`."""
        self._on_key("UPDATE records SET used_s = :now", tenant, key, now_s)

    def remove(self, tenant: str, ref: str) -> tuple[int, int]:
        """`StoreContents.remove`: the content goes if nobody else holds it."""
        condition = "WHERE tenant = ? AND ref = ?"
        place = (to_utf8(tenant), to_utf8(ref))
        (digest,) = self.db.execute(
            f"SELECT digest FROM grants {condition}", place
        ).fetchone()
        self.db.execute(f"DELETE FROM grants {condition}", place)
        query = "SELECT stored_bytes FROM blobs WHERE digest = ?"
        size_bytes = int(
            (self.db.execute(query, (digest,)).fetchone() or (0,))[0]
        )
        if self._is_held(digest):
            is_held_here = self.only is None or self._is_held(digest, self.of)
            return size_bytes, 0 if is_held_here else size_bytes
        for table in ("chunks", "blobs"):
            self.db.execute(f"DELETE FROM {table} WHERE digest = ?", (digest,))
        return size_bytes, size_bytes

    def _is_held(self, digest: bytes, of: str = "") -> bool:
        """Whether somebody holds a content; with ``of``, one of those that are looked at."""
        query = f"SELECT 1 FROM grants WHERE digest = :digest {of} LIMIT 1"
        values = {**self.owners, "digest": digest}
        return self.db.execute(query, values).fetchone() is not None

    def _on_key(
        self, change: str, tenant: str, key: bytes, now_s: float = 0
    ) -> None:
        values = {"tenant": to_utf8(tenant), "key": key, "now": now_s}
        self.db.execute(
            f"{change} WHERE tenant = :tenant AND key = :key", values
        )
