"""Tokens estimated from the bytes of a text alone, where there is no tokeniser offline.

    tokens = Σ w[byte] + Σ v[class of byte, class of next byte]

with weights fitted by ``lab/bench/fit_families.py`` to each vocabulary; ``docs/tokens.md`` has
the errors. What a byte-pair vocabulary makes of a text shows in which letters stand beside which
(words against random letters), in how digits, blanks and marks follow one another, and in the
first byte of characters beyond ASCII, which shows the script. What is left of the error the
reported usage corrects (``calibrate``).

Everything runs in C over the whole text, some 200 MB/s: ``translate`` gives each byte its class
(16 of them, four bits); the text as one large number, shifted by four bits and laid over itself,
then holds a pair of classes in each byte; ``translate`` again gives each byte or pair its weight;
and the low half of Adler-32 is the sum of the bytes (RFC 1950), modulo 65,521, which 256 bytes
do not reach.
"""

from __future__ import annotations

import base64
import string
from functools import lru_cache
from zlib import adler32

from msgspec import Struct

from ullage.core.tokens.weights import WEIGHTS

STEPS = 160
"""A weight is a whole number of so many parts of a token."""

_CLASSES = (
    b"",  # 0: control characters, and every mark not below
    b"aeiouy",
    b"tnsrlhdc",
    b"mpgbfwvkjxqz",
    string.ascii_uppercase.encode(),
    string.digits.encode(),
    b" ",
    b"\n\r",
    b"\t",
    b"_-",
    b".,;:",
    b"'\"()",
    b"[]{}<>=/\\",
    bytes(range(0x80, 0xC0)),  # bytes that go on with a character
    bytes(range(0xC0, 0xE0)),  # that begin one of two bytes
    bytes(range(0xE0, 0x100)),  # of three or four
)
_CLASS_OF = bytes(
    next(
        (number for number, members in enumerate(_CLASSES) if byte in members),
        0,
    )
    for byte in range(256)
)
_BLOCK = (
    1 << 16
)  # bytes looked at together: bounds the memory, costs one pair each


class Counter(Struct, frozen=True, kw_only=True):
    """Counts the tokens of a text, cold: without what usage reports teach.

    Attributes:
        name: what counts, in words fit for an event or a table.
        exact: whether ``count`` equals the provider's own tokeniser.
    """

    name: str
    exact: bool = False

    def count(self, text: str) -> int:
        """Tokens of ``text`` on its own, without any message around it."""
        raise NotImplementedError

    def bound(self, text: str) -> int:
        """The bytes of ``text`` in UTF-8, which ``count`` never exceeds."""
        return byte_length(text)


class Estimate(Counter, frozen=True, kw_only=True):
    """Counts by the weights of a vocabulary.

    Attributes:
        of_bytes: the weight of each byte, in parts of a token.
        of_pairs: that of each pair of classes.
    """

    of_bytes: bytes
    of_pairs: bytes

    def count(self, text: str) -> int:
        """Tokens of ``text``, estimated: a pure function of it."""
        raw = (
            text.encode()
            if text.isascii()
            else text.encode("utf-8", "surrogatepass")
        )
        if len(raw) <= _BLOCK:
            parts = self._parts(raw)
        else:
            blocks = (
                raw[start : start + _BLOCK]
                for start in range(0, len(raw), _BLOCK)
            )
            parts = sum(map(self._parts, blocks))
        return min(-(-parts // STEPS), len(raw))

    def _parts(self, raw: bytes) -> int:
        by_byte = raw.translate(self.of_bytes)
        by_pair = pairs(raw).translate(self.of_pairs)
        return _sum(by_byte) + _sum(by_pair)


@lru_cache
def estimate(vocabulary: str, name: str) -> Estimate:
    """The estimate of the counts of a vocabulary of `WEIGHTS`; ``name`` is said to count."""
    weights = base64.b85decode(WEIGHTS[vocabulary])
    return Estimate(name=name, of_bytes=weights[:256], of_pairs=weights[256:])


def byte_length(text: str) -> int:
    """Bytes of ``text`` in UTF-8, a lone surrogate as the three bytes of its replacement."""
    return (
        len(text)
        if text.isascii()
        else len(text.encode("utf-8", "surrogatepass"))
    )


def pairs(raw: bytes) -> bytes:
    """For each byte its class and, in the upper four bits, that of the next one."""
    classes = int.from_bytes(raw.translate(_CLASS_OF), "little")
    return (classes | classes >> 4).to_bytes(len(raw), "little")


def _sum(parts: bytes) -> int:
    """The sum of some bytes."""
    if len(parts) <= 256:
        return (adler32(parts) & 0xFFFF) - 1
    sums = []
    for start in range(0, len(parts), 256):
        block = parts[start : start + 256]
        sums.append(adler32(block) & 0xFFFF)
    return sum(sums) - len(sums)
