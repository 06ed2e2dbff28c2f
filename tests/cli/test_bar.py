"""The progress bar of a replay: what it counts, and when it is full."""

import threading
import time
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


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is():
    written = threading.Event()

    class Log(StringIO):
        def write(self, text):
            written.set()
            return super().write(text)

    log = Log()
    console = Console(file=log, force_terminal=False)
    with WorkBar(100, 1, console, line_every_s=0.01) as bar:
        list(bar.reading(RUNS[:1]))
        assert written.wait(30)
        assert bar.line().startswith("reading: 20 %, 1 runs, ")
    first = log.getvalue().splitlines()[0]
    assert first.startswith("reading: ")
    assert first.endswith(" s")


def test_a_replay_that_is_soon_over_writes_no_line():
    log = StringIO()
    with WorkBar(100, 1, Console(file=log, force_terminal=False)) as bar:
        list(bar.reading(RUNS[:1]))
        list(bar.replaying(RUNS[:1]))
    assert log.getvalue() == ""


def test_a_log_that_nobody_reads_any_more_ends_no_replay():
    class Closed(StringIO):
        def write(self, text):
            raise BrokenPipeError

    console = Console(file=Closed(), force_terminal=False)
    with WorkBar(100, 1, console, line_every_s=0.001) as bar:
        list(bar.reading(RUNS[:1]))
        time.sleep(0.05)
        list(bar.replaying(RUNS[:1]))
    assert bar.share == 1
