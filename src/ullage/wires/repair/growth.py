"""Repairing a history that grows: work is proportional to what is new.

A history falls into segments. One ends where the model begins to speak and nothing behind
that can change what the segment became, but for a result that comes late. So of a history
that grew only the last segment is made again, and from the call on to which a late result
belongs. What closed segments became are the same objects every time.

Messages are followed by their snapshots (`ullage.history.snapshots`). One that differs in nothing
but cache markers, which loops move at every turn, has its segment made again; any other
change makes it another history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, count
from operator import is_not, ne
from typing import Any

from msgspec import Struct

from ullage.history.snapshots import snapshot, snapshot_at
from ullage.wires.base import unmarked
from ullage.wires.repair.base import Growing
from ullage.wires.repaired import Repaired

__all__ = ["Repairing"]


class _Segment(Struct, frozen=True, gc=False):
    """What a run of raw messages became.

    Attributes:
        stop: one past its last raw message.
        messages: what it became; an index stands for the caller's own object.
        stale: of those, the ones of `Repaired.stale`, counted from the first of the segment.
        total: how many messages it and all segments before it became.
        last: the last of those, or None.
    """

    stop: int
    messages: list[Any]
    stale: tuple[int, ...]
    total: int
    last: Any


_START = _Segment(0, [], (), 0, None)


class Repairing:
    """One line of history, mended as it grows."""

    def __init__(self, grow: Callable[[], Growing]) -> None:
        self._history = grow()
        self._copies: list[Any] = []
        self._places: dict[int, int] = {}
        self._closed: list[_Segment] = [_START]
        self._open = _START
        self._settled: list[Any] = []
        self._has_stale = False

    def __len__(self) -> int:
        return len(self._copies)

    def changes(self, raws: Sequence[Any]) -> list[int] | None:
        """Which messages have other cache markers now; None if this is another history."""
        changed = list(compress(count(), map(ne, self._copies, raws)))
        if len(raws) < len(self._copies):
            return None
        return changed if all(_is_alike(self._copies[at], raws[at]) for at in changed) else None

    def follow(self, raws: Sequence[Any], key: str, changed: Sequence[int] = ()) -> Repaired:
        """The history as the provider takes it, now that it is ``raws``.

        Args:
            raws: the raw messages.
            key: the field of the request they stand in.
            changed: what `changes` said of them.

        Raises:
            FormatError: what is to be set aside is not what its format says it is, or a
                message is nested too deep.
        """
        history, known = self._history, len(self._copies)
        touched = [known, *changed] if changed or known < len(raws) or not raws else []
        self._place(raws)
        for at in changed:
            self._copies[at] = snapshot(raws[at])
            history.look_again(at)
            touched += history.answered(at)
        for at in range(known, len(raws)):
            self._copies.append(snapshot_at(raws[at], f"{key}[{at}]"))
            history.read(at)
        touched += history.joined()
        if touched:
            self._make(min(touched))
        return self._mended(raws)

    def settle(self) -> None:
        """What was told of and set aside so far is known now, and not to be given again."""
        self._history.bench.clear()

    def _place(self, raws: Sequence[Any]) -> None:
        """Take in the objects at hand: equal ones may have taken the place of others."""
        mine = self._history.raws
        first, are_others = len(mine), any(map(is_not, mine, raws))
        mine[:] = raws
        if are_others:
            first = 0
            self._places.clear()
            closed = chain.from_iterable([segment.messages for segment in self._closed])
            self._settled = self._own(closed)
        self._places.update((id(raws[at]), at) for at in range(first, len(raws)))

    def _own(self, made: Iterable[Any]) -> list[Any]:
        """What was made, the caller's own objects where an index stands for one."""
        raws = self._history.raws
        return [raws[one] if type(one) is int else one for one in made]

    def _make(self, first: int) -> None:
        """Make everything again from the segment on that holds a message."""
        while self._closed[-1].stop > first:
            self._closed.pop()
        del self._settled[self._closed[-1].total :]
        history, stop = self._history, len(self._copies)
        since = self._closed[-1].stop
        least = 1
        for at in range(since + 1, stop):
            if at - since < least or not history.opens(at):
                continue
            if self._close(since, at):
                since, least = at, 1
            else:
                least = 2 * (at - since)  # else a history that never closes costs its square
        messages, _ = self._made(since, stop)
        messages += history.ending(messages[-1] if messages else self._closed[-1].last)
        self._open = self._segment(stop, messages)

    def _close(self, since: int, stop: int) -> bool:
        """Close a segment, unless what follows may still change what it became."""
        bench = self._history.bench
        told = bench.mark()
        messages, is_closed = self._made(since, stop)
        if is_closed and (messages or since):
            self._closed.append(self._segment(stop, messages))
            self._settled += messages
            return True
        bench.back_to(told)
        return False

    def _made(self, since: int, stop: int) -> tuple[list[Any], bool]:
        before = self._closed[-1]
        return self._history.make(since, stop, before.total, before.last)

    def _segment(self, stop: int, messages: list[Any]) -> _Segment:
        history, before = self._history, self._closed[-1]
        ids = set(map(id, history.stale))
        stale = tuple(at for at, message in enumerate(messages) if id(message) in ids)
        self._has_stale = self._has_stale or bool(stale)
        total, last = before.total + len(messages), messages[-1] if messages else before.last
        own = [self._places.get(id(message), message) for message in messages]
        return _Segment(stop, own, stale, total, last)

    def _mended(self, raws: Sequence[Any]) -> Repaired:
        messages = [*self._settled, *self._own(self._open.messages)]
        same = len(messages) == len(raws) and not any(map(is_not, messages, raws))
        stale = tuple(_stale((*self._closed, self._open))) if self._has_stale else ()
        return Repaired(raws if same else messages, *self._history.bench.told(), stale)


def _is_alike(copy: Any, raw: Any) -> bool:
    """Whether a message differs from its snapshot in nothing but cache markers."""
    try:
        return bool(unmarked(copy) == unmarked(raw))
    except RecursionError:
        return False


def _stale(segments: Sequence[_Segment]) -> Iterator[int]:
    for segment in segments:
        first = segment.total - len(segment.messages)
        yield from (first + at for at in segment.stale)
