"""Whether an agent does again what was summarised already: the signal of a re-read storm (F40)."""

from __future__ import annotations

from collections.abc import Iterable

from ullage.history.window import Window
from ullage.stages.facts import deeds
from ullage.values.edits import Cut, Summary
from ullage.values.events import Event

__all__ = ["stall"]

_LEAST_CALLS = 4


def stall(window: Window, cuts: Iterable[Cut]) -> list[Event]:
    """An event if most of what a new summary stands for repeats what the last one stood for.

    A call repeats if tool, arguments and output are the same as those of an earlier one. Where
    anything was changed in between, it is work and no stall.

    Args:
        window: the window before the cuts are shown.
        cuts: what is about to be shown.
    """
    return [
        event for cut in cuts if isinstance(cut.edit, Summary) for event in _of(window, cut.edit)
    ]


def _of(window: Window, summary: Summary) -> Iterable[Event]:
    around = window.range_of(summary)
    if around is None:
        return
    done = deeds(window.transcript, *around)
    new = [deed for deed in done if not window.hidden(deed.index)]
    if len(new) < _LEAST_CALLS or any(deed.verb in ("changed", "removed") for deed in new):
        return
    known = {(deed.tool, deed.subject, deed.refs) for deed in done if window.hidden(deed.index)}
    again = sum((deed.tool, deed.subject, deed.refs) in known for deed in new)
    if 2 * again > len(new):
        first = next(index for index in range(*around) if not window.hidden(index))
        why = f"{again} of {len(new)} calls repeat what was summarised before; nothing was changed"
        yield Event(kind="stalled", where=f"messages {first + 1} to {around[1]}", why=why)
