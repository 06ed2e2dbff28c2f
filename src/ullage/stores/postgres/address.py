"""The store that an address means; psycopg is loaded only for one that is ours."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from ullage.errors import ConfigError
from ullage.stores._base import Store
from ullage.stores._open import is_url

if TYPE_CHECKING:
    from ullage.stores.conversations import ConversationStore
    from ullage.stores.objects import ObjectStorage

__all__ = ["at", "conversations_at"]


def at(url: str, objects: ObjectStorage | None = None) -> Store:
    """The store at an address.

    Args:
        url: the server and the database.
        objects: where the larger bodies are kept; None: on the server.

    Raises:
        ConfigError: it is no address of a PostgreSQL server, or psycopg is not installed.
        StoreError: see `PostgresStore`.
    """
    _check(url)
    from ullage.stores.postgres.store import PostgresStore

    return PostgresStore(url, objects=objects)


def conversations_at(where: str) -> ConversationStore:
    """The conversations on a server, or in a file that has some.

    Raises:
        ConfigError: as of `at`.
        StoreError: the server cannot be reached, or the file has none.
    """
    if not is_url(where):
        from ullage.stores.conversations import ConversationStore

        return ConversationStore.existing(where)
    _check(where)
    from ullage.stores.postgres.conversations import PostgresConversations

    return PostgresConversations(where)


def _check(url: str) -> None:
    if not url.startswith(("postgresql://", "postgres://")):
        reason = "stores behind such an address are not known"
        raise ConfigError("store", reason, "Use a path, or postgresql://user@host/database")
    if importlib.util.find_spec("psycopg") is None:
        remedy = "pip install 'ullage[postgres]'"
        raise ConfigError("store", "psycopg is not installed", remedy)
