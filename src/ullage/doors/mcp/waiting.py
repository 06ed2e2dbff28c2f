"""Open requests: each gets one answer, and a second answer is dropped.

A server that answers twice, or answers what nobody asked, is told apart by the ids of the requests
that are open. Answers to a request that the client cancelled may be on their way and are let
through. Where a request was passed on unread (a frame that is too long, or no JSON), or too many
are open, an unknown id may be its answer, and is let through from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Generic, TypeVar

from ullage.core.locks import Lock
from ullage.doors.mcp.frames import Id

T = TypeVar("T")

_MOST_OPEN = 10_000
_MOST_CLOSED = 100
_MOST_LINES = 10


class Waiting(Generic[T]):
    """The open requests of one side. Any thread may call.

    Args:
        open: what was asked before, by id.
        is_complete: whether every request that can be answered here is reported.
    """

    def __init__(
        self, open: Mapping[Id, T] | None = None, *, is_complete: bool = True
    ) -> None:
        self._lock = Lock()
        self._open = dict(open or {})
        self._closed: dict[Id, None] = {}
        self._cancelled: dict[Id, None] = {}
        self._is_complete = is_complete

    @property
    def open(self) -> dict[Id, T]:
        """What waits for an answer, by id."""
        with self._lock:
            return dict(self._open)

    def ask(self, id: Id, request: T) -> None:
        """Note that a request was passed on."""
        with self._lock:
            self._closed.pop(id, None)
            self._cancelled.pop(id, None)
            self._open[id] = request
            if len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]
                self._is_complete = False

    def ask_unread(self) -> None:
        """Note that something was passed on that may be a request."""
        with self._lock:
            self._is_complete = False

    def cancel(self, id: Id) -> None:
        """Note that the client no longer waits for an answer."""
        with self._lock:
            if self._open.pop(id, None) is not None:
                _note(self._cancelled, id)

    def answer(self, id: Id) -> tuple[bool, T | None]:
        """Whether an answer may go on, and the request that it closes, where that is known."""
        with self._lock:
            key = same_id(id, self._open)
            if key is not None:
                _note(self._closed, key)
                return True, self._open.pop(key)
            cancelled = same_id(id, self._cancelled)
            if cancelled is not None:
                del self._cancelled[cancelled]
                return True, None
            return not self._is_complete and same_id(
                id, self._closed
            ) is None, None

    def end(self) -> list[Id]:
        """Close everything; the ids of what was open."""
        with self._lock:
            ids = list(self._open)
            self._open.clear()
            return ids


def same_id(id: Id, ids: Container[Id]) -> Id | None:
    """The id among some that an answer means; None if it is none of them.

    Some servers write a number as a string, and clients take that.
    """
    if id in ids:
        return id
    if isinstance(id, str):
        alternative: Id | None = (
            int(id) if id.isdecimal() and len(id) < 20 else None
        )
    else:
        alternative = str(id)
    return (
        alternative if alternative is not None and alternative in ids else None
    )


class Strays:
    """Tells of answers that were dropped, in few lines however many they are.

    Args:
        tell: takes a line.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._lines = 0

    def dropped(self) -> None:
        """One more was dropped."""
        self._lines += 1
        if self._lines <= _MOST_LINES:
            suffix = (
                "; no more of them are told of"
                if self._lines == _MOST_LINES
                else ""
            )
            self._tell(f"an answer to no open request was dropped{suffix}")


def _note(table: dict[Id, None], id: Id) -> None:
    """Remember an id; of many the oldest is forgotten."""
    table[id] = None
    if len(table) > _MOST_CLOSED:
        del table[next(iter(table))]
