"""How bodies of chunks are moved to object storage and brought back, and what is swept up."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from typing import Protocol

from blake3 import blake3
from msgspec.structs import replace

from ullage.core.errors import StoreError
from ullage.core.values.carried import Portable
from ullage.core.values.owners import PART
from ullage.stores._clean import DAY_S, Bounds, Collected, Cursor
from ullage.stores._packing import MOST_BYTES, NewBlob, to_utf8
from ullage.stores.objects.bucket import Bucket, ObjectEntry
from ullage.stores.objects.rows import Named, Objects, Step, as_object_row

_log = logging.getLogger("ullage.stores")

_AT_ONCE = 8
_SEAL_BYTES = 32
_AWAY_S = 30.0
"""How long a bucket that failed is not written to; then it is tried again."""
_PART = to_utf8(PART)
_PAGE = 1_000
"""The most objects that S3 lists, or deletes, with one request."""
_NAME = re.compile(
    r"[0-9a-f]{32}/[0-9a-f]{32}/[0-9a-f]{64}\.\d+\.[0-9a-f]{16}"
)


class BodyCache(Protocol):
    """A cache of objects, which may lose them at any moment. It never raises."""

    def body(self, name: str) -> bytes | None:
        """The copy, as it was kept, or None."""

    def keep(self, name: str, body: bytes) -> None:
        """Hold a copy for a while."""

    def lose(self, names: Sequence[str]) -> None:
        """Let go of copies."""


class ObjectStorage(Portable):
    """A bucket for the bodies of a store's outputs. Safe over threads; no fork can read there.

    Bodies that take few bytes stay in their rows, where they are read with one request instead
    of two. While the bucket cannot be written to, so do all others: no turn fails of it.

    Args:
        url: ``s3://bucket/prefix``. Its query may have ``endpoint`` and ``region``; what is not
            in it, and the credentials, are the environment's (``AWS_…``), or those of the role
            of the machine or the pod.
        timeout_s: how long a request is tried before it fails.
        least_bytes: from how many bytes on, compressed, a body is an object.
        cache: holds copies of what was read; None: nothing does.

    Raises:
        ConfigError: the address cannot be read.
        StoreError: the bucket is not there, or cannot be reached.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 10.0,
        least_bytes: int = 4_096,
        cache: BodyCache | None = None,
    ) -> None:
        self.bucket = Bucket(url, timeout_s)
        self.least_bytes = least_bytes
        self.cache = cache
        self.bucket.page("", "", 1)

    def of(self, store: bytes, named: Named) -> StoreObjects:
        """The objects of one store among those of others, which no other store is named as."""
        key = blake3(store, derive_key_context="ullage copies").digest()
        return StoreObjects(self, blake3(store).hexdigest()[:32], named, key)


class StoreObjects(Objects):
    """The objects of one store."""

    def __init__(
        self, storage: ObjectStorage, folder: str, named: Named, key: bytes
    ) -> None:
        self._bucket = storage.bucket
        self._cache = storage.cache
        self._least_bytes = storage.least_bytes
        self._folder = folder
        self._named = named
        self._key = key
        self._away_until_s = 0.0

    def moved(self, tenant: bytes, blobs: Iterable[NewBlob]) -> list[NewBlob]:
        """`Objects.moved`. If the bucket fails, bodies stay in their rows; the next ones, too."""
        packed = [blob.packed() for blob in blobs]
        if time.monotonic() < self._away_until_s:
            return packed
        large: dict[str, bytes] = {}
        moved = [self._moved(tenant, blob, large) for blob in packed]
        try:
            self._put(list(large.items()))
        except StoreError as error:
            # no turn fails of a bucket: the bodies stay in their rows
            self._away_until_s = time.monotonic() + _AWAY_S
            _log.warning(
                "%s. For %d s outputs are kept in the store itself",
                error,
                _AWAY_S,
            )
            return packed
        return moved

    def body(self, name: bytes) -> bytes | None:
        """`Objects.body`."""
        name_text = name.decode("ascii", "replace")
        body = self._copy(name_text)
        if body is None:
            body = self._bucket.get(name_text, MOST_BYTES)
            if body is not None and self._cache:
                self._cache.keep(name_text, self._seal(name_text, body) + body)
        return body

    def _copy(self, name: str) -> bytes | None:
        """The copy of an object in the cache, if it is one that this store put there."""
        copy = self._cache.body(name) if self._cache else None
        if copy is None:
            return None
        seal = copy[:_SEAL_BYTES]
        body = copy[_SEAL_BYTES:]
        return body if compare_digest(seal, self._seal(name, body)) else None

    def _seal(self, name: str, body: bytes) -> bytes:
        """A keyed hash of a copy; the key is in the store, which the cache cannot read."""
        return (
            blake3(name.encode(), key=self._key)
            .update(body)
            .digest(_SEAL_BYTES)
        )

    def collected(
        self,
        tenant: str | None,
        bounds: Bounds,
        cursor: str | None,
        collect: Step,
    ) -> Collected | None:
        """`Objects.collected`."""
        position = None if cursor is None else Cursor.read(cursor)
        if position is None or position.phase != "objects":
            collected = collect()
            if (
                collected is None
                or collected.cursor is not None
                or bounds.dry_run
            ):
                return collected
            return replace(
                collected, cursor=str(Cursor("objects", collected.left_bytes))
            )
        prefix = (
            self._folder
            if tenant is None
            else self._folder_of(to_utf8(tenant))
        )
        limit = min(bounds.limit, _PAGE)
        page = self._bucket.page(prefix, position.ref, limit)
        self._sweep(page, bounds)
        is_last = len(page) < limit
        more = None if is_last else str(replace(position, ref=page[-1].name))
        return Collected((), 0, position.left_bytes, more)

    def _sweep(self, page: Sequence[ObjectEntry], bounds: Bounds) -> None:
        """Delete the objects of a page that no row names, and that none is going to name."""
        is_erasure = (
            bounds.older_than_s is not None and bounds.older_than_s < 0
        )
        oldest = datetime.now(UTC) - timedelta(seconds=DAY_S)
        own_entries = (entry for entry in page if _NAME.fullmatch(entry.name))
        expired = {
            entry.name.encode()
            for entry in own_entries
            if is_erasure or entry.written < oldest
        }
        if not expired:
            return
        unnamed = sorted(
            name.decode() for name in expired - self._named(expired)
        )
        if unnamed:
            self._bucket.delete(unnamed)
            if self._cache:
                self._cache.lose(unnamed)

    def _moved(
        self, tenant: bytes, blob: NewBlob, large: dict[str, bytes]
    ) -> NewBlob:
        """A content whose larger bodies are objects; they are added to ``large``, by name."""
        rows = list(blob.rows or ())
        for place, row in enumerate(rows):
            if len(row[-1]) >= self._least_bytes:
                name = f"{blob.digest.hex()}.{row[0]}.{os.urandom(8).hex()}"
                name = f"{self._folder_of(tenant)}/{name}"
                large[name] = row[-1]
                rows[place] = as_object_row(row, name)
        return replace(blob, rows=tuple(rows))

    def _folder_of(self, owner: bytes) -> str:
        """What the names of a tenant's objects begin with. It does not name the tenant.

        Those of its conversations begin so too: whoever forgets the tenant deletes them with it.
        """
        tenant = owner.partition(_PART)[0]
        digest = blake3(
            tenant, derive_key_context="ullage objects"
        ).hexdigest()
        return f"{self._folder}/{digest[:32]}"

    def _put(self, large: Sequence[tuple[str, bytes]]) -> None:
        """Write objects, several at once."""
        if len(large) < 2:
            for item in large:
                self._bucket.put(*item)
            return
        with ThreadPoolExecutor(min(_AT_ONCE, len(large))) as pool:
            list(pool.map(lambda item: self._bucket.put(*item), large))
