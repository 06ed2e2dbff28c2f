"""What is kept of each request that was answered, so that the next one can be judged beside it.

    reply ──▶ SentRequest ──▶ record "sent", at the place of the request
                  │ head ───▶ record "head", once for each head of a conversation

Both are kept beside the ledger, with the reply. So another worker knows them, and `ullage window
--why` after a restart. No view hangs on them, and they hold no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from ullage.core.history import canon
from ullage.core.history.ledger import Ledger
from ullage.core.history.transcript import Transcript
from ullage.core.turn.request import Header
from ullage.core.values.cache_breaks import CacheBreak
from ullage.core.values.edits import without_surrogates
from ullage.core.values.effects import Find, Record, Steps
from ullage.core.values.events import Event
from ullage.core.values.usage import Usage
from ullage.session.prompt_cache.heads import HeadPrint
from ullage.session.view import RequestInfo

# the kinds of the two records
SENT = "sent"
HEAD = "head"
MOST_RECENT = 4
"""So many conversations of a session, or models of one, have their newest request at hand."""
_MOST_STEPS = 16
"""So many places of a history are looked at for its newest request."""
# how long a cache lives (`provider-rules` §3.1, §3.2)
_LIVES_S = 300
_LIVES_LONGER_S = 1_800
"""Where a vendor bills for writing to it by the half hour."""
_LIVES_LONG_S = 3_600
"""Where the longer time is paid for."""


class SentRequest(Struct, frozen=True, array_like=True):
    """What is kept of a request that was answered.

    Attributes:
        at_s: when its reply came, in seconds since 1970.
        size: how many messages its history had.
        chain: the chain behind the last, 16 bytes.
        model: the model.
        usage: what was reported: fresh, read, written, written for long, and output tokens.
        head: names the fingerprint of its head; empty: there is none.
        batches: how many batches stood at its place.
        tokens: of the view, as ullage counts.
        broken: how it broke the cache; None: it did not.
    """

    at_s: int
    size: int
    chain: bytes
    model: str
    usage: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    head: bytes = b""
    batches: int = 0
    tokens: int = 0
    broken: CacheBreak | None = None

    @property
    def prompt_tokens(self) -> int:
        """Its prompt, as it was reported."""
        fresh, read, written, _, _ = self.usage
        return fresh + read + written

    @property
    def held_tokens(self) -> int:
        """What of its prompt was in the provider's cache afterwards, as far as was reported.

        Where writes are billed, what is fresh stands behind the last marker. Elsewhere all of a
        prompt is cached.
        """
        _, read, written, _, _ = self.usage
        return read + written if written else self.prompt_tokens

    @property
    def caches(self) -> bool:
        """Whether a cache was seen at work."""
        return bool(self.usage[1] or self.usage[2])

    @property
    def lives_s(self) -> int:
        """How long a cache that it left usually lives."""
        if self.usage[3]:
            return _LIVES_LONG_S
        is_by_half_hour = bool(self.usage[2]) and self.model.startswith("gpt")
        return _LIVES_LONGER_S if is_by_half_hour else _LIVES_S


class RecentRequest(NamedTuple):
    """The newest request of a conversation, as a session has it.

    Attributes:
        begins: names the conversation, by its first message.
        key: the place in the chain that it is kept under.
        sent: what is kept of it.
        head_print: the fingerprint of its head; None: not at hand.
        header: what stood around its messages; None: another worker had it.
        transcript: its history; None: another worker had it.
        caches: whether a cache was seen at work in the conversation.
    """

    begins: bytes
    key: bytes
    sent: SentRequest
    head_print: HeadPrint | None = None
    header: Header | None = None
    transcript: Transcript | None = None
    caches: bool = False


class Answered(NamedTuple):
    """What comes of a request that was answered.

    Attributes:
        broken: how it broke the cache; None: it did not.
        request: what is kept of it; None: it cannot be told.
        records: the same for the store.
        events: what is reported of it.
    """

    broken: CacheBreak | None = None
    request: RecentRequest | None = None
    records: tuple[Record, ...] = ()
    events: tuple[Event, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SentRequest).decode
_decode_head = msgspec.msgpack.Decoder(HeadPrint).decode


def sent_of(record: Record) -> SentRequest | None:
    """The request that a record tells of; None: it is of another kind, or cannot be read."""
    if record.kind != SENT:
        return None
    try:
        return _decode(record.data)
    except (msgspec.MsgspecError, ValueError):
        return None


def sent_in(
    records: Iterable[Record], transcript: Transcript
) -> tuple[tuple[int, SentRequest], ...]:
    """The requests that records tell of, oldest first, each behind its place in a history.

    Args:
        records: of any kinds.
        transcript: the history.
    """
    requests: list[tuple[int, SentRequest]] = []
    for record in records:
        request = sent_of(record)
        place = transcript.find(record.key)
        if request is not None and place is not None:
            requests.append((place, request))
    return tuple(sorted(requests, key=lambda row: (row[0], row[1].at_s)))


def request_before(
    info: RequestInfo,
    transcript: Transcript,
    ledger: Ledger,
    recent: Sequence[RecentRequest],
) -> Steps[RecentRequest | None]:
    """The request before a view: as this session knows it, or as another worker kept it.

    Args:
        info: the view.
        transcript: its history.
        ledger: of the conversation.
        recent: the newest requests of the session's conversations.
    """
    begins = transcript.chain[1]
    known = _known(recent, begins, info.model)
    is_own = known is not None and known.sent.model == info.model
    stop = 0
    if known is not None and is_own:
        stop = transcript.find(known.key) or 0
    key = _newest_observed(transcript, info, ledger, stop)
    if key is None:
        return known
    records: Sequence[Record] = yield Find((key,))
    sent = _sent_by(records, info.model)
    if sent is None:
        return known
    # where the client changed what was sent, or went back, only older ones are in the history
    is_older = known is not None and sent.at_s <= known.sent.at_s
    if is_older and not stop and (is_own or sent.model != info.model):
        return known
    caches = sent.caches
    head = None
    if known is not None:
        caches = caches or known.caches
        if known.sent.head == sent.head:
            head = known.head_print
    return RecentRequest(begins, key, sent, head, caches=caches)


def _known(
    recent: Sequence[RecentRequest], begins: bytes, model: str
) -> RecentRequest | None:
    """The newest request of a conversation: to this model, whose cache is its own; else to any."""
    requests = [one for one in recent if one.begins == begins]
    for request in requests:
        if request.sent.model == model:
            return request
    return requests[0] if requests else None


def _sent_by(records: Sequence[Record], model: str) -> SentRequest | None:
    """The request that records of one place tell of: to this model; else the newest."""
    requests = [sent for sent in map(sent_of, records) if sent is not None]
    return max(
        requests,
        key=lambda sent: (sent.model == model, sent.at_s),
        default=None,
    )


def head_before(before: RecentRequest) -> Steps[HeadPrint | None]:
    """The fingerprint of the head of an earlier request; None: it is not kept.

    Args:
        before: the request.
    """
    if before.head_print is not None or not before.sent.head:
        return before.head_print
    key = _head_key(before.begins, before.sent.head)
    records: Sequence[Record] = yield Find((key,))
    for record in records:
        if record.kind == HEAD:
            try:
                return _decode_head(record.data)
            except (msgspec.MsgspecError, ValueError):
                return None
    return None


def records_of(
    info: RequestInfo,
    broken: CacheBreak | None,
    transcript: Transcript,
    usage: Usage,
    ledger: Ledger,
    at_s: float,
) -> tuple[RecentRequest, tuple[Record, ...]]:
    """What is kept of a request once it is answered.

    Args:
        info: the view.
        broken: how it broke the cache.
        transcript: its history, which may have gone on since.
        usage: what its reply reported.
        ledger: of the conversation.
        at_s: when the reply came, in seconds since 1970.
    """
    before = info.before
    head_print = info.head_print
    head = b""
    if head_print is not None:
        is_same = before is not None and before.head_print is head_print
        head = before.sent.head if before and is_same else head_print.digest
    sent = SentRequest(
        at_s=int(at_s),
        size=info.size,
        chain=transcript.chain[info.size],
        model=without_surrogates(info.model),
        usage=(
            *usage.input_classes,
            usage.long_write_tokens,
            usage.output_tokens,
        ),
        head=head,
        batches=len(ledger.at(info.key).batches),
        tokens=info.tokens,
        broken=broken,
    )
    begins = transcript.chain[min(1, info.size)]
    caches = sent.caches or (before is not None and before.caches)
    request = RecentRequest(
        begins,
        info.key,
        sent,
        head_print,
        info.raw.header,
        info.frozen.transcript,
        caches,
    )
    name = without_surrogates(info.model)
    records = [Record(info.key, SENT, 0, _encode(sent), name)]
    if head_print is not None and (before is None or before.sent.head != head):
        key = _head_key(begins, head)
        records.append(Record(key, HEAD, 0, _encode(head_print)))
    return request, tuple(records)


def with_recent(
    recent: Sequence[RecentRequest], request: RecentRequest
) -> tuple[RecentRequest, ...]:
    """The newest requests with one more; one of each conversation and model.

    Args:
        recent: the newest, in order.
        request: the one more.
    """
    older: list[RecentRequest] = []
    for one in recent:
        if one.begins != request.begins:
            older.append(one._replace(transcript=None))
        elif one.sent.model != request.sent.model:
            older.append(one)
    return (request, *older)[:MOST_RECENT]


def _newest_observed(
    transcript: Transcript, info: RequestInfo, ledger: Ledger, stop: int
) -> bytes | None:
    """The key of the newest reply of a history behind a place, of this model if there is one."""
    newest = None
    place = transcript.decision_index(info.size)
    for _ in range(_MOST_STEPS):
        if place <= stop:
            break
        key = transcript.chain[place]
        observed = ledger.at(key).observed
        if info.model in observed:
            return key
        if observed and newest is None:
            newest = key
        place = transcript.decision_index(place - 1)
    return None if stop else newest


def _head_key(begins: bytes, head: bytes) -> bytes:
    return canon.extend(begins, b"head" + head)
