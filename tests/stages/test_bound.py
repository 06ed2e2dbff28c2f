"""Which reasoning goes with a batch: that behind the edit, and all where the newest goes."""

import pytest

from tests import histories
from tests.histories import CUTS_ALWAYS
from ullage import Limits, Session
from ullage.core.contract.bound import left_out


def window_of(model, *thoughtful):
    """A window over turns of which some were thought about."""
    call = histories.Call("bash", "a.py", "a line of output\n" * 9)
    turns = [
        histories.Turn(calls=(call,), thought=thought)
        for thought in thoughtful
    ]
    session = Session(
        model, policy=CUTS_ALWAYS, limits=Limits(window_tokens=100_000)
    )
    messages = histories.wire("anthropic", turns)
    session.fit({**histories.request("anthropic", messages), "model": model})
    return session.window


def runs(window, first):
    """The messages in whose run reasoning is left out when one from ``first`` on is edited."""
    find = window.transcript.find
    return [
        (find(cut.edit.after), find(cut.edit.upto))
        for cut in left_out(window, first, ())
    ]


@pytest.mark.parametrize(
    ("thoughtful", "first", "expected"),
    [
        (
            (True, True, True),
            2,
            [(0, 7)],
        ),  # the newest goes, so all of it does
        ((True, True, True), 6, []),  # nothing was thought behind the edit
        (
            (True, True, False),
            2,
            [(3, 7)],
        ),  # the newest has none: only what is behind the edit
        ((True, False, False), 2, []),
        ((False, False, False), 0, []),
    ],
)
def test_what_goes_where_reasoning_is_bound(thoughtful, first, expected):
    assert runs(window_of("claude-opus-5-5", *thoughtful), first) == expected


def test_nothing_goes_where_it_is_free():
    assert runs(window_of("claude-opus-4-8", True, True, True), 2) == []
