"""Bodies that begin like one that was read before: only what is new in them is read.

    {"model": …, "messages": [ m0 , m1 , m2 , m3 , m4 ], "tools": …}
    └────────── head ────────┘└──── span ───┘└─┘└──┘└──── tail ──────┘
                                             pieces

A conversation's next body begins with the bytes of its last one, up to the new messages, and mostly
ends like it. Equal bytes lead whoever reads JSON from the same place to the same place, with the
same values; so the messages of equal bytes are taken over as the very objects they were, and what
stands between them and the tail is read as a list of its own. Where anything is unusual nothing is
taken over, and the body is read whole (`ullage.doors.exchange.bodies`).

The texts of a body are held as strings already. So its bytes are not: all but the newest messages
are known again by the digest of a span of them.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import Any

import msgspec
from blake3 import blake3
from msgspec import Raw, Struct
from msgspec.structs import replace

from ullage.doors.exchange.bodies import decode, write
from ullage.doors.exchange.requests import HistoryStart
from ullage.doors.exchange.splices import (
    NO_PLACES,
    MessageBytes,
    MessagePlaces,
)

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_COMMA = re.compile(rb"[ \t\r\n]*,")
_TO_VALUE = re.compile(
    rb'[ \t\r\n{,]*"[^"\\]*+(?:\\.[^"\\]*+)*+"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL
)
"""From the end of a member's value, or the beginning of the body, to the next member's value."""
_OBJECT = ord("{"), ord("}")
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)

_SPAN_BYTES = 32 << 10
"""A span has so many bytes or more: the digests of many short ones would take longer."""
_LOOSE = 4
"""So many of the newest messages are in no span: these change, and all of a span is read again."""


class MessageSpan(Struct, frozen=True, gc=False):
    """Messages of a body that follow each other.

    Attributes:
        count: how many they are.
        size_bytes: of them, and of what stands before and between them.
        digest: of those bytes.
    """

    count: int
    size_bytes: int
    digest: bytes


class ParsedBody(Struct, frozen=True, weakref=True):
    """A request body, parsed, with what it takes to know its bytes again.

    Attributes:
        key: the name of its list of messages, which is a member of the body itself.
        head_members: the members in the head, in order; the last one is the list, empty.
        head: its bytes up to the first message.
        spans: of its messages, as far as they come to whole spans.
        pieces: the bytes of each message behind those, with what stands before it.
        messages: all of them, each an object. Nobody may write into them.
        places: where they stand in the body.
        tail: the bytes behind the last message.
        tail_members: the members in the tail, in order.
        beginning: how its history begins, once somebody has found out.
    """

    key: str
    head_members: dict[str, Any]
    head: bytes
    spans: Sequence[MessageSpan] = ()
    pieces: Sequence[bytes] = ()
    messages: Sequence[Any] = ()
    places: MessagePlaces = NO_PLACES
    tail: bytes = b""
    tail_members: dict[str, Any] = {}
    beginning: HistoryStart | None = None

    @property
    def value(self) -> dict[str, Any]:
        """The body as JSON values, equal to those of `ullage.doors.exchange.bodies.read`."""
        return {
            **self.head_members,
            self.key: [*self.messages],
            **self.tail_members,
        }

    def message_bytes(self, body: bytes) -> MessageBytes:
        """The bytes of its messages.

        Args:
            body: the bytes that it was parsed from.
        """
        return MessageBytes(body, len(self.head), self.places)

    @property
    def stop(self) -> int:
        """Where the tail begins."""
        spanned = sum(span.size_bytes for span in self.spans)
        return len(self.head) + spanned + sum(map(len, self.pieces))

    @property
    def held_bytes(self) -> int:
        """How many bytes of the body are held."""
        return len(self.head) + sum(map(len, self.pieces)) + len(self.tail)


def read_anew(body: bytes, key: str) -> ParsedBody | None:
    """Parse a body whose messages stand under a key.

    Args:
        body: the bytes.
        key: the name of its list of messages.

    Returns:
        None if it is unusual and has to be read whole.
    """
    try:
        members = _members(body)
        start = _start_of(body, members, key)
        if start is None:
            return None
        listed = bytes(members[key])
        head = body[: start + 1]
        rest = body[start + 1 :]
        prefix = ParsedBody(key, decode(head + b"]}"), head)
        tail = rest[len(listed) - 1 :]
        return _with(prefix, rest, 0, _items(listed), _members_behind(tail))
    except _UNREADABLE:
        return None


def _start_of(body: bytes, members: dict[str, Raw], key: str) -> int | None:
    """Where the value of a member begins; None: nowhere, or a name before it comes again.

    Members are walked in order, each over the length of its value, so the time is proportional to
    the body however often the name stands in it.
    """
    at = 0
    for name, raw in members.items():
        value = bytes(raw)
        match = _TO_VALUE.match(body, at)
        if match is None or not body.startswith(value, match.end()):
            return None
        if name == key:
            return match.end()
        at = match.end() + len(value)
    return None


def read_on(earlier: ParsedBody, body: bytes) -> ParsedBody | None:
    """Parse a body from where it differs from an earlier one.

    Args:
        earlier: the earlier body.
        body: the bytes of this one.

    Returns:
        None if they have too little in common, or the rest is unusual.
    """
    if not body.startswith(earlier.head):
        return None
    prefix, at = _alike(earlier, body)
    return _read_rest(body[at:], prefix)


def _alike(earlier: ParsedBody, body: bytes) -> tuple[ParsedBody, int]:
    """The earlier body, as far as this one has the same messages, and where those end."""
    at = len(earlier.head)
    spans = 0
    pieces = 0
    view = memoryview(body)
    for span in earlier.spans:
        stop = at + span.size_bytes
        if blake3(view[at:stop]).digest() != span.digest:
            break
        at = stop
        spans += 1
    for piece in earlier.pieces if spans == len(earlier.spans) else ():
        if not body.startswith(piece, at):
            break
        at += len(piece)
        pieces += 1
    alike = earlier.spans[:spans]
    same = sum(span.count for span in alike) + pieces
    start = (
        earlier.beginning
        if earlier.beginning and earlier.beginning.read <= same
        else None
    )
    prefix = replace(
        earlier,
        spans=alike,
        pieces=earlier.pieces[:pieces],
        messages=earlier.messages[:same],
        places=earlier.places.up_to(same),
        beginning=start,
    )
    return prefix, at


def _read_rest(rest: bytes, prefix: ParsedBody) -> ParsedBody | None:
    """A parsed beginning with the messages and the tail that follow it in a body."""
    comma = _COMMA.match(rest) if prefix.messages else None
    start = comma.end() if comma else 0
    tail = prefix.tail
    tail_members = prefix.tail_members
    try:
        if tail and rest.endswith(tail):
            items = _items(b"[%b]" % rest[start : len(rest) - len(tail)])
        else:
            opened = b'{"":[' + rest[start:]
            listed = bytes(_members(opened)[""])
            if not opened.startswith(listed, 4):  # that name comes again
                return None
            items = _items(listed)
            tail_members = _members_behind(opened[4 + len(listed) :])
        if prefix.messages and bool(comma) != bool(items):
            return None
        return _with(prefix, rest, start, items, tail_members)
    except _UNREADABLE:
        return None


def _members_behind(rest: bytes) -> dict[str, Any]:
    """The members behind a list, in the object that it is a member of."""
    comma = _COMMA.match(rest)
    members: dict[str, Any] = decode(
        b"{" + rest[comma.end() if comma else 0 :]
    )
    return members


def _with(
    prefix: ParsedBody,
    rest: bytes,
    start: int,
    items: Sequence[Raw],
    tail_members: dict[str, Any],
) -> ParsedBody | None:
    """A parsed beginning with more messages, which stand in ``rest`` from ``start`` on."""
    if prefix.key in tail_members:
        return None
    pieces = [*prefix.pieces]
    stop = 0
    offset = prefix.stop
    values = [*map(decode, items)]
    ends = array("Q")
    compact = bytearray()
    for raw, value in zip(items, values, strict=True):
        item = memoryview(raw)
        if (item[0], item[-1]) != _OBJECT:
            return None
        end = rest.index(b"{", start) + len(item)
        piece = rest[stop:end]
        separator = b"," if prefix.messages or ends else b""
        compact.append(piece == separator + write(value))
        ends.append(offset + end)
        pieces.append(piece)
        start = stop = end
    spans, pieces = _spanned(pieces)
    places = MessagePlaces(
        prefix.places.ends + ends, prefix.places.compact + bytes(compact)
    )
    return replace(
        prefix,
        spans=(*prefix.spans, *spans),
        pieces=pieces,
        messages=(*prefix.messages, *values),
        places=places,
        tail=rest[stop:],
        tail_members=tail_members,
    )


def _spanned(pieces: Sequence[bytes]) -> tuple[list[MessageSpan], list[bytes]]:
    """Pieces as spans, and the newest ones that are left."""
    spans = list[MessageSpan]()
    start = 0
    size_bytes = 0
    for stop, piece in enumerate(pieces[:-_LOOSE], 1):
        size_bytes += len(piece)
        if size_bytes >= _SPAN_BYTES:
            digest = blake3(b"".join(pieces[start:stop])).digest()
            spans.append(MessageSpan(stop - start, size_bytes, digest))
            start = stop
            size_bytes = 0
    return spans, [*pieces[start:]]
