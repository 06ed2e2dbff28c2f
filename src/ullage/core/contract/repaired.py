"""What repairing a history gives. The repairing itself (`ullage.wires.repair`) loads on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.values.effects import Output
from ullage.core.values.events import Event

LINES = 4


class Repaired(Struct, frozen=True):
    """A history as the provider takes it.

    Attributes:
        messages: the raw messages; untouched ones are the caller's own objects, and the
            whole is the caller's own sequence if nothing was repaired.
        outputs: what was set aside, to be kept under its ref.
        events: what was repaired, in order of place, one event a thing.
        stale: indices of the messages of the assistant that were made while our own result
            stood where a late one stands now: reasoning bound to what precedes it is
            bound to that.
        closed: what a longer history goes on from (`ullage.wires.repair.base.RepairedPrefix`).
    """

    messages: Sequence[Any]
    outputs: tuple[Output, ...] = ()
    events: tuple[Event, ...] = ()
    stale: tuple[int, ...] = ()
    closed: Any = None


def news(repaired: Repaired, cache: Sequence[Repaired]) -> Repaired:
    """What of a repaired history was not reported and kept with an earlier one.

    Args:
        repaired: the history.
        cache: what `remember` gave last.
    """
    if not repaired.events and not repaired.outputs:
        return repaired
    reported = set[Event]()
    stored = set[str]()
    for earlier in cache:
        reported.update(earlier.events)
        stored.update(output.ref for output in earlier.outputs)
    outputs = tuple(
        output for output in repaired.outputs if output.ref not in stored
    )
    events = tuple(event for event in repaired.events if event not in reported)
    return replace(repaired, outputs=outputs, events=events)


def remember(
    repaired: Repaired, cache: Sequence[Repaired]
) -> tuple[Repaired, ...]:
    """What to remember from now on, the newest first; at most `LINES` of them.

    A history stands in place of the one that it goes on from.
    """
    line = _line_of(repaired)
    remaining = (earlier for earlier in cache if _line_of(earlier) is not line)
    return (replace(repaired, messages=()), *remaining)[:LINES]


def _line_of(repaired: Repaired) -> Any:
    """The identity that a history shares with those that go on from it."""
    return repaired.closed and repaired.closed.line
