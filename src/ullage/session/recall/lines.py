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
from ullage.session.recall.terms import count_words

MOST_LINES = 1_000
"""A search ranks no more lines: whoever has read so many asks otherwise."""
_BEST_LINES = 10
"""Beside so many of the best lines their neighbours are shown too."""
_BESIDE = (-1, 1)
_OTHER_ENDS = re.compile(r"[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_FEW_WORDS = 4
"""Who asks with so few words asks for what has all of them: a name, an error. Of a longer query the
rarest word would decide too much (docs/design/policy.md, default-10)."""
_WEAK_PART = 8
"""A line is weak if its terms have less than one part in so many of the weight of those on the line
with the most: where a name stands once, the lines with a common word of it would fill a page."""
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
        is_weak: it answers far worse than the best line; see ``_WEAK_PART``.
    """

    text: int
    span: int
    line: str
    is_weak: bool = False


def search_lines(
    corpus: Corpus, query: SearchQuery, page_chars: int
) -> Steps[str]:
    """A page of the lines of a corpus that answer a search; its last line says what there is more.

    Weak lines begin a page of their own.

    Args:
        corpus: the texts.
        query: what is looked for.
        page_chars: the most characters of the page.

    Raises:
        PatternError: see `ullage.session.recall.grep.search`.
    """
    blocks = _newest(corpus)
    if query.pattern:
        best = iter((yield from _by_pattern(corpus, query, blocks)))
    else:
        best = _by_words(corpus, query.words, blocks)
    room_chars = page_chars - _LAST_CHARS
    page = _Page(corpus, room_chars)
    number = 1
    skipped = query.skipped
    is_more = False
    # the pages before the one that is wanted are filled too: they tell where it begins
    new = _NewLines(corpus, best)
    for hit in islice(new, query.skipped, MOST_LINES):
        if page.takes(hit) and page.add(hit):
            continue
        is_more = number == query.page
        if is_more:
            break
        skipped += page.count
        number += 1
        page = _Page(corpus, room_chars)
        page.add(hit)
    if number < query.page:
        skipped += page.count
        page = _Page(corpus, 0)
    searched = _scope_text(corpus, blocks)
    if not page.count:
        return _nothing_text(skipped, new.in_view, searched)
    footer = _footer(skipped, page.count, searched, is_more=is_more)
    return f"{page}{footer}"


def _newest(corpus: Corpus) -> list[Block]:
    """The blocks that are looked through: the newest, as many as have room.

    A block is left out whole, so that the others are the same however long the history is.
    """
    blocks = list[Block]()
    chars = 0
    for start, stop in reversed(list(blocks_of(corpus.texts))):
        texts = corpus.texts[start:stop]
        chars += sum(map(len, texts))
        if blocks and chars > MOST_CHARS:
            break
        blocks.append((start, stop))
    blocks.reverse()
    return blocks


def _by_words(
    corpus: Corpus, words: str, blocks: Sequence[Block]
) -> Iterator[LineHit]:
    """The lines that answer words, best first; behind the best ones those beside them.

    What somebody looks for often stands next to the line that has its words.
    """
    texts = corpus.texts
    indexes = [
        index_of(texts[start:stop], corpus.root) for start, stop in blocks
    ]
    text_lines = dict[int, list[str]]()
    yielded = set[tuple[int, int]]()
    rank = 0
    hits = ranked(indexes, words)
    most_weight = 0
    if count_words(words) <= _FEW_WORDS:
        most_weight = max((hit.own_weight for hit in hits), default=0)
    for hit in hits:
        number = blocks[0][0] + hit.text
        if not corpus.is_left(number):
            continue
        if number not in text_lines:
            text_lines[number] = texts_of(texts[number])
        lines = text_lines[number]
        rank += 1
        spans = [hit.span]
        if rank <= _BEST_LINES:
            spans += (hit.span + step for step in _BESIDE)
        for span in spans:
            is_new = (number, span) not in yielded
            if is_new and 0 <= span < len(lines):
                yielded.add((number, span))
                is_weak = hit.own_weight * _WEAK_PART < most_weight
                yield LineHit(number, span, lines[span], is_weak)


def _by_pattern(
    corpus: Corpus, query: SearchQuery, blocks: Sequence[Block]
) -> Steps[Sequence[LineHit]]:
    """The lines that match a pattern, the newest text first, or in the order of the words."""
    oldest = blocks[0][0] if blocks else 0
    newest_first = range(len(corpus.texts) - 1, oldest - 1, -1)
    texts = (
        (number, corpus.texts[number])
        for number in newest_first
        if corpus.is_left(number)
    )
    hits = yield from matches(texts, query.pattern, query.ignore_case)
    matching = list[LineHit]()
    number = -1
    spans = list[Span]()
    for hit in hits:
        if hit.text != number:
            number = hit.text
            spans = list(spans_of(corpus.texts[number]))
        index = bisect_right(spans, hit.place, key=attrgetter("start")) - 1
        matching.append(LineHit(number, index, spans[index].text))
    if not query.words:
        return matching
    matching_lines = set(matching)
    ordered = list[LineHit]()
    for best_hit in _by_words(corpus, query.words, blocks):
        # the pattern chose it, so it is not weak
        line = best_hit._replace(is_weak=False)
        if line in matching_lines:
            ordered.append(line)
    return list(dict.fromkeys([*ordered, *matching]))


class _NewLines:
    """The lines that say something, are not in view, and are none of those before them.

    Args:
        corpus: the texts.
        hits: the lines that answer a search, best first.

    Attributes:
        in_view: how many of those that were looked at are in view, and so left out.
    """

    def __init__(self, corpus: Corpus, hits: Iterator[LineHit]) -> None:
        self.in_view = 0
        self._visible = corpus.visible_lines
        self._hits = hits

    def __iter__(self) -> Iterator[LineHit]:
        given = set[str]()
        for hit in self._hits:
            line = bare(hit.line)
            if line in given or not any(map(str.isalnum, line)):
                continue
            given.add(line)
            if line in self._visible:
                self.in_view += 1
            else:
                yield hit


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
        self._has_weak = False
        self._corpus = corpus
        self._room_chars = room_chars
        self._spans: dict[int, list[Span]] = {}
        self._rows: dict[int, list[Span]] = {}

    def takes(self, hit: LineHit) -> bool:
        """Whether a line belongs on this page: weak lines stand on none with better ones."""
        return not self.count or self._has_weak or not hit.is_weak

    def add(self, hit: LineHit) -> bool:
        """Put a line on the page; False if there is no room for it, but for the first one."""
        number = hit.text
        if number not in self._spans:
            self._spans[number] = list(spans_of(self._corpus.texts[number]))
        span = self._spans[number][hit.span]
        self._room_chars -= len(_line(span)) + 1
        if number not in self._rows:
            head = self._head(number, span)
            self._room_chars -= len(head) + 1
        if self._room_chars < 0 and self.count:
            return False
        self._rows.setdefault(number, []).append(span)
        self._has_weak = self._has_weak or hit.is_weak
        self.count += 1
        return True

    def _head(self, number: int, span: Span) -> str:
        head = f"ref={self._corpus.ref(number)} offset={span.start}"
        about = self._corpus.about(number)
        return f"{head} of {about}" if about else head

    def __str__(self) -> str:
        lines = list[str]()
        for number, spans in self._rows.items():
            spans.sort()
            lines.append(self._head(number, spans[0]))
            lines += map(_line, spans)
        return "".join(f"{line}\n" for line in lines)


def _line(span: Span) -> str:
    """A line as a page shows it: on one line, so that no text looks like a head or a notice."""
    text = _OTHER_ENDS.sub(" ", span.text)
    return f"{span.line}: {text}"


def _scope_text(corpus: Corpus, blocks: Sequence[Block]) -> str:
    """How many characters were searched, in words."""
    chars = 0
    if blocks:
        oldest = blocks[0][0]
        chars = sum(map(len, corpus.texts[oldest:]))
    if chars < corpus.chars:
        return f"the newest {chars:,} of {corpus.chars:,} characters searched"
    return f"{chars:,} characters searched"


def _nothing_text(skipped: int, in_view: int, searched: str) -> str:
    """The page of a search that has no line to show."""
    if skipped:
        return f"[no more lines; {searched}]"
    if in_view:
        lines = "1 line is" if in_view == 1 else f"{in_view:,} lines are"
        return f"[no other line: {lines} in your context already; {searched}]"
    return f"[no line; {searched}]"


def _footer(skipped: int, count: int, searched: str, *, is_more: bool) -> str:
    """The last line of a page: which lines it has, and how to read on."""
    first = skipped + 1
    stop = skipped + count
    more = ""
    if is_more:
        more = f" More lines: the same call with offset={stop}."
    return (
        f"[lines {first:,} to {stop:,}, best first; {searched}. "
        f"Read on at one: with its ref and offset alone.{more}]"
    )
