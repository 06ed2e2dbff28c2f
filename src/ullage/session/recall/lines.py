"""Lines: a page of the lines that answer a search best, of many texts at once.

    ref=0123456789abcdef offset=5210 of read_file {"path":"src/tide.py"}
    118: def high_water(gauge: str) -> float:
    119:     return self.levels[gauge].max()

A search has words, a pattern, or both: then the lines that match, in the order of the words. Lines
of one text stand together, in their order, under the ref that opens it and the place where the
first of them begins. Lines that are in view are left out, and of equal ones all but the first.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

from ullage.core.values.effects import Steps
from ullage.session.recall.corpus import MOST_CHARS, Corpus, bare
from ullage.session.recall.grep import matches
from ullage.session.recall.index import Block, blocks_of, index_of
from ullage.session.recall.ranking import ranked
from ullage.session.recall.spans import Span, spans_of, texts_of

MOST_LINES = 1_000
"""A search ranks no more lines: whoever has read so many asks otherwise."""
_BEST_LINES = 10
"""Beside so many of the best lines their neighbours are shown too."""
_BESIDE = (-1, 1)
_OTHER_ENDS = re.compile(r"[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_LAST_CHARS = 200
"""Of a page, for its last line."""


class SearchQuery(Struct, frozen=True, kw_only=True):
    """What a search looks for; false, if for nothing.

    Attributes:
        words: of the lines, in any order; the rarer ones count more.
        pattern: that a line has to match (RE2 syntax); ``""``: any.
        ignore_case: whether the pattern takes letters of either case for the same.
        skipped: how many of the best lines are passed over: earlier pages showed them.
        page: which page of the rest is wanted, from 1.
    """

    words: str = ""
    pattern: str = ""
    ignore_case: bool = False
    skipped: int = 0
    page: int = 1

    def __bool__(self) -> bool:
        return bool(self.words or self.pattern)


class LineHit(NamedTuple):
    """A line that answers a search, or the part of a long one that does.

    Attributes:
        text: the number of its text in the corpus.
        span: its number among the spans of the text.
        line: its characters.
    """

    text: int
    span: int
    line: str


def search_lines(
    corpus: Corpus, query: SearchQuery, page_chars: int
) -> Steps[str]:
    """A page of the lines of a corpus that answer a search; its last line says what there is more.

    Args:
        corpus: the texts.
        query: what is looked for.
        page_chars: the most characters of the page.

    Raises:
        PatternError: see `ullage.session.recall.grep.search`.
    """
    blocks = _newest(corpus)
    if not query.pattern:
        best = _by_words(corpus, query.words, blocks)
    else:
        best = iter((yield from _by_pattern(corpus, query, blocks)))
    skipped, page = query.skipped, _Page(corpus, page_chars - _LAST_CHARS)
    number, is_more = 1, False
    for place in islice(_distinct(corpus, best), query.skipped, MOST_LINES):
        if page.add(place):
            continue
        is_more = number == query.page
        if is_more:
            break
        skipped, number = skipped + page.count, number + 1
        page = _Page(corpus, page_chars - _LAST_CHARS)
        page.add(place)
    if number < query.page:
        skipped, page = skipped + page.count, _Page(corpus, 0)
    return f"{page}{_footer(skipped, page.count, _scope_text(corpus, blocks), is_more=is_more)}"


def _newest(corpus: Corpus) -> list[Block]:
    """The blocks that are looked through: the newest, as many as have room.

    A block is left out whole, so that the others are the same however long the history is.
    """
    blocks, chars = list[Block](), 0
    for start, stop in reversed(list(blocks_of(corpus.texts))):
        chars += sum(map(len, corpus.texts[start:stop]))
        if blocks and chars > MOST_CHARS:
            break
        blocks.append((start, stop))
    return blocks[::-1]


def _by_words(
    corpus: Corpus, words: str, blocks: Sequence[Block]
) -> Iterator[LineHit]:
    """The lines that answer words, best first; behind the best ones those beside them.

    What somebody looks for often stands next to the line that has its words.
    """
    texts, spans = corpus.texts, dict[int, list[str]]()
    indexes = [
        index_of(texts[start:stop], corpus.root) for start, stop in blocks
    ]
    given, rank = set[tuple[int, int]](), 0
    for hit in ranked(indexes, words):
        number = blocks[0][0] + hit.text
        if not corpus.is_left(number):
            continue
        if number not in spans:
            spans[number] = texts_of(texts[number])
        lines, rank = spans[number], rank + 1
        beside = _BESIDE if rank <= _BEST_LINES else ()
        for at in (hit.span, *(hit.span + step for step in beside)):
            if 0 <= at < len(lines) and (number, at) not in given:
                given.add((number, at))
                yield LineHit(number, at, lines[at])


def _by_pattern(
    corpus: Corpus, query: SearchQuery, blocks: Sequence[Block]
) -> Steps[Sequence[LineHit]]:
    """The lines that match a pattern, the newest text first, or in the order of the words."""
    oldest = blocks[0][0] if blocks else 0
    numbers = filter(
        corpus.is_left, range(len(corpus.texts) - 1, oldest - 1, -1)
    )
    texts = ((number, corpus.texts[number]) for number in numbers)
    hits = yield from matches(texts, query.pattern, query.ignore_case)
    matching, number, spans = list[LineHit](), -1, list[Span]()
    for hit in hits:
        if hit.text != number:
            number, spans = hit.text, list(spans_of(corpus.texts[hit.text]))
        at = bisect_right(spans, hit.place, key=attrgetter("start")) - 1
        matching.append(LineHit(number, at, spans[at].text))
    if not query.words:
        return matching
    matching_lines = set(matching)
    best = [
        line
        for line in _by_words(corpus, query.words, blocks)
        if line in matching_lines
    ]
    return list(dict.fromkeys([*best, *matching]))


def _distinct(corpus: Corpus, places: Iterator[LineHit]) -> Iterator[LineHit]:
    """The lines that say something, are not in view, and are none of those before them."""
    seen = {*corpus.visible_lines}
    for place in places:
        line = bare(place.line)
        if line not in seen and any(map(str.isalnum, line)):
            seen.add(line)
            yield place


class _Page:
    """A page as it fills: the lines of each text, under a head.

    Args:
        corpus: the texts.
        room_chars: the most characters.

    Attributes:
        count: how many lines are on it.
    """

    def __init__(self, corpus: Corpus, room_chars: int) -> None:
        self.count = 0
        self._corpus = corpus
        self._room_chars = room_chars
        self._spans: dict[int, list[Span]] = {}
        self._rows: dict[int, list[Span]] = {}

    def add(self, place: LineHit) -> bool:
        """Put a line on the page; False if there is no room for it, but for the first one."""
        number = place.text
        if number not in self._spans:
            self._spans[number] = list(spans_of(self._corpus.texts[number]))
        span = self._spans[number][place.span]
        self._room_chars -= len(_line(span)) + 1
        if number not in self._rows:
            self._room_chars -= len(self._head(number, span)) + 1
        if self._room_chars < 0 and self.count:
            return False
        self._rows.setdefault(number, []).append(span)
        self.count += 1
        return True

    def _head(self, number: int, span: Span) -> str:
        about = self._corpus.about(number)
        return f"ref={self._corpus.ref(number)} offset={span.start}{about and f' of {about}'}"

    def __str__(self) -> str:
        lines = list[str]()
        for number, spans in self._rows.items():
            spans.sort()
            lines += [self._head(number, spans[0]), *map(_line, spans)]
        return "".join(f"{line}\n" for line in lines)


def _line(span: Span) -> str:
    """A line as a page shows it: on one line, so that no text looks like a head or a notice."""
    return f"{span.line}: {_OTHER_ENDS.sub(' ', span.text)}"


def _scope_text(corpus: Corpus, blocks: Sequence[Block]) -> str:
    """How many characters were searched, in words."""
    searched = corpus.texts[blocks[0][0] :] if blocks else []
    chars = sum(map(len, searched))
    if chars < corpus.chars:
        return f"the newest {chars:,} of {corpus.chars:,} characters searched"
    return f"{chars:,} characters searched"


def _footer(skipped: int, count: int, searched: str, *, is_more: bool) -> str:
    """The last line of a page: which lines it has, and how to read on."""
    if not count:
        return f"[{'no more lines' if skipped else 'no line'}; {searched}]"
    stop = skipped + count
    more = f" More lines: the same call with offset={stop}." if is_more else ""
    return (
        f"[lines {skipped + 1:,} to {stop:,}, best first; {searched}. "
        f"Read on at one: with its ref and offset alone.{more}]"
    )
