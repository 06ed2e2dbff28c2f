"""The pages of ``docs/documents``: each document sentence by sentence, as its tests quote it.

A page is built from the marks alone. The order is the document's; in a clone without the
documents it is that of the page as it stands, so that a page which no longer agrees with the
marks is found there too.
"""

import re
from itertools import groupby

from msgspec import Struct

from tests.documents.inventory import inventories
from tests.documents.marks import ROOT, collected
from tests.documents.reading import bare, document

FOLDER = ROOT / "docs" / "documents"
DEVIATIONS = ROOT / "docs" / "deviations.md"
_ROOT = "../../"
_CODE = re.compile(r"\n|[;{(,]$|^(?:if |//|--|[\w.\[\]\"]+ \+?= |\w+\(.*\)$)")
"""What is shown as code: several lines, or one that looks like it."""


class Entry(Struct, frozen=True):
    """One quote, and all that its marks say of it."""

    section: str
    quote: str
    tests: tuple[str, ...]
    lives: tuple[str, ...]
    see: tuple[str, ...]


def written():
    """The text each page should have, by its path."""
    marks, deviations = collected(), DEVIATIONS.read_text(encoding="utf-8")
    texts = {}
    for name, inventory in inventories().items():
        path, text = FOLDER / f"{name}.md", document(name)
        order = (
            place_on(as_it_stands(path)) if text is None else place_in(text)
        )
        found = entries(mark for mark in marks if mark.document == name)
        texts[path] = page(inventory, found, order, deviations)
    return texts


def as_it_stands(path):
    """The text of a page, empty if there is none yet."""
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def entries(marks):
    """The marks of one document, those of one quote together."""
    same = {}
    for mark in marks:
        same.setdefault((bare(mark.section), bare(mark.quote)), []).append(
            mark
        )
    return [
        Entry(
            " ".join(found[0].section.split()),
            found[0].quote.strip(),
            *(
                tuple(sorted({getattr(mark, field) for mark in found} - {""}))
                for field in ("test", "lives", "see")
            ),
        )
        for found in same.values()
    ]


def page(inventory, found, order, deviations):
    """The page of one document. ``order`` gives the place of an entry in it, as a key."""
    rows = [
        row
        for row in deviations.splitlines()
        if _concerns(inventory.name, row)
    ]
    parts = [
        "<!-- Written by `python -m tests.documents write` from the marks of the tests. -->",
        f"# {inventory.title}",
        inventory.about.strip(),
        *_yields(rows),
    ]
    for section, inside in groupby(
        sorted(found, key=order), key=lambda entry: entry.section
    ):
        parts += [f"## {section}", *map(_told, inside)]
    return "\n\n".join(parts) + "\n"


def _concerns(name, row):
    """Whether a row is of a document, alone or with others: the names stand before the colon."""
    head, colon, _ = row.partition(": ")
    return (
        bool(colon)
        and row.startswith("| ")
        and (name in head or head == "| all five")
    )


def _yields(rows):
    """The table of where the letter of a document yields."""
    if not rows:
        return []
    head = "Its letter yields here ([all of them](../deviations.md)):"
    table = [
        "| sentence | how we take it | why | test |",
        "|---|---|---|---|",
        *rows,
    ]
    return [head, "\n".join(table)]


def _told(entry):
    """What is said of one quote."""
    said = [_shown(entry.quote)]
    told = []
    if entry.lives:
        told.append(f"Lives in {_joined(entry.lives, _file_of)}.")
    told.append(
        f"Proved by {_joined(entry.tests, lambda test: test.partition('::')[0])}."
    )
    if entry.see:
        told.append(
            f"See {', '.join(f'`{command}`' for command in entry.see)}."
        )
    return "\n\n".join([*said, "\n".join(told)])


def _shown(quote):
    if _CODE.search(quote):
        return f"```text\n{quote}\n```"
    return f"> {quote}"


def _joined(names, file_of):
    return ", ".join(f"[`{name}`]({_ROOT}{file_of(name)})" for name in names)


def _file_of(path):
    """The file of a dotted path: of the longest part of it that is a module."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        stem = "src/" + "/".join(parts[:length])
        for file in (f"{stem}.py", f"{stem}/__init__.py"):
            if (ROOT / file).is_file():
                return file
    return "src"


# The order of a page


def place_in(text):
    """The place of an entry by the document; what is not in it comes last."""

    def place(entry):
        within = text.within(entry.section)
        spans = text.places(entry.section, entry.quote)
        start, stop = spans[0] if spans else (0, 0)
        return (not within, within[:1], not spans, start, -stop, entry.quote)

    return place


def place_on(standing):
    """The place of an entry by the page as it stands; what is not on it comes last."""

    def place(entry):
        section = standing.find(f"\n## {entry.section}\n")
        quote = standing.find(
            f"\n\n{_shown(entry.quote)}\n\n", max(section, 0)
        )
        return (
            section < 0,
            section,
            entry.section,
            quote < 0,
            quote,
            entry.quote,
        )

    return place
