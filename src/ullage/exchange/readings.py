"""The newest bodies of all conversations, so that the next ones are read on from there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from weakref import WeakValueDictionary

from ullage.exchange.reading import Reading, read_anew, read_on
from ullage.locks import Lock

_LEAST_BYTES, _SAMPLE_BYTES = 256, 48


class Readings:
    """The newest reading of each conversation, as far as there is room for them.

    Which one a body goes on is found by samples of its bytes at a few places; that decides about
    speed alone.

    Args:
        most_bytes: of the bodies that are kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self._held: OrderedDict[str, Reading] = OrderedDict()
        self._sampled: WeakValueDictionary[tuple[str, bytes], Reading] = WeakValueDictionary()
        self._most_bytes, self._bytes = most_bytes, 0
        self._lock = Lock()

    def read(self, body: bytes, key: str, owner: str) -> Reading | None:
        """A body, read; None if it has to be read whole.

        Args:
            body: the bytes.
            key: the name of its list of messages.
            owner: whose content it is, and on which wire: what one sent is nothing to another.
        """
        if len(body) < _LEAST_BYTES:
            return None
        with self._lock:
            found = (self._sampled.get((owner, sample)) for sample in _samples(body, len(body)))
            known = next((each for each in found if each is not None), None)
        return (known and read_on(known, body)) or read_anew(body, key)

    def keep(self, conversation: str, owner: str, body: bytes, reading: Reading) -> None:
        """Keep a reading as the newest of its conversation.

        Args:
            conversation: which.
            owner: as it was read for.
            body: what was read.
            reading: what it came to, perhaps with equal messages in the place of its own.
        """
        size = reading.size
        with self._lock:
            before = self._held.pop(conversation, None)
            self._bytes += size - (before.size if before else 0)
            self._held[conversation] = reading
            for sample in _samples(body, size - len(reading.tail)):
                self._sampled[owner, sample] = reading
            while self._held and self._bytes > self._most_bytes:
                _, oldest = self._held.popitem(last=False)
                self._bytes -= oldest.size
            self._bytes *= bool(self._held)  # an interrupt may have left a sum too large


def _samples(body: bytes, stop: int) -> Iterator[bytes]:
    """Bytes of a body at places that are powers of four, the furthest before ``stop`` first."""
    place = 1 << (max(stop, 1).bit_length() - 1 & ~1)
    while place >= _LEAST_BYTES:
        yield b"%d " % place + body[place - _SAMPLE_BYTES : place]
        place >>= 2
