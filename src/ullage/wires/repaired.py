"""What mending a history gives. The mending itself (`ullage.wires.repair`) loads on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ullage.values.effects import Output
from ullage.values.events import Event

__all__ = ["Repaired"]


class Repaired(Struct, frozen=True):
    """A history as the provider takes it.

    Attributes:
        messages: the raw messages; untouched ones are the caller's own objects, and the
            whole is the caller's own sequence if nothing was mended.
        outputs: what was set aside, to be kept under its ref.
        events: what was mended, in order of place, one event a thing.
        stale: indices of the messages of the assistant that were made while our own result
            stood where a late one stands now: reasoning bound to what precedes it is
            bound to that.
    """

    messages: Sequence[Any]
    outputs: tuple[Output, ...] = ()
    events: tuple[Event, ...] = ()
    stale: tuple[int, ...] = ()
