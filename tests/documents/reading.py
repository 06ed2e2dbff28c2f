"""A document as units: sentences, list items, table rows, lines of code and of drawings.

Texts are compared without blanks, without the signs that lead a list item, without the bars
around a table row and without the lines of a drawing, so that a quote may be wrapped as suits
the test file. A quote may hold part of a unit or several that follow one another: a unit is
proved when quotes together hold all of it. A statement in round brackets is one unit, however
many lines it has.
"""

import re
from functools import cache
from itertools import groupby
from pathlib import Path

from msgspec import Struct

from tests.documents.marks import ROOT

_HEADING = re.compile(r"#{1,6}\s+(.*)")
_LEAD = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_DRAWN = re.compile("[\u2500-\u257f▼▲]")
_ROW = re.compile(r"\s*\|(.*)\|\s*")
_BETWEEN = re.compile(r"\s*|-{3,}")
_RULE = re.compile(r"[\s|:\-]+")
_SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[A-Z`*“\"])")
_NOTHING = re.compile(r"(?:\W|\b(?:else|break|continue|return|try|pass)\b)*")


class Unit(Struct, frozen=True):
    """One unit of a document: the heading it stands under, its text, its line."""

    section: str
    text: str
    line: int
    worth: bool = True
    """Whether it says anything: the head of a table and a lone bracket do not."""


class Document(Struct, frozen=True):
    """The units of a document in order, and their bare texts one after another."""

    name: str
    units: tuple[Unit, ...]

    @property
    def sections(self):
        """The headings, in order."""
        return list(dict.fromkeys(unit.section for unit in self.units))

    def within(self, section):
        """The numbers of the units of a section."""
        wanted = bare(section)
        return [
            n
            for n, unit in enumerate(self.units)
            if bare(unit.section) == wanted
        ]

    def places(self, section, quote):
        """Where in a section a quote stands: (first, last + 1) among its bare characters."""
        text = "".join(
            bare(self.units[number].text) for number in self.within(section)
        )
        wanted = bare(quote)
        found = re.finditer(f"(?={re.escape(wanted)})", text) if wanted else ()
        return [(at.start(), at.start() + len(wanted)) for at in found]

    def held(self, quotes):
        """The numbers of the units which quotes, each with its section, hold whole together."""
        spans = {}
        for section, quote in quotes:
            spans.setdefault(bare(section), []).extend(
                self.places(section, quote)
            )
        return {
            number
            for section, found in spans.items()
            for number in self._inside(section, found)
        }

    def _inside(self, section, spans):
        """The numbers of the units of a section that lie within spans of its characters."""
        held = {at for start, stop in spans for at in range(start, stop)}
        stop = 0
        for number in self.within(section):
            start, stop = stop, stop + len(bare(self.units[number].text))
            if held.issuperset(range(start, stop)):
                yield number


@cache
def bare(text):
    """A text as it is compared."""
    lines = (
        _LEAD.sub("", _ROW.sub(r"\1", _DRAWN.sub("", line)), 1)
        for line in text.splitlines()
    )
    return re.sub(r"\s+", "", "".join(lines))


def read(text, name):
    """A document of Markdown, taken apart."""
    return Document(name, tuple(_units(text.splitlines())))


def _units(lines):
    for (kind, section), run in groupby(
        _kinds(lines), key=lambda line: line[:2]
    ):
        for number, text, worth in _TAKEN_APART[kind](
            [line[2:] for line in run]
        ):
            yield Unit(
                section, text, number, worth and not _NOTHING.fullmatch(text)
            )


def _kinds(lines):
    """Each line with its kind, its section and its number."""
    section, inside = "", False
    for number, line in enumerate(lines, 1):
        heading = None if inside else _HEADING.match(line)
        section = heading[1].strip() if heading else section
        fence = line.startswith("```")
        inside ^= fence
        if fence or heading or (not inside and _BETWEEN.fullmatch(line)):
            kind = "nothing"
        elif inside:
            kind = "code"
        else:
            kind = "table" if _ROW.fullmatch(line) else "prose"
        yield kind, section, number, line


def _statements(run):
    """Code and drawings, by line; a line with an open bracket goes on to where it is closed."""
    begun = []
    for number, line in run:
        begun.append((number, line))
        text = "\n".join(line for _, line in begun)
        if text.count("(") <= text.count(")") or number == run[-1][0]:
            yield begun[0][0], " ".join(_DRAWN.sub(" ", text).split()), True
            begun = []


def _rows(run):
    """The rows of a table; its head says nothing by itself."""
    for at, (number, line) in enumerate(run):
        if not _RULE.fullmatch(line):
            head = at + 1 < len(run) and _RULE.fullmatch(run[at + 1][1])
            yield number, " ".join(_ROW.sub(r"\1", line).split()), not head


def _sentences(run):
    """The sentences of paragraphs and list items."""
    paragraphs = []
    for number, line in run:
        if _LEAD.match(line) or not paragraphs:
            paragraphs.append((number, []))
        paragraphs[-1][1].append(_LEAD.sub("", line).strip())
    for number, parts in paragraphs:
        for text in _SENTENCE.split(" ".join(parts)):
            yield number, text, True


_TAKEN_APART = {
    "nothing": lambda run: (),
    "code": _statements,
    "table": _rows,
    "prose": _sentences,
}


def folder():
    """Where the documents are, beside the repository; None in a clone that has none."""
    beside = (parent / "shared" / "specs" for parent in ROOT.parents)
    return next((path for path in beside if path.is_dir()), None)


@cache
def document(name):
    """One of the five, or None where the documents are not at hand."""
    path = (folder() or Path()) / f"{name}.md"
    return (
        read(path.read_text(encoding="utf-8"), name)
        if path.is_file()
        else None
    )
