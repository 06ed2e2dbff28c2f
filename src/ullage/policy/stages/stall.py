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
    summaries = (cut.edit for cut in cuts if isinstance(cut.edit, ReplaceSpan))
    events = (
        _repeats(window, around)
        for each in summaries
        if (around := window.range_of(each))
    )
    return [event for event in events if event is not None]


def _repeats(window: Window, around: tuple[int, int]) -> Event | None:
    shown = window.visible_in(*around)
    if len(shown) == around[1] - around[0]:
        return None
    calls = window.transcript.folded(CALLS, *around)
    new = calls.among(window.transcript, shown)
    if len(new) < _LEAST_CALLS or any(
        action.verb in ("changed", "removed") for action in new
    ):
        return None
    again = calls.repeated(new)
    if 2 * again <= len(new):
        return None
    why = f"{again} of {len(new)} calls repeat what was summarised before; nothing was changed"
    return Event(
        kind="stalled", where=f"messages {shown[0] + 1} to {around[1]}", why=why
    )
