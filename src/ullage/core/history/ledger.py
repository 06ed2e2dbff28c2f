"""The ledger: what was decided and observed at each place of the chain.

An immutable mapping from a decision point (16 bytes of chain) to an `Entry`. Whatever is not
in the history and yet has a say in the view is in here, and nowhere else:

    batch      the edits of one decision; written once, first writer wins
    decision   what a user decided here (`ullage.core.values.decisions`); written once
    follows    which conversation a client summed up here, once its decisions went along; written
               once
    opened     what decides from here on: fingerprint, reasoning family, recall; written once
    seen       what of the request sent here no history tells: which tools might be called, and
               which messages of it had changed at an old place
    observed   what a provider reported for the request sent here, one for each model
    shown      under the first reply's key: what the history held when it was last looked at, so
               that whoever sees it changed can tell what is new
    outline    what a history holds, in outline, for whoever looks at the store without its caller
               (`ullage.core.history.outline`)
    latest     under the first message's key: the last batch or opening of this conversation,
               so that whoever looks there knows whether anything was decided elsewhere

A record this version does not know or cannot read is passed over: a newer version wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ullage.core.history import canon
from ullage.core.values.decisions import Decision
from ullage.core.values.edits import Batch
from ullage.core.values.effects import Record

_NUMBERED = ("batch", "decision", "follows", "opened", "seen")
"""Kinds that are written once, one after the other; of the others the newest value counts."""
PARTED = "."
"""Stands between the two parts of a fingerprint (`PolicyRecord.policy_fingerprint`)."""
MARK_BYTES = 4
"""Enough to tell the messages of one history apart."""


def arrival_part(policy_fingerprint: str) -> str:
    """The part of a fingerprint that is of what is shown again at every turn."""
    return policy_fingerprint.partition(PARTED)[0]


class UsageRecord(Struct, frozen=True, array_like=True):
    """What a provider reported for a request, beside what we had estimated.

    Attributes:
        reported_tokens: the whole prompt, cached tokens included.
        estimated_tokens: our uncalibrated estimate of the same request.
        output_tokens: what it reported for the answer.
        model: the model of the request.
        raw_tokens: reckoned: the same prompt without ullage; -1: not known.
    """

    reported_tokens: int
    estimated_tokens: int
    output_tokens: int = 0
    model: str = ""
    raw_tokens: int = -1


class PolicyRecord(Struct, frozen=True, array_like=True):
    """What decides from a place of the history on.

    Attributes:
        policy: name of the policy.
        recall: whether the recall tools are in the requests.
        prefix: what is before the recall tools' names, after a clash.
        policy_fingerprint: of the policy and its wording (`ullage.policy.stages.fingerprints`).
        family: whose rules of reasoning are asked, and whose tokeniser is estimated.
        folder: the folder of spill files as notices name it, or None.
        joined: what is shown otherwise than it is before here may have been sent whole: the
            history was under way, or another model's family allowed it.
        changed: something else decided before: any result may have been sent otherwise.
        adds_tools: what was sent before here was sent without the recall tools.
        has_no_tools: the request that opened it used no tools, or none could be added to it, so
            that nothing was decided of recall tools.
        former: earlier prefixes, each behind the key of the place up to which it held. A tool of
            the caller's took a name of ours there.
        cuts_new: no recall tools are offered, and yet what is new is cut on arrival from
            here on: reasoning is bound to what was sent before.
        tools: a digest of the caller's own tools, where the recall tools may be offered later;
            ``""`` where it does not matter, or an older version wrote it.
    """

    policy: str
    recall: bool
    prefix: str = ""
    policy_fingerprint: str = ""
    family: str = ""
    folder: str | None = None
    joined: bool = False
    changed: bool = False
    adds_tools: bool = False
    has_no_tools: bool = False
    former: tuple[tuple[bytes, str], ...] = ()
    cuts_new: bool = False
    tools: str = ""


class RequestRecord(Struct, frozen=True, array_like=True):
    """What of a request has a say in what is shown, and stands in no history.

    Attributes:
        unrecalled: the model could not call the recall tools in its reply, though they were
            among its tools.
        changed: the messages that had changed at an old place: the chain behind each, and the
            chain behind all that was there before it changed. It is as new as what comes then.
    """

    unrecalled: bool = False
    changed: tuple[tuple[bytes, bytes], ...] = ()


class HistoryRecord(Struct, frozen=True, array_like=True):
    """What a history held when it was shown.

    Attributes:
        marks: the first `MARK_BYTES` of the digest of each message.
        chain: the chain behind the last.
        changed: the messages of it that were newer than their place, and how many there were
            before they changed.
    """

    marks: bytes
    chain: bytes
    changed: tuple[tuple[int, int], ...] = ()

    def message_marks(self) -> list[bytes]:
        """The mark of each message."""
        starts = range(0, len(self.marks), MARK_BYTES)
        return [self.marks[at : at + MARK_BYTES] for at in starts]


class Entry(Struct, frozen=True):
    """Everything kept under one key; ``observed`` by model, ``outlined`` by how long it was."""

    batches: tuple[Batch, ...] = ()
    observed: Mapping[str, UsageRecord] = {}
    policies: tuple[PolicyRecord, ...] = ()
    seen: tuple[RequestRecord, ...] = ()
    shown: HistoryRecord | None = None
    latest: bytes = b""
    decisions: tuple[Decision, ...] = ()
    outlined: int = 0
    follows: bytes = b""

    @property
    def is_by_user(self) -> bool:
        """Whether a user decided here, or a decision of a user's was carried out here."""
        return bool(self.decisions) or any(
            batch.decision for batch in self.batches
        )

    @property
    def is_unrecalled(self) -> bool:
        """Whether the model could not call the recall tools here."""
        return any(seen.unrecalled for seen in self.seen)


_NOTHING = Entry()
_UNREAD = Batch("of a newer version", "", (), 0, 0)
"""Stands for a batch that cannot be read, so that the batches behind it keep their numbers."""
_MOST_UNREAD = 64
_MOST_NEWEST = 64
_encode = msgspec.msgpack.Encoder().encode
_UNREAD_DATA = _encode(_UNREAD)
_decision = msgspec.msgpack.Decoder(Decision).decode
_packed_batch = msgspec.msgpack.Decoder(Batch).decode
_observed = msgspec.msgpack.Decoder(UsageRecord).decode
_opened = msgspec.msgpack.Decoder(PolicyRecord).decode
_seen = msgspec.msgpack.Decoder(RequestRecord).decode
_shown = msgspec.msgpack.Decoder(HistoryRecord).decode


class _Outlined(Struct, array_like=True):
    """The first field of an outline (`ullage.core.history.outline`)."""

    length: int


_outlined = msgspec.msgpack.Decoder(_Outlined).decode


class Ledger(Struct, frozen=True, eq=False):
    """An immutable mapping from chain keys to entries.

    What came last is a small mapping of its own, so that a step copies that and not everything.

    Attributes:
        has_changes: whether any entry tells of messages that changed (`RequestRecord.changed`).
        by_user: the keys at which a user decided, or a user's decision was carried out.
    """

    _older: Mapping[bytes, Entry] = {}
    _newest: Mapping[bytes, Entry] = {}
    has_changes: bool = False
    by_user: frozenset[bytes] = frozenset()

    @property
    def entries(self) -> Mapping[bytes, Entry]:
        """Every entry by its key; a copy."""
        return {**self._older, **self._newest}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self.entries == other.entries

    def at(self, key: bytes) -> Entry:
        """The entry under ``key``; an empty one where nothing is kept."""
        return self._newest.get(key) or self._older.get(key, _NOTHING)

    def __contains__(self, key: bytes) -> bool:
        return key in self._newest or key in self._older

    def updated(self, entries: Mapping[bytes, Entry]) -> Ledger:
        """The ledger with these entries in place of its own."""
        newest = {**self._newest, **entries}
        has_changes = self.has_changes
        by_user = self.by_user
        for key, entry in entries.items():
            has_changes = has_changes or any(
                record.changed for record in entry.seen
            )
            if entry.is_by_user:
                by_user = by_user | {key}
        if len(newest) > _MOST_NEWEST:
            return Ledger({**self._older, **newest}, {}, has_changes, by_user)
        return Ledger(self._older, newest, has_changes, by_user)

    def with_batch(self, key: bytes, batch: Batch) -> tuple[Ledger, Record]:
        """The ledger with one more batch under ``key``, and the record that keeps it."""
        entry = self.at(key)
        try:
            data = _encode(batch)
        except (
            UnicodeEncodeError
        ):  # MessagePack is UTF-8, and has no lone surrogates
            data = json.dumps(msgspec.to_builtins(batch)).encode()
        record = Record(key, "batch", len(entry.batches), data)
        return self._put(key, batches=(*entry.batches, batch)), record

    def with_decision(
        self, key: bytes, decision: Decision
    ) -> tuple[Ledger, Record]:
        """The ledger with one more decision of a user's under ``key``, and its record."""
        entry = self.at(key)
        record = Record(
            key, "decision", len(entry.decisions), _encode(decision)
        )
        return self._put(key, decisions=(*entry.decisions, decision)), record

    def with_follows(
        self, key: bytes, name: str, records: Iterable[Record]
    ) -> tuple[Ledger, Record]:
        """The ledger which knows the conversation that this one follows, and its record.

        It is of these records alone: of two writers with different ones the first counts.

        Args:
            key: where its client summed up the other one.
            name: of the other one.
            records: the decisions that went along.
        """
        mark = canon.extend(b"", b"".join(record.data for record in records))
        follows = f"{name} {mark.hex()}".encode()
        record = Record(key, "follows", 0, follows)
        return self._put(key, follows=follows), record

    def with_observed(
        self, key: bytes, observed: UsageRecord
    ) -> tuple[Ledger, Record]:
        """The ledger with a model's newest observation under ``key``, and its record."""
        by_model = {**self.at(key).observed, observed.model: observed}
        record = Record(key, "observed", 0, _encode(observed), observed.model)
        return self._put(key, observed=by_model), record

    def with_policy(
        self, key: bytes, policy: PolicyRecord
    ) -> tuple[Ledger, Record]:
        """The ledger with one more opening under ``key``, and its record."""
        entry = self.at(key)
        record = Record(key, "opened", len(entry.policies), _encode(policy))
        return self._put(key, policies=(*entry.policies, policy)), record

    def with_seen(
        self, key: bytes, seen: RequestRecord
    ) -> tuple[Ledger, Record]:
        """The ledger with one more sight of a request under ``key``, and its record."""
        entry = self.at(key)
        record = Record(key, "seen", len(entry.seen), _encode(seen))
        return self._put(key, seen=(*entry.seen, seen)), record

    def with_shown(
        self, key: bytes, history: HistoryRecord
    ) -> tuple[Ledger, Record]:
        """The ledger with what a history holds now under ``key``, and the record that keeps it."""
        record = Record(key, "shown", 0, _encode(history))
        return self._put(key, shown=history), record

    def with_outlined(self, key: bytes, length: int) -> Ledger:
        """The ledger which knows that a history of this length is outlined under ``key``."""
        return self._put(key, outlined=length)

    def merged(
        self, records: Iterable[Record]
    ) -> tuple[Ledger, frozenset[bytes]]:
        """The ledger with records of a store, and the keys at which that changed anything.

        What is kept there wins over ours. An entry that is equal stays the very object.
        """
        merged: dict[bytes, Entry] = {}
        for record in records:
            entry = merged.get(record.key) or self.at(record.key)
            merged[record.key] = _with_record(entry, record)
        changed = {}
        for key, entry in merged.items():
            if entry != self.at(key):
                changed[key] = entry
        if not changed:
            return self, frozenset()
        return self.updated(changed), frozenset(changed)

    def with_records(self, records: Iterable[Record]) -> Ledger:
        """The ledger with records of a store; see `merged`."""
        return self.merged(records)[0]

    def _put(self, key: bytes, **fields: object) -> Ledger:
        return self.updated({key: replace(self.at(key), **fields)})


def latest_key(chain: Sequence[bytes]) -> bytes:
    """The key of the record that names the last decision of the conversation with this chain."""
    return canon.extend(chain[min(1, len(chain) - 1)], b"latest")


def latest_record(chain: Sequence[bytes], decided: Iterable[Record]) -> Record:
    """The record by which others see that something was decided."""
    data = canon.extend(
        b"", b"".join(record.key + record.data for record in decided)
    )
    return Record(latest_key(chain), "latest", 0, data)


def _batch(data: bytes) -> Batch:
    if data[:1] == b"{":  # it has a lone surrogate (`Ledger.with_batch`)
        return msgspec.convert(json.loads(data), Batch)
    return _packed_batch(data)


def _with_record(entry: Entry, record: Record) -> Entry:
    """An entry with what a record sets; as it was for one that a newer version wrote."""
    n = record.n
    data = record.data
    try:
        match record.kind:
            case "batch":
                earlier = _filled(entry.batches, n)
                batches = _placed(earlier, n, _batch(data))
                return replace(entry, batches=batches)
            case "decision":
                decisions = _placed(entry.decisions, n, _decision(data))
                return replace(entry, decisions=decisions)
            case "opened":
                opened = _placed(entry.policies, n, _opened(data))
                return replace(entry, policies=opened)
            case "seen":
                requests = _placed(entry.seen, n, _seen(data))
                return replace(entry, seen=requests)
            case "observed":
                usage = _observed(data)
                by_model = {**entry.observed, usage.model: usage}
                return replace(entry, observed=by_model)
            case "shown":
                return replace(entry, shown=_shown(data))
            case "outline":
                return replace(entry, outlined=_outlined(data).length)
            case "latest" | "follows":
                return replace(entry, **{record.kind: data})
    except (msgspec.MsgspecError, ValueError):
        pass
    return entry


def _filled(batches: tuple[Batch, ...], n: int) -> tuple[Batch, ...]:
    """The batches up to number ``n``, with one that shows nothing for each that is not readable.

    Raises:
        ValueError: so many are missing that the store is damaged.
    """
    missing = max(n - len(batches), 0)
    if missing > _MOST_UNREAD:
        raise ValueError(n)
    return (*batches, *[_UNREAD] * missing)


def _placed(values: tuple[Any, ...], n: int, value: Any) -> tuple[Any, ...]:
    """Values with number ``n`` set; ours stays the very object where it is equal."""
    if n < len(values) and values[n] == value:
        return values
    return (*values[:n], value)


# ── in increments, for a host that carries it in a state of its own ──────────────────────


def records_since(ledger: Ledger, since: Ledger) -> tuple[Record, ...]:
    """The records of a ledger that an earlier one of the same conversation has not.

    What points others to a decision (``"latest"``), and what a history held (``"shown"``,
    ``"outline"``), is the store's alone, and not among them.
    """
    increment: list[Record] = []
    for key, entry in ledger.entries.items():
        earlier = since.at(key)
        if entry is earlier:
            continue
        carried = set(_records(key, earlier))
        for record in _records(key, entry):
            # who can read it carries the record that an unread batch stands for
            if record not in carried and record.data != _UNREAD_DATA:
                increment.append(record)
    return tuple(increment)


def merge_records(
    ledger: Ledger, records: Iterable[Record]
) -> tuple[Ledger, tuple[Record, ...]]:
    """A ledger with records from elsewhere, and those that wait for one before them.

    They may come in any order, any number of times. A ledger made of all increments decides as the
    one they came from; where two writers decided at one place without knowing of each other, every
    reader of both takes the same one. What cannot be read is passed over: whoever can write to a
    host's state can write nonsense.
    """
    by_key: dict[bytes, list[Record]] = {}
    for record in records:
        if _is_readable(record):
            by_key.setdefault(record.key, []).append(record)
    entries: dict[bytes, Entry] = {}
    waiting: list[Record] = []
    for key, incoming in by_key.items():
        present = ledger.at(key)
        usable, unready = _in_sequence((*_records(key, present), *incoming))
        waiting += unready
        entry = Ledger().with_records(usable).at(key)
        # what the store alone has is in no increment
        entry = replace(
            entry,
            shown=present.shown,
            latest=present.latest,
            outlined=present.outlined,
        )
        if entry != present:
            entries[key] = entry
    if entries:
        ledger = ledger.updated(entries)
    return ledger, tuple(waiting)


def _is_readable(record: Record) -> bool:
    """Whether a record is of a kind that goes in increments, and its data is what it should be."""
    if record.kind not in (*_NUMBERED, "observed"):
        return False
    return bool(Ledger().with_records((replace(record, n=0),)).entries)


def _in_sequence(
    records: Iterable[Record],
) -> tuple[list[Record], list[Record]]:
    """The records of one key that can be used, in order, and those that wait for one before them.

    Of two in one place that with the least bytes is used, so that all readers take the same one.
    """
    chosen: dict[Any, Record] = {}
    for record in records:
        rival = chosen.get(record.place)
        if rival is None or record.data < rival.data:
            chosen[record.place] = record
    usable: dict[Any, Record] = {}
    waiting: list[Record] = []
    for place in sorted(chosen):
        key, kind, n, name = place
        is_next = (
            kind not in _NUMBERED
            or n == 0
            or (key, kind, n - 1, name) in usable
        )
        if is_next:
            usable[place] = chosen[place]
        else:
            waiting.append(chosen[place])
    return list(usable.values()), waiting


def _records(key: bytes, entry: Entry) -> Iterator[Record]:
    """The records of an entry that a store keeps and an increment carries."""
    ledger = Ledger()
    for batch in entry.batches:
        ledger, record = ledger.with_batch(key, batch)
        yield record
    for decision in entry.decisions:
        ledger, record = ledger.with_decision(key, decision)
        yield record
    if entry.follows:
        yield Record(key, "follows", 0, entry.follows)
    for opened in entry.policies:
        ledger, record = ledger.with_policy(key, opened)
        yield record
    for seen in entry.seen:
        ledger, record = ledger.with_seen(key, seen)
        yield record
    for observed in entry.observed.values():
        yield ledger.with_observed(key, observed)[1]
