"""What loads only for who asks for it."""

import subprocess
import sys

import pytest

LOADED = """
import sys, ullage
{}
print(*(name for name in sys.modules if name.startswith({WANTED})))
"""
WANTED = ("ullage.wires.repair", "ullage.wires.rules.checker")
FIT = "ullage.Session('gpt-4.1'{}).fit({{'messages': [{{'role': 'user', 'content': 'hi'}}]}})"


def loaded(code):
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(code, WANTED=WANTED)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return {name.split(".")[2] for name in done.stdout.split()} - {"repaired"}


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("", set()),
        (FIT.format(""), set()),
        (FIT.format(", repair=True"), {"repair"}),
        ("ullage.Problem", {"rules"}),
        ("ullage.problems", {"rules"}),
    ],
    ids=("import", "fit", "repair", "Problem", "problems"),
)
def test_rules_and_repair_load_for_who_asks_for_them(code, wanted):
    assert loaded(code) == wanted
