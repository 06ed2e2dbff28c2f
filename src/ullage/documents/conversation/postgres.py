"""Conversations on a PostgreSQL server: what `ConversationStore` keeps in a file.

    ullage.messages     id → conversation, place in it, the message as its provider takes it
    ullage.compactions  the summaries, each with the first message that it does not replace

Who writes to a conversation holds a lock on its name until the commit, so that what is written
later is behind it, on any machine; nobody who reads waits. Ids are made here, so that what is
tried again after a lost answer is written once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from blake3 import blake3
from msgspec.structs import asdict

from ullage.core.redaction import Redact
from ullage.core.values.carried import Arguments
from ullage.documents.conversation.store import (
    CompactionPart,
    ConversationStore,
    StoredMessage,
)
from ullage.stores._packing import from_utf8, to_utf8
from ullage.stores.postgres import schema
from ullage.stores.postgres.asking import (
    BEGIN,
    COMMIT,
    Asking,
    Query,
    Rows,
    answered,
)
from ullage.stores.postgres.connecting import prepared
from ullage.wires import Format, format_of

_SNAPSHOT = Query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_LOCK = "SELECT pg_advisory_xact_lock(%(lock)s)"
_APPEND = """
INSERT INTO ullage.messages (id, session, role, content, wire, created_at)
SELECT id, %(session)s, role, content, wire, at
FROM unnest(%(ids)s::text[], %(roles)s::text[], %(contents)s::text[], %(wires)s::text[],
    %(ats)s::text[]) WITH ORDINALITY AS given (id, role, content, wire, at, n)
ORDER BY n ON CONFLICT (id) DO NOTHING
"""
_MESSAGES = """
SELECT id, wire, is_compacted, created_at FROM ullage.messages
WHERE session = %(session)s {of} ORDER BY place
"""
_LOADED = _MESSAGES.format(of="AND NOT is_compacted")
_HISTORY = _MESSAGES.format(of="")
_UP_TO = """
SELECT before.id, before.wire, before.is_compacted, before.created_at, session
FROM ullage.messages AS boundary JOIN ullage.messages AS before USING (session)
WHERE boundary.id = %(id)s AND before.place <= boundary.place ORDER BY before.place
"""
_NEWEST = """
SELECT part.id, message_id, summary, messages, tokens, part.created_at
FROM ullage.messages JOIN ullage.compactions AS part ON message_id = messages.id
WHERE session = %(session)s AND NOT is_compacted ORDER BY part.place DESC LIMIT 1
"""
_SUMMARISED = """
INSERT INTO ullage.compactions (id, message_id, summary, messages, tokens, created_at)
VALUES (%(id)s, %(message_id)s, %(summary)s, %(compacted_message_count)s,
    %(compacted_token_count)s, %(created_at)s)
ON CONFLICT (id) DO NOTHING
"""
_MARK = """
UPDATE ullage.messages AS marked SET is_compacted = marked.place < boundary.place
FROM ullage.messages AS boundary, ullage.messages AS first
WHERE boundary.id = %(message_id)s AND first.id = %(first)s
    AND marked.session = boundary.session AND marked.place >= first.place
    AND marked.is_compacted <> (marked.place < boundary.place)
"""
_FORGET = """
WITH gone AS (DELETE FROM ullage.messages WHERE session = %(session)s RETURNING id),
    parts AS (DELETE FROM ullage.compactions USING gone WHERE message_id = gone.id)
SELECT count(*) FROM gone
"""


class PostgresConversations(ConversationStore):
    """Conversations on a PostgreSQL server, for many machines: a `ConversationStore` elsewhere.

    Args:
        url: as of `ullage.stores.PostgresStore`; its tables are in the same schema.
        format: the wire format of the messages.
        timeout_s: how long a call is tried, over deadlocks and restarts, before it fails.
        most_connections: the most connections of this process at once.
        clock: the time in seconds since 1970.
        redact: as of `ConversationStore`.

    Raises:
        ConfigError: the address or the format cannot be meant.
        StoreError: the server cannot be reached, or has tables that a later version made.
    """

    name: str = schema.NAME

    def __init__(
        self,
        url: str,
        *,
        format: str | Format = "openai-chat",
        timeout_s: float = 10.0,
        most_connections: int = 8,
        clock: Callable[[], float] = time.time,
        redact: Redact | None = None,
    ) -> None:
        self.redact = redact
        self.wire: Format = format_of(format)
        self._clock = clock
        self._pool = prepared(url, timeout_s, most_connections)

    def _made_with(self) -> Arguments:
        return self._arguments

    def _insert(self, session: str, records: Sequence[dict[str, Any]]) -> None:
        parameters = {
            "session": to_utf8(session),
            "ats": [row["CreatedAt"] for row in records],
            "ids": [row["Id"] for row in records],
            "roles": [row["Role"] for row in records],
            "contents": [
                row["Content"].replace("\0", "\ufffd") for row in records
            ],
            "wires": [row["Wire"] for row in records],
        }
        self._run("append", _written(session, Query(_APPEND, parameters)))

    def _up_to(
        self, boundary_id: str
    ) -> tuple[str, tuple[StoredMessage, ...]]:
        (rows,) = self._run(
            "mark_compacted", _read(Query(_UP_TO, {"id": _plain(boundary_id)}))
        )
        return from_utf8(rows[0][4]) if rows else "", _messages(rows)

    def _compact(
        self, session: str, part: CompactionPart, first_id: str
    ) -> None:
        parameters = {
            **asdict(part),
            "summary": to_utf8(part.summary),
            "first": first_id,
        }
        writes = Query(_SUMMARISED, parameters), Query(_MARK, parameters)
        self._run("mark_compacted", _written(session, *writes))

    def _loaded(
        self, session: str
    ) -> tuple[CompactionPart | None, tuple[StoredMessage, ...]]:
        parameters = {"session": to_utf8(session)}
        parts, rows = self._run(
            "load",
            _read(Query(_NEWEST, parameters), Query(_LOADED, parameters)),
        )
        return _part(parts), _messages(rows)

    def history(self, session: str) -> tuple[StoredMessage, ...]:
        """`ConversationStore.history`."""
        (rows,) = self._run(
            "history", _read(Query(_HISTORY, {"session": to_utf8(session)}))
        )
        return _messages(rows)

    def newest_compaction(self, session: str) -> CompactionPart | None:
        """`ConversationStore.newest_compaction`."""
        query = Query(_NEWEST, {"session": to_utf8(session)})
        (parts,) = self._run("newest_compaction", _read(query))
        return _part(parts)

    def forget(self, session: str) -> int:
        """Erase a conversation: its messages, and every summary of them.

        Returns:
            How many messages went. Their room on the server's disk is used again after its next
            vacuum; copies and archived logs are the operator's.
        """
        query = Query(_FORGET, {"session": to_utf8(session)})
        (rows,) = self._run("forget", _written(session, query))
        return int(rows[0][0])

    def close(self) -> None:
        """Let go of the connections. May be called twice."""
        self._pool.close()

    def _run(
        self, operation: str, asking: Callable[[], Asking[list[Rows]]]
    ) -> list[Rows]:
        return self._pool.run(operation, lambda db: answered(db, asking()))


def _read(*queries: Query) -> Callable[[], Asking[list[Rows]]]:
    """What some queries find, all of one moment."""

    def ask() -> Asking[list[Rows]]:
        if len(queries) == 1:
            return (yield queries)
        _, *results, _ = yield (_SNAPSHOT, *queries, COMMIT)
        return results

    return ask


def _written(
    session: str, *queries: Query
) -> Callable[[], Asking[list[Rows]]]:
    """What some queries come to that change a conversation, all of them or none."""
    digest = blake3(
        to_utf8(session), derive_key_context="ullage conversation"
    ).digest(8)
    lock = Query(_LOCK, {"lock": int.from_bytes(digest, "big", signed=True)})

    def ask() -> Asking[list[Rows]]:
        _, _, *results, _ = yield (BEGIN, lock, *queries, COMMIT)
        return results

    return ask


def _messages(rows: Rows) -> tuple[StoredMessage, ...]:
    return tuple(
        StoredMessage(
            id=id,
            message=json.loads(wire),
            is_compacted=is_compacted,
            created_at=created_at,
        )
        for id, wire, is_compacted, created_at, *_ in rows
    )


def _part(rows: Rows) -> CompactionPart | None:
    if not rows:
        return None
    id, message_id, summary, messages, tokens, created_at = rows[0]
    return CompactionPart(
        id, message_id, from_utf8(summary), messages, tokens, created_at
    )


def _plain(id: str) -> str:
    """An id as the server takes it: one that it does not is nobody's."""
    return id.encode("utf-8", "replace").decode().replace("\0", "?")
