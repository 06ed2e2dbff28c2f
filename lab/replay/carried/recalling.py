"""How a reader gets back what a view does not show: by the tools that the view offers.

For each missed value a reader asks as it would have to: the question is its own reply with the
value masked. A page brings the value back if it shows its line (`sight`).

    words    a search by words in all that left the view, two pages at the most, where a tool
             takes words
    ref      then the way over refs that has the fewest pages, from a ref that these pages name or
             the view does: page by page through an index to the ref that it names, and on to the
             page that shows the line. An output longer than a page is first searched, by the same
             words, or where a tool takes only a pattern for the names in the question
    tool     where nothing in the view leads there, the tool is run again: the whole result

The way over refs is that of a reader who takes the right one: how often the first one is right is
counted beside it (`Fetched.by_ref`), and `lab.replay.service` pays for the wrong ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from lab.replay.carried.sight import View, lines_around
from lab.replay.carried.wants import Value
from lab.replay.chooser import (
    WORD_PAGES,
    PagedLibrary,
    Shelf,
    Stub,
    found_by_words,
    masked,
    question,
    stubs_in,
)
from lab.replay.story import Story
from ullage.core.history.canon import ref_of
from ullage.core.values.notices import Pointer, next_offset, pointers
from ullage.tools.replay.evidence.atoms import atoms_in, plain
from ullage.tools.replay.evidence.demands import MessageText, texts_of

PAGE_TOKENS = 1_500
"""The page of a recall that takes one page whatever is missed: the bound."""
_PATTERN_NAMES = 8
_BORDER_CHARS = 400
_CHARS_PER_TOKEN = 4


class Fetched(Struct, frozen=True):
    """How one missed value comes back.

    Attributes:
        page_tokens: of each page that is read for it, in order; none where a page that the same
            reply has read already shows it.
        is_lost: whether nothing in the view leads to it.
        by_ref: whether the ref that a reader would open first shows its line, in one page.
        by_words: the page of a search by words that shows its line, from 1; 0: none of the first
            two does; None: no tool takes words.
    """

    page_tokens: tuple[int, ...]
    is_lost: bool = False
    by_ref: bool = False
    by_words: int | None = None


Recall: TypeAlias = Callable[[Sequence[Value], View], Sequence[Fetched]]
"""Brings back the values that a view does not show, each with the pages it takes."""


class Tools(PagedLibrary, Protocol):
    """Opens refs, and searches what is kept, as the tools in a view do."""

    def pages(self, pointer: Pointer) -> Iterator[str]:
        """What is kept from a place on, page after page."""

    def grep(self, ref: str, pattern: str) -> str | None:
        """A search of one output for a pattern; None if no tool takes one."""

    def find(self, words: str, page: int = 1, ref: str = "") -> str | None:
        """A page of a search by words, in all that left the view or in the output of a ref.

        None, if no tool takes words.
        """


def tokens_of(text: str) -> int:
    """Tokens of a text, as bytes / 4."""
    return len(text.encode("utf-8", "replace")) // _CHARS_PER_TOKEN


def one_page(opens: Callable[[str, View], bool]) -> Recall:
    """A recall that takes one page for each result, whatever is missed of it.

    Args:
        opens: whether something in a view opens what is kept under a ref.
    """

    def recall(missed: Sequence[Value], view: View) -> Sequence[Fetched]:
        read, fetched = set[str](), list[Fetched]()
        for value in missed:
            text = value.sources[-1].text
            ref, tokens = ref_of(text), tokens_of(text)
            is_open = opens(ref, view)
            page = min(tokens, PAGE_TOKENS) if is_open else tokens
            fetched.append(
                Fetched(() if ref in read else (page,), is_lost=not is_open)
            )
            read.add(ref)
        return fetched

    return recall


class Recaller:
    """Brings back what the views of one session do not show.

    Args:
        story: the run.
        tools: the session's own tools.
    """

    def __init__(self, story: Story, tools: Tools) -> None:
        self._story, self._tools = story, tools
        self._under: dict[str, Mapping[str, int]] = {}

    def recall(
        self, length: int, missed: Sequence[Value], view: View
    ) -> Sequence[Fetched]:
        """How the reply that begins at this message gets back what it needs.

        Args:
            length: how many messages stand before the reply.
            missed: the values that its view does not show.
            view: the view.
        """
        stubs = stubs_in(
            map(self._pieces, (read.raw for read in view.messages)),
            self._tools.named,
        )
        asking = _Asking(
            self._tools,
            stubs,
            question(self._story, length),
            self._ways(stubs),
        )
        return [asking.fetch(value) for value in missed]

    def _pieces(self, raw: Any) -> Sequence[MessageText]:
        place = self._story.place_of(raw)
        if place is not None:
            return self._story.pieces[place]
        return tuple(texts_of(self._story.wire.parse(raw, "view")))

    def _ways(self, stubs: Sequence[Stub]) -> Mapping[str, Way]:
        """The way with the fewest pages to each ref that a view leads to."""
        ways = {stub.pointer.ref: Way(stub.pointer) for stub in stubs}
        queue = list(ways)
        while queue:
            way = ways[queue.pop()]
            for ref, pages in self._named_under(way.pointer.ref).items():
                longer = Way(
                    Pointer(ref, 0), (*way.through, (way.pointer.ref, pages))
                )
                if ref not in ways or longer.pages < ways[ref].pages:
                    ways[ref] = longer
                    queue.append(ref)
        return ways

    def _named_under(self, ref: str) -> Mapping[str, int]:
        """Each ref that an index names, and how many of its pages are read until it does."""
        if ref not in self._under:
            named: dict[str, int] = {}
            if self._tools.leads(ref):
                for count, page in enumerate(
                    self._tools.pages(Pointer(ref, 0)), 1
                ):
                    for pointer in pointers(page):
                        named.setdefault(pointer.ref, count)
            self._under[ref] = {
                name: count for name, count in named.items() if name != ref
            }
        return self._under[ref]


class Way(Struct, frozen=True):
    """How a view leads to a ref.

    Attributes:
        pointer: the ref, and where its notice says to read on.
        through: the indexes on the way, and how many pages of each are read.
    """

    pointer: Pointer
    through: tuple[tuple[str, int], ...] = ()

    @property
    def pages(self) -> int:
        """How many pages of indexes are read."""
        return sum(count for _, count in self.through)


class _Asking:
    """One reply that asks for what it misses. What it has read once stays before it."""

    def __init__(
        self,
        tools: Tools,
        stubs: Sequence[Stub],
        asked: str,
        ways: Mapping[str, Way],
    ) -> None:
        self._tools, self._ways, self._asked = tools, ways, asked
        self._shelf = Shelf(stubs)
        self._read: list[str] = []

    def fetch(self, value: Value) -> Fetched:
        """Bring back one value."""
        lines = {
            line
            for piece in value.sources
            for line in lines_around(piece.plain, value.atom)
        }
        asked = masked(self._asked, value.atom)
        order = self._shelf.ranked(self._asked, value.atom)
        by_ref = bool(order) and _shows(
            self._tools.page(order[0].pointer), lines
        )
        found = list(found_by_words(self._tools, asked))
        hits = (at for at, page in enumerate(found, 1) if _shows(page, lines))
        by_words = next(hits, 0) if found else None
        if any(_shows(page, lines) for page in self._read):
            return Fetched((), by_ref=by_ref, by_words=by_words)
        pages = found[: by_words or WORD_PAGES]
        is_lost = False
        if not by_words:
            way = self._way(value, lines, asked, pages)
            is_lost = way is None
            pages += [value.sources[-1].text] if way is None else way
        self._read += pages
        return Fetched(tuple(map(tokens_of, pages)), is_lost, by_ref, by_words)

    def _way(
        self,
        value: Value,
        lines: set[str],
        asked: str,
        pages: Sequence[str],
    ) -> list[str] | None:
        """The pages from the view, or pages just read, to a line; None if nothing leads there."""
        named = (
            pointer for page in pages for pointer in self._tools.named(page)
        )
        near = {pointer.ref: Way(pointer) for pointer in named}
        ways = {**self._ways, **near}
        refs = {ref_of(piece.text) for piece in value.sources} & ways.keys()
        found = (self._along(ways[ref], lines, asked) for ref in sorted(refs))
        return min(
            (way for way in found if way is not None), key=len, default=None
        )

    def _along(
        self, way: Way, lines: set[str], asked: str
    ) -> list[str] | None:
        read = list[str]()
        for ref, count in way.through:
            read += islice(self._tools.pages(Pointer(ref, 0)), count)
        output = self._read_output(way.pointer, lines, asked)
        return None if output is None else read + output

    def _read_output(
        self, pointer: Pointer, lines: set[str], asked: str
    ) -> list[str] | None:
        """The pages of an output until one shows a line."""
        read = list[str]()
        if next_offset(self._tools.page(Pointer(pointer.ref, 0))) is not None:
            searched = self._tools.find(asked, ref=pointer.ref)
            if searched is None:
                pattern = _pattern_of(asked)
                searched = self._tools.grep(pointer.ref, pattern)
            if searched is not None:
                read.append(searched)
                if _shows(searched, lines):
                    return read
        for start in dict.fromkeys((pointer.offset, 0)):
            before = ""
            for page in self._tools.pages(Pointer(pointer.ref, start)):
                read.append(page)
                body = (next_offset(page) or (page, 0))[0]
                if _shows(before + body, lines):
                    return read
                before = body[-_BORDER_CHARS:]
        return None


def _shows(page: str, lines: set[str]) -> bool:
    text = plain(page)
    return any(line in text for line in lines)


def _pattern_of(asked: str) -> str:
    """A pattern of the longest names in a question."""
    names = {atom.text for atom in atoms_in(asked) if atom.kind != "literal"}
    longest = sorted(names, key=lambda name: (-len(name), name))[
        :_PATTERN_NAMES
    ]
    return "|".join(map(re.escape, longest)) or "."
