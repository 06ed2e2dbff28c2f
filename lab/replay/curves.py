"""How long what a tool said is needed: working-set curves of a run (`metrics` M4).

They are of the recording alone, and set thresholds: how far back evidence lies, in calls and
in tokens; how much of it a cache of whole results would hold; how much is never asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TypeAlias

from msgspec import Struct

from lab.replay.story import Story
from ullage.tools.replay.evidence.demands import Demands

CountText: TypeAlias = Callable[[str], int]


class Life(Struct, frozen=True):
    """How long a result waited for the first call that demanded something of it.

    Attributes:
        calls: calls from when it was shown; 1 is the very next.
        tokens: tokens of results told since.
        needed: whether a call demanded it; else this is how long the run went on.
        size_tokens: its own tokens.
    """

    calls: int
    tokens: int
    needed: bool
    size_tokens: int


class Touch(Struct, frozen=True):
    """A result that is told, or demanded again, in the order of the run.

    Attributes:
        result: the number of the result.
        tokens: its size.
        demanded: whether a call needed it; else it was just told.
    """

    result: int
    tokens: int
    demanded: bool


def touches(
    story: Story, lengths: Sequence[int], demands: Demands, count: CountText
) -> list[Touch]:
    """What happens to the results of a run, in order.

    Args:
        story: the run.
        lengths: how many messages stood before each call.
        demands: what its calls demand.
        count: the tokens of a text.
    """
    sizes = [sum(map(count, _texts(story, *place))) for place in story.results]
    number_of = {place: number for number, place in enumerate(story.results)}
    found: list[Touch] = []
    told = 0
    for length, of_call in zip(lengths, demands, strict=True):
        while told < len(sizes) and story.results[told][0] < length:
            found.append(Touch(told, sizes[told], False))
            told += 1
        for demand in of_call:
            index, piece = demand.sources[-1]
            number = number_of.get((index, piece.part))
            if number is not None:
                found.append(Touch(number, sizes[number], True))
    return found


def lives(
    story: Story,
    lengths: Sequence[int],
    found: Sequence[Touch],
    demands: Demands,
) -> list[Life]:
    """How long each result waited for its first demand, or to the end of the run."""
    first: dict[tuple[int, int], int] = {}
    for demand in chain.from_iterable(demands):
        index, piece = demand.sources[-1]
        first.setdefault((index, piece.part), demand.call)
    sizes = {
        touch.result: touch.tokens for touch in found if not touch.demanded
    }
    before = [0]
    for number in range(len(story.results)):
        before.append(before[-1] + sizes.get(number, 0))
    result = []
    for number, (index, part) in enumerate(story.results):
        shown = bisect_right(lengths, index)
        if shown == len(lengths):
            continue
        call = first.get((index, part), len(lengths) - 1)
        upto = sum(place[0] < lengths[call] for place in story.results)
        needed = (index, part) in first
        told = before[upto] - before[number + 1]
        result.append(
            Life(call - shown + 1, max(told, 0), needed, sizes.get(number, 0))
        )
    return result


def survival(times: Iterable[tuple[int, bool]]) -> list[tuple[int, float]]:
    """Kaplan-Meier: the share not yet demanded at each age, runs that ended left out fairly.

    Args:
        times: an age, and whether the demand came then; else the run ended.
    """
    ages = sorted(times)
    left, share, curve = len(ages), 1.0, list[tuple[int, float]]()
    at = 0
    while at < len(ages):
        age = ages[at][0]
        same = [came for other, came in ages[at:] if other == age]
        if any(same):
            share *= 1 - sum(same) / left
            curve.append((age, share))
        at += len(same)
        left -= len(same)
    return curve


def least_recent(found: Sequence[Touch], capacity_tokens: int) -> float | None:
    """The share of demands met by a cache of whole results that forgets the least recent."""
    order: list[Touch] = []
    met = asked = 0
    for touch in found:
        place = next(
            (
                n
                for n, other in enumerate(order)
                if other.result == touch.result
            ),
            None,
        )
        if touch.demanded:
            asked += 1
            reach = (
                None
                if place is None
                else sum(other.tokens for other in order[: place + 1])
            )
            met += reach is not None and reach <= capacity_tokens
        if place is not None:
            del order[place]
        order.insert(0, touch)
    return met / asked if asked else None


def farthest(found: Sequence[Touch], capacity_tokens: int) -> float | None:
    """The same of a cache that knows the future: it forgets what is needed last (Belady)."""
    needs: dict[int, list[int]] = {}
    for at, touch in enumerate(found):
        if touch.demanded:
            needs.setdefault(touch.result, []).append(at)
    held: dict[int, int] = {}
    met = asked = 0
    for at, touch in enumerate(found):
        if touch.demanded:
            asked += 1
            met += touch.result in held
        if _next(needs, touch.result, at) is not None:
            held[touch.result] = touch.tokens
        while sum(held.values()) > capacity_tokens:
            del held[
                max(
                    held,
                    key=lambda result: _next(needs, result, at) or len(found),
                )
            ]
        for result in [
            result for result in held if _next(needs, result, at) is None
        ]:
            del held[result]
    return met / asked if asked else None


def _next(needs: dict[int, list[int]], result: int, at: int) -> int | None:
    later = needs.get(result, [])
    place = bisect_right(later, at)
    return later[place] if place < len(later) else None


def waste(found: Sequence[Life]) -> float | None:
    """The share of result tokens that stand in results nothing was ever demanded of."""
    total = sum(life.size_tokens for life in found)
    unused = sum(life.size_tokens for life in found if not life.needed)
    return unused / total if total else None


def _texts(story: Story, index: int, part: int) -> list[str]:
    return [piece.text for piece in story.pieces[index] if piece.part == part]
