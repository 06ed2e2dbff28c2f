"""Make a broken history legal without losing any of it.

Agents are interrupted, results come late or twice, stores reorder messages, tools answer nothing.
Each of these is a 400 on every later request (failures F04, F05, F10, F11, F17, F18). `repair`
gives the messages as the provider takes them; what becomes of what is in docs/formats.md.

It is pure and blind to the future: a call is answered by what stands behind it, never by
what stands before it, and what was repaired once is repaired so in every longer history, unless
a late result takes its place. Messages it does not touch are the caller's own objects.

In Responses a late output and a second one are taken as legal by the judge and repaired
anyway: a request that was sent with our own result must not show another in its place.

Of a history that grew, what its first messages became is not worked out again. Such a prefix is
*closed* where the model begins to speak and nothing behind that can change what it became. When in
doubt it is not used, and the whole is repaired: when a result came late for a call in it, or
anything in it changed but the cache markers of an untouched message, which loops move at every
turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress, count
from operator import is_, ne
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
            without them: where one is a prefix of it, there is less to do.
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
    repaired = None
    for prefix in _prefixes(known, len(raws), id_form):
        current = _with_current_markers(prefix, wire, raws)
        if current is not None:
            repaired = _go_on(current, wire, raws, redact, id_form)
        if repaired is not None:
            break
    assert repaired is not None  # from no messages one can always go on
    if strips and repaired.stale:
        return _stripped(repaired, wire)
    return repaired


def _prefixes(
    earlier: Sequence[Repaired], count: int, id_form: re.Pattern[str]
) -> list[RepairedPrefix]:
    """The closed prefixes that may be one of a history of ``count`` messages, longest first."""
    prefixes = [RepairedPrefix()]
    for repaired in earlier:
        closed = repaired.closed
        if not closed or closed.stop >= count:
            continue
        if closed.id_form == id_form.pattern:
            prefixes.append(closed)
    return sorted(prefixes, key=lambda prefix: prefix.stop, reverse=True)


def _with_current_markers(
    closed: RepairedPrefix, wire: Format, raws: Sequence[Any]
) -> RepairedPrefix | None:
    """A prefix with the cache markers that it has now; None if it is another one."""
    # every message at every turn, so in C
    differ = map(ne, closed.copies, raws)
    changed = list(compress(count(), differ))
    if not changed:
        return closed
    untouched = {entry for entry in closed.messages if type(entry) is int}
    if not untouched.issuperset(changed):
        return None
    copies = closed.copies.copy()
    for at in changed:
        if not _is_alike(wire, copies[at], raws[at]):
            return None
        copies[at] = snapshot(raws[at])
    return replace(closed, copies=copies)


def _is_alike(wire: Format, copy: Any, raw: Any) -> bool:
    """Whether a message differs from its snapshot in nothing but cache markers."""
    unmarked = FORMATS[wire.name].unmarked
    try:
        return bool(unmarked(copy) == unmarked(raw))
    except RecursionError:
        return False


def _go_on(
    prefix: RepairedPrefix,
    wire: Format,
    raws: Sequence[Any],
    redact: Redact | None,
    id_form: re.Pattern[str],
) -> Repaired | None:
    """The whole history from what a prefix of it became; None if that is to change."""
    start = prefix.stop
    stop = len(raws)
    copies = [
        snapshot_at(raws[at], f"{wire.key}[{at}]") for at in range(start, stop)
    ]
    history = wire_named(wire.name).repair(raws, prefix.pairs.copy())
    history.redact = redact
    history.legal_id = id_form
    if start and not history.opens(start):
        # Another branch: the prefix was closed because the model spoke here.
        return None
    close = start
    for at in range(stop - 1, start, -1):
        if history.opens(at):
            close = at
            break
    for at in range(start, close):
        history.read(at)
    pairs = history.pairs.copy()
    for at in range(close, stop):
        history.read(at)
    if history.crosses(start):
        return None
    closed = prefix
    if close > start and not history.crosses(close):
        longer, is_closed = history.made(close, prefix)
        if is_closed and longer.messages:
            closed = replace(
                longer,
                copies=[*prefix.copies, *copies[: close - start]],
                pairs=pairs,
                line=prefix.line or object(),
            )
    whole, _ = history.made(stop, closed)
    messages = whole.sent(raws)
    outputs = {output.ref: output for output in whole.outputs}
    return Repaired(
        messages=raws if _are_same(messages, raws) else messages,
        outputs=tuple(outputs.values()),
        events=in_order(whole.reports),
        stale=whole.stale,
        closed=closed,
    )


def _are_same(messages: Sequence[Any], raws: Sequence[Any]) -> bool:
    """Whether the messages are the caller's own objects, all of them."""
    if len(messages) != len(raws):
        return False
    return all(map(is_, messages, raws))


def _stripped(repaired: Repaired, wire: Format) -> Repaired:
    """A history without the reasoning that is bound to a result which is no longer shown."""
    messages = list(repaired.messages)
    events = list(repaired.events)
    reason = "it was bound to a result in whose place a late one stands now"
    for at in repaired.stale:
        message = wire.parse(messages[at], f"{wire.key}[{at}]")
        if any(
            isinstance(part, Reasoning) and part.bound
            for part in message.parts
        ):
            messages[at] = wire.edit(
                messages[at], message, (), drop_reasoning=True
            )
            path = f"message {at + 1}"
            events.append(Event(kind="reasoning", where=path, why=reason))
    return replace(repaired, messages=messages, events=tuple(events))
