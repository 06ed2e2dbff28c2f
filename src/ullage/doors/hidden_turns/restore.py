"""Knitting: the turns that a client never saw go back into its history.

    client    user   assistant                    user
    knitted   user   assistant  results  assistant  user
                     └──── the splice of that reply ────┘ and what waited, with the user's results

A reply is the run of the model's messages between two of anybody else's, and it is looked up by
the chain before it and what it says. So the same request is knitted alike by every worker, and
after a restart. What is not found stays as the client sent it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ullage.doors.hidden_turns.record import (
    HiddenTurns,
    held_key,
    key_of,
    mark_key,
    opening_key,
    says_the_same,
    splice_in,
)
from ullage.doors.host import (
    Dialect,
    Find,
    Message,
    Steps,
    differing,
    digest_of,
    extend,
)
from ullage.doors.host import root as root_of
from ullage.wires import Format, model_in, wire_named


class _Run(NamedTuple):
    """A reply in the client's history: where it stands, and what it is looked up by."""

    start: int
    stop: int
    messages: list[Message]
    key: bytes | None
    seals: dict[str, bytes]


class ParsedHistory(Struct, frozen=True):
    """A client's history, read; the next request of the conversation is read from there on.

    Attributes:
        raws: its messages, without leading system text.
        messages: as values.
        chain: before each message, and behind the last.
        runs: the replies in it.
    """

    raws: Sequence[Any]
    messages: list[Message]
    chain: list[bytes]
    runs: list[_Run]


class RestoredRequest(Struct, frozen=True):
    """A client's request with the hidden turns in it.

    Attributes:
        request: what is to be fitted; the client's very object where nothing was hidden.
        client: what the client sent.
        root: the chain of the empty history of this format and tenant, 16 bytes.
        start: the chain before the first message of the request: the same, or where the history
            ends that the provider holds.
        opening: the key that says whether the conversation has any splice; ``b""``: no history.
        takes: see `takes_rounds`.
        read: the client's history, where it had to be read.
    """

    request: Mapping[str, Any]
    client: Mapping[str, Any]
    root: bytes
    start: bytes
    opening: bytes = b""
    takes: bool = True
    read: ParsedHistory | None = None


def restore_hidden_turns(
    request: Mapping[str, Any],
    wire: Format,
    tenant: str,
    earlier: ParsedHistory | None = None,
) -> Steps[RestoredRequest]:
    """Put back what was hidden from the client: its turns, and the results that waited.

    Asks first whether the conversation has any splice; where it has, for the records of every
    reply in the history, in one `Find`. Where nothing is found the request stays as it is, and
    legal.

    Args:
        request: as the client sent it, as JSON; never changed.
        wire: its format.
        tenant: whose history it is, as of the session.
        earlier: ``read`` of an earlier request, as a rule of the same conversation: what is still
            as it was is not read again. It changes nothing but speed, and nor may its messages.

    Raises:
        FormatError: it is not what its format says it is.
    """
    dialect = wire_named(wire.wire).dialect(wire, lambda call: False)
    root = root_of(wire.name, tenant)
    continued = yield from _held(wire.previous(request), root)
    start = bytes.fromhex(continued.chain) or root
    opening = bytes.fromhex(continued.opening)
    leading, history = _parted(request, wire)
    if history and not opening:
        opening = opening_key(_chain(start, _parsed(history[:1], wire, leading))[-1])
    takes = dialect.is_single(request)
    restored = RestoredRequest(request, request, root, start, opening, takes)
    has_splices = bool(history and (yield Find((opening,))))
    if has_splices:
        read = _read(request, wire, dialect, start, earlier)
        history = yield from _knitted(read, dialect, request)
        restored = replace(restored, read=read)
    if not (has_splices or continued.reply_id):
        return restored
    system = wire.history(request)[:leading]
    if continued.waiting:
        history = _with_waiting(continued.waiting, history, dialect)
    changed = wire.compose(request, [*system, *history], ())
    if continued.reply_id:
        changed = dialect.going_on_from(changed, continued.reply_id)
    return replace(restored, request=changed)


def _held(previous: str, root: bytes) -> Steps[HiddenTurns]:
    """What is known of the reply that a request goes on from, by the id that the client has."""
    if not previous:
        return HiddenTurns([], [])
    key = held_key(root, previous)
    return splice_in((yield Find((key,))), key) or HiddenTurns([], [])


def _with_waiting(
    waiting: Sequence[Any], history: list[Any], dialect: Dialect
) -> list[Any]:
    """What the client sends on, with the results that waited for it."""
    if not history:
        return dialect.deferred(waiting, None, None)
    message = dialect.wire.parse(history[0], f"{dialect.wire.key}[0]")
    return [*dialect.deferred(waiting, history[0], message), *history[1:]]


def takes_rounds(request: Mapping[str, Any], wire: Format) -> bool:
    """Whether a reply can be made of several rounds.

    Where it cannot (``n`` over 1, in the background) the recall tools should not be offered, and
    a private call is left out.
    """
    return wire_named(wire.wire).dialect(wire, lambda call: False).is_single(request)


def is_thread(request: Mapping[str, Any], wire: Format) -> bool:
    """Whether the next request names the reply to this one and leaves out what came before it."""
    return wire_named(wire.wire).dialect(wire, lambda call: False).is_thread(request)


def chain_of(request: Mapping[str, Any], wire: Format, start: bytes) -> list[bytes]:
    """The chain of a request's history: before each message, and behind the last.

    Args:
        request: as the client sent it.
        wire: its format.
        start: the chain before its first message.

    Raises:
        FormatError: it is not what its format says it is.
    """
    leading, raws = _parted(request, wire)
    return _chain(start, _parsed(raws, wire, leading))


def chain_behind(chain: bytes, messages: Iterable[Message]) -> bytes:
    """The chain behind some messages that follow a history."""
    return _chain(chain, messages)[-1]


def _parted(request: Mapping[str, Any], wire: Format) -> tuple[int, list[Any]]:
    """How much leading system text there is, and the history behind it."""
    leading = len(wire.leading(request))
    return leading, wire.history(request)[leading:]


def _parsed(raws: Sequence[Any], wire: Format, start: int) -> list[Message]:
    return [wire.parse(raw, f"{wire.key}[{at}]") for at, raw in enumerate(raws, start)]


def _chain(last: bytes, messages: Iterable[Message]) -> list[bytes]:
    """The chain from a place on: behind it, and behind each message."""
    chain = [last]
    for message in messages:
        last = chain[-1]
        is_silent = message.only_thought
        chain.append(last if is_silent else extend(last, digest_of(message)))
    return chain


def _read(
    request: Mapping[str, Any],
    wire: Format,
    dialect: Dialect,
    root: bytes,
    earlier: ParsedHistory | None,
) -> ParsedHistory:
    """A client's history, read from where it differs from an earlier one."""
    leading, raws = _parted(request, wire)
    if earlier is None or earlier.chain[0] != root:
        earlier = ParsedHistory((), [], [root], [])
    same = next(differing(earlier.raws, raws), min(len(earlier.raws), len(raws)))
    messages = earlier.messages[:same] + _parsed(raws[same:], wire, leading + same)
    chain = earlier.chain[:same] + _chain(earlier.chain[same], messages[same:])
    runs = [run for run in earlier.runs if run.stop < same]  # one at the end may go on
    runs += _runs(raws, messages, chain, dialect, runs[-1].stop if runs else 0)
    return ParsedHistory([*earlier.raws[:same], *raws[same:]], messages, chain, runs)


def _runs(
    raws: Sequence[Any],
    messages: Sequence[Message],
    chain: Sequence[bytes],
    dialect: Dialect,
    start: int,
) -> Iterable[_Run]:
    """The replies in a history without leading system text, from a place on."""
    while start < len(messages):
        stop = start
        while stop < len(messages) and messages[stop].role == "assistant":
            stop += 1
        if stop > start:
            reply = list(messages[start:stop])
            seals = [seal for raw in raws[start:stop] for seal in dialect.seals(raw)]
            marks = {seal: mark_key(chain[0], seal) for seal in seals}
            key = key_of(chain[start], reply, with_ids=dialect.sends_call_ids)
            yield _Run(start, stop, reply, key, marks)
        start = stop + 1


def _knitted(
    read: ParsedHistory, dialect: Dialect, request: Mapping[str, Any]
) -> Steps[list[Any]]:
    """The history with what is found of it put in."""
    raws, messages, runs = _parted(request, dialect.wire)[1], read.messages, read.runs
    keys = [
        key for run in runs for key in (run.key, *run.seals.values()) if key is not None
    ]
    records = (yield Find(tuple(keys))) if keys else ()
    marked, history, at = {record.key for record in records}, list[Any](), 0
    for run in runs:
        client_messages = raws[run.start : run.stop]
        history += raws[at : run.start]
        at = run.stop
        splice = splice_in(records, run.key) if run.key in marked and run.key else None
        turns = (
            None
            if splice is None
            else _turns(splice, run, client_messages, dialect, request)
        )
        if splice is None or turns is None:
            loose = {seal for seal, key in run.seals.items() if key in marked}
            history += (
                dialect.without(client_messages, loose.__contains__)
                if loose
                else client_messages
            )
            continue
        history += turns
        if splice.waiting:
            next_raw, message = (
                (raws[at], messages[at]) if at < len(raws) else (None, None)
            )
            history += dialect.deferred(splice.waiting, next_raw, message)
            at += next_raw is not None
    return [*history, *raws[at:]]


def _turns(
    splice: HiddenTurns,
    run: _Run,
    client_messages: Sequence[Any],
    dialect: Dialect,
    request: Mapping[str, Any],
) -> list[Any] | None:
    """The turns of a reply; None if they say anything else than the client does.

    To another model no thinking is sent that the client left out: it may not be its own.
    """
    turns = splice.turns
    audible = turns if splice.heard is None else turns[slice(*splice.heard)]
    parsed = [dialect.wire.parse(raw, "turn") for raw in audible]
    if not says_the_same(run.messages, parsed, splice.note):
        return None
    if not run.seals and str(model_in(request) or "") != splice.model:
        turns = dialect.without(turns, bool)
    return dialect.marked(turns, client_messages)
