"""What clean-up asks of the server (`ullage.stores._clean`). A step is one transaction.

Nobody waits for a clean-up, and it waits for nobody: what another transaction holds, because it
writes or names it just then, stays (SKIP LOCKED).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import Connection

from ullage.stores._clean import Bounds, Collected, Cursor, clean
from ullage.stores._packing import to_utf8
from ullage.stores._sql_clean import SqlContents
from ullage.stores.postgres.asking import NOW

_TIME = f"SELECT {NOW}"
_BEGUN = """
INSERT INTO ullage.cleanings AS last (scope, began_s) VALUES (%(scope)s, %(now)s)
ON CONFLICT (scope) DO UPDATE SET began_s = excluded.began_s
WHERE last.began_s > excluded.began_s OR excluded.began_s - last.began_s >= %(every)s
RETURNING 1
"""
_FUTURE = """
UPDATE ullage.outputs SET used_s = %(now)s WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM ullage.outputs WHERE used_s > %(now)s FOR NO KEY UPDATE SKIP LOCKED))
"""
_WITHIN = "(tenant = %(only)s OR tenant >= %(first)s AND tenant < %(behind)s)"
_LEASES = f"""
DELETE FROM ullage.leases WHERE (%(only)s::bytea IS NULL OR {_WITHIN})
    AND (%(all)s OR until_s < %(now)s)
"""
_SIZE = f"""
SELECT coalesce(sum(stored_bytes), 0)::bigint FROM ullage.outputs
WHERE %(only)s::bytea IS NULL OR {_WITHIN}
"""
_DROP = """
WITH free AS (
    SELECT kind, n, name, used_s FROM ullage.records
    WHERE tenant = %(tenant)s AND key = %(key)s FOR UPDATE SKIP LOCKED)
DELETE FROM ullage.records AS gone USING free
WHERE gone.tenant = %(tenant)s AND gone.key = %(key)s
    AND (gone.kind, gone.n, gone.name) = (free.kind, free.n, free.name)
    AND (SELECT count(*) FILTER (WHERE used_s <= %(last)s::float8) FROM free) = %(count)s
"""
_UNNAMED = """
DELETE FROM ullage.names WHERE tenant = %(tenant)s AND key = %(key)s AND NOT EXISTS (
    SELECT FROM ullage.records WHERE tenant = %(tenant)s AND key = %(key)s)
"""
_USED = "UPDATE ullage.records SET used_s = %(now)s WHERE tenant = %(tenant)s AND key = %(key)s"
_REMOVE = """
DELETE FROM ullage.outputs WHERE tenant = %(tenant)s AND ref = %(ref)s RETURNING stored_bytes
"""
_REMOVE_CHUNKS = (
    "DELETE FROM ullage.chunks WHERE tenant = %(tenant)s AND ref = %(ref)s"
)


def collect(
    db: Connection,
    tenant: str | None,
    bounds: Bounds,
    cursor: str | None,
    now_s: int | None,
) -> Collected | None:
    """`Store.collect` on a connection."""
    with (
        _unhurried(db, tenant is None),
        db.transaction(force_rollback=bounds.dry_run),
    ):
        (now_s,) = db.execute(_TIME, {"now": now_s}).fetchone() or (0,)
        return clean(
            _Contents(db, tenant, bounds, now_s), bounds, cursor, now_s
        )


@contextmanager
def _unhurried(db: Any, for_all: bool) -> Iterator[None]:
    """Wait for answers without a limit where everybody's outputs are summed up."""
    longest_s = db.longest_s
    db.longest_s = None if for_all else longest_s
    try:
        yield
    finally:
        db.longest_s = longest_s


class _Contents(SqlContents):
    """The outputs and records of one tenant, or of all. The contract is `_clean.StoreContents`."""

    of = f"AND {_WITHIN}"
    keys_query = """
        SELECT tenant, key, max(used_s), count(*) FROM ullage.records
        WHERE (tenant, key) > (%(tenant)s, %(key)s) {of}
        GROUP BY tenant, key ORDER BY tenant, key LIMIT %(limit)s
    """
    # locked until the step is over, so that nobody names them now
    outputs_query = """
        SELECT used_s, tenant, ref, EXISTS (
            SELECT FROM ullage.names JOIN ullage.records USING (tenant, key)
            WHERE names.tenant = outputs.tenant AND names.ref = outputs.ref
                AND records.used_s > %(last)s::float8)
        FROM ullage.outputs
        WHERE (used_s, tenant, ref) > (%(used)s::bigint, %(tenant)s, %(ref)s) {of}
        ORDER BY used_s, tenant, ref LIMIT %(limit)s FOR UPDATE OF outputs SKIP LOCKED
    """

    def __init__(
        self,
        db: Connection,
        tenant: str | None,
        bounds: Bounds,
        now_s: float,
    ) -> None:
        super().__init__(db, tenant, bounds)
        self._last_s = bounds.last_s(now_s)
        self._counts: dict[tuple[str, bytes], int] = {}

    def begun(self, now_s: float, every_s: float) -> int | None:
        """`StoreContents.begun`; the keys of the ledger are looked at one by one."""
        values = {
            "scope": self.scope,
            "now": int(now_s),
            "every": every_s,
            **self.owners,
        }
        if self.db.execute(_BEGUN, values).fetchone() is None:
            return None
        self.db.execute(_FUTURE, values)
        self.db.execute(_LEASES, {**values, "all": self._last_s >= now_s})
        (size_bytes,) = self.db.execute(_SIZE, values).fetchone() or (0,)
        return int(size_bytes)

    def keys(
        self, after: Cursor, limit: int
    ) -> list[tuple[str, bytes, float, int]]:
        """`StoreContents.keys`."""
        rows = super().keys(after, limit)
        self._counts = {(tenant, key): count for tenant, key, _, count in rows}
        return rows

    def drop(self, tenant: str, key: bytes) -> None:
        """`StoreContents.drop`, unless something was written under it since it was looked at."""
        count = self._counts[tenant, key]
        values = {
            "tenant": to_utf8(tenant),
            "key": key,
            "last": self._last_s,
            "count": count,
        }
        self.db.execute(_DROP, values)
        self.db.execute(_UNNAMED, values)

    def used_now(self, tenant: str, key: bytes, now_s: float) -> None:
        """`StoreContents.used_now`."""
        self.db.execute(
            _USED, {"tenant": to_utf8(tenant), "key": key, "now": int(now_s)}
        )

    def remove(self, tenant: str, ref: str) -> tuple[int, int]:
        """`StoreContents.remove`."""
        values = {"tenant": to_utf8(tenant), "ref": to_utf8(ref)}
        (size_bytes,) = self.db.execute(_REMOVE, values).fetchone() or (0,)
        self.db.execute(_REMOVE_CHUNKS, values)
        return size_bytes, size_bytes
