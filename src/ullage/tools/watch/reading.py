"""What is new in a store that another process writes to.

A file is opened to be read, each time again, so that nobody waits for us and a file that is
replaced is noticed; a server is asked. What happened is in the ledger: a batch of edits, what a
provider reported. Times are in whole seconds, as the store has them, so two happenings of one
second may stand in either order.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ullage import Batch, Record
from ullage.core.errors import StoreError
from ullage.core.history.ledger import Ledger
from ullage.stores._packing import from_utf8, to_utf8
from ullage.stores._schema import APPLICATION_ID

if TYPE_CHECKING:
    from ullage.stores import PostgresStore

_REMEDY = "Give the file that a session was given."
MOST = 200
"""The newest records that are looked at."""

_KINDS = ("batch", "observed")
_NEWEST = (
    "SELECT key, kind, n, name, data, used_s FROM records "
    "WHERE tenant = ? AND kind IN (?, ?) ORDER BY used_s DESC LIMIT ?"
)
_CONVERSATIONS = (
    "SELECT count(*) FROM records WHERE tenant = ? AND kind = 'latest'"
)
_ASIDE = (
    "SELECT count(*), coalesce(sum(size_bytes), 0) FROM grants "
    "JOIN blobs ON blobs.digest = grants.digest WHERE tenant = ?"
)


class LedgerEvent(Struct, frozen=True, kw_only=True):
    """One batch of edits, or one report of a provider, as it is shown.

    Attributes:
        at_s: when, in seconds since 1970.
        kind: the kind of the batch's first edit, or ``"observed"``.
        tokens_before: estimated tokens of the view before a batch; 0 for a report.
        tokens_after: and after; of a report the tokens of the prompt.
        text: how many edits and why, or the model and what it answered.
    """

    at_s: int
    kind: str
    tokens_before: int
    tokens_after: int
    text: str = msgspec.field(name="told")


class StoreSnapshot(Struct, frozen=True, kw_only=True):
    """What a store holds at a moment.

    Attributes:
        conversations: of which something was decided.
        outputs: what was set aside.
        size_bytes: of all of it, before compression.
        events: the newest, oldest first.
    """

    conversations: int
    outputs: int
    size_bytes: int
    events: tuple[LedgerEvent, ...] = msgspec.field(name="happened")

    @property
    def prompts(self) -> list[int]:
        """Tokens of the newest prompts, as their provider reported them."""
        return [
            event.tokens_after
            for event in self.events
            if event.kind == "observed"
        ]


def read(path: Path, tenant: str = "") -> StoreSnapshot | None:
    """What the store at a path holds now; None while there is no file, or an empty one.

    Args:
        path: of the SQLite file.
        tenant: whose sessions.

    Raises:
        StoreError: it is not a store of ullage's, or cannot be read.
    """
    try:
        if not path.stat().st_size:
            return None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(
            "sqlite", "watch", error.strerror or type(error).__name__
        ) from error
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=5)) as db:
            return _read(db, path, to_utf8(tenant))
    except sqlite3.Error as error:
        raise StoreError("sqlite", "watch", f"{error}. {_REMEDY}") from error


def read_server(store: PostgresStore, tenant: str = "") -> StoreSnapshot:
    """What a store on a server holds now.

    Args:
        store: the store.
        tenant: whose sessions.

    Raises:
        StoreError: the server cannot be reached.
    """
    newest = [
        record
        for kind in _KINDS
        for record in store.newest(tenant, kind, MOST)
    ]
    newest.sort(key=lambda entry: entry[1], reverse=True)
    held = store.holdings(tenant)
    return StoreSnapshot(
        conversations=held.conversations,
        outputs=held.outputs,
        size_bytes=held.size_bytes,
        events=_events(
            (record, int(used_s)) for record, used_s in newest[:MOST]
        ),
    )


def _read(
    db: sqlite3.Connection, path: Path, tenant: bytes
) -> StoreSnapshot | None:
    (application_id,) = db.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables:
            return None  # it is being made
        raise StoreError(
            "sqlite", "watch", f"it is not a store of ullage's. {_REMEDY}"
        )
    rows = db.execute(_NEWEST, (tenant, *_KINDS, MOST)).fetchall()
    (conversations,) = db.execute(_CONVERSATIONS, (tenant,)).fetchone()
    outputs, size_bytes = db.execute(_ASIDE, (tenant,)).fetchone()
    return StoreSnapshot(
        conversations=conversations,
        outputs=outputs,
        size_bytes=size_bytes,
        events=_events(
            (Record(key, kind, n, data, from_utf8(name)), at_s)
            for key, kind, n, name, data, at_s in rows
        ),
    )


def _events(newest: Iterable[tuple[Record, int]]) -> tuple[LedgerEvent, ...]:
    """What happened, oldest first, of the newest records, newest first."""
    events = list[LedgerEvent]()
    for record, at_s in reversed(list(newest)):
        events += _events_of(record, at_s)
    events.sort(key=lambda event: (event.at_s, event.kind == "observed"))
    return tuple(events)


def _events_of(record: Record, at_s: int) -> list[LedgerEvent]:
    """A record as it is told; nothing of one that a newer version wrote."""
    entry = Ledger().with_records([record]).at(record.key)
    events = [_batch(batch, at_s) for batch in entry.batches if batch.edits]
    for reported in entry.observed.values():
        text = f"{reported.model or 'the model'} answered {reported.output_tokens:,} tokens"
        prompt = reported.reported_tokens
        sizes = {"tokens_before": 0, "tokens_after": prompt}
        events.append(
            LedgerEvent(at_s=at_s, kind="observed", text=text, **sizes)
        )
    return events


def _batch(batch: Batch, at_s: int) -> LedgerEvent:
    edit = batch.edits[0]
    count = len(batch.edits)
    kind = getattr(edit, "kind", "reasoning")
    return LedgerEvent(
        at_s=at_s,
        kind=kind,
        tokens_before=batch.tokens_before,
        tokens_after=batch.tokens_after,
        text=f"{count:,} edit{'s' * (count != 1)}: {edit.why}",
    )
