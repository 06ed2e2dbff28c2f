"""Whether an agent does again what was summarised already: the signal of a re-read storm (F40)."""

from __future__ import annotations

from collections.abc import Iterable

from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, ReplaceSpan
from ullage.core.values.events import Event
from ullage.policy.stages.facts import CALLS

_LEAST_CALLS = 4


def stall(window: Window, cuts: Iterable[ProposedEdit]) -> list[Event]:
    """An event for each new summary most of whose calls repeat what was summarised before.

    A call repeats if tool, arguments and output are the same as those of an earlier one. Where
    anything was changed in between, it is work and no stall. The window is that before the cuts.
    """
    events = []
    for cut in cuts:
        if not isinstance(cut.edit, ReplaceSpan):
            continue
        span = window.range_of(cut.edit)
        event = _stalled(window, *span) if span else None
        if event is not None:
            events.append(event)
    return events


def _stalled(window: Window, start: int, stop: int) -> Event | None:
    """The event for a range that was summarised, if most of its new calls repeat earlier ones."""
    visible = window.visible_in(start, stop)
    if len(visible) == stop - start:  # nothing of it was summarised before
        return None
    calls = window.transcript.folded(CALLS, start, stop)
    newest = calls.among(window.transcript, visible)
    if len(newest) < _LEAST_CALLS:
        return None
    # where something was changed, to look again is work
    if any(action.verb in ("changed", "removed") for action in newest):
        return None
    repeats = calls.repeated(newest)
    if 2 * repeats <= len(newest):
        return None
    reason = (
        f"{repeats} of {len(newest)} calls repeat what was summarised before; "
        "nothing was changed"
    )
    where = f"messages {visible[0] + 1} to {stop}"
    return Event(kind="stalled", where=where, why=reason)
