"""The tables of a conversation store, and their rows: from wire messages to columns, and back.

    Messages            as the service has it, with two columns more:
      IsCompacted       1 once a summary replaces the message (three-layer, Database Schema)
      Wire              the message as JSON, as its provider takes it; NULL in older rows
    CompactionParts     the summaries, each with the first message it does not replace

The database may be a chat service's own. What is missing is added, in one transaction; nothing
that is there is ever changed, and a second run writes nothing. A row of ours holds its message as
JSON, and beside it what a chat service reads: its role, its text, its calls. A row of the service's
own has those alone, and is read as an OpenAI Chat message.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import astuple

from ullage.core.errors import ConfigError, FormatError, StoreError
from ullage.core.history import canon
from ullage.core.history.transcript import Transcript
from ullage.core.values.messages import Message, Text, ToolResult
from ullage.wires import Format, wire_named
from ullage.wires.base import plain

NAME = "conversations"

_MESSAGES = """CREATE TABLE IF NOT EXISTS Messages (
    Id TEXT PRIMARY KEY,
    SessionId TEXT NOT NULL,
    Role TEXT NOT NULL,
    Content TEXT NOT NULL,
    ToolCallsJson TEXT,
    CreatedAt TEXT NOT NULL
)"""
_PARTS = """CREATE TABLE IF NOT EXISTS CompactionParts (
    Id TEXT PRIMARY KEY,
    MessageId TEXT NOT NULL,
    Summary TEXT NOT NULL,
    CompactedMessageCount INTEGER NOT NULL,
    CompactedTokenCount INTEGER NOT NULL,
    CreatedAt TEXT NOT NULL,
    FOREIGN KEY (MessageId) REFERENCES Messages(Id)
)"""
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS idx_compaction_message ON CompactionParts(MessageId)",
    # ours: what is loaded is one range of it, in order
    "CREATE INDEX IF NOT EXISTS idx_messages_session ON Messages(SessionId, IsCompacted)",
)
_ADDED = {"IsCompacted": "INTEGER DEFAULT 0", "Wire": "TEXT"}
_NEEDED = frozenset(("id", "sessionid", "role", "content"))
_THERE = "SELECT count(*) FROM sqlite_master WHERE name COLLATE NOCASE IN (?, ?, ?, ?)"
_NAMES = (
    "Messages",
    "CompactionParts",
    "idx_compaction_message",
    "idx_messages_session",
)
_PART = "Id, MessageId, Summary, CompactedMessageCount, CompactedTokenCount, CreatedAt"

EMPTY_ID = "00000000-0000-0000-0000-000000000000"
"""The id of the message that a summary is shown as: it is not a row."""

_FIELDS = ("CreatedAt", "Role", "Content", "ToolCallsJson", "ToolCallId")
"""What a row of the service's own may have, or lack."""


class StoredMessage(Struct, frozen=True, kw_only=True):
    """A message of a conversation.

    Attributes:
        id: its row's.
        message: as the provider takes it.
        is_compacted: whether a summary replaces it.
        created_at: ISO time, in UTC where we wrote it.
    """

    id: str
    message: dict[str, Any]
    is_compacted: bool
    created_at: str


class CompactionPart(Struct, frozen=True):
    """A summary and what it replaces.

    Attributes:
        id: its row's.
        message_id: the boundary: the first message it does not replace.
        summary: its text.
        compacted_message_count: how many messages it replaces.
        compacted_token_count: how many tokens they had.
        created_at: ISO time in UTC.
    """

    id: str
    message_id: str
    summary: str
    compacted_message_count: int
    compacted_token_count: int
    created_at: str

    @property
    def text(self) -> str:
        """What is loaded in place of the messages (three-layer, Compaction Service)."""
        return (
            "[Previous conversation compacted]\n\n"
            f"{self.summary}\n\n"
            f"[End of compacted summary - {self.compacted_message_count} messages, "
            f"{self.compacted_token_count} tokens]"
        )


def row_of(
    wire: Format, session: str, raw: Any, index: int, at: str
) -> dict[str, Any]:
    """The columns of a new message.

    Raises:
        FormatError: this is no message of the format.
    """
    location = f"messages[{index}]"
    parsed = wire.parse(raw, location)
    calls = wire.calls(raw)
    return {
        "Id": str(uuid4()),
        "SessionId": session,
        "Role": parsed.role,
        "Content": _text_of(parsed),
        "ToolCallsJson": _json(calls, location) if calls else None,
        "CreatedAt": at,
        "Wire": _json(dict(plain(raw, location)), location),
        "IsCompacted": 0,
    }


def messages_of(
    db: sqlite3.Connection, session: str, condition: str = "1", *values: Any
) -> tuple[StoredMessage, ...]:
    """The messages of a conversation of which ``condition`` is true, as they were written."""
    there = columns_of(db)
    fields = [name if name.lower() in there else "NULL" for name in _FIELDS]
    rows = db.execute(
        f"SELECT Id, Wire, IsCompacted, {', '.join(fields)} FROM Messages "
        f"WHERE SessionId = ? AND {condition} ORDER BY rowid",
        (session, *values),
    )
    return tuple(
        StoredMessage(
            id=id,
            message=_from_columns(*columns)
            if wire is None
            else json.loads(wire),
            is_compacted=bool(compacted),
            created_at=at or "",
        )
        for id, wire, compacted, at, *columns in rows
    )


def newest_part(db: sqlite3.Connection, session: str) -> CompactionPart | None:
    """The compaction that holds.

    Its boundary is not compacted, so that only messages are looked at that are to be loaded.
    """
    row = db.execute(
        f"SELECT p.{_PART.replace(', ', ', p.')} "
        "FROM Messages m CROSS JOIN CompactionParts p ON p.MessageId = m.Id "
        "WHERE m.SessionId = ? AND m.IsCompacted = 0 ORDER BY p.rowid DESC LIMIT 1",
        (session,),
    ).fetchone()
    return row and CompactionPart(*row)


def insert_part(
    db: sqlite3.Connection, part: CompactionPart, session: str, first_id: str
) -> None:
    """Write a compaction; what it replaces begins with ``first_id``, and is marked."""
    db.execute(
        f"INSERT INTO CompactionParts ({_PART}) VALUES (?, ?, ?, ?, ?, ?)",
        astuple(part),
    )
    db.execute(
        "WITH boundary AS (SELECT rowid AS at FROM Messages WHERE Id = :boundary) "
        "UPDATE Messages SET IsCompacted = rowid < (SELECT at FROM boundary) "
        "WHERE SessionId = :session AND rowid >= (SELECT rowid FROM Messages WHERE Id = :first) "
        "AND IsCompacted <> (rowid < (SELECT at FROM boundary))",
        {"session": session, "boundary": part.message_id, "first": first_id},
    )


def synthetic(
    wire: Format, part: CompactionPart, *, as_user: bool
) -> StoredMessage:
    """The message that a summary is loaded as: the user's, or in the role the wire has for it."""
    message = wire.user(part.text)
    if not as_user:
        message = {**message, "role": wire_named(wire.wire).summary_role}
    return StoredMessage(
        id=EMPTY_ID,
        message=message,
        is_compacted=False,
        created_at=part.created_at,
    )


def compactible(
    wire: Format, up_to_boundary: Sequence[StoredMessage]
) -> tuple[StoredMessage, ...]:
    """The messages a summary may replace: those before the boundary, but for the system's head.

    Raises:
        ConfigError: there are none, or the boundary would part a reply, or a call from its
            result.
    """
    raws = [stored.message for stored in up_to_boundary]
    transcript = Transcript(canon.root(wire.name, ""))
    for index, raw in enumerate(raws):
        message = wire.parse(raw, f"messages[{index}]")
        transcript.append(message, canon.digest_of(message))
    boundary = len(raws) - 1
    summarised = tuple(
        up_to_boundary[len(wire.leading({wire.key: raws})) : boundary]
    )
    if not summarised:
        raise ConfigError(
            "boundary_id",
            "there is no message before it that a summary could replace",
            "Take a later one.",
        )
    if not transcript.may_split(boundary):
        begins = next(
            (at for at in range(boundary, -1, -1) if transcript.may_cut(at)), 0
        )
        raise ConfigError(
            "boundary_id",
            f"message {boundary} of the conversation belongs to what is before it: "
            "a call and its result may not be parted",
            f"Take message {begins} ({up_to_boundary[begins].id}), where the reply begins.",
        )
    return summarised


def _from_columns(
    role: str, content: str | None, calls: str | None, call_id: str | None
) -> dict[str, Any]:
    """An OpenAI Chat message of a row that the service wrote itself."""
    message: dict[str, Any] = {"role": role, "content": content}
    if calls:
        message["tool_calls"] = json.loads(calls)
    if call_id:
        message["tool_call_id"] = call_id
    return message


def _text_of(message: Message) -> str:
    """What a message says, and what its results hold; a "?" for each lone surrogate."""
    results = (
        part.content for part in message.parts if isinstance(part, ToolResult)
    )
    parts = [
        *message.parts,
        *(item for content in results for item in content),
    ]
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    return text.encode("utf-8", "replace").decode()


def _json(value: Any, location: str) -> str:
    """JSON with the fields of SDK objects; escaped, so that any str comes back as it was."""
    try:
        return json.dumps(
            value, default=lambda item: dict(plain(item, location))
        )
    except (TypeError, ValueError) as error:
        raise FormatError(
            location, f"not JSON ({error})", "Give plain JSON values."
        ) from None


def columns_of(db: sqlite3.Connection) -> frozenset[str]:
    """The columns of ``Messages`` in lower case; none if there is no such table."""
    return frozenset(
        row[1].lower() for row in db.execute("PRAGMA table_info(Messages)")
    )


def prepare(db: sqlite3.Connection) -> None:
    """Add what is missing. To be called outside of a transaction.

    Raises:
        StoreError: there is a table ``Messages`` that is not one of conversations.
    """
    if _is_complete(db):
        return
    db.execute("BEGIN IMMEDIATE")
    db.execute(_MESSAGES)
    columns = columns_of(db)
    if lacking := _NEEDED - columns:
        raise _foreign(f"it has no column {', '.join(sorted(lacking))}")
    if not _counts_rows(db):
        raise _foreign(
            "it is a view or WITHOUT ROWID, so that its order is not known"
        )
    for column, kind in _ADDED.items():
        if column.lower() not in columns:
            db.execute(f"ALTER TABLE Messages ADD COLUMN {column} {kind}")
    db.execute(_PARTS)
    for index in _INDEXES:
        db.execute(index)
    db.execute("COMMIT")


def _is_complete(db: sqlite3.Connection) -> bool:
    (there,) = db.execute(_THERE, _NAMES).fetchone()
    return there == len(_NAMES) and {
        name.lower() for name in _ADDED
    } <= columns_of(db)


def _counts_rows(db: sqlite3.Connection) -> bool:
    """Whether rows have a number that grows: the order in which they were written."""
    (kind,) = db.execute(
        "SELECT type FROM sqlite_master WHERE name = 'Messages' COLLATE NOCASE"
    ).fetchone()
    try:
        db.execute("SELECT rowid FROM Messages LIMIT 0")
    except sqlite3.OperationalError:
        return False
    # Before 3.36 SQLite gives a view rows without a number, and no error.
    return bool(kind == "table")


def _foreign(problem: str) -> StoreError:
    reason = f"there is a table Messages that cannot be used: {problem}. Name another file"
    return StoreError(NAME, "open", reason)
