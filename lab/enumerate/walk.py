"""Every history of a length, tried: legal ones edited, each view judged by both readings.

A *unit* is what is tried at a time: all histories that begin alike and differ in their last letter.
They are branches of one conversation, so each unit is one session a treatment, which goes on from
their common beginning. Units are numbered, and so a run goes on where it stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from msgspec import Struct, field

from lab.enumerate.families import (
    MAKERS,
    Family,
    asked,
    families,
    rules_broken,
)
from lab.enumerate.letters import Letter, alphabet, history
from lab.enumerate.treatments import TREATMENTS, Treatment, faults
from ullage import Limits, Session
from ullage.core.errors import UllageError
from ullage.wires import FORMATS

_WINDOW = Limits(window_tokens=200_000, output_reserve_tokens=0)
"""So large that nothing is cut but what a treatment cuts."""


class Unit(NamedTuple):
    """The histories of one wire and family that begin with ``prefix`` and have one letter more."""

    format: str
    family: Family
    prefix: tuple[Letter, ...]
    basic: bool


class Tally(Struct):
    """What was tried.

    Attributes:
        histories: legal histories.
        illegal: sequences of letters that are no legal history; both readings say so.
        faulty: histories with a fault, given to sessions that repair.
        views: views that were judged.
        edited: views with an edit of the treatment's own kind, by wire and treatment.
        found: what is wrong, each with the letters.
    """

    histories: int = 0
    illegal: int = 0
    faulty: int = 0
    views: int = 0
    edited: dict[str, int] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)


def add(total: Tally, more: Tally) -> None:
    """Take one tally into another."""
    for name in ("histories", "illegal", "faulty", "views"):
        setattr(total, name, getattr(total, name) + getattr(more, name))
    total.edited = dict(Counter(total.edited) + Counter(more.edited))
    total.found += more.found


def units(length: int, *, basic: bool) -> Iterator[Unit]:
    """All units of histories of a length, in an order that stays: of each wire with families."""
    for format in MAKERS:
        letters = alphabet(format, basic=basic)
        for family in families(format):
            for prefix in product(letters, repeat=length - 1):
                yield Unit(format, family, prefix, basic)


def try_unit(unit: Unit) -> Tally:
    """Try each history of a unit under each treatment."""
    tally = Tally()
    format, head = unit.format, unit.family.head
    legal = list[tuple[str, dict[str, Any]]]()
    for letter in alphabet(format, basic=unit.basic):
        letters = (*unit.prefix, letter)
        request = asked(format, head, history(letters))
        told = ", then ".join(each.name for each in letters)
        name = f"{format}, {unit.family.name}: {told}"
        first, second = rules_broken(format, request)
        if first != second:
            tally.found.append(
                f"{name}: one reading says {_told(first)}, the other {_told(second)}"
            )
        elif first:
            tally.illegal += 1
        else:
            legal.append((name, request))
    tally.histories += len(legal)
    for treatment in TREATMENTS:
        if unit.family.mends or not treatment.repair:
            _treat(unit, treatment, legal, tally)
    return tally


def _treat(
    unit: Unit,
    treatment: Treatment,
    legal: list[tuple[str, dict[str, Any]]],
    tally: Tally,
) -> None:
    """Give each history, or each fault in it, to one session, and judge what it sends."""
    format, head, key = unit.format, unit.family.head, FORMATS[unit.format].key
    session = Session(
        unit.family.model,
        policy=treatment.policy,
        limits=_WINDOW,
        format=format,
        recall=True,
        repair=treatment.repair,
    )
    session.fit({**head, key: asked(format, head, [])[key][:1]})
    for name, request in legal:
        given = (
            faults(format, request[key])
            if treatment.repair
            else [request[key]]
        )
        for messages in given:
            told = len(session.events)
            try:
                view = session.fit({**request, key: messages})
            except UllageError as error:
                tally.found.append(f"{name}, {treatment.name}: {error!r}")
                continue
            tally.views += 1
            tally.faulty += treatment.repair
            kinds = {event.kind for event in session.events[told:]}
            if kinds & treatment.kinds:
                mark = f"{format}, {treatment.name}"
                tally.edited[mark] = tally.edited.get(mark, 0) + 1
            wrong = _wrong(
                format, view, None if treatment.repair else messages
            )
            if wrong:
                tally.found.append(f"{name}, {treatment.name}: {wrong}")


def _wrong(
    format: str, view: dict[str, Any], returned: list[Any] | None
) -> str:
    """What a view breaks by either reading; ``""`` if nothing."""
    first, second = rules_broken(format, view, returned)
    return _told(first | second) if first or second else ""


def _told(rules: frozenset[str]) -> str:
    return " and ".join(sorted(rules)) or "nothing"
