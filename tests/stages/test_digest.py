"""A digest: which lines of an old output stay, read aloud."""

import os
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.policy.stages.digest import read
from ullage.policy.stages.names import KnownNames

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


def of(text, *, said=(), told=(), price=6, most_chars=5_000):
    known = KnownNames(set(said), set(told))
    return lines_of(read(text, known, price).digest(price, most_chars))


def lines_of(digest):
    """A digest without what stands beside the ref."""
    return digest.partition(":\n")[2]


def test_names_that_no_line_shows_stand_beside_the_ref_the_most_frequent_first():
    source = (
        "class Tide:\n"
        + "    level_cm = read_gauge(harbour_id)\n" * 2
        + "    return port_of()\n"
    )
    digest = read(source, KnownNames.of({"harbour_id"}, ()), 6).digest(
        1_000, 5_000
    )
    assert digest == ", with level_cm read_gauge port_of"
    log = "\n".join(f"name_{n} failed" for n in range(90))
    assert read(log, KnownNames.of(set(), ()), 6).digest(9_999, 5_000) == (
        ", with name_0 name_1 name_10 name_11 name_12 name_13 name_14 name_15 name_16 name_17"
    )
    every = read(source, KnownNames.of(set(), ()), 1).digest(1, 5_000)
    assert every.startswith(":\n"), "names that a line shows are not listed"


def test_the_lines_stay_that_tell_names_and_each_name_once():
    assert of(SOURCE).splitlines() == [
        "def parse_config(text):",
        '    return dict(line.split("=") for line in text.splitlines())',
        '    print(load_config(os.environ["LOADER_CONFIG"]))',
    ]


def test_what_was_said_or_is_told_elsewhere_does_not_stay():
    said = of(
        SOURCE,
        said=["load_config", "parse_config", "LOADER_CONFIG", "os.environ"],
    )
    assert "def load_config" not in said
    assert (
        of(SOURCE, said=["load_config"], told=["LOADER_CONFIG"]).count(
            "load_config"
        )
        <= 1
    )


def test_a_text_tells_its_names_to_the_next():
    known = KnownNames.of(set(), ())
    first = lines_of(read(SOURCE, known, 6).digest(6, 5_000))
    assert "load_config" in first
    assert "load_config" in known.outputs
    assert read(SOURCE, known, 6).digest(6, 5_000) == ""


def test_a_higher_price_keeps_less_and_the_best_of_it():
    kept = [
        set(of(SOURCE, price=price).splitlines()) for price in (2, 6, 16, 400)
    ]
    assert all(less <= more for more, less in pairwise(kept))
    assert kept[1] > kept[2] > kept[3] == set()


@given(st.integers(1, 12), st.integers(0, 4))
def test_at_a_higher_price_a_reading_gives_what_reading_for_that_price_would(
    price, times
):
    text = SOURCE + "\n".join(
        f"value_{n} = other_{n % 7}(each) + more" for n in range(40)
    )
    known = [
        KnownNames.of({"other_3"}, ["value_5 value_8 load_config"])
        for _ in range(2)
    ]
    lower, higher = (
        read(text, known[0], price),
        read(text, known[1], price << times),
    )
    assert lower.digest(price << times, 900) == higher.digest(
        price << times, 900
    )


def test_no_more_than_the_room_is_taken():
    lines = [
        f"    value_{n} = compute(everything, at, once)" for n in range(200)
    ]
    assert 300 < len(of("\n".join(lines), most_chars=500)) <= 500


@pytest.mark.parametrize(
    "line",
    [
        "0200 TypeError: cannot add int and str in merge_blocks",
        "0200 worker failed: error while it wrote",
    ],
)
def test_an_error_in_the_middle_of_a_log_stays(line):
    log = [f"{n:04} worker wrote block" for n in range(400)]
    log[200] = line
    assert line in of("\n".join(log)).splitlines()


def test_one_line_of_a_megabyte_is_taken_in_pieces():
    shown = of(" ".join(f"name_{n}" for n in range(100_000)), most_chars=800)
    assert "name_0 name_1 " in shown
    assert all(len(line) <= 240 for line in shown.splitlines())
    assert len(shown) < 1_000


@given(
    st.text(max_size=3_000) | st.text("ab_.\n 12", max_size=3_000),
    st.integers(1, 60),
)
def test_nothing_is_invented_and_lines_keep_their_order(text, price):
    at = 0
    for line in of(text, price=price).splitlines():
        assert line in text[at:]
        at = text.index(line, at)


def test_a_digest_is_the_same_in_every_process():
    code = (
        "from ullage.policy.stages.digest import read; from ullage.policy.stages.names import "
        "KnownNames; "
        f"print(read({SOURCE * 9!r}, KnownNames.of(set(), ()), 6).digest(6, 400))"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in range(3)
    }
    assert len(shown) == 1


@pytest.mark.parametrize(
    "text", ["", "\n\n\n", "   ", "Nothing to speak of.\n" * 30]
)
def test_of_nothing_there_is_nothing(text):
    assert of(text) == ""
