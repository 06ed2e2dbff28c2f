"""What a model's last answer quotes, and whether it called back what it no longer saw.

For each question there are pieces of evidence: the definition, an import of its module, a call
from another file and, where one is asked for, the line that sets the constant. A line counts if
a tool of the run returned it, at that place, in those words. A piece *had left the window* if some
tool had shown a line for it, and when the last answer was asked for no such line stood in
what was sent, but in the model's own words or in what recall tools had returned; it was *called
back* if one of those returned it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from demo.agenda import Question
from demo.asked import Asked, Done

__all__ = ["Judged", "Line", "Piece", "judged", "pieces_of"]

_NUMBERED = re.compile(r"^ *(\d+)\|(.*)$", re.MULTILINE)
_PLACED = re.compile(
    r"\b((?:stdlib|site)/[^\s:`]+\.py):(\d+):(.*)$", re.MULTILINE
)
_IMPORT = re.compile(r"\s*(import|from)\s+[\w.]")


class Line(Struct, frozen=True):
    """A line of a file: where, and what it says with single spaces. ``path`` may be unknown."""

    path: str
    number: int
    text: str


class Piece(Struct, frozen=True):
    """One piece of evidence: which lines will do."""

    fits: Callable[[Line], bool]


class Judged(Struct, frozen=True, kw_only=True):
    """How an answer did.

    Attributes:
        asked: pieces of evidence that were asked for.
        quoted: those the last answer has a line for.
        untrue: lines it quotes that no tool returned so.
        left: pieces that had left the window.
        called_back: of these.
    """

    asked: int
    quoted: int
    untrue: int
    left: int
    called_back: int


def pieces_of(question: Question) -> list[Piece]:
    """What one question asks for."""
    module, symbol = (
        question.name.rpartition(".")[0],
        re.escape(question.symbol),
    )
    defines = re.compile(rf"\s*(async )?(def|class) {symbol}\b")
    usage = re.compile(question.usage)
    pieces = [
        Piece(
            lambda line: (
                _module(line.path) == module and bool(defines.match(line.text))
            )
        ),
        Piece(
            lambda line: (
                _module(line.path) == module and bool(_IMPORT.match(line.text))
            )
        ),
        Piece(
            lambda line: (
                _module(line.path) != module and bool(usage.search(line.text))
            )
        ),
    ]
    if question.constant:
        sets = re.compile(rf"{re.escape(question.constant)}\b.*=")
        pieces.append(Piece(lambda line: bool(sets.match(line.text))))
    return pieces


def judged(agenda: Sequence[Question], asked: Asked) -> Judged:
    """Judge a run by its last answer, and by what it had been sent for it."""
    shown = {
        line
        for done in asked.done
        if not done.is_recall
        for line in _returned(done)
    }
    quotes = set(_placed(asked.answer))
    seen = set(_lines(asked.seen))
    recalled = set(_lines(done.text for done in asked.done if done.is_recall))
    pieces = [piece for question in agenda for piece in pieces_of(question)]
    true = quotes & shown
    left = called_back = 0
    for piece in pieces:
        lines = [line for line in shown if piece.fits(line)]
        if lines and not any(_is_in(line, seen) for line in lines):
            left += 1
            called_back += any(_is_in(line, recalled) for line in lines)
    return Judged(
        asked=len(pieces),
        quoted=sum(any(piece.fits(line) for line in true) for piece in pieces),
        untrue=len(quotes - shown),
        left=left if asked.answer else 0,
        called_back=called_back if asked.answer else 0,
    )


def _module(path: str) -> str:
    """The dotted name of a file: ``stdlib/re/__init__.py`` is ``re``."""
    return (
        re.sub(r"(/__init__)?\.py$", "", path)
        .partition("/")[2]
        .replace("/", ".")
    )


def _returned(done: Done) -> list[Line]:
    """The lines a tool of the agent's own returned, each with its place."""
    if done.call.name != "read_file":
        return _placed(done.text)
    try:
        path = str(json.loads(done.call.arguments or "{}").get("path", ""))
    except (ValueError, AttributeError):
        return []
    return [
        _line(path, match[1], match[2])
        for match in _NUMBERED.finditer(done.text)
    ]


def _lines(texts: Iterable[str]) -> Iterable[Line]:
    for text in texts:
        yield from _placed(text)
        yield from (
            _line("", match[1], match[2]) for match in _NUMBERED.finditer(text)
        )


def _placed(text: str) -> list[Line]:
    return [_line(*match.groups()) for match in _PLACED.finditer(text)]


def _line(path: str, number: str, text: str) -> Line:
    return Line(path, int(number), " ".join(text.strip().strip("`").split()))


def _is_in(line: Line, lines: set[Line]) -> bool:
    """Whether a line is among some, of which some do not tell their file."""
    return line in lines or Line("", line.number, line.text) in lines
