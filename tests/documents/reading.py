"""A document as units: sentences, list items, table rows, lines of code and of drawings.

Texts are compared without blanks, without the signs that lead a list item, without the bars
around a table row and without the lines of a drawing, so that a quote may be wrapped as suits
the test file. A quote may hold part of a unit or several that follow one another: a unit is
proved when quotes together hold all of it.
"""

import re
from pathlib import Path

from msgspec import Struct

from tests.documents.marks import ROOT

_HEADING = re.compile(r"#{1,6}\s+(.*)")
_LEAD = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_DRAWN = re.compile("[\u2500-\u257f▼▲]")
_ROW = re.compile(r"\s*\|(.*)\|\s*")
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

    def places(self, section, quote):
        """Where in a section a quote stands: (first, last + 1) among its bare characters."""
        text = "".join(bare(unit.text) for _, unit in self._of(section))
        wanted = bare(quote)
        return [(at.start(), at.start() + len(wanted)) for at in _finds(wanted, text)]

    def proved(self, marks):
        """The numbers of the units which the quotes of these marks hold whole."""
        found = set()
        for section in self.sections:
            spans = [
                span
                for mark in marks
                if bare(mark.section) == bare(section)
                for span in self.places(section, mark.quote)
            ]
            held = {at for start, stop in spans for at in range(start, stop)}
            stop = 0
            for number, unit in self._of(section):
                start, stop = stop, stop + len(bare(unit.text))
                if held.issuperset(range(start, stop)):
                    found.add(number)
        return found

    def _of(self, section):
        wanted = bare(section)
        return [(n, unit) for n, unit in enumerate(self.units) if bare(unit.section) == wanted]


def bare(text):
    """A text as it is compared."""
    lines = (_LEAD.sub("", _ROW.sub(r"\1", _DRAWN.sub("", line)), 1) for line in text.splitlines())
    return re.sub(r"\s+", "", "".join(lines))


def _finds(wanted, text):
    return re.finditer(f"(?={re.escape(wanted)})", text) if wanted else ()


def read(text, name):
    """A document of Markdown, taken apart."""
    return Document(name, tuple(_units(text.splitlines())))


def _units(lines):
    section, inside, begun = "", False, []
    for number, line in enumerate([*lines, ""], 1):
        if inside and not line.startswith("```"):
            yield Unit(section, _shown(line), number, _says(line))
        elif line.startswith(("```", "#", "---")) or not line.strip() or _ROW.fullmatch(line):
            yield from _sentences(section, begun)
            begun = []
            inside ^= line.startswith("```")
            heading = _HEADING.match(line)
            section = heading[1].strip() if heading else section
            if _ROW.fullmatch(line) and not _RULE.fullmatch(line):
                head = _RULE.fullmatch(lines[number]) if number < len(lines) else None
                yield Unit(section, _shown(_ROW.sub(r"\1", line)), number, not head)
        else:
            if _LEAD.match(line):
                yield from _sentences(section, begun)
                begun = []
            begun = begun or [number]
            begun.append(_LEAD.sub("", line, 1).strip())


def _sentences(section, begun):
    """The sentences of a paragraph or list item: its line number, then its lines."""
    if begun:
        for text in _SENTENCE.split(" ".join(begun[1:])):
            yield Unit(section, text, begun[0], _says(text))


def _shown(line):
    return " ".join(_DRAWN.sub(" ", line).split())


def _says(text):
    return not _NOTHING.fullmatch(text)


def folder():
    """Where the documents are, beside the repository; None in a clone that has none."""
    beside = (parent / "shared" / "specs" for parent in ROOT.parents)
    return next((path for path in beside if path.is_dir()), None)


def document(name):
    """One of the five, or None where the documents are not at hand."""
    path = (folder() or Path()) / f"{name}.md"
    return read(path.read_text(encoding="utf-8"), name) if path.is_file() else None
