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
from itertools import takewhile
from typing import Any, NamedTuple

from msgspec import Struct

from ullage.history import canon
from ullage.splice.dialect import Dialect
from ullage.splice.dialects import dialect_of
from ullage.splice.record import Splice, held_key, key_of, mark_key, says_the_same, splice_in
from ullage.values.effects import Find, Record, Steps
from ullage.values.messages import Message
from ullage.wires import Format

__all__ = ["Knitted", "Walk", "knit"]


class Knitted(Struct, frozen=True):
    """A client's request with the hidden turns in it.

    Attributes:
        request: what is to be fitted; the client's very object where nothing was hidden.
        client: what the client sent.
        root: the chain of the empty history of this format and tenant, 16 bytes.
        chain: the chain of the client's history, 16 bytes: what its reply is recorded under.
        takes: whether a reply can be made of several rounds; where it cannot (``n`` over 1)
            the recall tools should not be offered, and a private call is left out.
        walk: what was worked out of the history, for the next request of its conversation.
    """

    request: Mapping[str, Any]
    client: Mapping[str, Any]
    root: bytes
    chain: bytes
    takes: bool = True
    walk: Walk | None = None


class _Run(NamedTuple):
    """A reply in the client's history: where it stands, and what it is looked up by."""

    start: int
    stop: int
    messages: list[Message]
    key: bytes | None
    seals: dict[str, bytes]


class Walk(NamedTuple):
    """What was worked out of a client's history; as immutable as what is in it.

    Attributes:
        raws: its messages, without leading system text.
        messages: the same, as values.
        chain: before each of them, and behind the last.
        runs: the replies in it.
        found: the records of those.
    """

    raws: list[Any]
    messages: list[Message]
    chain: list[bytes]
    runs: list[_Run]
    found: tuple[Record, ...]

    def up_to(self, raws: Sequence[Any]) -> Walk:
        """The part of it that another history begins with.

        A reply counts only with a message of somebody else's behind it: it may have grown. What
        was found for one that counts, or was not, stands: its records are older than the reply.
        """
        pairs = zip(self.raws, raws, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        runs = [run for run in self.runs if run.stop < same]
        stop = runs[-1].stop + 1 if runs else 0
        keys = {key for run in runs for key in (run.key, *run.seals.values())}
        found = tuple(record for record in self.found if record.key in keys)
        return Walk(list(raws[:stop]), self.messages[:stop], self.chain[: stop + 1], runs, found)


def knit(
    request: Mapping[str, Any], wire: Format, tenant: str, before: Walk | None = None
) -> Steps[Knitted]:
    """Put back what was hidden from the client: its turns, and the results that waited.

    Asks for the records of every reply that is new in the history, in one `Find`. Where nothing is
    found the request stays as it is, and legal.

    Args:
        request: as the client sent it, as JSON; never changed.
        wire: its format.
        tenant: whose history it is, as of the session.
        before: of an earlier request of the same format and tenant: what the two begin with is
            not worked out again.

    Raises:
        FormatError: it is not what its format says it is.
    """
    dialect = dialect_of(wire, lambda call: False)
    raws, leading = wire.history(request), len(wire.leading(request))
    root = canon.root(wire.name, tenant)
    said = raws[leading:]
    known = Walk([], [], [root], [], ()) if before is None else before.up_to(said)
    walk = _walked(known, said, wire, dialect, leading)
    held = held_key(root, str(request.get("previous_response_id") or ""))
    keys = [held] if dialect.is_held and request.get("previous_response_id") else []
    late = walk.runs[len(known.runs) :]
    keys += [key for run in late for key in (run.key, *run.seals.values()) if key is not None]
    found = known.found + ((yield Find(tuple(keys))) if keys else ())
    new = request
    if found:
        knitted = _knitted(said, walk.messages, walk.runs, found, dialect, request)
        later = splice_in(found, held) or Splice([], [])
        new = wire.compose(request, [*raws[:leading], *later.waiting, *knitted], ())
        if later.reply_id:
            new["previous_response_id"] = later.reply_id
    single, walk = dialect.is_single(request), walk._replace(found=found)
    return Knitted(new, request, root, walk.chain[-1], single, walk)


def _walked(known: Walk, raws: Sequence[Any], wire: Format, dialect: Dialect, leading: int) -> Walk:
    """The walk of a whole history, of which the beginning is known."""
    start = len(known.messages)
    messages, chain = list(known.messages), list(known.chain)
    for at, raw in enumerate(raws[start:], start):
        message = wire.parse(raw, f"{wire.key}[{leading + at}]")
        messages.append(message)
        digest = b"" if message.only_thought else canon.digest_of(message)
        chain.append(canon.extend(chain[-1], digest) if digest else chain[-1])
    runs = [*known.runs, *_runs(raws, messages, chain, dialect, start)]
    return Walk(list(raws), messages, chain, runs, known.found)


def _runs(
    raws: Sequence[Any],
    messages: Sequence[Message],
    chain: Sequence[bytes],
    dialect: Dialect,
    start: int,
) -> Iterable[_Run]:
    """The replies in a history without leading system text, from one place on."""
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
