"""The turns that a client never saw go back into its history.

    client      user   assistant                    user
    restored    user   assistant  results  assistant  user
                       └──── the hidden turns of it ────┘ and deferred results, with the user's

A reply is the run of the model's messages between two of anybody else's, and it is looked up by
the chain before it and what it says. So the same request is restored alike by every worker, and
after a restart. What is not found stays as the client sent it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ullage.doors.hidden_turns.record import (
    HiddenTurns,
    hidden_turns_in,
    key_of,
    mark_key,
    opening_key,
    reply_key,
    says_the_same,
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
    """A reply in the client's history: its range, and the keys of its records."""

    start: int
    stop: int
    messages: list[Message]
    key: bytes | None
    seals: dict[str, bytes]

    def lookups(self) -> list[bytes]:
        """The keys to look up: that of its record, and of the mark of each seal."""
        marks = list(self.seals.values())
        return marks if self.key is None else [self.key, *marks]


class ParsedHistory(Struct, frozen=True):
    """A client's history, parsed; the next request of the conversation is parsed from there on.

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
        opening: the key that says whether the conversation has hidden turns; ``b""``: no history.
        takes: see `takes_rounds`.
        history: the client's history, where it had to be parsed.
    """

    request: Mapping[str, Any]
    client: Mapping[str, Any]
    root: bytes
    start: bytes
    opening: bytes = b""
    takes: bool = True
    history: ParsedHistory | None = None


def restore_hidden_turns(
    request: Mapping[str, Any],
    wire: Format,
    tenant: str,
    earlier: ParsedHistory | None = None,
) -> Steps[RestoredRequest]:
    """Put back what was hidden from the client: turns, and deferred results.

    Asks first whether the conversation has any; where it has, for the records of every reply in
    the history, in one `Find`. Where nothing is found the request stays as it is, and
    legal.

    Args:
        request: as the client sent it, as JSON; never changed.
        wire: its format.
        tenant: whose history it is, as of the session.
        earlier: ``history`` of an earlier request, as a rule of the same conversation: what is
            still as it was is not parsed again. It changes speed alone. Its messages are not
            changed.

    Raises:
        FormatError: it is not what its format says it is.
    """
    dialect = wire_named(wire.wire).dialect(wire, lambda call: False)
    root = root_of(wire.name, tenant)
    continued = yield from _held_reply(wire.previous(request), root)
    start = bytes.fromhex(continued.chain) or root
    opening = bytes.fromhex(continued.opening)
    leading, history = _parted(request, wire)
    if history and not opening:
        opening = opening_key(
            _chain(start, _parsed(history[:1], wire, leading))[-1]
        )
    takes = dialect.is_single(request)
    restored = RestoredRequest(request, request, root, start, opening, takes)
    has_hidden_turns = bool(history and (yield Find((opening,))))
    if has_hidden_turns:
        parsed = _parsed_history(request, wire, dialect, start, earlier)
        history = yield from _restored_history(parsed, dialect, request)
        restored = replace(restored, history=parsed)
    if not (has_hidden_turns or continued.reply_id):
        return restored
    system = wire.history(request)[:leading]
    if continued.deferred:
        history = _with_deferred(continued.deferred, history, dialect)
    changed = wire.compose(request, [*system, *history], ())
    if continued.reply_id:
        changed = dialect.going_on_from(changed, continued.reply_id)
    return replace(restored, request=changed)


def _held_reply(previous: str, root: bytes) -> Steps[HiddenTurns]:
    """The record of the reply that a request names as its past; an empty one without a record."""
    if not previous:
        return HiddenTurns([], [])
    key = reply_key(root, previous)
    return hidden_turns_in((yield Find((key,))), key) or HiddenTurns([], [])


def _with_deferred(
    results: Sequence[Any], history: list[Any], dialect: Dialect
) -> list[Any]:
    """What the client sends after a reply that the provider holds, with deferred results."""
    if not history:
        return dialect.deferred(results, None, None)
    message = dialect.wire.parse(history[0], f"{dialect.wire.key}[0]")
    return [*dialect.deferred(results, history[0], message), *history[1:]]


def takes_rounds(request: Mapping[str, Any], wire: Format) -> bool:
    """Whether a reply can be made of several rounds.

    Where it cannot (``n`` over 1, in the background) the recall tools should not be offered, and
    a private call is left out.
    """
    return (
        wire_named(wire.wire)
        .dialect(wire, lambda call: False)
        .is_single(request)
    )


def is_thread(request: Mapping[str, Any], wire: Format) -> bool:
    """Whether the next request names the reply to this one and leaves out what came before it."""
    return (
        wire_named(wire.wire)
        .dialect(wire, lambda call: False)
        .is_thread(request)
    )


def chain_of(
    request: Mapping[str, Any], wire: Format, start: bytes
) -> list[bytes]:
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
    return [
        wire.parse(raw, f"{wire.key}[{at}]")
        for at, raw in enumerate(raws, start)
    ]


def _chain(start: bytes, messages: Iterable[Message]) -> list[bytes]:
    """The chain from a place on: at it, and behind each message.

    Messages of thinking alone leave it as it is: clients may drop them.
    """
    chain = [start]
    for message in messages:
        end = chain[-1]
        chain.append(
            end if message.only_thought else extend(end, digest_of(message))
        )
    return chain


def _parsed_history(
    request: Mapping[str, Any],
    wire: Format,
    dialect: Dialect,
    root: bytes,
    earlier: ParsedHistory | None,
) -> ParsedHistory:
    """A client's history, parsed from where it differs from an earlier one."""
    leading, raws = _parted(request, wire)
    if earlier is None or earlier.chain[0] != root:
        earlier = ParsedHistory((), [], [root], [])
    same = next(
        differing(earlier.raws, raws), min(len(earlier.raws), len(raws))
    )
    messages = earlier.messages[:same] + _parsed(
        raws[same:], wire, leading + same
    )
    chain = earlier.chain[:same] + _chain(earlier.chain[same], messages[same:])
    runs = [
        run for run in earlier.runs if run.stop < same
    ]  # one at the end may go on
    runs += _runs(raws, messages, chain, dialect, runs[-1].stop if runs else 0)
    return ParsedHistory(
        [*earlier.raws[:same], *raws[same:]], messages, chain, runs
    )


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
            seals = [
                seal for raw in raws[start:stop] for seal in dialect.seals(raw)
            ]
            marks = {seal: mark_key(chain[0], seal) for seal in seals}
            key = key_of(chain[start], reply, with_ids=dialect.sends_call_ids)
            yield _Run(start, stop, reply, key, marks)
        start = stop + 1


def _restored_history(
    parsed: ParsedHistory, dialect: Dialect, request: Mapping[str, Any]
) -> Steps[list[Any]]:
    """A client's history with the turns that the store has for its replies."""
    _, raws = _parted(request, dialect.wire)
    messages = parsed.messages
    keys = [key for run in parsed.runs for key in run.lookups()]
    records = (yield Find(tuple(keys))) if keys else ()
    stored_keys = {record.key for record in records}
    history: list[Any] = []
    at = 0
    for run in parsed.runs:
        history += raws[at : run.start]
        at = run.stop
        client_messages = raws[run.start : run.stop]
        hidden = None
        if run.key is not None and run.key in stored_keys:
            hidden = hidden_turns_in(records, run.key)
        turns = None
        if hidden is not None:
            turns = _turns(hidden, run, client_messages, dialect, request)
        if hidden is None or turns is None:
            loose = {
                seal for seal, key in run.seals.items() if key in stored_keys
            }
            if (
                loose
            ):  # reasoning that cannot stand without the turns that are lost
                client_messages = dialect.without(
                    client_messages, loose.__contains__
                )
            history += client_messages
            continue
        history += turns
        if not hidden.deferred:
            continue
        if at < len(raws):
            history += dialect.deferred(
                hidden.deferred, raws[at], messages[at]
            )
            at += 1
        else:
            history += dialect.deferred(hidden.deferred, None, None)
    return [*history, *raws[at:]]


def _turns(
    hidden: HiddenTurns,
    run: _Run,
    client_messages: Sequence[Any],
    dialect: Dialect,
    request: Mapping[str, Any],
) -> list[Any] | None:
    """The turns of a reply; None if they say anything else than the client does.

    To another model no thinking is sent that the client left out: it may not be its own.
    """
    turns = hidden.turns
    audible = (
        turns if hidden.audible is None else turns[slice(*hidden.audible)]
    )
    parsed = [dialect.wire.parse(raw, "turn") for raw in audible]
    if not says_the_same(run.messages, parsed, hidden.note):
        return None
    if not run.seals and str(model_in(request) or "") != hidden.model:
        turns = dialect.without(turns, bool)
    return dialect.marked(turns, client_messages)
