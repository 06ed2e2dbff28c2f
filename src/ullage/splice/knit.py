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

from ullage.history import canon
from ullage.splice.dialect import Dialect
from ullage.splice.dialects import dialect_of
from ullage.splice.record import Splice, held_key, key_of, mark_key, says_the_same, splice_in
from ullage.values.effects import Find, Record, Steps
from ullage.values.messages import Message
from ullage.wires import Format

__all__ = ["Knitted", "knit"]


class Knitted(Struct, frozen=True):
    """A client's request with the hidden turns in it.

    Attributes:
        request: what is to be fitted; the client's very object where nothing was hidden.
        client: what the client sent.
        root: the chain of the empty history of this format and tenant, 16 bytes.
        chain: the chain of the client's history, 16 bytes: what its reply is recorded under.
        takes: whether a reply can be made of several rounds; where it cannot (``n`` over 1)
            the recall tools should not be offered, and a private call is left out.
    """

    request: Mapping[str, Any]
    client: Mapping[str, Any]
    root: bytes
    chain: bytes
    takes: bool = True


class _Run(NamedTuple):
    """A reply in the client's history: where it stands, and what it is looked up by."""

    start: int
    stop: int
    messages: list[Message]
    key: bytes | None
    seals: dict[str, bytes]


def knit(request: Mapping[str, Any], wire: Format, tenant: str) -> Steps[Knitted]:
    """Put back what was hidden from the client: its turns, and the results that waited.

    Asks for the records of every reply in the history, in one `Find`. Where nothing is found the
    request stays as it is, and legal.

    Args:
        request: as the client sent it, as JSON; never changed.
        wire: its format.
        tenant: whose history it is, as of the session.

    Raises:
        FormatError: it is not what its format says it is.
    """
    dialect = dialect_of(wire, lambda call: False)
    raws, leading = wire.history(request), len(wire.leading(request))
    root = canon.root(wire.name, tenant)
    messages, chain = list[Message](), [root]
    for at, raw in enumerate(raws[leading:], leading):
        message = wire.parse(raw, f"{wire.key}[{at}]")
        messages.append(message)
        digest = b"" if message.only_thought else canon.digest_of(message)
        chain.append(canon.extend(chain[-1], digest) if digest else chain[-1])
    runs = list(_runs(raws[leading:], messages, chain, dialect))
    held = held_key(root, str(request.get("previous_response_id") or ""))
    keys = [held] if dialect.is_held and request.get("previous_response_id") else []
    keys += [key for run in runs for key in (run.key, *run.seals.values()) if key is not None]
    found = (yield Find(tuple(keys))) if keys else ()
    new = request
    if found:
        knitted = _knitted(raws[leading:], messages, runs, found, dialect, request)
        later = splice_in(found, held) or Splice([], [])
        new = wire.compose(request, [*raws[:leading], *later.waiting, *knitted], ())
        if later.reply_id:
            new["previous_response_id"] = later.reply_id
    return Knitted(new, request, root, chain[-1], dialect.is_single(request))


def _runs(
    raws: Sequence[Any], messages: Sequence[Message], chain: Sequence[bytes], dialect: Dialect
) -> Iterable[_Run]:
    """The replies in a history without leading system text."""
    start = 0
    while start < len(messages):
        stop = start
        while stop < len(messages) and messages[stop].role == "assistant":
            stop += 1
        if stop > start:
            said = list(messages[start:stop])
            seals = [seal for raw in raws[start:stop] for seal in dialect.seals(raw)]
            marks = {seal: mark_key(chain[0], seal) for seal in seals}
            yield _Run(start, stop, said, key_of(chain[start], said), marks)
        start = stop + 1


def _knitted(
    raws: Sequence[Any],
    messages: Sequence[Message],
    runs: Iterable[_Run],
    found: Sequence[Record],
    dialect: Dialect,
    request: Mapping[str, Any],
) -> list[Any]:
    """The history with what was found in it."""
    marked, known = {record.key for record in found}, list[Any]()
    at = 0
    for run in runs:
        said = raws[run.start : run.stop]
        known += raws[at : run.start]
        at = run.stop
        splice = splice_in(found, run.key) if run.key in marked and run.key else None
        turns = None if splice is None else _turns(splice, run, said, dialect, request)
        if splice is None or turns is None:
            loose = {seal for seal, key in run.seals.items() if key in marked}
            known += dialect.without(said, loose.__contains__) if loose else said
            continue
        known += turns
        if splice.waiting:
            behind = raws[at] if at < len(raws) else None
            message = messages[at] if at < len(raws) else None
            known += dialect.deferred(splice.waiting, behind, message)
            at += behind is not None
    return [*known, *raws[at:]]


def _turns(
    splice: Splice, run: _Run, said: Sequence[Any], dialect: Dialect, request: Mapping[str, Any]
) -> list[Any] | None:
    """The turns of a reply; None if they say anything else than the client does.

    To another model no thinking is sent that the client left out: it may not be its own.
    """
    turns = splice.turns
    parsed = [dialect.wire.parse(raw, "turn") for raw in turns]
    if not says_the_same(run.messages, parsed, splice.note):
        return None
    if not run.seals and str(request.get("model") or "") != splice.model:
        turns = dialect.without(turns, bool)
    return dialect.marked(turns, said)
