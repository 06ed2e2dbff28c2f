"""Conversations in SQLite: every message kept, loaded from the newest summary on.

    append            one row a message, as its provider takes it
    mark_compacted    a summary replaces all before a boundary; they are marked, not deleted
    load              the summary, then every message from the boundary on
    history           all of it, for whoever asks what was really said

    ░░░░░░░░░░░░░░░░░░░░░░│▓▓▓▓▓▓▓▓▓▓▓▓     ░ IsCompacted, kept     ▓ loaded
    what is summarised    └ the boundary: the first message that is loaded

The tables are those of three-layer (Database Schema Additions), and a chat service's own
database can be used as it is. Nothing of a file that was there is changed but for what is
added: no mode, no journal. Each call opens the file, does its work in one transaction and
closes it again, so that threads, processes and forks share it, and a process may die at any
step. Messages are ordered as they were written.

How it differs from the document's code (DESIGN §10): the boundary's own message is loaded, the
boundary may not part a call from its result, system messages at the head stay, and where a
wire has no system messages the summary is the user's.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from ullage.core.errors import StoreError
from ullage.core.redaction import Redact, checked, in_message
from ullage.core.values.carried import Arguments, Portable
from ullage.documents.conversation import _rows as rows
from ullage.documents.conversation._rows import (
    NAME,
    CompactionPart,
    StoredMessage,
)
from ullage.stores._file import absolute, create_private
from ullage.stores._reasons import kind_of, reason_of
from ullage.wires import Format, format_of
from ullage.wires.base import plain

__all__ = ["CompactionPart", "ConversationStore", "StoredMessage"]


class ConversationStore(Portable):
    """Conversations in one SQLite file, a chat service's own or a new one.

    Every method raises `StoreError` when the file fails.

    Args:
        path: the file; a new one is created with mode 0600.
        format: the wire format of its messages.
        busy_timeout_s: how long a call waits while another process writes.
        clock: the time in seconds since 1970.
        redact: takes secrets out of every message and summary before it is kept, such as
            `ullage.common_keys`; None: nothing does.

    Attributes:
        wire: the wire format of its messages.
        redact: as it was given.

    Raises:
        ConfigError: the path or the format cannot be meant.
        StoreError: the file cannot be opened, or has a table ``Messages`` of another kind.
    """

    name: str = NAME

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | Format = "openai-chat",
        busy_timeout_s: float = 10.0,
        clock: Callable[[], float] = time.time,
        redact: Redact | None = None,
    ) -> None:
        self.redact = redact
        self._path = absolute(path)
        self.wire: Format = format_of(format)
        self._busy_timeout_s = busy_timeout_s
        self._clock = clock
        self._create()
        with self._connected("open") as db:
            rows.prepare(db)

    def _made_with(self) -> Arguments:
        _, named = self._arguments
        named = {
            name: value for name, value in named.items() if name != "path"
        }
        return (str(self._path),), named

    def append(self, session: str, messages: Sequence[Any]) -> tuple[str, ...]:
        """Keep some messages at the end of a conversation, all of them or none.

        Args:
            session: which conversation.
            messages: as the provider takes them; dicts, or SDK objects.

        Returns:
            The id of each, in order.

        Raises:
            FormatError: one of them is no message of the format.
        """
        messages = self.redacted(messages)
        at = self._now()
        records = [
            rows.row_of(self.wire, session, raw, n, at)
            for n, raw in enumerate(messages)
        ]
        self._insert(session, records)
        return tuple(row["Id"] for row in records)

    def redacted(self, messages: Sequence[Any]) -> Sequence[Any]:
        """The messages as they are kept; they themselves where nothing is redacted.

        Raises:
            FormatError: one of them is no message.
        """
        if self.redact is None:
            return messages
        plain_messages = (
            dict(plain(raw, f"messages[{n}]"))
            for n, raw in enumerate(messages)
        )
        return [in_message(raw, self.redact) for raw in plain_messages]

    def mark_compacted(
        self, boundary_id: str, summary: str, *, tokens: int
    ) -> CompactionPart:
        """Replace all before a boundary by a summary; with the marks in one transaction.

        The newest one holds: what an earlier one had marked behind this boundary is loaded
        again.

        Args:
            boundary_id: the first message that is still to be loaded.
            summary: what replaces those before it.
            tokens: how many tokens those had.

        Raises:
            ConfigError: a history may not begin at this message, or none is before it.
            StoreError: there is no such message, or the store failed.
        """
        session, up_to_boundary = self._up_to(boundary_id)
        if not up_to_boundary:
            reason = "there is no such message. Give an id that append or load returned"
            raise StoreError(self.name, "mark_compacted", reason, boundary_id)
        summarised = rows.compactible(self.wire, up_to_boundary)
        part = CompactionPart(
            id=str(uuid4()),
            message_id=boundary_id,
            summary=summary
            if self.redact is None
            else checked(self.redact)(summary),
            compacted_message_count=len(summarised),
            compacted_token_count=tokens,
            created_at=self._now(),
        )
        self._compact(session, part, summarised[0].id)
        return part

    def load(
        self, session: str, *, as_user: bool = False
    ) -> tuple[StoredMessage, ...]:
        """The conversation as it goes on: the newest summary, then all from its boundary on.

        Without a compaction it is the whole history. System messages at the head of the
        history stay there, before the summary.

        Args:
            session: which conversation.
            as_user: show the summary as the user's message on every wire: what tools said is in
                it. Else as the document has it, the system's where the wire has such messages.
        """
        part, messages = self._loaded(session)
        if part is None:
            return messages
        boundary = next(
            n for n, one in enumerate(messages) if one.id == part.message_id
        )
        summary = rows.synthetic(self.wire, part, as_user=as_user)
        return (*messages[:boundary], summary, *messages[boundary:])

    def history(self, session: str) -> tuple[StoredMessage, ...]:
        """Every message of a conversation, the compacted ones too.

        Args:
            session: which conversation.
        """
        with self._transaction("history", "BEGIN") as db:
            return rows.messages_of(db, session)

    def newest_compaction(self, session: str) -> CompactionPart | None:
        """The summary that `load` shows; None if the conversation was never compacted.

        Args:
            session: which conversation.
        """
        with self._transaction("newest_compaction", "BEGIN") as db:
            return rows.newest_part(db, session)

    def forget(self, session: str) -> int:
        """Erase a conversation: its messages, and every summary of them.

        Args:
            session: which conversation.

        Returns:
            How many messages went. Nothing of them is in the file then, nor in its log.

        Raises:
            StoreError: the store failed, or another process holds the file.
        """
        parts = "DELETE FROM CompactionParts WHERE MessageId IN "
        with self._connected("forget") as db:
            db.execute("PRAGMA secure_delete = ON")
            db.execute("BEGIN IMMEDIATE")
            db.execute(
                f"{parts}(SELECT Id FROM Messages WHERE SessionId = ?)",
                (session,),
            )
            count = db.execute(
                "DELETE FROM Messages WHERE SessionId = ?", (session,)
            ).rowcount
            db.execute("COMMIT")
            (is_busy, *_) = db.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)"
            ).fetchone()
        if is_busy:
            reason = "the rows are gone, but another process holds the log. Try again after it"
            raise StoreError(NAME, "forget", reason)
        return count

    def _insert(self, session: str, records: Sequence[dict[str, Any]]) -> None:
        """Write new rows (`row_of`), all of them or none."""
        with self._transaction("append", "BEGIN IMMEDIATE") as db:
            there = rows.columns_of(db)
            for row in records:
                columns = {
                    name: value
                    for name, value in row.items()
                    if name.lower() in there
                }
                marks = ", ".join("?" * len(columns))
                db.execute(
                    f"INSERT INTO Messages ({', '.join(columns)}) VALUES ({marks})",
                    tuple(columns.values()),
                )

    def _up_to(
        self, boundary_id: str
    ) -> tuple[str, tuple[StoredMessage, ...]]:
        """The conversation of a message, and its messages up to that one; none if it is not there.

        Nothing is locked meanwhile: what comes before a message does not change.
        """
        with self._transaction("mark_compacted", "BEGIN") as db:
            query = "SELECT SessionId, rowid FROM Messages WHERE Id = ?"
            session, boundary = db.execute(
                query, (boundary_id,)
            ).fetchone() or ("", 0)
            return session, rows.messages_of(
                db, session, "rowid <= ?", boundary
            )

    def _compact(
        self, session: str, part: CompactionPart, first_id: str
    ) -> None:
        """Write a compaction, and mark what it replaces: from a message on to its boundary."""
        with self._transaction("mark_compacted", "BEGIN IMMEDIATE") as db:
            rows.insert_part(db, part, session, first_id)

    def _loaded(
        self, session: str
    ) -> tuple[CompactionPart | None, tuple[StoredMessage, ...]]:
        """The newest compaction and what is not compacted; all messages where there is none."""
        with self._transaction("load", "BEGIN") as db:
            part = rows.newest_part(db, session)
            return part, rows.messages_of(
                db, session, "IsCompacted = 0" if part else "1"
            )

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat()

    def _create(self) -> None:
        """A new file is private; one that is there stays as it is."""
        try:
            create_private(self._path)
        except OSError as error:
            raise StoreError(NAME, "open", reason_of(error)) from error

    @contextmanager
    def _connected(self, operation: str) -> Iterator[sqlite3.Connection]:
        """A connection for one piece of work; SQLite's failures become StoreError.

        Closing it rolls back what was not committed.
        """
        try:
            with closing(
                sqlite3.connect(
                    self._path,
                    timeout=self._busy_timeout_s,
                    isolation_level=None,
                )
            ) as db:
                db.execute("PRAGMA foreign_keys = ON")
                yield db
        except (sqlite3.Error, OverflowError) as error:
            raise kind_of(error)(NAME, operation, reason_of(error)) from error
        except UnicodeEncodeError:
            reason = "an id or a summary has a lone surrogate. Replace it"
            raise StoreError(NAME, operation, reason) from None

    @contextmanager
    def _transaction(
        self, operation: str, begin: str
    ) -> Iterator[sqlite3.Connection]:
        """A connection inside one transaction: all of it, or nothing."""
        with self._connected(operation) as db:
            db.execute(begin)
            yield db
            db.execute("COMMIT")
