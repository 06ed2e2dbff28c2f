"""The ledger's records on the server, and the one transaction that a commit is.

Of two workers that write at one place, the second waits for the first, and is given what that
wrote: the row comes back as it is kept, and whatever of it is not ours was first. A commit takes
one round trip if it only replaces newest values, and no more than three.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from psycopg import Error

from ullage.core.values.effects import Record
from ullage.stores._base import refuse_contradictions
from ullage.stores._clean import named_in, refs_in
from ullage.stores._packing import NewBlob, from_utf8, to_utf8
from ullage.stores.objects.rows import Objects
from ullage.stores.postgres.asking import (
    BEGIN,
    COMMIT,
    EACH,
    NOW,
    Asking,
    Query,
)
from ullage.stores.postgres.outputs import hold, put, refuse_conflicts, text_of
from ullage.stores.postgres.schema import NAME

_FIND = f"""
SELECT found.* FROM unnest(%(keys)s::bytea[]) AS given (key), LATERAL (
    SELECT key, kind, n, name, data, used_s NOT BETWEEN {NOW} - 86399 AND {NOW}
    FROM ullage.records WHERE tenant = %(tenant)s AND key = given.key {EACH}) AS found
"""
_NEWEST = """
SELECT key, kind, n, name, data, used_s FROM ullage.records
WHERE tenant = %(tenant)s AND kind = %(kind)s ORDER BY used_s DESC LIMIT %(limit)s
"""
_HOLDINGS = """
SELECT (SELECT count(*) FROM ullage.records WHERE tenant = %(tenant)s AND kind = 'latest'),
    count(*), coalesce(sum(size_bytes), 0)::bigint FROM ullage.outputs WHERE tenant = %(tenant)s
"""
_MARK = f"""
UPDATE ullage.records SET used_s = {NOW} WHERE ctid = ANY(ARRAY(
    SELECT found.ctid FROM unnest(%(keys)s::bytea[]) AS given (key), LATERAL (
        SELECT ctid FROM ullage.records WHERE tenant = %(tenant)s AND key = given.key
        {EACH} FOR NO KEY UPDATE SKIP LOCKED) AS found))
"""
_APPEND = f"""
WITH set AS MATERIALIZED (SELECT CASE WHEN %(is_relaxed)s
    THEN set_config('synchronous_commit', 'off', true) END)
INSERT INTO ullage.records AS kept (tenant, key, kind, n, name, data, used_s)
SELECT %(tenant)s, key, kind, n, name, data, {NOW}
FROM set, unnest(%(keys)s::bytea[], %(kinds)s::text[], %(ns)s::bigint[], %(names)s::bytea[],
    %(data)s::bytea[]) AS given (key, kind, n, name, data)
ORDER BY key, kind COLLATE "C", n, name
ON CONFLICT (tenant, key, kind, n, name) DO UPDATE SET
    data = CASE WHEN kept.kind = ANY(%(newest)s::text[]) THEN excluded.data ELSE kept.data END,
    used_s = excluded.used_s
RETURNING key, kind, n, name, data
"""
_NAMES = """
INSERT INTO ullage.names (tenant, ref, key)
SELECT %(tenant)s, ref, key FROM unnest(%(refs)s::bytea[], %(keys)s::bytea[]) AS given (ref, key)
ORDER BY ref, key ON CONFLICT DO NOTHING
"""
_SAVEPOINT = Query("SAVEPOINT put")
_UNDO = Query("ROLLBACK TO put")
_SPAN = b"span"


def find(tenant: str, keys: Iterable[bytes]) -> Asking[tuple[Record, ...]]:
    """`Records.find`: one statement, so one view of the ledger."""
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    if not order:
        return ()
    values = {"tenant": to_utf8(tenant), "keys": list(order)}
    (rows,) = yield (Query(_FIND, values),)
    rows.sort(key=lambda row: (order[row[0]], *row[1:4]))
    stale = sorted({row[0] for row in rows if row[5]})
    if stale:
        with suppress(
            Error
        ):  # a server that only lets us read can still be read
            yield (Query(_MARK, {**values, "keys": stale}),)
    return tuple(map(_record, rows))


def newest(
    tenant: str, kind: str, limit: int
) -> Asking[tuple[tuple[Record, float], ...]]:
    """`Records.newest`."""
    values = {"tenant": to_utf8(tenant), "kind": kind, "limit": limit}
    (rows,) = yield (Query(_NEWEST, values),)
    return tuple((_record(row), float(row[5])) for row in rows)


class Holdings(NamedTuple):
    """How much a tenant has on the server.

    Attributes:
        conversations: of which something was decided.
        outputs: what was set aside.
        size_bytes: of all outputs, before compression.
    """

    conversations: int
    outputs: int
    size_bytes: int


def holdings(tenant: str) -> Asking[Holdings]:
    """How much a tenant has on the server."""
    (rows,) = yield (Query(_HOLDINGS, {"tenant": to_utf8(tenant)}),)
    return Holdings(*rows[0])


def commit(
    tenant: bytes,
    blobs: Mapping[bytes, NewBlob],
    records: Sequence[Record],
    objects: Objects,
) -> Asking[tuple[Record, ...]]:
    """`Store.commit` in one transaction; of a lost race the outputs are kept.

    The outputs are those of `blobs_of`; those that are packed are written as they are.
    """
    refuse_contradictions(NAME, records)
    # of two newest values at one place the later one
    places = {record.place: record for record in records}
    once = [record for record in places.values() if record.is_once]
    append = _append(tenant, [places[place] for place in sorted(places)])
    # one statement is enough: the next reply brings again what it writes
    if not blobs and not once:
        if append:
            yield append
        return ()
    refs = {*blobs, *map(to_utf8, _refs_behind(once, blobs))}
    # from here until the commit no clean-up takes away what these records name
    held_rows = (yield (BEGIN, hold(tenant, refs)))[1]
    names = yield from _names(
        tenant, once, blobs, {row[0] for row in held_rows}, objects
    )
    writes = put(tenant, blobs, held_rows)
    results = yield (*writes, _SAVEPOINT, *append, *names)
    refuse_conflicts(blobs, dict(results[0]) if writes else {})
    conflicts = _find_conflicts(once, results[len(writes) + 1]) if once else ()
    # of a lost race the records are undone, back to the savepoint; the outputs stay
    yield (_UNDO, COMMIT) if conflicts else (COMMIT,)
    return conflicts


def _append(tenant: bytes, records: Sequence[Record]) -> list[Query]:
    if not records:
        return []
    values = {
        "tenant": tenant,
        "keys": [record.key for record in records],
        "kinds": [record.kind for record in records],
        "ns": [record.n for record in records],
        "names": [to_utf8(record.name) for record in records],
        "data": [record.data for record in records],
        "newest": sorted(
            {record.kind for record in records if not record.is_once}
        ),
        "is_relaxed": not any(record.is_once for record in records),
    }
    return [Query(_APPEND, values)]


def _find_conflicts(
    once: Sequence[Record], rows: Sequence[Any]
) -> tuple[Record, ...]:
    """What was kept before in the places of records that are written once, and differs."""
    stored = {record.place: record for record in map(_record, rows)}
    conflicts = (
        stored[record.place]
        for record in once
        if stored[record.place].data != record.data
    )
    return tuple(conflicts)


def _refs_behind(
    unique: Sequence[Record], blobs: Mapping[bytes, NewBlob]
) -> set[str]:
    """Everything that records may name, and what the outputs kept with them may."""
    named = set[str]().union(
        *(refs_in(one.data.decode("latin-1")) for one in unique)
    )
    if any(_SPAN in one.data for one in unique):
        here = (
            blob.output
            for ref, blob in blobs.items()
            if from_utf8(ref) in named
        )
        named = named.union(*(refs_in(output.text) for output in here))
    return named


def _names(
    tenant: bytes,
    once: Sequence[Record],
    blobs: Mapping[bytes, NewBlob],
    existing: set[bytes],
    objects: Objects,
) -> Asking[list[Query]]:
    """The query that notes which keys need which refs; asks for an index that is not at hand."""
    there = {from_utf8(ref) for ref in (*existing, *blobs)}
    texts = {from_utf8(ref): blob.output.text for ref, blob in blobs.items()}
    for record in once:
        index_refs = (
            refs_in(record.data.decode("latin-1")) & there
            if _SPAN in record.data
            else frozenset()
        )
        for ref in sorted(index_refs - texts.keys()):
            texts[ref] = yield from text_of(tenant, to_utf8(ref), objects)
            more = [to_utf8(name) for name in refs_in(texts[ref])]
            (rows,) = yield (hold(tenant, more),)
            there |= {from_utf8(row[0]) for row in rows}
    pairs = sorted(
        (to_utf8(ref), record.key)
        for record in once
        for ref in named_in(
            record.data,
            lambda refs: there & {*refs},
            lambda ref: texts.get(ref, ""),
        )
    )
    if not pairs:
        return []
    refs, keys = map(list, zip(*pairs, strict=True))
    return [Query(_NAMES, {"tenant": tenant, "refs": refs, "keys": keys})]


def _record(row: Sequence[Any]) -> Record:
    key, kind, n, name, data = row[:5]
    return Record(key, kind, n, data, from_utf8(name))
