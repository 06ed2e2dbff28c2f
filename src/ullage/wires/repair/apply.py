"""Make a broken history legal without losing any of it.

Agents are interrupted, results come late or twice, stores reorder messages, tools answer nothing.
Each of these is a 400 on every later request (failures F04, F05, F10, F11, F17, F18). `repair`
gives the messages as the provider takes them; what becomes of what is in docs/formats.md.

It is pure and blind to the future: a call is answered by what stands behind it, never by
what stands before it, and what was repaired once is repaired so in every longer history, unless
a late result takes its place. Messages it does not touch are the caller's own objects.

In Responses a late output and a second one are taken as legal by the judge and repaired
all the same: a request that was sent with our own result must not show another in its place.

Of a history that grew, what is known of its beginning is not worked out again. A beginning is
*closed* where the model begins to speak and nothing behind that can change what it became. When in
doubt it is not used, and the whole is repaired: when a result came late for a call in it, or
anything in it changed but the cache markers of an untouched message, which loops move at every
turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress, count
from operator import is_not, ne
from typing import Any

from msgspec.structs import replace

from ullage.core.contract.format import Format
from ullage.core.contract.repaired import Repaired
from ullage.core.errors import ConfigError
from ullage.core.history.snapshots import snapshot, snapshot_at
from ullage.core.redaction import Redact
from ullage.core.values.events import Event
from ullage.core.values.messages import Reasoning
from ullage.wires import FORMATS, wire_named
from ullage.wires.repair.base import RepairedPrefix, in_order


def repair(
    wire: Format,
    raws: Sequence[Any],
    known: Sequence[Repaired] = (),
    *,
    strips: bool = False,
    redact: Redact | None = None,
    model: str = "",
) -> Repaired:
    """The messages of a history as the provider takes them.

    Args:
        wire: the format they are in.
        raws: the raw messages, dicts or SDK objects. They are not changed.
        known: what other histories of the conversation became. The same comes of ``raws``
            without them: where one is a beginning of it, there is less to do.
        strips: whether reasoning is to be left out that is bound to a result in whose place
            a late one stands now.
        redact: takes secrets out of what is set aside.
        model: the model that is asked; its API may refuse ids that others take.

    Raises:
        ConfigError: histories of this format cannot be repaired.
        FormatError: what is to be set aside is not what its format says it is, or a message
            is nested too deep.
    """
    if wire.name not in FORMATS:
        raise ConfigError(
            "repair",
            f"histories of the format {wire.name!r} cannot be repaired",
            f"Give repair=False, or a request of one of {', '.join(FORMATS)}.",
        )
    id_form = FORMATS[wire.name].call_ids(model)
    closed = [
        one.closed
        for one in known
        if one.closed
        and one.closed.stop < len(raws)
        and one.closed.id_form == id_form.pattern
    ]
    longest_first = sorted(
        [RepairedPrefix(), *closed], key=lambda one: one.stop, reverse=True
    )
    now = (_as_now(beginning, wire, raws) for beginning in longest_first)
    gone_on = (
        _go_on(one, wire, raws, redact, id_form) for one in now if one is not None
    )
    found = next(
        one for one in gone_on if one is not None
    )  # from no messages one always can
    return _stripped(found, wire) if strips and found.stale else found


def _as_now(
    closed: RepairedPrefix, wire: Format, raws: Sequence[Any]
) -> RepairedPrefix | None:
    """A beginning with the cache markers it has now; None if it is another."""
    changed = list(compress(count(), map(ne, closed.copies, raws)))
    if not changed:
        return closed
    own = {one for one in closed.messages if type(one) is int}
    alike = (_is_alike(wire, closed.copies[at], raws[at]) for at in changed)
    if not own.issuperset(changed) or not all(alike):
        return None
    copies = closed.copies.copy()
    for at in changed:
        copies[at] = snapshot(raws[at])
    return replace(closed, copies=copies)


def _is_alike(wire: Format, copy: Any, raw: Any) -> bool:
    """Whether a message differs from its snapshot in nothing but cache markers."""
    try:
        unmarked = FORMATS[wire.name].unmarked
        return bool(unmarked(copy) == unmarked(raw))
    except RecursionError:
        return False


def _go_on(
    before: RepairedPrefix,
    wire: Format,
    raws: Sequence[Any],
    redact: Redact | None,
    id_form: re.Pattern[str],
) -> Repaired | None:
    """The whole history from what its beginning became; None if that is to change."""
    start, stop = before.stop, len(raws)
    copies = [snapshot_at(raws[at], f"{wire.key}[{at}]") for at in range(start, stop)]
    reading = wire_named(wire.name).repair(raws, before.pairs.copy())
    reading.redact, reading.legal_id = redact, id_form
    if start and not reading.opens(start):
        return (
            None  # another branch: what was closed was so because the model spoke here
        )
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
        made, is_closed = reading.made(close, before)
        if is_closed and made.messages:
            known = [*before.copies, *copies[: close - start]]
            line = before.line or object()
            closed = replace(made, copies=known, pairs=pairs, line=line)
    made, _ = reading.made(stop, closed)
    messages = made.sent(raws)
    same = len(messages) == len(raws) and not any(map(is_not, messages, raws))
    outputs = tuple({output.ref: output for output in made.outputs}.values())
    events = in_order(made.reports)
    return Repaired(raws if same else messages, outputs, events, made.stale, closed)


def _stripped(found: Repaired, wire: Format) -> Repaired:
    messages, events = list(found.messages), list(found.events)
    for at in found.stale:
        message = wire.parse(messages[at], f"{wire.key}[{at}]")
        if any(isinstance(part, Reasoning) and part.bound for part in message.parts):
            messages[at] = wire.edit(messages[at], message, (), drop_reasoning=True)
            why = "it was bound to a result in whose place a late one stands now"
            events.append(Event(kind="reasoning", where=f"message {at + 1}", why=why))
    return replace(found, messages=messages, events=tuple(events))
