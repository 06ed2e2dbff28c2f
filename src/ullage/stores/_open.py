"""From what a user writes (``store=``) to a store."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from typing import Any, TypeGuard

from ullage.core.contract.policy import BesideStore
from ullage.core.errors import ConfigError
from ullage.core.history.canon import ref_of
from ullage.stores._base import Store
from ullage.stores._clean import DAY_S
from ullage.stores.memory import MemoryStore
from ullage.stores.spill import SpillStore
from ullage.stores.sqlite import SqliteStore

FILES_KEPT_S = 30 * DAY_S
"""How long the files of a policy are kept unused; what they hold stays in the store."""

_METHODS = (
    "commit",
    "find",
    "get",
    "stat",
    "chunk",
    "refs",
    "existing_refs",
    "collect",
    "close",
)
_WORD = re.compile(r"[\w+-]*")
_REMEDY = 'Use "memory", "sqlite", the path of a file, "postgresql://…", or a ullage.stores.Store'


def open_store(
    spec: str | os.PathLike[str] | Store | None,
    blobs: str | None = None,
    cache: str | None = None,
) -> Store:
    """The store that ``spec`` means.

    Args:
        spec: None or ``"memory"`` for a new `MemoryStore`; ``"sqlite"`` for a `SqliteStore`
            at the path in the environment variable ``ULLAGE_STORE``, or where the platform
            keeps the data of users; a path for a `SqliteStore` there; ``"postgresql://…"`` for a
            `PostgresStore`; a store for itself.
        blobs: ``"s3://bucket/prefix"``, where the larger bodies of a file or a server are kept.
        cache: ``"valkey://host"``, for copies of them, and for leases.

    Raises:
        ConfigError: it means none of these.
        StoreError: the file cannot be opened.
    """
    if blobs or cache or spec == "sqlite" or is_url(spec):
        from ullage.stores.objects.opening import open_lasting

        return open_lasting(spec, blobs, cache)
    if spec is None or spec == "memory":
        return MemoryStore()
    if isinstance(spec, str) and spec and _WORD.fullmatch(spec):
        raise ConfigError(
            "store",
            f"{spec[:40]!r} is no kind of store",
            f"{_REMEDY} (./{spec[:40]})",
        )
    if isinstance(spec, str | os.PathLike):
        return SqliteStore(spec)
    if inspect.iscoroutinefunction(getattr(spec, "commit", None)):
        raise ConfigError(
            "store",
            "this store is asynchronous",
            "Give the store underneath it",
        )
    if isinstance(spec, type) or not all(
        callable(getattr(spec, m, None)) for m in _METHODS
    ):
        raise ConfigError(
            "store", f"a {type(spec).__name__} is not a store", _REMEDY
        )
    return spec


def is_url(spec: object) -> TypeGuard[str]:
    """Whether a store is given by its address.

    Args:
        spec: as of `open_store`.
    """
    return isinstance(spec, str) and "://" in spec


def with_files(
    store: Store, folder: str | BesideStore | None, tenant: str
) -> tuple[Store, str | None]:
    """Add spill files to a store where a policy wants them.

    A store that has spill files already stays as it is. A tenant with a name has a directory of its
    own in the one that is wanted, for a file can be read by whoever sees it.

    Args:
        store: the store.
        folder: the directory that the policy wants, or where it is beside the store; None: no
            files.
        tenant: whose files.

    Returns:
        The store, and the directory of its files, or None.

    Raises:
        StoreError: the directory cannot be made.
    """
    if folder is None:
        return store, None
    spill = files_of(store)
    if spill is not None:
        return store, spill.folder.as_posix()
    directory = directory_of(folder, store)
    if directory is None:
        return store, None
    subfolder = ref_of(tenant, "tenant") if tenant else ""
    spill = SpillStore(
        store, directory, subfolder=subfolder, files_kept_s=FILES_KEPT_S
    )
    return spill, f"{directory}/{subfolder}" if subfolder else directory


def directory_of(
    folder: str | BesideStore | None, store: object
) -> str | None:
    """The directory that a policy wants beside a store, or None.

    Args:
        folder: as of `with_files`.
        store: the store.
    """
    if not isinstance(folder, BesideStore):
        return folder
    base = innermost(store)
    if not isinstance(base, SqliteStore):
        return folder.otherwise
    return (base.path.parent / folder.name).as_posix()


def innermost(store: object) -> object:
    """The store underneath all wrappers.

    Args:
        store: any store.
    """
    *_, base = layers(store)
    return base


def files_of(store: object) -> SpillStore | None:
    """The spill files of a store, however it is wrapped, or None if it has none.

    Args:
        store: any store.
    """
    return next(
        (layer for layer in layers(store) if isinstance(layer, SpillStore)),
        None,
    )


def layers(store: Any) -> Iterator[Any]:
    """Yield a store and those underneath it, the outermost first.

    Args:
        store: any store.
    """
    while store is not None:
        yield store
        store = getattr(store, "store", None)


def receipts_of(store: object) -> Any:
    """The part of a store that keeps receipts (`ReceiptStore`), however it is wrapped.

    Args:
        store: any store. Of an asynchronous one the methods are to be awaited.

    Returns:
        That part, or None if it keeps none.
    """
    return _layer_with("keep_receipts", store)


def spending_of(store: object) -> Any:
    """The part of a store that keeps what teams spend (`SpendingStore`), however it is wrapped.

    Args:
        store: any store. Of an asynchronous one the methods are to be awaited.

    Returns:
        That part, or None if it keeps nothing of the kind.
    """
    return _layer_with("book_spending", store)


def _layer_with(method: str, store: Any) -> Any:
    """The outermost layer of a store that has a method, or None."""
    layer = store
    while layer is not None and not hasattr(type(layer), method):
        layer = getattr(layer, "store", None)
    return layer
