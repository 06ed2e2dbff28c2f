"""What a proxy writes to standard error besides its log: only words of its own.

Libraries put what they were given into their errors: aiohttp a header that cannot be read, with
the key in it. So where nobody has configured logging, a record of another library is written by its
level and its logger's name alone, and an exception by its type and by where in our code it was met.
An event of a session is written once for each kind: it can name a tool or a model, and metrics
count them. A pool of connections warns at every try; the store says once that its server is away.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

_log = logging.getLogger("ullage.proxy")
_OURS = (_log.name, "ullage.stores")
_TOLD_BY_US = "psycopg.pool"
_PACKAGE = str(Path(__file__).parent.parent)


def log_error(subject: str, error: Any) -> None:
    """Log a failure.

    Args:
        subject: what failed, in words of ours.
        error: the exception, of which only type and place are logged.
    """
    _log.error("%s: %s", subject, described(error))


def described(error: Any) -> str:
    """The type of an exception, and the last place in our code that it went through."""
    if not isinstance(error, BaseException):
        return "unknown"
    place = _place_of(error.__traceback__)
    return (
        f"{type(error).__name__} in {place}" if place else type(error).__name__
    )


def _place_of(traceback: TracebackType | None) -> str:
    place = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename.startswith(_PACKAGE):
            place = f"{Path(code.co_filename).name}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


class OwnWords(logging.Handler):
    """Writes records to standard error, but no word that is not ours.

    Args:
        tells_events: whether events of sessions are written too.
    """

    def __init__(self, *, tells_events: bool = True) -> None:
        super().__init__(logging.WARNING)
        self._tells_events = tells_events
        self._kinds: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, if it says anything new."""
        line = self._line_of(record)
        if line:
            with suppress(OSError, ValueError):
                sys.stderr.write(f"ullage: {line}\n")

    def _line_of(self, record: logging.LogRecord) -> str:
        if record.name in _OURS:
            return record.getMessage()
        if record.name == _TOLD_BY_US:
            return ""
        if (
            record.name == "ullage"
            and isinstance(record.args, tuple)
            and record.args
        ):
            return self._line_of_event(str(record.args[0]))
        error = record.exc_info[1] if record.exc_info else None
        failed = f": {described(error)}" if error is not None else ""
        return f"{record.levelname.lower()} of {record.name}{failed}"

    def _line_of_event(self, kind: str) -> str:
        if kind in self._kinds or not self._tells_events:
            return ""
        self._kinds.add(kind)
        return (
            f"event {kind!r}; later ones are counted in ullage_decisions_total"
        )


@contextmanager
def own_words(*, tells_events: bool = True) -> Iterator[None]:
    """Nothing but our own words is written where nobody configured logging, while this lasts.

    Args:
        tells_events: whether events of sessions are written; not into the terminal of an agent.
    """
    handler = logging.lastResort
    threads = threading.excepthook
    unraisable = sys.unraisablehook
    logging.lastResort = OwnWords(tells_events=tells_events)
    threading.excepthook = lambda met: log_error(
        "a thread failed", met.exc_value
    )
    sys.unraisablehook = lambda met: log_error(
        "a clean-up failed", met.exc_value
    )
    try:
        yield
    finally:
        logging.lastResort = handler
        threading.excepthook = threads
        sys.unraisablehook = unraisable


def quiet_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Have a loop log what nobody waited for by type alone."""

    def handle(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        log_error("a task failed", context.get("exception"))

    loop.set_exception_handler(handle)
