"""The store that an address means; psycopg is loaded only for one that is ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.errors import ConfigError
from ullage.stores._base import Store

if TYPE_CHECKING:
    from ullage.stores.objects import ObjectStorage

__all__ = ["at"]


def at(url: str, objects: ObjectStorage | None = None) -> Store:
    """The store at an address.

    Args:
        url: the server and the database.
        objects: where the larger bodies are kept; None: on the server.

    Raises:
        ConfigError: it is no address of a PostgreSQL server, or psycopg is not installed.
        StoreError: see `PostgresStore`.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        reason = "stores behind such an address are not known"
        raise ConfigError("store", reason, "Use a path, or postgresql://user@host/database")
    try:
        from ullage.stores.postgres.store import PostgresStore
    except ModuleNotFoundError:
        remedy = "pip install 'ullage[postgres]'"
        raise ConfigError("store", "psycopg is not installed", remedy) from None
    return PostgresStore(url, objects=objects)
