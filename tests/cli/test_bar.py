"""The progress bar of a replay: what it counts, and when it is full."""

from io import StringIO

import pytest
from rich.console import Console

from ullage.tools.cli._bar import WorkBar

RUNS = [("a", "one", 40), ("a", "two", 90), ("b", "three", 100)]


def bar_of(tries):
    console = Console(file=StringIO(), force_terminal=True)
    return WorkBar(120, tries, console)


def test_it_is_full_when_the_last_replay_is_done_in_whatever_order():
    outcomes = [(name, run, at) for name, run, at in reversed(RUNS)] * 2
    with bar_of(2) as bar:
        assert list(bar.reading(RUNS)) == ["one", "two", "three"]
        assert bar.share == pytest.approx(100 / 360)
        shares = [bar.share for _ in bar.replaying(outcomes)]
    assert shares == sorted(shares)
    assert shares[-2] < 0.99
    assert bar.share == 1


def test_runs_that_were_left_out_are_no_work():
    with bar_of(1) as bar:
        list(bar.reading(RUNS[:1]))
        list(bar.replaying(RUNS[:1]))
    assert bar.share == 1
