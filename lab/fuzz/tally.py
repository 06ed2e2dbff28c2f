"""What was tried so far, batch by batch; also the file that a run goes on from."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from lab.fuzz.borders import bordered
from lab.fuzz.coverage import Row, rows_of
from lab.fuzz.histories import FORMATS, Case, case
from lab.fuzz.trial import Tried, try_case

BATCH = 400


class Tally(Struct):
    """What was tried so far.

    Attributes:
        next: number of the next history.
        tried: histories tried.
        held: those that were not trivial, in which nothing was wrong.
        refused: those of which a view could not fit.
        edits: histories by format and kind of edit.
        seen: histories by format, rule, feature and kind of edit, joined by ``|``.
        found: numbers of histories, and what is wrong with each.
        borders: the histories are those of `fuzz.borders`.
        policies: so many policies edit at random, or 0: each history has one of its own. What a
            policy shows of its samples takes longer to work out than most histories to try.
    """

    seed: int
    next: int = 0
    tried: int = 0
    held: int = 0
    refused: int = 0
    edits: dict[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    found: list[tuple[int, list[str]]] = field(default_factory=list)
    borders: bool = False
    policies: int = 0


def be_quiet() -> None:
    """Say nothing of the edits: there are millions. For a process of our own."""
    logging.getLogger("ullage").setLevel(logging.CRITICAL)


def drawn(
    seed: int,
    number: int,
    formats: Sequence[str] = FORMATS,
    *,
    borders: bool,
    policies: int,
) -> Case:
    """History ``number`` of a seed, as a tally with these settings tries it."""
    make = bordered if borders else case
    one = make(seed, number, formats)
    if policies and one.policy:
        one = replace(one, policy=1 + one.policy % policies)
    return one


def try_batch(
    seed: int,
    start: int,
    count: int = BATCH,
    formats: Sequence[str] = FORMATS,
    *,
    borders: bool = False,
    policies: int = 0,
) -> Tally:
    """Histories ``start`` to ``start + count``, with the shapes of `fuzz.borders` if asked."""
    tally = Tally(
        seed, start + count, count, borders=borders, policies=policies
    )
    edits, seen = Counter[str](), Counter[Row]()
    for number in range(start, start + count):
        one = drawn(seed, number, formats, borders=borders, policies=policies)
        tried = try_case(one)
        tally.refused += tried.refused
        tally.held += (
            not tried.wrong
            and not tried.refused
            and not is_trivial(one, tried)
        )
        edits.update(f"{one.format}|{kind}" for kind in tried.edits)
        seen.update(rows_of(one.format, one.features, tried.cells))
        if tried.wrong:
            tally.found.append((number, sorted(set(tried.wrong))))
    tally.edits = dict(edits)
    tally.seen = {"|".join(row): n for row, n in seen.items()}
    return tally


def is_trivial(one: Case, tried: Tried) -> bool:
    """A history counts if at least one edit was made in it and it has two features or more."""
    return not tried.edits or len(one.features) < 2


def add(total: Tally, more: Tally) -> None:
    """Take the tally of a batch into the total."""
    total.next = max(total.next, more.next)
    total.tried += more.tried
    total.held += more.held
    total.refused += more.refused
    total.found += more.found
    for mine, theirs in ((total.edits, more.edits), (total.seen, more.seen)):
        for name, count in theirs.items():
            mine[name] = mine.get(name, 0) + count


def seen_of(tally: Tally) -> Counter[Row]:
    """The tally's coverage by row."""
    split = ((name.split("|"), count) for name, count in tally.seen.items())
    return Counter(
        {(f, rule, feature, kind): n for (f, rule, feature, kind), n in split}
    )
