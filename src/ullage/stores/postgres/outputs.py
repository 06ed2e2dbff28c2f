"""Outputs on the server: how they are kept, read and named.

Whoever writes holds what it found until it commits (FOR KEY SHARE), so that no clean-up takes
away an output that a record of the same commit is about to name. Rows are written in the order of
their refs, and marks of use wait for nobody (SKIP LOCKED): so no two writers wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from psycopg import Error

from ullage.core.errors import RefNotFound, StoreError
from ullage.core.values.effects import Output, Shape
from ullage.stores._base import ref_taken_error
from ullage.stores._packing import (
    MOST_BYTES,
    NewBlob,
    checked_text,
    decompressed,
    extents_in,
    from_utf8,
    to_utf8,
)
from ullage.stores.objects.rows import Objects, with_body
from ullage.stores.postgres.asking import EACH, NOW, Asking, Query, Rows
from ullage.stores.postgres.schema import NAME

_IS_STALE = f"used_s NOT BETWEEN {NOW} - 86399 AND {NOW}"
"""Not marked as used today, or at a time that is yet to come."""
_BODY = f"CASE WHEN octet_length(body) <= {MOST_BYTES} THEN body END"

_GIVEN = "(SELECT ref FROM unnest(%(refs)s::bytea[]) AS given (ref) ORDER BY ref) AS given"
_EACH = (
    f"FROM ullage.outputs WHERE tenant = %(tenant)s AND ref = given.ref {EACH}"
)
_HOLD = f"""
SELECT found.* FROM {_GIVEN}, LATERAL (
    SELECT ref, digest, {_IS_STALE} {_EACH} FOR KEY SHARE) AS found
"""
_KEPT = (
    f"SELECT found.ref FROM {_GIVEN}, LATERAL (SELECT ref {_EACH}) AS found"
)
_PUT = f"""
INSERT INTO ullage.outputs AS kept
    (tenant, ref, digest, kind, size_bytes, stored_bytes, chunks, used_s)
SELECT %(tenant)s, ref, digest, kind, size_bytes, stored_bytes, chunks, {NOW}
FROM unnest(%(refs)s::bytea[], %(digests)s::bytea[], %(kinds)s::text[], %(sizes)s::bigint[],
    %(stored)s::bigint[], %(chunks)s::integer[])
    AS given (ref, digest, kind, size_bytes, stored_bytes, chunks)
ORDER BY ref
ON CONFLICT (tenant, ref) DO UPDATE SET used_s = greatest(kept.used_s, excluded.used_s)
RETURNING ref, digest
"""
_CHUNKS = """
INSERT INTO ullage.chunks (tenant, ref, n, coding, size_bytes, chars, newlines, seal, body)
SELECT %(tenant)s, given.* FROM unnest(%(refs)s::bytea[], %(ns)s::integer[], %(codings)s::text[],
    %(sizes)s::bigint[], %(chars)s::bigint[], %(newlines)s::bigint[], %(seals)s::bytea[],
    %(bodies)s::bytea[]) AS given (ref, n, coding, size_bytes, chars, newlines, seal, body)
ORDER BY ref, n
ON CONFLICT DO NOTHING
"""
_MARK = f"""
UPDATE ullage.outputs SET used_s = {NOW} WHERE ctid = ANY(ARRAY(
    SELECT found.ctid FROM {_GIVEN}, LATERAL (
        SELECT ctid {_EACH} FOR NO KEY UPDATE SKIP LOCKED) AS found))
"""
_LOOK = f"""
SELECT digest, kind, outputs.size_bytes, outputs.chunks, {_IS_STALE},
    n, chars, chunks.size_bytes, newlines
FROM ullage.outputs LEFT JOIN ullage.chunks USING (tenant, ref)
WHERE tenant = %(tenant)s AND ref = %(ref)s ORDER BY n
"""
_READ = f"""
SELECT digest, kind, outputs.chunks, {_IS_STALE}, n,
    coding, {_BODY}, chunks.size_bytes, chars, newlines, seal
FROM ullage.outputs LEFT JOIN ullage.chunks
    ON chunks.tenant = outputs.tenant AND chunks.ref = outputs.ref
    AND n = coalesce(%(n)s::integer, n)
WHERE outputs.tenant = %(tenant)s AND outputs.ref = %(ref)s ORDER BY n
"""


def blobs_of(tenant: bytes, outputs: Sequence[Output]) -> dict[bytes, NewBlob]:
    """Outputs by ref, in the order of refs.

    Raises:
        StoreError: two of them have one ref, and are not the same.
    """
    blobs: dict[bytes, NewBlob] = {}
    for output in sorted(outputs, key=lambda one: to_utf8(one.ref)):
        blob = NewBlob.of(output, tenant)
        if blobs.setdefault(to_utf8(output.ref), blob).digest != blob.digest:
            raise ref_taken_error(NAME, output.ref)
    return blobs


def existing(tenant: bytes, refs: Iterable[bytes]) -> Asking[set[bytes]]:
    """Those of some refs that are stored; a clean-up may remove them at any moment."""
    (rows,) = yield (Query(_KEPT, {"tenant": tenant, "refs": sorted(refs)}),)
    return {ref for (ref,) in rows}


def hold(tenant: bytes, refs: Iterable[bytes]) -> Query:
    """The query for ref, digest, and whether a mark is due; keeps them until the commit."""
    return Query(_HOLD, {"tenant": tenant, "refs": sorted(refs)})


def put(
    tenant: bytes, blobs: Mapping[bytes, NewBlob], found_rows: Sequence[Any]
) -> list[Query]:
    """The queries that keep what is not kept yet, and mark as used what was found by `hold`.

    The first of them, if there is one, gives the ref and the digest of what is kept.

    Raises:
        StoreError: a ref is taken by different content.
    """
    stale = []
    existing = dict[bytes, bytes]()
    for ref, digest, is_stale in found_rows:
        existing[ref] = digest
        if ref in blobs and is_stale:
            stale.append(ref)
    refuse_conflicts(blobs, existing)
    added = {
        ref: blob.packed()
        for ref, blob in blobs.items()
        if ref not in existing
    }
    queries = [*_rows_of(tenant, added)] if added else []
    return (
        [*queries, Query(_MARK, {"tenant": tenant, "refs": stale})]
        if stale
        else queries
    )


def refuse_conflicts(
    blobs: Mapping[bytes, NewBlob], digests: Mapping[bytes, bytes]
) -> None:
    """Refuse outputs whose refs name something else.

    Raises:
        StoreError: there is one.
    """
    for ref, digest in digests.items():
        if ref in blobs and blobs[ref].digest != digest:
            raise ref_taken_error(NAME, from_utf8(ref))


def _rows_of(
    tenant: bytes, blobs: Mapping[bytes, NewBlob]
) -> tuple[Query, ...]:
    packed = [(ref, blob, blob.rows or ()) for ref, blob in blobs.items()]
    outputs = {
        "tenant": tenant,
        "refs": list(blobs),
        "digests": [blob.digest for blob in blobs.values()],
        "kinds": [blob.output.kind for blob in blobs.values()],
        "sizes": [sum(row[2] for row in rows) for _, _, rows in packed],
        "stored": [sum(len(row[-1]) for row in rows) for _, _, rows in packed],
        "chunks": [len(rows) for _, _, rows in packed],
    }
    columns = (
        "ns",
        "codings",
        "sizes",
        "chars",
        "newlines",
        "seals",
        "bodies",
    )
    chunks = [(ref, *row) for ref, _, rows in packed for row in rows]
    parts = zip(*chunks, strict=True) if chunks else ([] for _ in range(8))
    named = dict(zip(("refs", *columns), map(list, parts), strict=True))
    return Query(_PUT, outputs), Query(_CHUNKS, {"tenant": tenant, **named})


def stat(tenant: str, ref: str) -> Asking[Shape]:
    """`Blobs.stat`. Reads no text."""
    values = {"tenant": to_utf8(tenant), "ref": to_utf8(ref)}
    (rows,) = yield (Query(_LOOK, values),)
    if not rows:
        raise RefNotFound(NAME, ref)
    _, kind, size_bytes, chunks, is_stale = rows[0][:5]
    extents = extents_in(
        [row[5:] for row in rows if row[5] is not None], chunks, size_bytes
    )
    if extents is None or kind not in ("text", "block"):
        raise _damaged("stat", ref)
    if is_stale:
        yield from _mark_used(values)
    return Shape(ref, kind, extents)


def read(tenant: str, ref: str, n: int | None = None) -> Asking[Rows]:
    """The row of one chunk of an output, or the rows of all, for `decode_output`."""
    at = n if n is None or 0 <= n < 1 << 31 else -1
    values = {"tenant": to_utf8(tenant), "ref": to_utf8(ref), "n": at}
    (rows,) = yield (Query(_READ, values),)
    if not rows or not (n is None or 0 <= n < rows[0][2]):
        raise RefNotFound(NAME, ref)
    _, kind, chunks, is_stale = rows[0][:4]
    numbers = list(range(chunks)) if n is None else [n]
    if [
        row[4] for row in rows if row[4] is not None
    ] != numbers or kind not in (
        "text",
        "block",
    ):
        raise _damaged("get", ref)
    if is_stale and n is None:
        yield from _mark_used(values)
    return rows


def decode_output(ref: str, rows: Rows, objects: Objects) -> Output:
    """The text of some rows, each checked by its seal and its counts.

    Raises:
        StoreError: one is not what was written there, or its object cannot be had.
    """
    # a row without a chunk is that of an empty output
    texts = []
    for digest, kind, _, _, n, *row in rows:
        text = (
            ""
            if n is None
            else checked_text(digest, kind, n, with_body(objects, row))
        )
        if text is None:
            raise _damaged("get", ref)
        texts.append(text)
    return Output(ref, "".join(texts), rows[0][1])


def text_of(tenant: bytes, ref: bytes, objects: Objects) -> Asking[str]:
    """An output as the search for refs takes it: what is damaged in it is left out."""
    (rows,) = yield (Query(_READ, {"tenant": tenant, "ref": ref, "n": None}),)
    bodies = (
        decompressed(*with_body(objects, row[5:])[:3]) or b"" for row in rows
    )
    return b"".join(bodies).decode("latin-1")


def _mark_used(values: Mapping[str, Any]) -> Asking[None]:
    """Note that an output was used. A server that only lets us read can still be read."""
    with suppress(Error):
        yield (Query(_MARK, {**values, "refs": [values["ref"]]}),)


def _damaged(operation: str, ref: str) -> StoreError:
    reason = "what is kept there is damaged. Restore it from a copy"
    return StoreError(NAME, operation, reason, ref)
