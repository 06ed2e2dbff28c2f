"""What a session remembers for speed. It can be dropped at any time and changes nothing else.

Callers mutate messages in place: they move cache markers, append to lists, rewrite results.
So a session keeps a snapshot of each message (`ullage.core.history.snapshots`), and compares every
index at every call: what is as it was is neither parsed nor rendered again.

Several lines of history are kept, because branches and models alternate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from ullage.core.contract.format import Format, RequestHead
from ullage.core.contract.repaired import Repaired
from ullage.core.history import canon
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.snapshots import differing, snapshot_at
from ullage.core.history.transcript import Transcript
from ullage.core.redaction import Redact
from ullage.core.tokens.meter import Meter, meter_for
from ullage.core.turn.rendering import Rendered
from ullage.core.turn.request import Envelopes, Header, Request
from ullage.core.turn.terms import Terms
from ullage.core.values.authors import KNOWN_USER_TOOLS
from ullage.core.values.decisions import LedgerRef
from ullage.core.values.effects import Output, Record
from ullage.core.values.messages import Message

LINES = 4
_FEW_MESSAGES = 8


class Line(Struct, eq=False):
    """One line of history: copies of its raw messages, and what was worked out from them.

    Attributes:
        transcript: the messages as values.
        meter: what counts for its model.
        copies: snapshots of the raw messages.
        rendered: the edited messages as they were handed out, by index.
        builder: its window is how far the history was walked; None: not at all.
        terms: on what terms it is shown, or None: to be worked out.
        begun_on: those of the line that its builder was taken over from.
        head: what stood around its messages last, the tools added to it, and their tokens.
        undone: the batches that its builder leaves out, for a user took them back; None: it was
            walked before users decided anything.
        latest: what stood in the ledger as its last decision when that was last looked up;
            None: to be looked up whole.
    """

    transcript: Transcript
    meter: Meter
    copies: list[Any] = []
    rendered: dict[int, Rendered] = {}
    builder: WindowBuilder | None = None
    terms: Terms | None = None
    begun_on: Terms | None = None
    head: tuple[RequestHead, tuple[dict[str, Any], ...], int] | None = None
    undone: frozenset[LedgerRef] | None = None
    latest: bytes | None = None

    def freeze(self, wire: Format, header: Header | None) -> FrozenRequest:
        """The request that was read last, for whoever reads it while this line goes on."""
        return FrozenRequest(wire, header, self.copies, len(self.copies))

    def begin_again(self) -> None:
        """Walk the history anew: something was decided in it elsewhere."""
        self.builder = self.terms = self.latest = None


class FrozenRequest(Struct, frozen=True, eq=False):
    """A request as it came, made of what is remembered of it.

    Attributes:
        wire: its format.
        header: what stood around its messages.
        copies: snapshots of its messages, leading system text left out. The list grows with later
            requests.
        size: how many of them are of this one.
    """

    wire: Format
    header: Header | None
    copies: Sequence[Any]
    size: int

    def request(self) -> dict[str, Any] | None:
        """The request. Nobody may write into its values."""
        if self.header is None:
            return None
        outside, leading = self.header[:2]
        return {**outside, self.wire.key: [*leading, *self.copies[: self.size]]}


class Memo:
    """The lines of history last seen, the newest first, and the last envelope.

    Attributes:
        lines: lines of history.
        envelopes: what stood around the last request.
        unknown_models: models whose unknown window has been told of.
        repaired: what histories became that were repaired, the newest first.
        flat: what was set aside last because it was nested too deep.
        unkept: what was set aside of a request as it came, and could not be kept.
    """

    def __init__(self, unkept: tuple[Output, ...] = ()) -> None:
        self.lines: list[Line] = []
        self.envelopes = Envelopes()
        self.unknown_models: set[str] = set()
        self.repaired: tuple[Repaired, ...] = ()
        self.flat = Repaired(())
        self.unkept = unkept

    @property
    def aside(self) -> tuple[Output, ...]:
        """What was set aside of requests as they came, before anything was decided of them."""
        return tuple(
            output for known in (*self.repaired, self.flat) for output in known.outputs
        )

    def set_aside(self, ref: str) -> Output | None:
        """What was set aside under a ref when a history was repaired, or None."""
        return next(
            (each for each in (*self.aside, *self.unkept) if each.ref == ref), None
        )

    def follow(
        self,
        request: Request,
        tenant: str,
        redact: Redact | None = None,
        user_tools: frozenset[str] = KNOWN_USER_TOOLS,
    ) -> Line:
        """The line that a request's history continues, brought up to date; or a new one.

        The same ``redact`` and ``user_tools`` are given for every call.

        Raises:
            FormatError: a message is not what its format says it is.
        """
        read, leading = _Read(request), request.envelope.head.leading
        root = request.root(tenant)
        meter = meter_for(request.envelope.model, request.envelope.detail)
        best, best_shared, anew = None, 0, list[tuple[int, Message]]()
        for line in (each for each in self.lines if each.transcript.chain[0] == root):
            shared, reworded = _shared(line, read, leading)
            if line.meter is meter and shared == len(line.copies):
                _reword(line, reworded, read, leading)
                _append(line, read, leading)
                return line
            if shared > best_shared:
                best, best_shared, anew = line, shared, reworded
        line = Line(Transcript(root, redact, user_tools), meter)
        if best is not None:
            _take_over(line, best, best_shared)
            _reword(line, anew, read, leading)
        _append(line, read, leading)
        return line

    def keep(self, line: Line, decided: Sequence[Record]) -> None:
        """Remember a line as the newest, and what was decided in it."""
        if not self.lines or self.lines[0] is not line:
            others = [other for other in self.lines if other is not line]
            self.lines = [line, *others][:LINES]
        if decided:
            line.latest = None
            self._outdate(line.transcript, [record.key for record in decided])

    def observed(self, transcript: Transcript, key: bytes) -> None:
        """The ledger has a report at a key now: its own line knows, if it has not gone on since."""
        is_late = transcript.decision_key(len(transcript)) != key
        self._outdate(None if is_late else transcript, [key])

    def _outdate(self, knowing: Transcript | None, keys: Sequence[bytes]) -> None:
        """Have lines that hold these keys walked anew, but for the one that knows of them."""
        for line in self.lines:
            find = line.transcript.find
            if line.transcript is not knowing and any(
                find(key) is not None for key in keys
            ):
                line.begin_again()


class _Read(dict[int, tuple[Any, Message]]):
    """The messages of a request, each read once: a snapshot of it, and what it says."""

    def __init__(self, request: Request) -> None:
        self.raws, self.wire = request.history, request.wire
        self._digests: dict[int, bytes] = {}

    def __missing__(self, at: int) -> tuple[Any, Message]:
        raw, where = self.raws[at], f"{self.wire.key}[{at}]"
        self[at] = snapshot_at(raw, where), self.wire.parse(raw, where)
        return self[at]

    def digest(self, at: int) -> bytes:
        """The digest of what it says."""
        return self._digests.get(at) or self._digests.setdefault(
            at, canon.digest_of(self[at][1])
        )


def _reword(
    line: Line, reworded: Iterable[tuple[int, Message]], read: _Read, leading: int
) -> None:
    """Take in messages that mean the same as before in other words."""
    reworded = list(reworded)
    if reworded:
        line.copies = line.copies.copy()  # a frozen request reads the list as it was
    for index, message in reworded:
        line.copies[index] = read[index + leading][0]
        line.transcript.refresh(index, message)
        if line.builder is not None:
            line.builder.refresh(index)


def _shared(
    line: Line, read: _Read, leading: int
) -> tuple[int, list[tuple[int, Message]]]:
    """How many leading messages a line shares with a request, and those worded anew."""
    ours, known = (read.raws[leading:] if leading else read.raws), len(line.copies)
    reworded: list[tuple[int, Message]] = []
    if line.copies == ours[:known]:  # nearly always, and a third faster
        return known, reworded
    for index in differing(line.copies, ours):
        if read.digest(index + leading) != line.transcript.digests[index]:
            return index, reworded
        reworded.append((index, read[index + leading][1]))
    return min(known, len(ours)), reworded


def _take_over(line: Line, old: Line, shared: int) -> None:
    """Take what was worked out for the shared part of another line."""
    line.copies, line.transcript = old.copies[:shared], old.transcript.upto(shared)
    line.rendered = {index: it for index, it in old.rendered.items() if index < shared}
    if old.meter is not line.meter:
        line.transcript.counts = {}
        return
    line.head, line.latest = (
        old.head,
        old.latest,
    )  # what is shared was looked up with it
    if old.builder is not None:
        line.builder, line.begun_on = old.builder.behind(line.transcript), old.terms
        line.undone = old.undone


def _append(line: Line, read: _Read, leading: int) -> None:
    """Take in what is new, hashing much at once: else an event loop would starve along the walk.

    Hashing lets go of the interpreter too briefly to be of use, yet who waits (5 ms) begins anew.
    """
    transcript, start = line.transcript, len(line.copies)
    new = [read[at] for at in range(start + leading, len(read.raws))]
    digests = [read.digest(at) for at in range(start + leading, len(read.raws))]
    for (copy, message), digest in zip(new, digests, strict=True):
        transcript.append(message, digest)
        line.copies.append(copy)
    for index in range(start, len(transcript)) if len(new) > _FEW_MESSAGES else ():
        deque(map(transcript.output, transcript.results(index)), maxlen=0)
