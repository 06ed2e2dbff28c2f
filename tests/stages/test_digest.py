"""A digest: which lines of an old output stay, read aloud."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.stages.digest import digest

SOURCE = """import os

# The loader reads one file after the other.
# It stops at the first that is damaged.

def load_config(path):
    text = open(path).read()
    return parse_config(text)

def parse_config(text):
    # nothing much happens here
    # nothing much happens here
    # nothing much happens here
    return dict(line.split("=") for line in text.splitlines())

def main():
    print(load_config(os.environ["LOADER_CONFIG"]))
"""


def test_what_names_most_stays_and_what_says_nothing_new_goes():
    assert digest(SOURCE, 140).splitlines() == [
        "import os",
        "…",
        "def parse_config(text):",
        "…",
        "def main():",
        '    print(load_config(os.environ["LOADER_CONFIG"]))',
    ]


def test_an_error_in_the_middle_of_a_log_stays():
    log = [f"{n:04} worker wrote block" for n in range(400)]
    log[200] = "0200 TypeError: cannot add int and str in merge_blocks"
    assert log[200] in digest("\n".join(log), 300).splitlines()
    log[200] = "0200 worker failed: error while it wrote"
    assert log[200] in digest("\n".join(log), 300).splitlines()


def test_the_first_and_the_last_lines_stay_and_gaps_are_shown():
    shown = digest("\n".join(f"line {n}" for n in range(1_000)), 400).splitlines()
    assert shown[:2] == ["line 0", "line 1"]
    assert "line 999" in shown
    assert "…" in shown


def test_identifiers_of_the_lines_left_out_are_named_in_one_line():
    lines = [f"    value_{n} = compute(everything, at, once, and_more_of_it)" for n in range(200)]
    (names,) = [ln for ln in digest("\n".join(lines), 600).splitlines() if ln.startswith("[also: ")]
    named = set(names.removeprefix("[also: ").removesuffix("]").split())
    assert named
    assert named <= {f"value_{n}" for n in range(200)}


def test_one_line_of_a_megabyte_is_taken_in_pieces():
    shown = digest("word " * 250_000, 600)
    assert 0 < len(shown) < 1_200
    assert all(len(line) <= 240 for line in shown.splitlines())


@given(st.text(max_size=3_000) | st.text("ab_.\n 12", max_size=3_000), st.integers(0, 2_000))
def test_nothing_is_invented_and_lines_keep_their_order(text, chars):
    shown, at = digest(text, chars), 0
    for line in shown.splitlines():
        if line == "…" or line.startswith("[also: "):
            continue
        at = text.index(line, at) if line in text[at:] else -1
        assert at >= 0
    assert len(shown) <= chars * 1.6 + 200


def test_a_digest_is_the_same_in_every_process():
    """Whatever order a process's hashes put names in."""
    code = f"from ullage.stages.digest import digest; print(digest({SOURCE * 9!r}, 400))"
    shown = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(shown) == 1
    assert shown.pop()


@pytest.mark.parametrize("text", ["", "\n\n\n", "   "])
def test_of_nothing_there_is_nothing(text):
    assert digest(text, 100) == "" or set(digest(text, 100)) <= {"…", "\n", " "}
