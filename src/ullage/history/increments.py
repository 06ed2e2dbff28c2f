"""A conversation's ledger in increments, for a host that carries it in a state of its own.

    changes(ledger, since)     the records that came since
    taken(ledger, records)     the ledger with records from elsewhere, in any order, any number of
                               times; those whose predecessors are missing wait for them

A ledger made of all increments decides as the one they came from. Where two writers decided at
one place without knowing of each other, every reader of both takes the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from ullage.history.ledger import Entry, Ledger
from ullage.values.effects import Record

__all__ = ["changes", "taken"]

_NUMBERED = ("batch", "opened")
"""Kinds that are written once, one after the other; of the others the newest value counts."""


def changes(ledger: Ledger, since: Ledger) -> tuple[Record, ...]:
    """The records of a ledger that an earlier one of the same conversation has not.

    What points others to a decision (``"latest"``) is the store's alone, and not among them.
    """
    found: list[Record] = []
    for key, entry in ledger.entries.items():
        before = since.at(key)
        if entry is not before:
            known = set(_records(key, before))
            found += (record for record in _records(key, entry) if record not in known)
    return tuple(found)


def taken(ledger: Ledger, records: Iterable[Record]) -> tuple[Ledger, tuple[Record, ...]]:
    """A ledger with records from elsewhere, and those that wait for one before them.

    What cannot be read is passed over: whoever can write to a host's state can write nonsense.
    """
    by_key: dict[bytes, list[Record]] = {}
    for record in records:
        if record.kind in (*_NUMBERED, "observed") and _is_readable(record):
            by_key.setdefault(record.key, []).append(record)
    entries: dict[bytes, Entry] = {}
    waiting: list[Record] = []
    for key, given in by_key.items():
        before = ledger.at(key)
        usable, rest = _in_order(_chosen((*_records(key, before), *given)))
        entry = replace(Ledger().with_records(usable).at(key), latest=before.latest)
        waiting += rest
        if entry != before:
            entries[key] = entry
    return (ledger.updated(entries) if entries else ledger), tuple(waiting)


def _records(key: bytes, entry: Entry) -> Iterator[Record]:
    """What an entry was made of."""
    ledger = Ledger()
    for batch in entry.batches:
        ledger, record = ledger.with_batch(key, batch)
        yield record
    for opened in entry.opened:
        ledger, record = ledger.with_opened(key, opened)
        yield record
    for observed in entry.observed.values():
        yield ledger.with_observed(key, observed)[1]


def _chosen(records: Iterable[Record]) -> Mapping[tuple[str, int, str], Record]:
    """One record for each place, whatever the order they came in: the least in its bytes."""
    found: dict[tuple[str, int, str], Record] = {}
    for record in records:
        place = (record.kind, record.n, record.name)
        found[place] = min(record, found.get(place, record), key=lambda each: each.data)
    return found


def _in_order(
    chosen: Mapping[tuple[str, int, str], Record],
) -> tuple[list[Record], list[Record]]:
    """The records that follow upon each other from the first, and those that do not yet."""
    usable = [record for place, record in chosen.items() if place[0] not in _NUMBERED]
    rest: list[Record] = []
    for kind in _NUMBERED:
        series = [chosen[place] for place in sorted(chosen) if place[0] == kind]
        whole = [record for n, record in enumerate(series) if record.n == n]
        usable += whole
        rest += series[len(whole) :]
    return usable, rest


def _is_readable(record: Record) -> bool:
    return bool(Ledger().with_records((replace(record, n=0),)).entries)
