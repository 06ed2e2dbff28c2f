"""Index: on which spans of some texts a term stands.

A search by words asks every index of a conversation. Each is of a block of its texts and is made
once, for it is kept by what is in the block: a longer history has the same blocks and a few more,
and so have its forks, its next turn and another session of the same tenant.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from sys import intern
from typing import Literal, TypeAlias

from ullage.core.history.remembered import Remembered
from ullage.session.recall.spans import texts_of
from ullage.session.recall.terms import Splitter

BLOCK_CHARS = 1 << 18
"""A block of texts is closed once it has so many characters."""
_INDEX_BYTES = 96 << 20
"""All indexes of this process have about so many bytes."""
_BYTES_PER_TERM = 160
_PLACE: Literal["I"] = "I"
_PLACE_BYTES = array(_PLACE).itemsize
Block: TypeAlias = tuple[int, int]
"""Texts that are indexed together: the number of the first one, and one past that of the last."""
_INDEXES = Remembered(_INDEX_BYTES)
_ESCAPED = "\\n"
"""A line end within JSON: without it ``\\nimport`` would be another word than ``import``."""


class Index:
    """The spans of a block of texts, by term.

    Args:
        texts: the texts.

    Attributes:
        starts: the number of the first span of each text, and of what would come next.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        splitter = Splitter()
        places: dict[str, list[int]] = {}
        counts = list[int]()
        chars = list[int]()
        number = 0
        for text in texts:
            spans = texts_of(text)
            counts.append(len(spans))
            chars += map(len, spans)
            if _ESCAPED in text:
                spans = [span.replace(_ESCAPED, " ") for span in spans]
            for span in spans:
                terms = {*splitter.terms(span)}
                for term in terms:
                    if term in places:
                        places[term].append(number)
                    else:
                        places[term] = [number]
                number += 1
        self.starts = [0, *accumulate(counts)]
        # a span has at most 200 characters, so that its length is a byte
        self._chars = bytes(chars)
        self._places = {
            intern(term): array(_PLACE, numbers).tobytes()
            for term, numbers in places.items()
        }

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes."""
        terms = _BYTES_PER_TERM * len(self._places)
        places = sum(map(len, self._places.values()))
        return terms + places + len(self._chars)

    def count(self, term: str) -> int:
        """On how many spans a term stands."""
        places = self._places.get(term, b"")
        return len(places) // _PLACE_BYTES

    def places(self, term: str) -> Sequence[int]:
        """The numbers of the spans on which a term stands, in order."""
        places = self._places.get(term, b"")
        return memoryview(places).cast(_PLACE)

    def chars(self, span: int) -> int:
        """The length of a span."""
        return self._chars[span]

    def texts_at(self, spans: Sequence[int]) -> Iterator[int]:
        """The numbers of the texts that these spans are of, each once; the spans are in order."""
        index = 0
        while index < len(spans):
            text = bisect_right(self.starts, spans[index]) - 1
            yield text
            next_start = self.starts[text + 1]
            index = bisect_left(spans, next_start, index)

    def text_of(self, span: int) -> tuple[int, int]:
        """The number of the text that a span is of, and the number of the span in it."""
        text = bisect_right(self.starts, span) - 1
        return text, span - self.starts[text]


def blocks_of(texts: Sequence[str]) -> Iterator[Block]:
    """The blocks of texts, the oldest first.

    Where one ends is told by what comes before, so more texts at the end change none but the last.
    """
    start = chars = 0
    for number, text in enumerate(texts, 1):
        chars += len(text)
        if chars >= BLOCK_CHARS:
            yield start, number
            start = number
            chars = 0
    if start < len(texts):
        yield start, len(texts)


def index_of(texts: Sequence[str], root: bytes) -> Index:
    """The index of a block: the one that is remembered, or a new one.

    Args:
        texts: those of the block.
        root: of the chain of their history; without one it is not remembered.
    """
    if not root:
        return Index(texts)
    contents = tuple((len(text), hash(text)) for text in texts)
    key = root, "index", contents
    index: Index | None = _INDEXES.get(key)
    if index is None:
        index = Index(texts)
        _INDEXES.put(key, index, index.size_bytes)
    return index
