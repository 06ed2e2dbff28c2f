"""Openings: the places of a history where the ledger says which policy is in force from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from ullage.core.history.ledger import Ledger, PolicyRecord, arrival_part
from ullage.core.history.transcript import Transcript

Opening: TypeAlias = tuple[int, PolicyRecord]
"""A chain position, and the policy in force from there."""


def openings_of(transcript: Transcript, ledger: Ledger) -> Iterator[Opening]:
    """Every opening of a history whose request was accepted, in order."""
    entries = ledger.entries
    for key in dict.fromkeys(transcript.chain):
        if key not in entries:
            continue
        for policy in accepted(entries[key].policies):
            yield transcript.find(key) or 0, policy


def accepted(policies: Sequence[PolicyRecord]) -> Sequence[PolicyRecord]:
    """The policies of one place, without those of a request that was refused.

    Where one that offers the recall tools is followed by one that uses none, they were refused: the
    place was opened again then, without a view of what was decided before.
    """
    for index in range(len(policies) - 1, 0, -1):
        policy = policies[index]
        uses_none = policy.has_no_tools and not policy.recall
        if uses_none and policies[index - 1].recall:
            return policies[index:]
    return policies


def is_shown_alike(fingerprint: str, other: str) -> bool:
    """Whether two fingerprints show alike what arrives, so that no view of before changes."""
    return arrival_part(fingerprint) == arrival_part(other)


def announced(openings: Sequence[Opening]) -> frozenset[str]:
    """The fingerprints of all openings that show on arrival what the newest shows.

    Each was reported when it was first met, so policies that differ under pressure alone may take
    turns, and nothing is written for it.
    """
    _, newest = openings[-1]
    fingerprints: set[str] = set()
    for _, policy in openings:
        fingerprint = policy.policy_fingerprint
        if is_shown_alike(fingerprint, newest.policy_fingerprint):
            fingerprints.add(fingerprint)
    return frozenset(fingerprints)


def changed_at(openings: Sequence[Opening]) -> int:
    """Where what is shown on arrival changed last, or -1."""
    place = -1
    for position, policy in openings:
        if policy.changed:
            place = max(place, position)
    return place


def recall_from(openings: Sequence[Opening]) -> int:
    """Where the recall tools are offered from: 0 if from the start, -1 if nowhere.

    A history that is joined is shown as if they had been offered from its start.
    """
    if not openings[-1][1].recall:
        return -1
    offered = len(openings) - 1
    while offered > 0 and openings[offered - 1][1].recall:
        offered -= 1
    if offered == 0:
        return 0
    place, policy = openings[offered]
    return 0 if policy.joined else place


def cuts_from(openings: Sequence[Opening]) -> int:
    """From where what is new is cut although no recall tools are offered, or -1."""
    for place, policy in openings:
        if policy.cuts_new:
            return place
    return -1
