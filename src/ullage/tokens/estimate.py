"""Claude's and Gemini's tokens, estimated from o200k's and from what the bytes are.

No vendor tokeniser for these models works offline. Measured against reconstructions of them,
the exact o200k count is off by a factor that depends on the kind of text (Claude from 1.0 for
digits to 2.3 for identifiers in capitals), and the kind shows in how many bytes are letters,
digits, blanks, marks, and how often one follows another. So

    tokens = w0 · o200k + Σ wi · ni,   kept within [low, high] · o200k and under the bytes

with ``ni`` the numbers of bytes of fourteen classes and of four pairs of neighbours. The
weights are fitted by ``bench/fit_families.py``; ``docs/tokens.md`` has the errors. What is
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
    bytes(range(0xC2, 0xD0)),  # leads of Latin letters with accents, Greek
    bytes(range(0xD0, 0xE0)),  # leads of Cyrillic, Hebrew, Arabic
    bytes(range(0xE0, 0xE3)),  # leads of Indic and South-East Asian scripts, typographic marks
    bytes(range(0xE3, 0xF0)),  # leads of Chinese, Japanese, Korean
    bytes(range(0xF0, 0xF5)),  # leads of emoji and rarer scripts
)
_LOWER, _UPPER, _MARK, _JOINT = b"\1", b"\2", b"\7", b"\10"
_PAIRS = (_LOWER + _MARK, _JOINT + _LOWER, _UPPER + _UPPER, _UPPER + _JOINT)


def _table() -> bytes:
    """The class of each byte: 1 to 14; 0 for control characters and continuation bytes."""
    table = bytearray(256)
    for number, members in enumerate(_CLASSES, 1):
        for byte in members:
            table[byte] = number
    return bytes(table)


_TABLE = _table()
_NEEDLES = (
    *(bytes([number]) for number in range(1, 10)),
    *_PAIRS,
    *(bytes([number]) for number in range(10, 15)),
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
    name="o200k_base fitted to Claude 3–4.6", low=1.0, high=2.3, weights=(
        1.0858, -0.047, 0.6935, -0.0366, 0.0347, 0.3422, 0.0553, -0.1543, -0.0225, 0.0703,
        0.8281, 0.5895, -1.3554, 1.3573, 0.2869, 0.1303, -0.3916, 0.4142, -0.2049,
    ),
)
CLAUDE_4_8 = Estimate(
    name="o200k_base fitted to Claude 4.7 and later", low=1.0, high=2.3, weights=(
        1.0088, 0.0712, 0.8635, 0.0017, 0.0243, 0.8359, -0.1655, 0.0501, 0.1666, 0.0772,
        0.5294, 0.662, -0.689, 0.9558, 0.3783, 0.1438, -0.2613, 0.4489, -4.8111,
    ),
)
GEMINI = Estimate(
    name="o200k_base fitted to Gemma 3 (Gemini)", low=0.8, high=2.0, weights=(
        0.762, 0.0191, 0.1912, 0.6768, 0.0296, 0.8822, 0.204, -0.017, 0.0224, 0.1964,
        0.8244, 0.6747, -0.2855, 1.1661, 0.0771, 0.0665, -0.064, 0.0952, -1.0759,
    ),
)
# fmt: on
