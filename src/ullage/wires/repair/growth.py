"""Repairing a history that grew: what is known of its beginning is not worked out again.

A beginning is *closed* where the model begins to speak and nothing behind that can change
what the beginning became. One that was closed before is gone on from, so that the work is that
of the last turn and what is new. It is a value, like everything it holds: going on makes
another. When in doubt it is not used, and the whole history is repaired: when a result came
late for a call in it, or anything in it changed but the cache markers of an untouched message,
which loops move at every turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress, count
from operator import is_not, ne
from typing import Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ullage.history.pairing import Pairing
from ullage.history.snapshots import snapshot, snapshot_at
from ullage.wires.base import unmarked
from ullage.wires.repair.base import Made, Reading, in_order
from ullage.wires.repaired import Repaired

__all__ = ["START", "Closed", "Read", "repaired"]

Read: TypeAlias = Callable[[Sequence[Any], Pairing], Reading]


class Closed(Struct, frozen=True):
    """What a beginning of a history became.

    Attributes:
        stop: how many raw messages it is.
        line: the same for every beginning that went on from this one.
        copies: a snapshot of each raw message.
        pairs: its calls and results.
        made: what it became.
    """

    stop: int = 0
    line: object = None
    copies: list[Any] = []
    pairs: Pairing = field(default_factory=Pairing)
    made: Made = Made()


START = Closed()


def repaired(read: Read, key: str, raws: Sequence[Any], known: Iterable[Repaired]) -> Repaired:
    """A history as the provider takes it. See `ullage.wires.repair.apply.repair`."""
    found = [closed for one in known if (closed := one.closed) and closed.stop < len(raws)]
    for closed in sorted(found, key=lambda one: one.stop, reverse=True):
        now = _as_now(closed, raws)
        if now is not None and (whole := _go_on(now, read, key, raws)) is not None:
            return whole
    whole = _go_on(START, read, key, raws)
    assert whole is not None, "nothing stands before the first message"
    return whole


def _as_now(closed: Closed, raws: Sequence[Any]) -> Closed | None:
    """A beginning with the cache markers it has now; None if it is another."""
    changed = list(compress(count(), map(ne, closed.copies, raws)))
    if not changed:
        return closed
    own = {one for one in closed.made.messages if type(one) is int}
    if not own.issuperset(changed):
        return None
    if not all(_is_alike(closed.copies[at], raws[at]) for at in changed):
        return None
    copies = closed.copies.copy()
    for at in changed:
        copies[at] = snapshot(raws[at])
    return replace(closed, copies=copies)


def _is_alike(copy: Any, raw: Any) -> bool:
    """Whether a message differs from its snapshot in nothing but cache markers."""
    try:
        return bool(unmarked(copy) == unmarked(raw))
    except RecursionError:
        return False


def _go_on(before: Closed, read: Read, key: str, raws: Sequence[Any]) -> Repaired | None:
    """The whole history from what its beginning became; None if that is to change."""
    start, stop = before.stop, len(raws)
    copies = [snapshot_at(raws[at], f"{key}[{at}]") for at in range(start, stop)]
    reading = read(raws, before.pairs.copy())
    close = next((at for at in range(stop - 1, start, -1) if reading.opens(at)), start)
    for at in range(start, close):
        reading.read(at)
    pairs = reading.pairs.copy()
    for at in range(close, stop):
        reading.read(at)
    if reading.crosses(start):
        return None
    closed = before
    if close > start and not reading.crosses(close):
        made = reading.made(start, close, before.made)
        if made.is_closed and (made.messages or start):
            known = [*before.copies, *copies[: close - start]]
            line = before.line or object()
            closed = Closed(close, line, known, pairs, made.behind(before.made))
    made = reading.made(closed.stop, stop, closed.made).behind(closed.made)
    messages = made.sent(raws)
    same = len(messages) == len(raws) and not any(map(is_not, messages, raws))
    outputs = {output.ref: output for output in made.outputs}
    return Repaired(
        raws if same else messages,
        tuple(outputs.values()),
        in_order(made.reports),
        made.stale,
        closed,
    )
