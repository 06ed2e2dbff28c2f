"""Floors: what a policy must keep before its cost is compared at all (`frontier`, tightening a).

Cost alone is easily won: sending only the last call is the cheapest of all, and a list of names
comes close. So a policy is judged by these floors first. Below one of them its cost is shown in
brackets, with the floor, and it is never the cheapest.

The limits are data. Ours are those of `frontier`, "Honest targets", column "small", where it has
one; any may be given anew (``ullage replay --floor far=0.7``). Its figures were taken with other
measures: there *far* asks for the bare value, and *line* for 30 characters on either side of the
same far values. Here both ask for the line (`ullage.tools.replay.evidence.score`), and *line* is of
every age: so *far* is stricter here, and *line* milder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.errors import ConfigError


class Floor(Struct, frozen=True):
    """One floor.

    Attributes:
        name: what is measured.
        limit: the least that passes, or the most.
        is_most: whether more than the limit fails; else less does.
        means: what is measured, in words.
        source: where the limit comes from.
    """

    name: str
    limit: float
    is_most: bool
    means: str
    source: str

    def is_passed(self, value: float) -> bool:
        """Whether a value is on the right side of the limit; the limit itself is."""
        return value <= self.limit if self.is_most else value >= self.limit


_TARGETS = "frontier.md, Honest targets, small (L4)"

FLOORS: tuple[Floor, ...] = (
    Floor(
        "far",
        0.84,
        False,
        "first uses of age 4 and more whose line is in view",
        _TARGETS,
    ),
    Floor(
        "line",
        0.70,
        False,
        "first uses of every age whose line is in view",
        _TARGETS,
    ),
    Floor(
        "reuse",
        0.89,
        False,
        "values the model had written before, age 4 and more, whose line is in view",
        "frontier.md, Policies tried: the least mem of its ledgers (L2); it sets no target",
    ),
    Floor(
        "anchors",
        0.89,
        False,
        "old texts of edits that are whole in view",
        _TARGETS,
    ),
    Floor(
        "breaks",
        2.0,
        True,
        "views in 100 that rewrite something already sent",
        _TARGETS,
    ),
    Floor(
        "unsaid",
        0.0,
        True,
        "share of views without some text of the user or the system",
        "frontier.md, Tightening proposed, g",
    ),
    Floor(
        "invalid",
        0.0,
        True,
        "gates broken, and calls over the budget",
        _TARGETS,
    ),
)
"""The floors that ship, in the order in which they are shown."""


class Judged(Struct, frozen=True):
    """A policy at one floor.

    Attributes:
        floor: the name of the floor.
        limit: its limit.
        value: what was measured; None if the runs hold nothing to measure.
        passes: whether it is on the right side of it; None without a value.
    """

    floor: str
    limit: float
    value: float | None
    passes: bool | None


def floors_with(given: Mapping[str, float]) -> tuple[Floor, ...]:
    """The floors that ship, some limits given anew.

    Raises:
        ConfigError: there is no floor of a name.
    """
    known = {floor.name: floor for floor in FLOORS}
    for name in given:
        if name not in known:
            raise ConfigError(
                "--floor",
                f"there is no floor {name!r}",
                f"Known: {', '.join(known)}.",
            )
    return tuple(
        replace(floor, limit=given[floor.name], source="given")
        if floor.name in given
        else floor
        for floor in FLOORS
    )


def judged_by(
    floors: Iterable[Floor], measured: Mapping[str, float | None]
) -> list[Judged]:
    """What was measured, held against each floor."""
    return [_judged(floor, measured[floor.name]) for floor in floors]


def _judged(floor: Floor, value: float | None) -> Judged:
    passed = None if value is None else floor.is_passed(value)
    return Judged(floor.name, floor.limit, value, passed)


def passes(judged: Sequence[Judged]) -> bool:
    """Whether cost may be compared: no floor is failed, and some evidence was there to judge."""
    needed = any(
        each.value is not None for each in judged if each.floor in _EVIDENCE
    )
    return needed and all(each.passes is not False for each in judged)


_EVIDENCE = ("far", "line", "reuse", "anchors")
