import pytest

from demo.agenda import Question
from demo.evidence import Shown
from demo.reading import callers, definition, modules, region
from demo.status import Address


def hits(*lines):
    return [Shown("search", {}, "\n".join([f"{len(lines)} hits", *lines]))]


def test_the_definition_is_the_hit_that_agrees_with_the_dotted_name():
    question = Question("zipfile.ZipFile", "stdlib", "x")
    found = hits(
        "stdlib/a.py:3:class ZipFile:",
        "stdlib/zipfile/_path/__init__.py:7:class ZipFile:",
        "stdlib/zipfile/__init__.py:90:    def ZipFile(self):",
        "stdlib/zipfile/__init__.py:99:class ZipFile:",
    )
    assert definition(question, found) == Address(
        "stdlib/zipfile/__init__.py", 99
    )
    assert definition(question, hits()) is None


@pytest.mark.parametrize(
    ("path", "line", "expected"),
    [
        ("stdlib/a/b.py", "import http.client", "stdlib/http/client.py"),
        ("stdlib/a/b.py", "from . import c", "stdlib/a/c.py"),
        ("stdlib/a/b.py", "from .c import d", "stdlib/a/c.py"),
        ("stdlib/a/b.py", "from ..c import d", "stdlib/c.py"),
        (
            "site/rich/console.py",
            "from rich.text import Text",
            "site/rich/text.py",
        ),
        ("site/rich/console.py", "import threading", "stdlib/threading.py"),
    ],
)
def test_an_import_names_a_file(path, line, expected):
    assert modules(path, f"     1|'''doc'''\n    12|{line}\n") == {
        expected: 12
    }


def test_imports_inside_functions_builtins_and_the_file_itself_are_left_out():
    text = "     1|import sys\n     2|import _socket\n     3|    import json\n     4|import b\n"
    assert modules("stdlib/b.py", text) == {}


def test_callers_are_three_other_files_and_no_comments():
    found = hits(
        "stdlib/own.py:1:f()",
        "stdlib/a.py:2:    # f()",
        "stdlib/a.py:5:    f()",
        "stdlib/a.py:6:    f()",
        "stdlib/b.py:1:f()",
        "stdlib/c.py:1:f()",
        "stdlib/d.py:1:f()",
    )
    expected = [
        Address("stdlib/a.py", 5),
        Address("stdlib/b.py", 1),
        Address("stdlib/c.py", 1),
    ]
    assert callers(found, "stdlib/own.py") == expected


def test_a_region_begins_no_earlier_than_the_file():
    assert region(Address("a.py", 7)) == {
        "path": "a.py",
        "start_line": 1,
        "end_line": 47,
    }
