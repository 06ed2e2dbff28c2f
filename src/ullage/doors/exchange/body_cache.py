"""The newest body of each conversation, so that the next one is parsed from there on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from msgspec.structs import replace

from ullage.core.locks import Lock
from ullage.doors.exchange.parsed_body import ParsedBody, read_anew, read_on

_LEAST_BYTES = 256
_SAMPLE_BYTES = 48


class ParsedBodyCache:
    """The newest parsed body of each conversation, as long as its session is held.

    Which one a body goes on is found by samples of its bytes at a few places; that decides about
    speed alone.
    """

    def __init__(self) -> None:
        self._newest: WeakKeyDictionary[Any, ParsedBody] = WeakKeyDictionary()
        self._sampled: WeakValueDictionary[tuple[str, bytes], ParsedBody] = (
            WeakValueDictionary()
        )
        self._newest_of_owner: WeakValueDictionary[str, ParsedBody] = (
            WeakValueDictionary()
        )
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._newest)

    def read(self, body: bytes, key: str, owner: str) -> ParsedBody | None:
        """Parse a body; None if it is unusual and has to be read whole.

        Args:
            body: the bytes.
            key: the name of its list of messages.
            owner: whose content it is, and on which wire: what one sent is nothing to another.
        """
        if len(body) < _LEAST_BYTES:
            return None
        with self._lock:
            candidates = (
                self._sampled.get((owner, sample))
                for sample in _samples(body, len(body))
            )
            earlier = next(
                (entry for entry in candidates if entry is not None), None
            )
        parsed = read_on(earlier, body) if earlier is not None else None
        return parsed or read_anew(body, key)

    def keep(
        self, session: Any, owner: str, body: bytes, parsed: ParsedBody
    ) -> None:
        """Keep a parsed body as the newest of its conversation.

        Args:
            session: serves it. What is kept is dropped with it, and counted with it.
            owner: as of `read`.
            body: the bytes.
            parsed: the same, parsed, perhaps with equal messages in the place of its own.
        """
        with self._lock:
            newest = self._newest_of_owner.get(owner)
            if newest is not None:
                parsed = _sharing(parsed, newest)
            self._newest_of_owner[owner] = parsed
            self._newest[session] = parsed
            session.bytes_beside = parsed.held_bytes
            for sample in _samples(body, parsed.stop):
                self._sampled[owner, sample] = parsed


def _sharing(parsed: ParsedBody, earlier: ParsedBody) -> ParsedBody:
    """A parsed body that shares head and tail with an earlier one, where they are equal.

    Conversations of one owner mostly have the same tools, and more bytes of them than of messages.
    """
    if parsed.head is not earlier.head and parsed.head == earlier.head:
        parsed = replace(
            parsed, head=earlier.head, head_members=earlier.head_members
        )
    if parsed.tail is not earlier.tail and parsed.tail == earlier.tail:
        parsed = replace(
            parsed, tail=earlier.tail, tail_members=earlier.tail_members
        )
    return parsed


def _samples(body: bytes, stop: int) -> Iterator[bytes]:
    """Bytes of a body at places that are powers of four, the furthest before ``stop`` first."""
    place = 1 << (max(stop, 1).bit_length() - 1 & ~1)
    while place >= _LEAST_BYTES:
        yield b"%d " % place + body[place - _SAMPLE_BYTES : place]
        place >>= 2
