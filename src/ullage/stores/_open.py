"""From what a user writes (``store=``) to a store."""

from __future__ import annotations

import inspect
import os

from ullage.errors import ConfigError
from ullage.stores._base import Store
from ullage.stores.memory import MemoryStore
from ullage.stores.sqlite import SqliteStore

__all__ = ["open_store"]

_METHODS = ("commit", "find", "get", "look", "chunk", "refs", "collect", "close")
_REMEDY = 'Use "memory", "sqlite", the path of a file, or a ullage.stores.Store'


def open_store(spec: str | os.PathLike[str] | Store | None) -> Store:
    """The store that ``spec`` means.

    Args:
        spec: None or ``"memory"`` for a new `MemoryStore`; ``"sqlite"`` for a `SqliteStore`
            at the path in the environment variable ``ULLAGE_STORE``, or where the platform
            keeps the data of users; a path for a `SqliteStore` there; a store for itself.

    Raises:
        ConfigError: it means none of these.
        StoreError: the file cannot be opened.
    """
    if spec is None or spec == "memory":
        return MemoryStore()
    if spec == "sqlite":
        return SqliteStore(os.environ.get("ULLAGE_STORE") or None)
    if isinstance(spec, str) and "://" in spec:
        raise ConfigError("store", "stores behind a URL are not known here", _REMEDY)
    if isinstance(spec, str | os.PathLike):
        return SqliteStore(spec)
    if isinstance(spec, type) or not all(callable(getattr(spec, m, None)) for m in _METHODS):
        raise ConfigError("store", f"a {type(spec).__name__} is not a store", _REMEDY)
    if inspect.iscoroutinefunction(spec.commit):
        raise ConfigError("store", "this store is asynchronous", "Give the store underneath it")
    return spec
