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

from ullage.core.contract.format import Format, Head
from ullage.core.contract.repaired import Repaired
from ullage.core.history import canon
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.snapshots import differing, snapshot_at
from ullage.core.history.transcript import Transcript
from ullage.core.redaction import Redact
from ullage.core.tokens.meter import Meter, meter_for
from ullage.core.turn.active_policy import ActivePolicy
from ullage.core.turn.rendering import Rendered
from ullage.core.turn.request import Envelopes, Header, Request
from ullage.core.values.authors import KNOWN_USER_TOOLS
from ullage.core.values.decisions import Made
from ullage.core.values.effects import Output, Record
from ullage.core.values.messages import Message

_HISTORIES = 4
_FEW_MESSAGES = 8


class HistoryCache(Struct, eq=False):
    """One line of history: copies of its raw messages, and what was worked out from them.

    Attributes:
        transcript: the messages as values.
        meter: what counts for its model.
        copies: snapshots of the raw messages.
        rendered: the edited messages as they were handed out, by index.
        builder: its window is how far the history was walked; None: not at all.
        active: on what terms it is shown, or None: to be worked out.
        inherited: those of the line that its builder was taken over from.
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
    active: ActivePolicy | None = None
    inherited: ActivePolicy | None = None
    head: tuple[Head, tuple[dict[str, Any], ...], int] | None = None
    undone: frozenset[Made] | None = None
    latest: bytes | None = None

    def freeze(self, wire: Format, header: Header | None) -> FrozenRequest:
        """The request that was read last, for whoever reads it while this line goes on."""
        return FrozenRequest(wire, header, self.copies, len(self.copies))

    def invalidate(self) -> None:
        """Walk the history anew: something was decided in it elsewhere."""
        self.builder = self.active = self.latest = None


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


class SessionCache:
    """The lines of history last seen, the newest first, and the last envelope.

    Attributes:
        lines: lines of history.
        envelopes: what stood around the last request.
        unknown_models: models whose unknown window has been told of.
        repaired: what histories became that were repaired, the newest first.
        flat: what was set aside last because it was nested too deep.
        unstored: what was set aside of a request as it came, and could not be kept.
    """

    def __init__(self, unstored: tuple[Output, ...] = ()) -> None:
        self.histories: list[HistoryCache] = []
        self.envelopes = Envelopes()
        self.unknown_models: set[str] = set()
        self.repaired: tuple[Repaired, ...] = ()
        self.flat = Repaired(())
        self.unstored = unstored

    @property
    def repair_outputs(self) -> tuple[Output, ...]:
        """What was set aside of requests as they came, before anything was decided of them."""
        return tuple(
            output for known in (*self.repaired, self.flat) for output in known.outputs
        )

    def output_of(self, ref: str) -> Output | None:
        """What was set aside under a ref when a history was repaired, or None."""
        return next(
            (
                each
                for each in (*self.repair_outputs, *self.unstored)
                if each.ref == ref
            ),
            None,
        )

    def match_history(
        self,
        request: Request,
        tenant: str,
        redact: Redact | None = None,
        user_tools: frozenset[str] = KNOWN_USER_TOOLS,
    ) -> HistoryCache:
        """The line that a request's history continues, brought up to date; or a new one.

        The same ``redact`` and ``user_tools`` are given for every call.

        Raises:
            FormatError: a message is not what its format says it is.
        """
        read, leading = _Read(request), request.envelope.head.leading
        root = request.root(tenant)
        meter = meter_for(request.envelope.model, request.envelope.detail)
        best, best_shared, anew = None, 0, list[tuple[int, Message]]()
        for history in (
            each for each in self.histories if each.transcript.chain[0] == root
        ):
            shared, reworded = _shared(history, read, leading)
            if history.meter is meter and shared == len(history.copies):
                _reword(history, reworded, read, leading)
                _append(history, read, leading)
                return history
            if shared > best_shared:
                best, best_shared, anew = history, shared, reworded
        history = HistoryCache(Transcript(root, redact, user_tools), meter)
        if best is not None:
            _take_over(history, best, best_shared)
            _reword(history, anew, read, leading)
        _append(history, read, leading)
        return history

    def remember(self, history: HistoryCache, decided: Sequence[Record]) -> None:
        """Remember a line as the newest, and what was decided in it."""
        if not self.histories or self.histories[0] is not history:
            others = [other for other in self.histories if other is not history]
            self.histories = [history, *others][:_HISTORIES]
        if decided:
            history.latest = None
            self._invalidate(history.transcript, [record.key for record in decided])

    def observed(self, transcript: Transcript, key: bytes) -> None:
        """The ledger has a report at a key now: its own line knows, if it has not gone on since."""
        is_late = transcript.decision_key(len(transcript)) != key
        self._invalidate(None if is_late else transcript, [key])

    def _invalidate(self, knowing: Transcript | None, keys: Sequence[bytes]) -> None:
        """Have lines that hold these keys walked anew, but for the one that knows of them."""
        for history in self.histories:
            find = history.transcript.find
            if history.transcript is not knowing and any(
                find(key) is not None for key in keys
            ):
                history.invalidate()


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
    history: HistoryCache,
    reworded: Iterable[tuple[int, Message]],
    read: _Read,
    leading: int,
) -> None:
    """Take in messages that mean the same as before in other words."""
    reworded = list(reworded)
    if reworded:
        history.copies = (
            history.copies.copy()
        )  # a frozen request reads the list as it was
    for index, message in reworded:
        history.copies[index] = read[index + leading][0]
        history.transcript.refresh(index, message)
        if history.builder is not None:
            history.builder.refresh(index)


def _shared(
    history: HistoryCache, read: _Read, leading: int
) -> tuple[int, list[tuple[int, Message]]]:
    """How many leading messages a line shares with a request, and those worded anew."""
    ours, known = (read.raws[leading:] if leading else read.raws), len(history.copies)
    reworded: list[tuple[int, Message]] = []
    if history.copies == ours[:known]:  # nearly always, and a third faster
        return known, reworded
    for index in differing(history.copies, ours):
        if read.digest(index + leading) != history.transcript.digests[index]:
            return index, reworded
        reworded.append((index, read[index + leading][1]))
    return min(known, len(ours)), reworded


def _take_over(history: HistoryCache, old: HistoryCache, shared: int) -> None:
    """Take what was worked out for the shared part of another line."""
    history.copies, history.transcript = (
        old.copies[:shared],
        old.transcript.upto(shared),
    )
    history.rendered = {
        index: it for index, it in old.rendered.items() if index < shared
    }
    if old.meter is not history.meter:
        history.transcript.counts = {}
        return
    history.head, history.latest = (
        old.head,
        old.latest,
    )  # what is shared was looked up with it
    if old.builder is not None:
        history.builder, history.inherited = (
            old.builder.behind(history.transcript),
            old.active,
        )
        history.undone = old.undone


def _append(history: HistoryCache, read: _Read, leading: int) -> None:
    """Take in what is new, hashing much at once: else an event loop would starve along the walk.

    Hashing lets go of the interpreter too briefly to be of use, yet who waits (5 ms) begins anew.
    """
    transcript, start = history.transcript, len(history.copies)
    new = [read[at] for at in range(start + leading, len(read.raws))]
    digests = [read.digest(at) for at in range(start + leading, len(read.raws))]
    for (copy, message), digest in zip(new, digests, strict=True):
        transcript.append(message, digest)
        history.copies.append(copy)
    for index in range(start, len(transcript)) if len(new) > _FEW_MESSAGES else ():
        deque(map(transcript.output, transcript.results(index)), maxlen=0)
