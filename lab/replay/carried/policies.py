"""What can be tried: every preset, and what must lose to the default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

from msgspec.structs import replace

from lab.replay.carried.reads import recent_reads, whole_reads
from lab.replay.carried.repeats import unrepeated
from ullage.core.contract.policy import Policy
from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.documents import NAMES, preset
from ullage.policy.stages.default import DEFAULT
from ullage.policy.stages.record import LINES, record

_NEVER = 1 << 30
"""A price that no line earns."""


def random_lines(
    window: Window, spots: Set[Location]
) -> Mapping[Location, str]:
    """Of each result as many characters as the default keeps, of lines drawn by lot."""
    return {
        spot: _by_lot(window, spot, kept)
        for spot, kept in LINES(window, spots).items()
    }


def _by_lot(window: Window, spot: Location, kept: str) -> str:
    head, _, shown = kept.partition(":\n")
    output = window.transcript.output(spot)
    if not shown or output is None:
        return kept
    lines = output.text.splitlines()
    order = Random(output.ref).sample(range(len(lines)), len(lines))
    room, chosen = len(shown), list[int]()
    for number in order:
        if room <= 0:
            break
        chosen.append(number)
        room -= len(lines[number]) + 1
    cut = "\n".join(_with_gaps(lines, sorted(chosen)))
    return f"{head}:\n{cut[: len(shown)]}"


def _with_gaps(lines: Sequence[str], chosen: Sequence[int]) -> Iterator[str]:
    for before, number in pairwise([-1, *chosen]):
        if number > before + 1:
            yield "…"
        yield lines[number]


def _with(name: str, **settings: Any) -> Policy:
    """The default, but for some settings of its records."""
    stages = tuple(
        partial(stage, **settings)
        if isinstance(stage, partial) and stage.func is record
        else stage
        for stage in DEFAULT.under_pressure
    )
    return replace(DEFAULT, name=name, under_pressure=stages)


POLICIES: Mapping[str, Callable[[], Policy]] = {
    **{name: partial(preset, name) for name in NAMES},
    "random_lines": partial(_with, "random-lines", digests=random_lines),
    "no_lines": partial(
        _with, "no-lines", digests=partial(LINES, price=_NEVER)
    ),
    "recent_reads": partial(
        _with,
        "recent-reads",
        protected=partial(recent_reads, calls=10, most_share=0.40),
    ),
    "whole_reads": partial(
        _with, "whole-reads", digests=partial(whole_reads, calls=10)
    ),
    "named_reads": partial(
        _with,
        "named-reads",
        digests=partial(whole_reads, calls=None, if_named=True),
    ),
    "no_repeats": lambda: replace(
        DEFAULT, name="no-repeats", on_arrival=(unrepeated,)
    ),
}
"""A policy by its name."""
