r"""Search one text with a pattern that a model wrote.

The engine is RE2: time linear in the text, bounded memory, whatever the pattern
(`dependencies.md` §2: the standard library's engine hangs on five of nine hostile ones). It
runs over the bytes of the whole text, and the ends of a line are looked for only around a
hit; going line by line is forty times slower.

*A match is a line* the pattern is found in, as with grep. The engine is told never to match a
newline, so one search ends where its line ends, and all of them together are linear too;
without that, a pattern such as ``(?s)a.*b|a`` reads on to the end of the text at every hit.
``^`` and ``$`` are the ends of a line; ``$`` also stands before the "\r" of "\r\n".

*Numbers and places are those of the text given*: lines are parted by "\n" alone and counted
from 1 (a newline at the very end opens no further line), places are characters from 0.
``text[line.start : line.start + len(line.text)] == line.text`` always holds.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2
from msgspec import Struct

__all__ = ["CLIP_CHARS", "COUNT_LINES", "PATTERN_CHARS", "Grep", "Line", "PatternError", "grep"]

CLIP_CHARS = 400
"""A line is shown in at most so many characters, around its first match."""

COUNT_LINES = 50_000
"""Matching lines are counted up to here; counting takes 3 µs for each."""

PATTERN_CHARS = 1_000
"""The longest pattern accepted."""

_MAX_MEM_BYTES = 8 << 20
_WORK = 5_000_000_000  # program size × bytes of text: about two seconds at the very worst

_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(
    r"""\\Q.*?(?:\\E|\Z)                                # quoted
      | \\x(?:\{[^}]*\}|..) | \\.                       # escaped
      | \[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]         # a class
      | \(\?<?[=!] | \(\?>                              # look-around, atomic group
      | .""",
    re.VERBOSE | re.DOTALL,
)
_NEWLINES = frozenset({"\n", "\\n", "\\x0a", "\\x0A", "\\x{a}", "\\x{A}", "\\x{0a}", "\\x{0A}"})


class PatternError(ValueError):
    """The pattern cannot be used. The message says why and what to write instead."""


class Line(Struct, frozen=True, gc=False):
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


class Grep(Struct, frozen=True, gc=False):
    """What a search found.

    Attributes:
        lines: matching lines and their context, in order of number.
        shown: how many of ``lines`` match.
        total: how many lines of the text match.
        total_is_exact: False if counting stopped at `COUNT_LINES`; there are more.
        cut: some matching line, or some context that was asked for, is not in ``lines``.
    """

    lines: tuple[Line, ...]
    shown: int
    total: int
    total_is_exact: bool
    cut: bool


def grep(
    text: str,
    pattern: str,
    *,
    ignore_case: bool = False,
    context_lines: int = 0,
    max_matches: int = 50,
    max_chars: int = 8_000,
) -> Grep:
    """Find the lines of ``text`` that ``pattern`` (RE2 syntax) occurs in.

    Args:
        text: any str; a lone surrogate is found as U+FFFD, or by ``.``.
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
    raw = _encoded(text)
    engine = _engine(pattern, ignore_case, b"\r\n" in raw)
    if engine.programsize * len(raw) > _WORK:
        raise PatternError(
            f"the pattern is too costly for a text of {len(raw):,} bytes. Use smaller counted "
            "repetitions ({…}), or a simpler pattern, and narrow the result yourself"
        )
    hits, total, exact = _scan(engine, raw, max(1, max_matches))
    page = _Page(text, max(1, max_chars))
    for number, match in _places(text, raw, hits):
        if not page.add_match(number, match):
            break
    shown = len(page.lines)
    if context_lines > 0:
        page.add_context(context_lines)
    lines = tuple(page.lines[number] for number in sorted(page.lines))
    return Grep(lines, shown, total, exact, page.full or shown < total)


def _encoded(text: str) -> bytes:
    """UTF-8, one character for each of the text's: U+FFFD for a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


@lru_cache(maxsize=8)
def _engine(pattern: str, ignore_case: bool, crlf: bool) -> Any:
    """The compiled pattern.

    re2 keeps 128 of them by itself, each with up to 8 MB of states: too much for patterns
    that come from models, so its cache is emptied and a small one kept here.
    """
    if len(pattern) > PATTERN_CHARS:
        raise PatternError(
            f"the pattern has {len(pattern):,} characters and the limit is {PATTERN_CHARS:,}. "
            "Look for a shorter, telling part"
        )
    options = re2.Options()
    options.max_mem = _MAX_MEM_BYTES
    options.log_errors = False
    options.never_nl = True
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(b"(?m)" + _encoded(_adapted(pattern, crlf)), options)
    except re2.error as error:
        raise PatternError(_why(error, pattern)) from error
    finally:
        re2.purge()


def _adapted(pattern: str, crlf: bool) -> str:
    """The pattern as RE2 shall see it; refuses what would silently find nothing."""
    pieces = []
    for token in _TOKEN.findall(pattern):
        if token in _NEWLINES:
            raise PatternError(
                r"a match lies within one line, so \n cannot match. Look for one of the lines "
                "and ask for lines of context"
            )
        if token == r"\C":
            raise PatternError(r"\C is not supported. Use . for one character")
        if token in ("(?=", "(?!", "(?<=", "(?<!", "(?>"):
            raise PatternError(
                f"{token}…) is not supported: look-around and atomic groups cannot be searched "
                "in linear time. Look for the part that must be there, and check its "
                "surroundings in the lines found"
            )
        pieces.append(r"(?:\r?$)" if crlf and token == "$" else token)
    return "".join(pieces)


def _why(error: Exception, pattern: str) -> str:
    """RE2's complaint and what to do about it."""
    raw = error.args[0] if error.args else b""
    said = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    if re.search(r"escape sequence: \\[1-9kg]", said) or "(?P=" in pattern:
        hint = "Back-references cannot be searched in linear time: write the repeated part out"
    elif "too large" in said or "repetition size" in said:
        hint = "Counted repetitions go up to 1,000, nested ones multiplied: use * or +"
    elif "bad repetition" in said:
        hint = "Use one of * + ? at a time: nothing here can backtrack"
    else:
        hint = "Put a backslash before ( ) [ ] { } . * + ? ^ $ | where the character is meant"
    return f"the pattern is not understood: {said}. {hint}"


def _scan(engine: Any, raw: bytes, keep: int) -> tuple[list[int], int, bool]:
    """The places of the first matches of the first lines, and how many lines match."""
    hits: list[int] = []
    total = at = 0
    while at < len(raw) and (match := engine.search(raw, at)) is not None:
        place = match.start()
        if place == len(raw) and raw.endswith(b"\n"):
            break
        if total == COUNT_LINES:
            return hits, total, False
        total += 1
        if len(hits) < keep:
            hits.append(place)
        end = raw.find(b"\n", place)
        if end < 0:
            break
        at = end + 1
    return hits, total, True


def _places(text: str, raw: bytes, hits: list[int]) -> list[tuple[int, int]]:
    """Each hit as (number of its line, place in characters)."""
    single = len(raw) == len(text)
    places = []
    number, chars, last = 1, 0, 0
    for hit in hits:
        number += raw.count(b"\n", last, hit)
        chars += hit - last if single else len(raw[last:hit].decode())
        last = hit
        places.append((number, chars))
    return places


class _Page:
    """The lines to show, as long as there is room."""

    def __init__(self, text: str, room: int) -> None:
        self.text = text
        self.room = room + 1  # nothing stands after the last line
        self.full = False
        self.lines: dict[int, Line] = {}
        self.spans: dict[int, tuple[int, int]] = {}

    def add_match(self, number: int, match: int) -> bool:
        """Show the line of a match; False if it has no room."""
        start = self.text.rfind("\n", 0, match) + 1
        return self._add(number, start, match, match)

    def add_context(self, count: int) -> None:
        """Show up to ``count`` lines before and after each matching line, in order.

        A walk ends at a line already shown: what lies behind it was, or will be, walked from
        there. So no line is looked at twice from the same side.
        """
        for number in tuple(self.lines):
            self._add_before(number, count)
            self._add_after(number, count)

    def _add_before(self, number: int, count: int) -> None:
        start, _ = self.spans[number]
        for before in range(number - 1, max(0, number - 1 - count), -1):
            start = self.text.rfind("\n", 0, start - 1) + 1
            if self.full or before in self.lines or not self._add(before, start, start, None):
                break

    def _add_after(self, number: int, count: int) -> None:
        _, end = self.spans[number]
        for after in range(number + 1, number + 1 + count):
            if self.full or after in self.lines or end + 1 >= len(self.text):
                break
            if self._add(after, end + 1, end + 1, None):
                _, end = self.spans[after]

    def _add(self, number: int, start: int, focus: int, match: int | None) -> bool:
        """Show one line, which starts at ``start``, around ``focus``."""
        end = self.text.find("\n", focus)
        end = len(self.text) if end < 0 else end
        stop = end - 1 if end > start and self.text[end - 1] == "\r" else end
        width = CLIP_CHARS if self.lines else min(CLIP_CHARS, self.room - 1)
        first = max(start, min(focus - width // 4, stop - width))
        shown = self.text[first : min(stop, first + width)]
        self.full = self.full or len(shown) + 1 > self.room
        if not self.full:
            self.room -= len(shown) + 1
            self.spans[number] = (start, end)
            self.lines[number] = Line(number, shown, first, match, len(shown) < stop - start)
        return not self.full
