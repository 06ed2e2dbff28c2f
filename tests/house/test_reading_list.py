"""The reading list: what has to be read to be sure of the three promises, and no more of it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "ullage"
MOST_LINES = 9_000
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## What to read") : PAGE.index("## One turn")]
STOPS = re.findall(r"^\| (\d)\. .+\| (.+) \|$", SECTION, re.M)
FILES = [
    SRC / name
    for _, names in STOPS
    for name in re.findall(r"`([\w/]+\.py)`", names)
]


def lines_of(file):
    return sum(
        bool(line.strip())
        for line in file.read_text(encoding="utf-8").splitlines()
    )


def test_it_has_eight_stops_and_each_file_once():
    assert [number for number, _ in STOPS] == list("12345678")
    assert len(FILES) == len({*FILES})
    assert all(file.is_file() for file in FILES)


def test_it_can_be_read_in_a_day():
    lines = sum(map(lines_of, FILES))
    assert lines <= MOST_LINES, (
        f"{lines:,} lines: read less, or take what is not needed elsewhere"
    )
