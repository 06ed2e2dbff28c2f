"""The conversations that an address means: those of a file, or on a server."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from ullage.core.errors import StoreError
from ullage.documents.conversation.store import ConversationStore
from ullage.stores._file import absolute
from ullage.stores._open import is_url
from ullage.stores.objects.opening import check_address


def conversations_at(address: str) -> ConversationStore:
    """The conversations on a server, or in a file that has some.

    Args:
        address: the path of a SQLite file, or ``postgresql://…``.

    Raises:
        ConfigError: it is not an address of a PostgreSQL server, or psycopg is not installed.
        StoreError: the server cannot be reached, or the file has none.
    """
    if is_url(address):
        check_address(address)
        from ullage.documents.conversation.postgres import (
            PostgresConversations,
        )

        return PostgresConversations(address)
    try:
        with closing(
            sqlite3.connect(f"{absolute(address).as_uri()}?mode=ro", uri=True)
        ) as db:
            db.execute("SELECT Id, SessionId FROM Messages LIMIT 1")
    except sqlite3.Error as error:
        reason = "it holds no conversations. Use another file."
        raise StoreError("conversations", "open", reason) from error
    return ConversationStore(address)
