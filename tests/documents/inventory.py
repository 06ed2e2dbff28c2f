"""What of each document is not behaviour, and so what tests are still to prove.

``<document>.toml`` says it by hand: which preset and which name in ``docs/deviations.md`` are
the document's, what its page begins with, and an ``[[aside]]`` for everything no test need
prove. An aside has a ``class``, a ``section``, and ``texts``, each a unit or any run of them, or
``first`` and ``last`` unit of a range, which may reach into later sections. Classes:

* ``context``: why, for whom, headings of what follows
* ``rejected``: approaches weighed and not taken
* ``host``: of the language or program the document was written for
* ``part two``: behaviour too, of summaries and the loops around them; proved later

All the rest is behaviour, and open until the marks of the tests quote it whole. With
``complete = true`` nothing may be open.
"""

import tomllib
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from tests.documents.reading import bare

HERE = Path(__file__).parent


class Aside(
    Struct, frozen=True, forbid_unknown_fields=True, rename={"kind": "class"}
):
    """Units of one class: some by their text, or a range by its ends."""

    kind: Literal["context", "rejected", "host", "part two"]
    section: str
    texts: tuple[str, ...] = ()
    first: str = ""
    last: str = ""


class Inventory(Struct, frozen=True, forbid_unknown_fields=True):
    """The data file of one document.

    Attributes:
        title: the document's own.
        name: its short name, with which its rows of the deviations begin.
        policy: its preset.
        about: three sentences for the head of its page.
        complete: whether every unit that is behaviour must be proved.
        aside: everything else, in the document's order.
    """

    title: str
    name: str
    policy: str
    about: str
    complete: bool = False
    aside: tuple[Aside, ...] = ()


def inventories(folder=HERE):
    """Every data file, by the document's name."""
    return {
        file.stem: msgspec.convert(
            tomllib.loads(file.read_text(encoding="utf-8")), Inventory
        )
        for file in sorted(folder.glob("*.toml"))
    }


def classed(document, inventory):
    """The numbers of the units of each class, and the entries that are not in the document."""
    found, lost = {}, []
    for aside in inventory.aside:
        numbers, missing = _numbers(document, aside)
        found.setdefault(aside.kind, set()).update(numbers)
        lost += [
            f"[[aside]] {aside.section!r}: no {text!r} there"
            for text in missing
        ]
    return found, lost


def _numbers(document, aside):
    """The units an entry stands for, and those of its texts which the document does not have."""
    if aside.texts:
        marked = [(aside.section, text) for text in aside.texts]
        missing = [
            text for place, text in marked if not document.places(place, text)
        ]
        return document.held(marked), missing
    starts = (
        n
        for n in document.within(aside.section)
        if _is(document, n, aside.first)
    )
    start = next(starts, None)
    if start is None:
        return set(), [aside.first]
    ends = (
        n
        for n in range(start, len(document.units))
        if _is(document, n, aside.last)
    )
    end = next(ends, None)
    return (
        (set(), [aside.last])
        if end is None
        else (set(range(start, end + 1)), [])
    )


def _is(document, number, text):
    return bare(document.units[number].text) == bare(text)


def open_units(document, inventory, marks, *, part_two=False):
    """The units that are behaviour and proved by no test, of part one or of part two."""
    kinds, _ = classed(document, inventory)
    later = kinds.pop("part two", set())
    done = document.held((mark.section, mark.quote) for mark in marks).union(
        *kinds.values()
    )
    return [
        unit
        for number, unit in enumerate(document.units)
        if unit.worth and number not in done and (number in later) == part_two
    ]


def wrong_quotes(document, marks):
    """What is said of each mark whose quote is not in the document's section."""
    for mark in marks:
        if document.places(mark.section, mark.quote):
            continue
        sections = [
            name
            for name in document.sections
            if document.places(name, mark.quote)
        ]
        if sections:
            where = f"it stands in {sections[0]!r}"
        elif document.within(mark.section):
            where = f"the section {mark.section!r} has no such words"
        else:
            where = f"the document has no section {mark.section!r}"
        yield f"{mark.test} quotes {mark.quote!r} of {mark.document}: {where}"
