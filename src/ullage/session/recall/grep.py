r"""Search one output with a pattern that a model wrote.

*A match is a line* the pattern is found in, as with grep. ``^`` and ``$`` are the ends of a line;
``$`` is also before the "\r" of "\r\n".

*What a search may cost is bounded*: the engine is linear (`ullage.session.recall.automaton`), and a
search that has taken `MOST_SECONDS` of the thread is given up.

*A huge output is searched chunk by chunk*: the whole lines of a chunk at once, and the line
that it breaks off together with the next. A line of over `LONG_CHARS` characters is searched in
parts that overlap by `OVERLAP_CHARS`: there, a match longer than that may be missed.

*Numbers and places are those of the text given*: lines are parted by "\n" alone and counted
from 1 (a newline at the very end opens no further line), places are characters from 0.
``text[line.start : line.start + len(line.text)] == line.text`` always holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from time import thread_time
from typing import NamedTuple

from msgspec import Struct

from ullage.core.values.effects import Output, Steps
from ullage.session.recall.automaton import (
    LINE_END,
    OTHER,
    TEXT_END,
    Automaton,
    SearchTooCostly,
)
from ullage.session.recall.pattern import PatternError
from ullage.session.recall.source import OutputReader

CLIP_CHARS = 400
"""A line is shown in at most so many characters, around its first match."""

COUNT_LINES = 50_000
"""Matching lines are counted up to here; counting takes 3 µs for each."""

MOST_SECONDS = 1.5
"""A search is given up after so much CPU, looked at once in a quarter of a megabyte."""

LONG_CHARS = 1 << 19
"""A line that is longer is searched in parts."""

OVERLAP_CHARS = 1 << 16
"""What two parts of a long line have in common."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class GrepLine(Struct, frozen=True, gc=False):
    """A line, or the part of it around its first match.

    Attributes:
        number: from 1.
        text: at most `CLIP_CHARS` characters of the line, without its line end.
        start: place of the first character of ``text`` in the whole text.
        match: place of the first match; None for a line of context.
        clipped: ``text`` is not the whole line.
    """

    number: int
    text: str
    start: int
    match: int | None
    clipped: bool


class GrepResult(Struct, frozen=True, gc=False):
    """What a search found.

    Attributes:
        lines: matching lines and their context, in order of number.
        match_count: how many of ``lines`` match.
        total: how many lines of the text match.
        total_is_exact: False if counting stopped at `COUNT_LINES`; there are more.
    """

    lines: tuple[GrepLine, ...]
    match_count: int
    total: int
    total_is_exact: bool


def search(
    source: OutputReader,
    pattern: str,
    *,
    ignore_case: bool = False,
    context_lines: int = 0,
    max_matches: int = 50,
    max_chars: int = 8_000,
) -> Steps[GrepResult]:
    """Find the lines of an output that ``pattern`` (RE2 syntax) occurs in.

    Args:
        source: any text; a lone surrogate is found as U+FFFD, or by ``.``.
        pattern: what to look for, within one line.
        ignore_case: take letters of either case for the same.
        context_lines: how many lines to show before and after each.
        max_matches: how many matching lines to show, at least 1.
        max_chars: how many characters to show in all, with one between two lines, at least 1.
            Matching lines come first, context gets what they leave. Of the first matching
            line something is always shown.

    Raises:
        PatternError: the pattern is too long or too costly, is not understood, or could
            never match.
    """
    machine = Automaton(readable(pattern), ignore_case)
    scan = _Scan(machine, max(1, max_matches))
    try:
        yield from scan.whole(source)
    except SearchTooCostly:
        raise _too_costly(f"{source.size_bytes:,} bytes") from None
    page = _Page(source, max(1, max_chars))
    for number, match in scan.hits:
        newline = yield from source.newline_before(match)
        has_room = yield from page.add(number, newline + 1, match, match)
        if not has_room:
            break
    match_count = len(page.lines)
    if context_lines > 0:
        yield from page.add_context(context_lines)
    lines = tuple(page.lines[number] for number in sorted(page.lines))
    return GrepResult(lines, match_count, scan.total, not scan.stopped)


class Match(NamedTuple):
    """A line of one of many texts that a pattern is found in.

    Attributes:
        text: the number of the text.
        place: of the first match in the line.
    """

    text: int
    place: int


def matches(
    texts: Iterable[tuple[int, str]], pattern: str, ignore_case: bool = False
) -> Steps[list[Match]]:
    """The lines of many texts that a pattern is found in, in the order of the texts.

    No more than `COUNT_LINES` of them.

    Args:
        texts: each with its number.
        pattern: as of `search`.
        ignore_case: as of `search`.

    Raises:
        PatternError: as of `search`.
    """
    machine = Automaton(readable(pattern), ignore_case)
    needed = machine.needed
    lines = list[Match]()
    chars = 0
    spent_seconds = 0.0
    for number, text in texts:
        chars += len(text)
        if needed is not None and not needed.search(readable(text)):
            continue
        scan = _Scan(machine, COUNT_LINES - len(lines), spent_seconds)
        try:
            yield from scan.whole(OutputReader(Output("", text)))
        except SearchTooCostly:
            raise _too_costly(f"{chars:,} characters") from None
        spent_seconds = scan.spent_seconds
        lines += (Match(number, place) for _, place in scan.hits)
        if len(lines) >= COUNT_LINES:
            break
    return lines


def _too_costly(size: str) -> PatternError:
    return PatternError(
        f"the pattern is too costly for a text of {size}. Use smaller "
        "counted repetitions ({…}), or a simpler pattern, and narrow the result yourself"
    )


def readable(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, as the author of a pattern has seen it."""
    if text.isascii():
        return text
    return _SURROGATE.sub("\ufffd", text)


class _Scan:
    """One pass over a text: which lines match, and where the first of them do.

    Attributes:
        hits: (number of its line, place) of the first match in each of the first lines.
        total: how many lines match.
        stopped: counting stopped at `COUNT_LINES`.
        spent_seconds: of the thread, on this search.
    """

    def __init__(
        self, machine: Automaton, keep: int, spent_seconds: float = 0.0
    ) -> None:
        self.hits: list[tuple[int, int]] = []
        self.total = 0
        self.stopped = False
        self._machine = machine
        self._keep = keep
        # a line that has not ended yet: its number, what there is of it, where that begins, and
        # the character before
        self._number = 1
        self._rest = ""
        self._at = 0
        self._left = ""
        # whether that line is a match already: then nothing is kept of it
        self._matched = False
        self.spent_seconds = spent_seconds

    def whole(self, source: OutputReader) -> Steps[None]:
        """Go through all of it."""
        for start, stop, has_newline in source.pieces():
            if self.stopped:
                return
            if self._matched and not has_newline:
                continue
            text = yield from source.span(start, stop)
            start_seconds = thread_time()
            self._add(readable(text), start)
            self.spent_seconds += thread_time() - start_seconds
            if self.spent_seconds > MOST_SECONDS:
                raise SearchTooCostly
        if self._rest and not self.stopped:
            self._lines(self._rest, TEXT_END)

    def _add(self, text: str, start: int) -> None:
        """Search the lines that end in a piece, keep what it breaks off."""
        if self._matched:
            skipped = text.find("\n") + 1
            if not skipped:
                return
            text = text[skipped:]
            self._at = start + skipped
            self._left = "\n"
            self._number += 1
            self._matched = False
        text = self._rest + text
        stop = text.rfind("\n") + 1
        if stop:
            self._lines(text[:stop], LINE_END)
            self._at += stop
            self._left = "\n"
        self._rest = text[stop:]
        if len(self._rest) > LONG_CHARS:
            self._part()

    def _lines(self, text: str, end: int) -> None:
        """Search whole lines; ``end`` is what is behind the last one."""
        needed = self._machine.needed
        start = counted_to = 0
        while start < len(text):
            if needed is not None:
                near = needed.search(text, start)
                if near is None:
                    break
                line_start = text.rfind("\n", 0, near.start()) + 1
                start = max(start, line_start)
            stop = text.find("\n", start)
            right = LINE_END
            if stop < 0:
                stop = len(text)
                right = end
            left_char = "\n" if start else self._left
            line = text[start:stop]
            place = self._machine.first_match(line, left_char, right)
            if place is not None:
                self._number += text.count("\n", counted_to, start)
                counted_to = start
                if not self._hit(self._at + start + place):
                    return
            start = stop + 1
        self._number += text.count("\n", counted_to)

    def _part(self) -> None:
        """Search what there is of a long line, whose end is not there."""
        needed = self._machine.needed
        place = None
        if needed is None or needed.search(self._rest):
            place = self._machine.first_match(self._rest, self._left, OTHER)
        if place is not None:
            self._hit(self._at + place)
            self._rest = ""
            self._matched = True
            return
        passed = len(self._rest) - OVERLAP_CHARS
        self._at += passed
        self._left = self._rest[passed - 1]
        self._rest = self._rest[passed:]

    def _hit(self, place: int) -> bool:
        """Note a matching line; False if no more are counted."""
        if self.total == COUNT_LINES:
            self.stopped = True
            return False
        self.total += 1
        if len(self.hits) < self._keep:
            self.hits.append((self._number, place))
        return True


class _Page:
    """The lines to show, as long as there is room."""

    def __init__(self, source: OutputReader, room: int) -> None:
        self.source = source
        self.room = room + 1  # nothing comes after the last line
        self.full = False
        self.lines: dict[int, GrepLine] = {}
        self.spans: dict[int, tuple[int, int]] = {}

    def add_context(self, count: int) -> Steps[None]:
        """Show up to ``count`` lines before and after each matching line, in order.

        A walk ends at a line already shown: what lies behind it was, or will be, walked from
        there. So no line is looked at twice from the same side.
        """
        # the matching lines alone: lines of context are added while this runs
        for number, step in product(tuple(self.lines), (-1, 1)):
            start, end = self.spans[number]
            stop = number + step * (count + 1)
            for near in range(number + step, stop, step):
                if self.full or near in self.lines:
                    break
                if step > 0:
                    begin = end + 1
                    is_beyond = begin >= self.source.chars
                else:
                    newline = yield from self.source.newline_before(start - 1)
                    begin = newline + 1
                    is_beyond = near < 1
                if is_beyond:
                    break
                has_room = yield from self.add(near, begin, begin, None)
                if not has_room:
                    break
                start, end = self.spans[near]

    def add(
        self, number: int, start: int, focus: int, match: int | None
    ) -> Steps[bool]:
        """Show one line, which starts at ``start``, around ``focus``; False if it has no room."""
        end = yield from self.source.newline_from(focus)
        end_char = yield from self.source.span(end - 1, end)
        stop = end
        # "\r\n" ends a line as "\n" does
        if end > start and end_char == "\r":
            stop = end - 1
        width = CLIP_CHARS
        # of the first line something is shown, however little room there is
        if not self.lines:
            width = min(CLIP_CHARS, self.room - 1)
        begin = max(start, min(focus - width // 4, stop - width))
        text = yield from self.source.span(begin, min(stop, begin + width))
        self.full = self.full or len(text) + 1 > self.room
        if self.full:
            return False
        self.room -= len(text) + 1
        self.spans[number] = (start, end)
        clipped = len(text) < stop - start
        self.lines[number] = GrepLine(number, text, begin, match, clipped)
        return True
