"""The store that addresses mean: a file or a server, a bucket and a cache beside it.

What a server, a bucket or a cache needs is loaded only for one that is named.
"""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING, Any, TypeVar

from ullage.core.errors import ConfigError
from ullage.core.installing import install_remedy
from ullage.stores._base import Store
from ullage.stores._open import is_url
from ullage.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from ullage.stores.cache import Cache
    from ullage.stores.objects.storage import ObjectStorage

T = TypeVar("T")


def beside(spec: T, blobs: str | None, cache: str | None) -> T | Store:
    """The store that a setting means, with a bucket and a cache beside it if they are given.

    Args:
        spec: as of `ullage.stores.open_store`; returned as it is without the others.
        blobs: see `open_lasting`.
        cache: see `open_lasting`.
    """
    return open_lasting(spec, blobs, cache) if blobs or cache else spec


def open_lasting(
    spec: object, blobs: str | None, cache: str | None, *, leases: bool = True
) -> Store:
    """Open a store on a file or a server, with a bucket and a cache beside it.

    Args:
        spec: as of `ullage.stores.open_store`.
        blobs: ``s3://bucket/prefix``, or None.
        cache: ``valkey://host:6379``, or None.
        leases: whether the cache is for those too.

    Raises:
        ConfigError: one of them cannot be meant, or what it needs is not installed.
        StoreError: one of them cannot be opened.
    """
    if not isinstance(spec, str | os.PathLike) or spec in ("", "memory"):
        raise ConfigError(
            "blobs" if blobs else "cache" if cache else "store",
            "the store beside it is neither a file nor a server"
            if blobs or cache
            else "it is neither a file nor a server",
            'Name it: store="sqlite", a path or "postgresql://…"',
        )
    location: str | os.PathLike[str] | None = spec
    if spec == "sqlite":
        location = os.environ.get("ULLAGE_STORE") or None
    nearby_cache = _cache(cache) if cache else None
    objects = _objects(blobs, nearby_cache) if blobs else None
    store = (
        _on_server(location, objects)
        if is_url(location)
        else SqliteStore(location, objects=objects)
    )
    return nearby_cache.around(store) if nearby_cache and leases else store


def _on_server(url: str, objects: ObjectStorage | None) -> Store:
    check_address(url)
    from ullage.stores.postgres.store import PostgresStore

    return PostgresStore(url, objects=objects)


def check_address(url: str) -> None:
    """Raise ConfigError unless an address is of a PostgreSQL server, and its client is here."""
    if not url.startswith(("postgresql://", "postgres://")):
        reason = "stores behind such an address are not known"
        raise ConfigError(
            "store", reason, "Use a path, or postgresql://user@host/database"
        )
    if importlib.util.find_spec("psycopg") is None:
        remedy = install_remedy("postgres")
        raise ConfigError("store", "psycopg is not installed", remedy)


def _objects(url: str, cache: Any) -> ObjectStorage:
    try:
        from ullage.stores.objects.storage import ObjectStorage
    except ModuleNotFoundError:
        remedy = install_remedy("s3")
        raise ConfigError(
            "blobs", "obstore is not installed", remedy
        ) from None
    return ObjectStorage(url, cache=cache)


def _cache(url: str) -> Cache:
    try:
        from ullage.stores.cache import Cache
    except ModuleNotFoundError:
        remedy = install_remedy("valkey")
        raise ConfigError(
            "cache", "redis, the client, is not installed", remedy
        ) from None
    return Cache(url)
