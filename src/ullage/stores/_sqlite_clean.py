"""Clean-up of the SQLite file: `ullage.stores._clean` in statements. Runs in a transaction.

A cursor says in which phase the next step begins, behind which row, and what the outputs take.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ullage.errors import ConfigError
from ullage.stores._clean import Bounds, Collected, Removed, is_recent
from ullage.stores._sqlite_blobs import from_utf8

__all__ = ["collect"]

_NEEDED = (
    "EXISTS (SELECT 1 FROM names JOIN records USING (tenant, key) WHERE "
    "names.tenant = grants.tenant AND names.ref = grants.ref AND records.used_s > :last_s)"
)


class _At(Struct, frozen=True):
    """Where a step begins: behind the row with these values, of records or of grants."""

    phase: Literal["records", "outputs", "needed"]
    left_bytes: int
    used_s: int = -1
    tenant: bytes = b""
    name: bytes = b""


def collect(
    db: sqlite3.Connection,
    tenant: bytes | None,
    bounds: Bounds,
    keep: Collection[str],
    cursor: str | None,
    limit: int,
    now_s: int,
) -> Collected | None:
    """One step; see `ullage.stores.Store.collect`."""
    if cursor is None:
        scope = b"all" if tenant is None else b"one " + tenant
        began = db.execute("SELECT began_s FROM cleanings WHERE scope = ?", (scope,)).fetchone()
        if began is not None and is_recent(began[0], now_s, bounds.every_s):
            return None
        db.execute("INSERT OR REPLACE INTO cleanings VALUES (?, ?)", (scope, now_s))
        db.execute("UPDATE grants SET used_s = ? WHERE used_s > ?", (now_s, now_s))
        at = _At("records", _size(db, tenant))
    else:
        at = _read(cursor)
    done = Collected((), 0, at.left_bytes)
    then: _At | None = at
    while then is not None and limit > 0:
        work = _records if then.phase == "records" else _outputs
        step, then, looked = work(db, tenant, bounds, keep, limit, now_s, then)
        done, limit = done.then(step), limit - looked
    return replace(done, cursor=then and msgspec.json.encode(then).decode())


def _records(
    db: sqlite3.Connection,
    tenant: bytes | None,
    bounds: Bounds,
    _: Collection[str],
    limit: int,
    now_s: int,
    at: _At,
) -> tuple[Collected, _At | None, int]:
    """Look at the next keys, and let the dead ones go; how many were looked at."""
    rows = db.execute(
        "SELECT tenant, key, max(used_s), count(*) FROM records "
        f"WHERE (tenant, key) > (:who, :key) {_of(tenant)} "
        "GROUP BY tenant, key ORDER BY tenant, key LIMIT :limit",
        {"who": at.tenant, "key": at.name, "tenant": tenant, "limit": limit},
    ).fetchall()
    went, last_s = 0, bounds.last_s(now_s)
    for who, key, used_s, count in rows:
        if used_s > now_s:
            where = "WHERE tenant = ? AND key = ?"
            db.execute(f"UPDATE records SET used_s = ? {where}", (now_s, who, key))
        elif used_s <= last_s:
            for table in ("records", "names"):
                db.execute(f"DELETE FROM {table} WHERE tenant = ? AND key = ?", (who, key))
            went += count
    done = Collected((), went, at.left_bytes)
    if len(rows) < limit:
        return done, _At("outputs", at.left_bytes), len(rows)
    return done, replace(at, tenant=rows[-1][0], name=rows[-1][1]), limit


def _outputs(
    db: sqlite3.Connection,
    tenant: bytes | None,
    bounds: Bounds,
    keep: Collection[str],
    limit: int,
    now_s: int,
    at: _At,
) -> tuple[Collected, _At | None, int]:
    """Look at the next outputs, the longest unused first, and let go of what may go."""
    last_s = bounds.last_s(now_s)
    rows = db.execute(
        f"SELECT used_s, tenant, ref, digest, {_NEEDED} FROM grants "
        f"WHERE (used_s, tenant, ref) > (:used_s, :who, :ref) {_of(tenant)} "
        "ORDER BY used_s, tenant, ref LIMIT :limit",
        {
            "used_s": at.used_s,
            "who": at.tenant,
            "ref": at.name,
            "tenant": tenant,
            "limit": limit,
            "last_s": last_s,
        },
    ).fetchall()
    gone, left_bytes, more = [], at.left_bytes, len(rows) == limit
    for used_s, who, ref, digest, needed in rows:
        over, old = bounds.is_over(left_bytes), used_s <= last_s
        if not over and not (old and at.phase == "outputs"):
            more = False  # nothing after it is older
            break
        if needed != (at.phase == "needed") or from_utf8(ref) in keep:
            continue
        size_bytes, last = _remove(db, who, ref, digest)
        left_bytes -= size_bytes if last or tenant is not None else 0
        gone.append(Removed(from_utf8(who), from_utf8(ref), size_bytes, used_s, bool(needed)))
    done = Collected(tuple(gone), 0, left_bytes)
    if more:
        used_s, who, ref, *_ = rows[-1]
        return done, _At(at.phase, left_bytes, used_s, who, ref), limit
    if at.phase == "outputs" and bounds.even_needed and bounds.is_over(left_bytes):
        return done, _At("needed", left_bytes), len(rows)
    return done, None, len(rows)


def _remove(db: sqlite3.Connection, tenant: bytes, ref: bytes, digest: bytes) -> tuple[int, bool]:
    """Take a grant away, and the content if nobody else holds it; its size, and whether so."""
    db.execute("DELETE FROM grants WHERE tenant = ? AND ref = ?", (tenant, ref))
    row = db.execute("SELECT stored_bytes FROM blobs WHERE digest = ?", (digest,)).fetchone()
    held = "SELECT 1 FROM grants WHERE digest = ? LIMIT 1"
    last = db.execute(held, (digest,)).fetchone() is None
    if last:
        for table in ("chunks", "blobs"):
            db.execute(f"DELETE FROM {table} WHERE digest = ?", (digest,))
    return (row[0] if row else 0), last


def _size(db: sqlite3.Connection, tenant: bytes | None) -> int:
    """What the outputs of a tenant, or of everybody, take."""
    query = "SELECT ifnull(sum(stored_bytes), 0) FROM blobs"
    if tenant is not None:
        query += " WHERE digest IN (SELECT digest FROM grants WHERE tenant = :tenant)"
    return int(db.execute(query, {"tenant": tenant}).fetchone()[0])


def _of(tenant: bytes | None) -> str:
    return "" if tenant is None else "AND tenant = :tenant"


def _read(cursor: str) -> _At:
    try:
        return msgspec.json.decode(cursor, type=_At)
    except msgspec.MsgspecError:
        raise ConfigError("cursor", "it is not one that a step returned", "Begin anew") from None
