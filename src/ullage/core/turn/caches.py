"""What a session remembers for speed. It can be dropped at any time and changes nothing else.

Callers mutate messages in place: they move cache markers, append to lists, rewrite results.
So a session keeps a snapshot of each message (`ullage.core.history.snapshots`), and compares every
index at every call: what is as it was is neither parsed nor rendered again.

Several lines of history are kept, because branches and models alternate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from ullage.core.contract.format import Format, RequestHead
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
from ullage.core.values.decisions import LedgerRef
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
    head: tuple[RequestHead, tuple[dict[str, Any], ...], int] | None = None
    undone: frozenset[LedgerRef] | None = None
    latest: bytes | None = None

    def freeze(self, wire: Format, header: Header | None) -> FrozenRequest:
        """The request that was read last, for whoever reads it while this line goes on."""
        return FrozenRequest(wire, header, self.copies, len(self.copies))

    def invalidate(self) -> None:
        """Walk the history again: something was decided in it elsewhere."""
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
        messages = [*leading, *self.copies[: self.size]]
        return {**outside, self.wire.key: messages}


class SessionCache:
    """The lines of history last seen, the newest first, and the last envelope.

    Attributes:
        lines: lines of history.
        envelopes: what stood around the last request.
        unknown_models: models whose unknown window has been reported.
        large_reserves: models of which an answer was asked that takes half of the window, reported.
        repaired: what histories became that were repaired, the newest first.
        flat: what was set aside last because it was nested too deep.
        unstored: what was set aside of a request as it came, and could not be kept.
    """

    def __init__(self, unstored: tuple[Output, ...] = ()) -> None:
        self.histories: list[HistoryCache] = []
        self.envelopes = Envelopes()
        self.unknown_models: set[str] = set()
        self.large_reserves: set[str] = set()
        self.repaired: tuple[Repaired, ...] = ()
        self.flat = Repaired(())
        self.unstored = unstored

    @property
    def repair_outputs(self) -> tuple[Output, ...]:
        """What was set aside of requests as they came, before anything was decided of them."""
        outputs: list[Output] = []
        for repaired in (*self.repaired, self.flat):
            outputs += repaired.outputs
        return tuple(outputs)

    def output_of(self, ref: str) -> Output | None:
        """What was set aside under a ref when a history was repaired, or None."""
        for output in (*self.repair_outputs, *self.unstored):
            if output.ref == ref:
                return output
        return None

    def match_history(
        self,
        request: Request,
        tenant: str,
        redact: Redact | None = None,
        user_tools: frozenset[str] = KNOWN_USER_TOOLS,
    ) -> HistoryCache:
        """The history that a request continues, brought up to date; or a new one.

        The same ``redact`` and ``user_tools`` are given for every call.

        Raises:
            FormatError: a message is not what its format says it is.
        """
        envelope = request.envelope
        messages = _Messages(request)
        leading = envelope.head.leading
        root = request.root(tenant)
        meter = meter_for(envelope.model, envelope.detail)
        best: _Match | None = None
        for history in self.histories:
            if history.transcript.chain[0] != root:
                continue
            match = _match(history, messages, leading)
            if history.meter is meter and match.length == len(history.copies):
                _reword(history, match.reworded, messages, leading)
                _append(history, messages, leading)
                return history
            if match.length > (0 if best is None else best.length):
                best = match
        history = HistoryCache(Transcript(root, redact, user_tools), meter)
        if best is not None:
            _take_over(history, best.history, best.length)
            _reword(history, best.reworded, messages, leading)
        _append(history, messages, leading)
        return history

    def remember(
        self, history: HistoryCache, records: Sequence[Record]
    ) -> None:
        """Remember a history as the newest, and what was decided in it."""
        if not self.histories or self.histories[0] is not history:
            rest = [one for one in self.histories if one is not history]
            self.histories = [history, *rest][:_HISTORIES]
        if records:
            history.latest = None
            self._invalidate(
                history.transcript, [record.key for record in records]
            )

    def observed(self, transcript: Transcript, key: bytes) -> None:
        """The ledger has a report at a key now: its own history knows, unless it has gone on."""
        if transcript.decision_key(len(transcript)) == key:
            self._invalidate(transcript, [key])
        else:
            self._invalidate(None, [key])

    def _invalidate(
        self, knowing: Transcript | None, keys: Sequence[bytes]
    ) -> None:
        """Have histories that hold these keys walked anew, but for the one that knows of them."""
        for history in self.histories:
            transcript = history.transcript
            if transcript is knowing:
                continue
            if any(transcript.find(key) is not None for key in keys):
                history.invalidate()


class _Messages(dict[int, tuple[Any, Message]]):
    """The messages of a request, each read once: a snapshot of it, and what it says."""

    def __init__(self, request: Request) -> None:
        self.raws = request.history
        self.wire = request.wire
        self._digests: dict[int, bytes] = {}

    def __missing__(self, index: int) -> tuple[Any, Message]:
        raw = self.raws[index]
        path = f"{self.wire.key}[{index}]"
        copy = snapshot_at(raw, path)
        message = self.wire.parse(raw, path)
        self[index] = (copy, message)
        return copy, message

    def digest(self, index: int) -> bytes:
        """The digest of what it says."""
        digest = self._digests.get(index)
        if digest is None:
            _, message = self[index]
            digest = canon.digest_of(message)
            self._digests[index] = digest
        return digest


class _Match(NamedTuple):
    """What a history shares with a request.

    Attributes:
        history: the history.
        length: how many leading messages of it.
        reworded: those among these that are worded anew.
    """

    history: HistoryCache
    length: int
    reworded: Sequence[tuple[int, Message]]


def _reword(
    history: HistoryCache,
    reworded: Sequence[tuple[int, Message]],
    messages: _Messages,
    leading: int,
) -> None:
    """Take in messages that mean the same as before in other words."""
    if reworded:
        # a frozen request reads the list as it was
        history.copies = history.copies.copy()
    for index, message in reworded:
        copy, _ = messages[index + leading]
        history.copies[index] = copy
        history.transcript.refresh(index, message)
        if history.builder is not None:
            history.builder.refresh(index)


def _match(history: HistoryCache, messages: _Messages, leading: int) -> _Match:
    """How many leading messages a history shares with a request, and those worded anew."""
    raws = messages.raws[leading:] if leading else messages.raws
    length = len(history.copies)
    if history.copies == raws[:length]:  # nearly always, and a third faster
        return _Match(history, length, ())
    reworded: list[tuple[int, Message]] = []
    for index in differing(history.copies, raws):
        digest = messages.digest(index + leading)
        if digest != history.transcript.digests[index]:
            return _Match(history, index, reworded)
        _, message = messages[index + leading]
        reworded.append((index, message))
    return _Match(history, min(length, len(raws)), reworded)


def _take_over(
    history: HistoryCache, source: HistoryCache, length: int
) -> None:
    """Take what was worked out for the shared part of another history."""
    history.copies = source.copies[:length]
    history.transcript = source.transcript.upto(length)
    for index, rendered in source.rendered.items():
        if index < length:
            history.rendered[index] = rendered
    if source.meter is not history.meter:
        history.transcript.counts = {}
        return
    history.head = source.head
    history.latest = source.latest  # what is shared was looked up with it
    if source.builder is not None:
        history.builder = source.builder.behind(history.transcript)
        history.inherited = source.active
        history.undone = source.undone


def _append(history: HistoryCache, messages: _Messages, leading: int) -> None:
    """Take in what is new, hashing much at once: else an event loop would starve along the walk.

    Hashing lets go of the interpreter too briefly to be of use, yet who waits (5 ms) begins anew.
    """
    transcript = history.transcript
    start = len(history.copies)
    numbers = range(start + leading, len(messages.raws))
    entries = [messages[number] for number in numbers]
    digests = [messages.digest(number) for number in numbers]
    for (copy, message), digest in zip(entries, digests, strict=True):
        transcript.append(message, digest)
        history.copies.append(copy)
    if len(entries) > _FEW_MESSAGES:
        for index in range(start, len(transcript)):
            for location in transcript.results(index):
                transcript.output(location)
