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


def news(found: Repaired, known: Sequence[Repaired]) -> Repaired:
    """What of a repaired history was not reported and kept with one that is known."""
    if not found.events and not found.outputs:
        return found
    reported = {event for other in known for event in other.events}
    kept = {output.ref for other in known for output in other.outputs}
    outputs = tuple(output for output in found.outputs if output.ref not in kept)
    events = tuple(event for event in found.events if event not in reported)
    return replace(found, outputs=outputs, events=events)


def remember(found: Repaired, known: Sequence[Repaired]) -> tuple[Repaired, ...]:
    """What to know from now on, the newest first: ``found`` in place of what it went on from."""
    line = found.closed and found.closed.line
    others = (
        other for other in known if (other.closed and other.closed.line) is not line
    )
    return (replace(found, messages=()), *others)[:LINES]
