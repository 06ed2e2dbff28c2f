"""Digest: of an old tool output the lines that tell most, in their order.

A line tells what it names and no line before it named, by its length. Identifiers count for
more than words, numbers and paths, for they are what an agent uses again (`frontier`,
"Evidence"); what is named three times for more than what is named once; definitions and errors
for more than other lines. The first and the last lines stay. One line at the end names what the
lines left out name. So what was read long ago stands in the view in the line that gave it, at a
fraction of its tokens.

A name is a run of letters, digits and ``_$.-/``. A text is parted into names once, and only a
name that is met for the first time is looked up in its line. Names are taken in the order of the
text, so a digest comes out the same in every process, whatever its hash seed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from operator import add, truediv

from ullage.stages.shorten import ERRORS, safe_cut

__all__ = ["digest"]

_DEFINES = re.compile(
    r"[\s\d:|→]*(?:\w+\s+){0,2}?"  # the number of the line, and words such as `async`
    r"(?:class|const|def|enum|export|fn|func|function|impl|interface|public|struct|type)\b"
)
_MARKS = "_$.-/"
_LEAST_NAME_CHARS = 4
_MOST_NAME_CHARS = 60
_COUNTED_CHARS = 20
"""A name is worth its characters, but no more than these."""
_IDENTIFIER_TIMES = 3
"""What an identifier counts for beside a word, a number or a path."""
_MARKED_TIMES = 1.5
"""What a definition or an error counts for."""
_OFTEN = 3
_LINE_CHARS = 240
_LINE_COST_CHARS = 12
"""What a line costs beside its characters, so that none wins by being short."""
_EDGE_LINES = 2
_LEAST_LINE_CHARS = 4
_LINES_SHARE = 0.8
_NEAR_SHARE = 1.5
"""Lines that would fill so many times the room are looked at for definitions and errors."""
_GAP = "…"
_READ_CHARS = 40_000
"""Of a longer text the digest is made of its beginning and its end."""
_MOST_KNOWN = 20_000


class _Spaces(dict[int, str]):
    """What `str.translate` puts for a character: itself within a name, else a space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        put = char if char.isalnum() or char in _MARKS else " "
        if len(self) < _MOST_KNOWN:
            self[code] = put
        return put


_SPACES = _Spaces()


def digest(text: str, chars: int) -> str:
    """The lines of a text that tell most, and names from the others.

    A line of more than 240 characters is taken in pieces, and of a text of more than 40,000
    the middle is passed over. Where lines are left out stands ``…``.

    Args:
        text: the original.
        chars: about how many characters the digest may have.
    """
    text = _read(text)
    lines = _lines(text)
    worths, left = _names(text, list(accumulate(map(len, lines))))
    chosen = _choose(lines, worths, int(chars * _LINES_SHARE))
    shown, last = list[str](), -1
    for number in chosen:
        if number > last + 1:
            shown.append(_GAP)
        shown.append(lines[number].rstrip())
        last = number
    if last + 1 < len(lines):
        shown.append(_GAP)
    room = chars - sum(map(len, shown))
    names = " ".join(_also(left, set(_spaced("\n".join(shown)).split()), room))
    return "\n".join([*shown, f"[also: {names}]"] if names else shown)


def _read(text: str) -> str:
    """What of a text is read: all of it, or its beginning and its end."""
    if len(text) <= _READ_CHARS:
        return text
    head, tail = safe_cut(text, _READ_CHARS * 2 // 3), len(text) - _READ_CHARS // 3
    return f"{text[:head]}\n{text[safe_cut(text, tail) :]}"


def _lines(text: str) -> list[str]:
    """The lines of a text with their ends, a long one in pieces."""
    lines = text.splitlines(keepends=True)
    if max(map(len, lines), default=0) <= _LINE_CHARS:
        return lines
    return [piece for line in lines for piece in _pieces(line)]


def _pieces(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > _LINE_CHARS:
        stop = line.rfind(" ", start + _LINE_CHARS // 2, start + _LINE_CHARS)
        stop = stop if stop > 0 else safe_cut(line, start + _LINE_CHARS)
        yield line[start:stop]
        start = stop
    yield line[start:]


def _spaced(text: str) -> str:
    """A text with nothing but names and marks in it, spaces between; one more at either end."""
    return f" {text.translate(_SPACES)} "


def _names(text: str, ends: Sequence[int]) -> tuple[list[int], tuple[list[str], ...]]:
    """What each line names that none before it named, and the identifiers, best first.

    Args:
        text: the text.
        ends: where each of its lines ends.

    Returns:
        The worth of each line; and the identifiers by how well they stand for the lines left
        out: named often, twice, once; then paths and numbers.
    """
    spaced = _spaced(text)
    find, worths = spaced.find, [0] * len(ends)
    left: tuple[list[str], ...] = ([], [], [], [])
    at = number = stop = 0
    for token, count in Counter(spaced.split()).items():
        if len(token) < _LEAST_NAME_CHARS:
            continue
        name = token if token.isalpha() else token.strip(_MARKS)
        chars = len(name)
        worth = chars if chars < _COUNTED_CHARS else _COUNTED_CHARS
        if not (name.islower() or name.istitle()) or not name.isalpha():
            if chars < _LEAST_NAME_CHARS:
                continue
            if "/" in name or name[0].isdigit():
                left[3].append(name)
            else:
                worth *= _IDENTIFIER_TIMES
                left[_OFTEN - count if count < _OFTEN else 0].append(name)
        at = find(f" {token} ", at)
        while stop <= at:
            stop = ends[number]
            number += 1
        worths[number - 1] += worth if count < _OFTEN else 2 * worth
    return worths, left


def _choose(lines: Sequence[str], worths: Sequence[int], room: int) -> list[int]:
    """The numbers of the lines that fit: the edges first, then what tells most."""
    first, last = range(len(lines))[:_EDGE_LINES], range(len(lines))[_EDGE_LINES:][-_EDGE_LINES:]
    within = range(_EDGE_LINES, len(lines) - len(last))
    chosen = []
    for number in (*first, *last, *_best(lines, worths, within, int(room * _NEAR_SHARE))):
        line = lines[number].rstrip()
        if line and len(line) < room:
            room -= len(line) + 1
            chosen.append(number)
            if room < _LEAST_LINE_CHARS:
                break
    return sorted(chosen)


def _best(lines: Sequence[str], worths: Sequence[int], within: range, room: int) -> list[int]:
    """Of these lines those that tell most by their length, as many as fit, the best first."""
    costs = map(add, map(len, lines), repeat(_LINE_COST_CHARS))
    told, near = list(map(truediv, worths, costs)), []
    for number in sorted(filter(worths.__getitem__, within), key=told.__getitem__, reverse=True):
        line = lines[number]
        room -= len(line)
        if room < 0:
            break
        near.append(number)
        if _DEFINES.match(line) or ERRORS.search(line):
            told[number] *= _MARKED_TIMES
    return sorted(near, key=told.__getitem__, reverse=True)


def _also(left: Iterable[list[str]], told: set[str], room: int) -> Iterator[str]:
    """Identifiers of the lines left out, of equal ones the short first, as many as fit."""
    for names in left:
        for name in sorted(names, key=len):
            if name not in told and len(name) <= _MOST_NAME_CHARS:
                room -= len(name) + 1
                if room < 0:
                    return
                yield name
