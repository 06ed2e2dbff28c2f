"""Openings: what the ledger says of what decides in a history, and from where on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ullage.core.history.ledger import Ledger, PolicyRecord, arrival_part
from ullage.core.history.transcript import Transcript


def openings(
    transcript: Transcript, ledger: Ledger
) -> Iterator[tuple[int, PolicyRecord]]:
    """Every opening of a history whose request was taken, with its place, in order."""
    entries = ledger.entries
    for key in filter(entries.__contains__, dict.fromkeys(transcript.chain)):
        for opened in taken(entries[key].opened):
            yield transcript.find(key) or 0, opened


def taken(opened: Sequence[PolicyRecord]) -> Sequence[PolicyRecord]:
    """The openings of one place, without those of a request that was refused.

    Where one that offers the recall tools is followed by one that uses none, they were refused: the
    place was opened anew then, without a view of what was decided before.
    """
    for at in range(len(opened) - 1, 0, -1):
        if opened[at].has_no_tools and not opened[at].recall and opened[at - 1].recall:
            return opened[at:]
    return opened


def is_shown_alike(one: str, other: str) -> bool:
    """Whether two fingerprints show alike what arrives, so that no view of before changes."""
    return arrival_part(one) == arrival_part(other)


def announced(found: Sequence[tuple[int, PolicyRecord]]) -> frozenset[str]:
    """The fingerprints of all openings that show on arrival what the newest shows.

    Each was told of when it was first met, so policies that differ under pressure alone may take
    turns, and nothing is written for it.
    """
    newest = found[-1][1].decides
    known = [opened.decides for _, opened in found]
    return frozenset(decides for decides in known if is_shown_alike(decides, newest))


def changed_at(found: Sequence[tuple[int, PolicyRecord]]) -> int:
    """Where what is shown on arrival changed last, or -1."""
    return max((place for place, opened in found if opened.changed), default=-1)


def recall_from(found: Sequence[tuple[int, PolicyRecord]]) -> int:
    """Where the recall tools are offered from: 0 if from the start, -1 if nowhere.

    A history that is joined is shown as if they had been offered from its start.
    """
    if not found[-1][1].recall:
        return -1
    without = [at for at, (_, opened) in enumerate(found) if not opened.recall]
    if not without:
        return 0
    place, offered = found[without[-1] + 1]
    return 0 if offered.joined else place


def cuts_from(found: Sequence[tuple[int, PolicyRecord]]) -> int:
    """From where what is new is cut although no recall tools are offered, or -1."""
    return next((place for place, opened in found if opened.cuts_new), -1)
