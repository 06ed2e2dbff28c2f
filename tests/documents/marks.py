"""The marks by which a test names the sentence it proves, read from the test files themselves.

    @pytest.mark.says(
        "token-budget-compaction",
        "What Gets Compacted",
        "Skips the **most recent** tool-result message",
        lives="ullage.policy.stages.prune",
        see="ullage fit request.json",
    )
    def test_the_newest_result_is_left_as_it_is(): ...

Document (its file's name), section (its nearest heading) and quote come in this order;
``lives`` is the dotted path of what does it, ``see`` a command that shows it. A function or a
class carries any number of them as decorators, one row of a table through
``pytest.param(…, marks=…)``, a file through ``pytestmark``. All arguments are literals, so that
nothing is imported or run to read them.
"""

import ast
import re
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
_NEVER = re.compile(r"pytest\.mark\.(skip|xfail)\b")


class Mark(Struct, frozen=True, order=True):
    """One quote, and the test that proves it (``file::test``, the file as seen from the root)."""

    document: str
    section: str
    quote: str
    test: str
    lives: str = ""
    see: str = ""


class BadMarkError(Exception):
    """A mark that cannot be read, with its place."""


def marks_of(text, file):
    """The marks of one test file in the order of the file."""
    if "mark.says" not in text:
        return
    for node in ast.parse(text, file).body:
        if isinstance(node, ast.Assign) and _names(node) == ["pytestmark"]:
            yield from _marks(node.value, file, file)
        elif isinstance(node, ast.ClassDef):
            yield from _marks_on(node, file, f"{file}::{node.name}")
            for inner in node.body:
                yield from _marks_on(inner, file, f"{file}::{node.name}::")
        else:
            yield from _marks_on(node, file, f"{file}::")


def collected(folder=TESTS, root=ROOT):
    """Every mark of every test file."""
    return [
        mark
        for file in sorted(folder.rglob("test_*.py"))
        for mark in marks_of(
            file.read_text(encoding="utf-8"), file.relative_to(root).as_posix()
        )
    ]


def _names(node):
    return [
        target.id for target in node.targets if isinstance(target, ast.Name)
    ]


def _marks_on(node, file, test):
    """The marks on a function or class; ``test`` ends in ``::`` where its name is still to come."""
    decorators = getattr(node, "decorator_list", ())
    for decorator in decorators:
        for mark in _marks(
            decorator, file, test + node.name if test.endswith(":") else test
        ):
            if not node.name.lower().startswith("test"):
                raise BadMarkError(
                    f"{file}:{node.lineno}: {node.name} is no test: proves nothing"
                )
            if any(_NEVER.match(ast.unparse(other)) for other in decorators):
                raise BadMarkError(
                    f"{file}:{node.lineno}: {node.name} never has to pass"
                )
            yield mark


def _marks(tree, file, test):
    """The marks anywhere in an expression."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "pytest.mark.says"
        ):
            yield _read(node, file, test)


def _read(node, file, test):
    try:
        document, section, quote = map(ast.literal_eval, node.args)
        named = {
            keyword.arg: ast.literal_eval(keyword.value)
            for keyword in node.keywords
        }
        texts = (document, section, quote, *named.values())
        if set(named) <= {"lives", "see"} and all(
            text.strip() for text in texts
        ):
            return Mark(document, section, quote, test, **named)
    except (ValueError, AttributeError):
        pass
    raise BadMarkError(
        f"{file}:{node.lineno}: says(document, section, quote, lives=…, see=…) takes "
        f"literal texts, none of them empty; found {ast.unparse(node)}"
    )
