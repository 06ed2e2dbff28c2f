"""The ledger: what was decided and observed at each place of the chain.

An immutable mapping from a decision point (16 bytes of chain) to an `Entry`. Whatever is not
in the history and yet has a say in the view is in here, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ullage.values.edits import Batch
from ullage.values.effects import Record

__all__ = ["Entry", "Ledger", "Observed", "Opened"]


class Observed(Struct, frozen=True, array_like=True):
    """What a provider reported for a request, beside what we had estimated.

    Attributes:
        reported_tokens: the whole prompt, cached tokens included.
        estimated_tokens: our uncalibrated estimate of the same request.
        output_tokens: what it reported for the answer.
    """

    reported_tokens: int
    estimated_tokens: int
    output_tokens: int = 0


class Opened(Struct, frozen=True, array_like=True):
    """How a session began: settings that may not change while it runs.

    Attributes:
        policy: name of the policy it was opened with.
        recall: whether the recall tools are in its requests.
        prefix: what stands before the recall tools' names, after a clash.
    """

    policy: str
    recall: bool
    prefix: str = ""


class Entry(Struct, frozen=True):
    """Everything kept under one key."""

    batches: tuple[Batch, ...] = ()
    observed: Observed | None = None
    opened: Opened | None = None


_NOTHING = Entry()
_encode = msgspec.msgpack.Encoder().encode
_packed_batch = msgspec.msgpack.Decoder(Batch).decode
_observed = msgspec.msgpack.Decoder(Observed).decode
_opened = msgspec.msgpack.Decoder(Opened).decode


class Ledger(Struct, frozen=True):
    """An immutable mapping from chain keys to entries."""

    entries: Mapping[bytes, Entry] = {}

    def at(self, key: bytes) -> Entry:
        """The entry under ``key``; an empty one where nothing is kept."""
        return self.entries.get(key, _NOTHING)

    def __contains__(self, key: bytes) -> bool:
        return key in self.entries

    def with_batch(self, key: bytes, batch: Batch) -> tuple[Ledger, Record]:
        """The ledger with one more batch under ``key``, and the record that keeps it."""
        entry = self.at(key)
        record = Record(key, "batch", len(entry.batches), _batch_data(batch))
        return self._put(key, batches=(*entry.batches, batch)), record

    def with_observed(self, key: bytes, observed: Observed) -> tuple[Ledger, Record]:
        """The ledger with the newest observation under ``key``, and its record."""
        return self._put(key, observed=observed), Record(key, "observed", 0, _encode(observed))

    def with_opened(self, key: bytes, opened: Opened) -> tuple[Ledger, Record]:
        """The ledger with how a session began, and its record."""
        return self._put(key, opened=opened), Record(key, "opened", 0, _encode(opened))

    def with_records(self, records: Iterable[Record]) -> Ledger:
        """The ledger with records read from a store. A batch kept there wins over ours."""
        records = tuple(records)
        if not records:
            return self
        entries = dict(self.entries)
        for record in records:
            entry = entries.get(record.key, _NOTHING)
            entries[record.key] = _with_record(entry, record)
        return Ledger(entries)

    def _put(self, key: bytes, **fields: object) -> Ledger:
        entry = replace(self.at(key), **fields)
        return Ledger({**self.entries, key: entry})


def _batch_data(batch: Batch) -> bytes:
    """A batch as MessagePack; as JSON if a lone surrogate in it has no UTF-8."""
    try:
        return _encode(batch)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(batch)).encode()


def _batch(data: bytes) -> Batch:
    return msgspec.convert(json.loads(data), Batch) if data[:1] == b"{" else _packed_batch(data)


def _with_record(entry: Entry, record: Record) -> Entry:
    if record.kind == "batch":
        batches = (*entry.batches[: record.n], _batch(record.data))
        return replace(entry, batches=batches)
    if record.kind == "observed":
        return replace(entry, observed=_observed(record.data))
    return replace(entry, opened=_opened(record.data))
