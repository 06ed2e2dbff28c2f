"""The pages of the architecture and of threats say what is so: rows, files, promises."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
THREATS = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
PROMISES = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE + THREATS)
PLACES = sorted(
    set(re.findall(r"(?<![\w/.])((?:\w+/)+(?:\w+\.py)?)(?![\w/])", PAGE))
)


def test_its_rows_are_those_that_are_checked():
    project = tomllib.loads(
        (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )
    rows = project["tool"]["importlinter"]["contracts"][0]["layers"]
    assert "\n".join(rows) in PAGE


def test_it_makes_promises():
    assert len(PROMISES) > 10


@pytest.mark.parametrize(
    ("file", "name"), PROMISES, ids=[name for _, name in PROMISES]
)
def test_a_promise_has_its_test(file, name):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize("place", PLACES)
def test_a_place_it_names_is_there(place):
    tops = [ROOT / "src" / "ullage", ROOT]
    assert any((top / place).exists() for top in tops)
