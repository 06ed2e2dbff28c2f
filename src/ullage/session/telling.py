"""Events told as they happen: to the standard log, and to a function of the caller's.

    ullage.Session(model, on_event=lambda event: METRICS.count(event.kind))

The log's name is ``ullage``. A line says what happened, where and with which numbers, and holds
no content.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from ullage.core.values.events import Event, Kind

OnEvent: TypeAlias = Callable[[Event], object]
"""Is given each event once, in the thread of the call that made it; what it returns is dropped."""

# as in `logging`, which is not imported for these alone
_WARNING = 30
_INFO = 20
_DEBUG = 10

LEVELS: Mapping[Kind, int] = {
    **dict.fromkeys(
        (
            *("unknown_model", "large_reserve", "superseded"),
            *("cut", "stalled", "summary_refused"),
        ),
        _WARNING,
    ),
    **dict.fromkeys(
        (
            "unreported",
            "undercounted",
            "window_refused",
            "unkept",
            "unfitted",
            "refused",
            "addition_refused",
            "warned",
            "wrapped_up",
        ),
        _WARNING,
    ),
    **dict.fromkeys(
        (
            "window_found",
            "cache_broken",
            "joined",
            "changed",
            "condensed",
            "compacted",
            "repaired",
        ),
        _INFO,
    ),
}
"""The level of each kind of event. The others happen in every healthy run: they are for debugging.

A warning says that a figure is a guess, or that more was given up than the policy wanted.
"""


def tell(
    events: Sequence[Event],
    on_event: OnEvent | None,
    earlier: Sequence[Event] = (),
) -> None:
    """Log events, in order, and pass them to the caller's function.

    A session warns once of each kind; a kind that comes again is logged as information. What is
    wrong in one turn is mostly wrong in the next one as well. No turn fails for it: what the
    function raises is logged.

    Args:
        events: what happened now.
        on_event: the caller's function, which is given each of them.
        earlier: what happened in the session before.
    """
    if not events:
        return
    import logging  # 5 ms that a session without events does not need

    log = logging.getLogger("ullage")
    warned: set[Kind] = set()
    if any(LEVELS.get(event.kind) == _WARNING for event in events):
        warned = {event.kind for event in earlier}
    for event in events:
        ref = f", ref={event.ref}" if event.ref else ""
        level = LEVELS.get(event.kind, _DEBUG)
        if level == _WARNING and event.kind in warned:
            level = _INFO
        warned.add(event.kind)
        log.log(level, "%s: %s: %s%s", event.kind, event.where, event.why, ref)
        if event.kind == "diagnostic":
            _write_line(event.why)
        if on_event is not None:
            try:
                on_event(event)
            except Exception as error:  # noqa: BLE001 - it is the caller's, and a run goes on
                log.error("on_event failed: %s", type(error).__name__)


def _write_line(line: str) -> None:
    """Write a line to stderr, if there is one and it takes it."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{line}\n")
