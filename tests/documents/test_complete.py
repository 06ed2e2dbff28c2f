"""What the documents say is what the tests prove: see `tests.documents.inventory`.

What needs the documents themselves is skipped where they are not beside the repository; the
pages, the places and the commands are checked everywhere.
"""

import pkgutil
import re
import shlex
from importlib.util import find_spec

import pytest

from tests.cli.terminal import ullage
from tests.documents import pages
from tests.documents.inventory import (
    classed,
    inventories,
    open_units,
    wrong_quotes,
)
from tests.documents.marks import ROOT, collected
from tests.documents.reading import document

KNOWN = inventories()


@pytest.fixture(scope="module")
def marks():
    return collected()


@pytest.fixture(params=KNOWN)
def text(request):
    found = document(request.param)
    if found is None:
        pytest.skip(
            "the documents are not at hand: they belong into ../shared/specs"
        )
    return found


def none(faults):
    """Fail with every fault on its own line, if there are any."""
    if found := list(faults):
        pytest.fail("\n".join(found), pytrace=False)


def test_every_quote_is_in_its_document(text, marks):
    none(
        wrong_quotes(
            text, [mark for mark in marks if mark.document == text.name]
        )
    )


def test_every_entry_of_a_data_file_is_in_its_document(text):
    _, lost = classed(text, KNOWN[text.name])
    none(lost)


def test_nothing_is_open_in_a_document_that_is_complete(text, marks):
    """What is open in one that is not: ``python -m tests.documents open``."""
    inventory = KNOWN[text.name]
    mine = [mark for mark in marks if mark.document == text.name]
    left = open_units(text, inventory, mine) if inventory.complete else ()
    none(
        f"no test proves line {unit.line}, {unit.section!r}: {unit.text}"
        for unit in left
    )


def test_every_mark_is_of_a_document_there_is(marks):
    assert {mark.document for mark in marks} <= set(KNOWN)


def test_where_something_lives_there_is_something(marks):
    for path in {mark.lives for mark in marks} - {""}:
        assert path.startswith("ullage"), path
        if (
            path == "ullage.integrations.adk"
        ):  # not to be imported without its extra
            assert find_spec(path)
        else:
            pkgutil.resolve_name(path)


def test_what_shows_it_can_be_typed(marks):
    targets = re.findall(
        r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")
    )
    for shown in {mark.see for mark in marks} - {""}:
        program, command, *words = shlex.split(shown)
        assert program in ("ullage", "make"), shown
        if program == "make":
            assert command in targets, shown
        else:
            helped = ullage(command, "--help")
            options = {
                word.partition("=")[0]
                for word in words
                if word.startswith("-")
            }
            assert helped.status == 0, shown
            assert options <= set(
                re.findall(r"(?<![\w-])--?[\w-]+", helped.text)
            ), shown


def test_the_pages_are_those_of_the_marks():
    stale = [
        path.relative_to(ROOT).as_posix()
        for path, text in pages.written().items()
        if pages.as_it_stands(path) != text
    ]
    none(f"{page} is stale: make documents" for page in stale)
