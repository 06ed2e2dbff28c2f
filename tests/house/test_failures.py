"""The table of known failures names every one of them, and tests that are there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| F(\d+) \| (.+) \| (.+) \|$", TABLE, re.MULTILINE)
TEST = re.compile(r"test_f(\d+)_\w+")


def written():
    """The tests of tests/failures, and what each says went wrong."""
    found = {}
    for file in (ROOT / "tests" / "failures").glob("test_*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith(
                "test_"
            ):
                found[node.name] = ast.get_docstring(node)
    return found


def test_every_failure_is_in_the_table_once():
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 111))


def test_each_has_a_test_or_a_reason():
    for number, _, here in ROWS:
        named = TEST.findall(here)
        assert {int(name) for name in named} <= {int(number)}
        assert named or re.match(r"\*\*OPEN\*\*: |out of scope: ", here), (
            number
        )


def test_every_test_is_named_and_every_name_is_a_test():
    named = set(re.findall(r"`(test_f\d+_\w+)`", TABLE))
    assert named == set(written())


def test_a_test_tells_in_a_line_what_went_wrong():
    assert [
        name for name, told in written().items() if not told or "\n" in told
    ] == []
