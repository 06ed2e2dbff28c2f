"""Clean-up of the SQLite file: `ullage.stores._clean` in statements. Runs in a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator

from ullage.stores._clean import Bounds, Collected, Kept, Line, Plan, plan
from ullage.stores._pack import unpack

__all__ = ["collect"]


def collect(
    db: sqlite3.Connection,
    tenant: bytes | None,
    bounds: Bounds,
    keep: Collection[str],
    *,
    now_s: int,
    dry_run: bool,
) -> Collected | None:
    """See `ullage.stores.Store.collect`."""
    scope = b"all" if tenant is None else b"one " + tenant
    last = db.execute("SELECT done_s FROM cleanings WHERE scope = ?", (scope,)).fetchone()
    if last is not None and now_s - last[0] < bounds.every_s:
        return None
    found = plan(
        tuple(_kept(db, tenant)),
        tuple(_lines(db, tenant)),
        bounds,
        keep,
        now_s,
        lambda who, ref: _text_of(db, who, ref),
    )
    records = sum(_count(db, line) for line in found.lines)
    if not dry_run:
        _remove(db, found)
        db.execute("INSERT OR REPLACE INTO cleanings VALUES (?, ?)", (scope, now_s))
    rows = db.execute("SELECT DISTINCT ref FROM grants")
    return Collected(found.outputs, records, found.left_bytes, frozenset(_str(r) for (r,) in rows))


def _kept(db: sqlite3.Connection, tenant: bytes | None) -> Iterator[Kept]:
    rows = db.execute(
        "SELECT tenant, ref, grants.digest, ifnull(stored_bytes, 0), used_s FROM grants "
        f"LEFT JOIN blobs ON blobs.digest = grants.digest {_where(tenant)} ORDER BY id",
        _given(tenant),
    )
    for who, ref, *rest in rows:
        yield Kept(_str(who), _str(ref), *rest)


def _lines(db: sqlite3.Connection, tenant: bytes | None) -> Iterator[Line]:
    """Every key with its batches, the batches of one key side by side."""
    rows = db.execute(
        "SELECT tenant, key, max(used_s) OVER (PARTITION BY tenant, key), kind, data "
        f"FROM records {_where(tenant)} ORDER BY tenant, key",
        _given(tenant),
    )
    place: tuple[bytes, bytes] | None = None
    used_s, batches = 0.0, list[bytes]()
    for who, key, at_s, kind, data in rows:
        if place != (who, key):
            if place is not None:
                yield Line(_str(place[0]), place[1], used_s, tuple(batches))
            place, used_s, batches = (who, key), at_s, []
        if kind == "batch":
            batches.append(data)
    if place is not None:
        yield Line(_str(place[0]), place[1], used_s, tuple(batches))


def _remove(db: sqlite3.Connection, found: Plan) -> None:
    """Take the grants and records away, and the content that nobody holds any more."""
    db.executemany(
        "DELETE FROM grants WHERE tenant = ? AND ref = ?",
        ((_bytes(gone.tenant), _bytes(gone.ref)) for gone in found.outputs),
    )
    db.executemany(
        "DELETE FROM records WHERE tenant = ? AND key = ?",
        ((_bytes(line.tenant), line.key) for line in found.lines),
    )
    db.execute("DELETE FROM blobs WHERE digest NOT IN (SELECT digest FROM grants)")
    db.execute("DELETE FROM chunks WHERE digest NOT IN (SELECT digest FROM blobs)")


def _text_of(db: sqlite3.Connection, tenant: str, ref: str) -> str:
    """An output as the search for refs takes it: what is damaged in it is left out."""
    rows = db.execute(
        "SELECT coding, body, chunks.size_bytes FROM grants "
        "JOIN chunks ON chunks.digest = grants.digest WHERE tenant = ? AND ref = ? ORDER BY n",
        (_bytes(tenant), _bytes(ref)),
    )
    return b"".join(unpack(*row) or b"" for row in rows).decode("latin-1")


def _count(db: sqlite3.Connection, line: Line) -> int:
    query = "SELECT count(*) FROM records WHERE tenant = ? AND key = ?"
    return int(db.execute(query, (_bytes(line.tenant), line.key)).fetchone()[0])


def _where(tenant: bytes | None) -> str:
    return "" if tenant is None else "WHERE tenant = ?"


def _given(tenant: bytes | None) -> tuple[bytes, ...]:
    return () if tenant is None else (tenant,)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _str(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")
