"""Claude's and Gemini's tokens, estimated from o200k's and from what the bytes are.

No vendor tokeniser for these models works offline. Measured against reconstructions of them,
the exact o200k count is off by a factor that depends on the kind of text (Claude from 1.0 for
digits to 4 for identifiers in capitals), and the kind shows in how many bytes are letters,
digits, blanks, marks, and how often one follows another. So

    tokens = w0 · o200k + Σ wi · ni,   kept within [low, high] · o200k and under the bytes

with ``ni`` the numbers of bytes of nine classes (twelve more beyond ASCII, by script) and of
four pairs of neighbours. The
weights are fitted by ``lab/bench/fit_families.py``; ``docs/tokens.md`` has the errors. What is
left of the error the reported usage corrects (``calibrate``).

The classes are counted by one ``bytes.translate`` and one ``bytes.count`` each, all of them
loops in C: some 60 MB/s in all, faster for ASCII, which skips the classes it cannot have.
"""

from __future__ import annotations

import string
from operator import mul

from msgspec import Struct

from ullage.tokens.exact import LOADED, byte_length, count_copy, load

__all__ = ["CLAUDE_3", "CLAUDE_4_8", "GEMINI", "Estimate", "features"]

_CLASSES = (
    string.ascii_lowercase.encode(),
    string.ascii_uppercase.encode(),
    string.digits.encode(),
    b" ",
    b"\n\r",
    b"\t",
    b".,;:'\"()",
    b"[]{}<>=/_-",
    b"!#$%&*+?@\\^`|~",
    # from here on the first bytes of characters beyond ASCII, by script
    bytes(range(0xC2, 0xC3)),  # marks of Latin 1
    bytes(range(0xC3, 0xCE)),  # Latin letters with accents, phonetic letters, combining marks
    bytes(range(0xCE, 0xD0)),  # Greek
    bytes(range(0xD0, 0xD5)),  # Cyrillic
    bytes(range(0xD5, 0xE0)),  # Armenian, Hebrew, Arabic
    bytes(range(0xE0, 0xE2)),  # Indic and South-East Asian scripts
    b"\xe2",  # typographic marks, arrows, boxes, symbols
    b"\xe3",  # kana, and the rarer ideographs
    bytes(range(0xE4, 0xEA)),  # ideographs
    bytes(range(0xEA, 0xEE)),  # Hangul
    bytes(range(0xEE, 0xF0)),  # private use, wide and compatibility forms
    bytes(range(0xF0, 0xF5)),  # emoji and rarer scripts
)
_LOWER, _UPPER, _MARK, _JOINT = b"\1", b"\2", b"\7", b"\10"
_PAIRS = (_LOWER + _MARK, _JOINT + _LOWER, _UPPER + _UPPER, _UPPER + _JOINT)


def _table() -> bytes:
    """The class of each byte; 0 for control characters and continuation bytes."""
    table = bytearray(256)
    for number, members in enumerate(_CLASSES, 1):
        for byte in members:
            table[byte] = number
    return bytes(table)


_TABLE = _table()
_NEEDLES = (
    *(bytes([number]) for number in range(1, 10)),
    *_PAIRS,
    *(bytes([number]) for number in range(10, len(_CLASSES) + 1)),
)
_ASCII_NEEDLES = _NEEDLES[: 9 + len(_PAIRS)]


def features(text: str) -> list[int]:
    """Bytes of each class and pair in the order of the weights.

    An ASCII text has only the first thirteen.
    """
    return _counts(text.encode("utf-8", "surrogatepass"), text.isascii())


class Estimate(Struct, frozen=True):
    """Counts o200k tokens and corrects them for another family.

    Attributes:
        name: what counts.
        low: the fewest tokens one of o200k's stands for.
        high: the most.
        weights: of the o200k count, then of ``features``.
        exact: never.
        encoding: the vocabulary underneath.
    """

    name: str
    low: float
    high: float
    weights: tuple[float, ...]
    exact: bool = False
    encoding: str = "o200k_base"

    def count(self, text: str) -> int:
        """Tokens of ``text``, estimated: a pure function of it."""
        tokens = LOADED.get(self.encoding) or load(self.encoding)
        raw = text.encode("utf-8", "surrogatepass")
        ascii_only = text.isascii()
        base = tokens(text) if ascii_only else count_copy(tokens, text)
        guess = self.weights[0] * base + sum(map(mul, self.weights[1:], _counts(raw, ascii_only)))
        return min(int(max(self.low * base, min(guess, self.high * base)) + 0.5), len(raw))

    def bound(self, text: str) -> int:
        """The bytes of ``text`` in UTF-8, which ``count`` does not exceed."""
        return byte_length(text)


def _counts(raw: bytes, ascii_only: bool) -> list[int]:
    """How often each needle occurs among the classes of ``raw``."""
    return list(map(raw.translate(_TABLE).count, _ASCII_NEEDLES if ascii_only else _NEEDLES))


# fmt: off
CLAUDE_3 = Estimate(
    name="o200k_base fitted to Claude 3–4.6", low=1.0, high=2.6, weights=(
        1.0729, -0.038, 0.6923, -0.0258, 0.0329, 0.2888, 0.1538, -0.1544, -0.0245, 0.0501,
        0.8588, 0.5597, -1.2987, -0.0743, 0.7372, 0.0956, 0.3199, 0.1258, 0.3658, 0.3784,
        -0.0348, -0.0174, 0.394, 0.5281, 1.8355, 4.4246,
    ),
)
CLAUDE_4_8 = Estimate(
    name="o200k_base fitted to Claude 4.7 and later", low=1.0, high=4.5, weights=(
        0.9452, 0.0923, 0.9615, 0.0625, 0.0259, 0.773, 0.0412, 0.0371, 0.1942, 0.1466,
        0.5676, 0.6576, -0.8037, -0.0907, 0.8867, 0.4217, 0.3834, 0.1584, 0.4127, 0.4301,
        0.0378, 0.0667, 0.4636, 0.5869, 1.7867, 6.0224,
    ),
)
GEMINI = Estimate(
    name="o200k_base fitted to Gemma 3 (Gemini)", low=0.6, high=2.1, weights=(
        0.7672, 0.0223, 0.1456, 0.6759, 0.0325, 0.7078, 0.3076, 0.0427, 0.0273, 0.154,
        0.785, 0.6239, -0.1712, 0.2984, 1.0096, 0.1864, 0.0735, 0.0636, 0.0908, 0.0169,
        -0.2057, -0.1513, 0.1107, 0.076, -0.019, -0.8729,
    ),
)
# fmt: on
