r"""Spans: the lines of a text, as a search by words looks at them.

A line is one span; a longer one is parted, so that what is found in it is near at hand whatever its
length. It is parted at spaces, and behind each ``\n`` of a text within JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

SPAN_CHARS = 200
"""A span is no longer."""

_BREAK = re.compile(r"[\s,;]")
_ESCAPED = "\\n"


class Span(NamedTuple):
    """A line, or a part of a long one.

    Attributes:
        line: the number of the line, from 1.
        start: the place of its first character in the text.
        text: its characters, without the line end.
    """

    line: int
    start: int
    text: str


def texts_of(text: str) -> list[str]:
    """The texts of `spans_of`."""
    lines = text.split("\n")
    if max(map(len, lines)) <= SPAN_CHARS:
        return lines
    texts = list[str]()
    for line in lines:
        texts += (line[start:stop] for start, stop in _parts(line))
    return texts


def spans_of(text: str) -> Iterator[Span]:
    """The spans of a text, in order. Joined, they are the text without its line ends."""
    begin = 0
    for number, line in enumerate(text.split("\n"), 1):
        for start, stop in _parts(line):
            yield Span(number, begin + start, line[start:stop])
        begin += len(line) + 1


def _parts(line: str) -> Iterator[tuple[int, int]]:
    """Where the spans of a line begin and end."""
    start = 0
    while len(line) - start > SPAN_CHARS:
        most = start + SPAN_CHARS
        escaped = line.find(_ESCAPED, start, most)
        if escaped >= 0:
            stop = escaped + len(_ESCAPED)
        else:
            middle = start + SPAN_CHARS // 2
            stop = _last_break(line, middle, most)
        yield start, stop
        start = stop
    yield start, len(line)


def _last_break(line: str, least: int, most: int) -> int:
    """The end of the last break in a part of a line; where there is none, the end of that part."""
    stop = most
    for match in _BREAK.finditer(line, least, most):
        stop = match.end()
    return stop
