"""When a summary tells that what it stands for was done before."""

import pytest

from tests import histories
from tests.histories import CUTS_ALWAYS, Call, Turn
from ullage import Limits, Session
from ullage.core.values.edits import ProposedEdit, ReplaceSpan
from ullage.policy.stages.stall import stall

READ = [
    Turn(calls=(Call("read_file", f"{n}.py", "x = 1\n" * 300),))
    for n in range(6)
]


def told(late):
    """What is told of a second summary, the first being of six reads."""
    session = Session(
        "gpt-4.1", limits=Limits(window_tokens=200_000), recall=True
    )
    early = [*READ, Turn(said="Well.", calls=READ[0].calls)]
    for turns in (early, [*early, *late]):
        session.compact(
            histories.request(
                "openai-chat", histories.wire("openai-chat", turns)
            )
        )
    return [event for event in session.events if event.kind == "stalled"]


@pytest.mark.parametrize(
    ("late", "stalls"),
    [
        ([*READ, READ[0]], True),
        (
            [*READ, Turn(calls=(Call("write_file", "a.py", "ok"),)), READ[0]],
            False,
        ),
        (
            [
                Turn(calls=(Call("read_file", f"new {n}", "y"),))
                for n in range(8)
            ],
            False,
        ),
        (
            [
                Turn(calls=(Call("read_file", f"{n}.py", "y = 2\n"),))
                for n in range(6)
            ],
            False,
        ),
        (READ[:2], False),
    ],
    ids=[
        "read again",
        "and changed",
        "read others",
        "which differ now",
        "too few to tell",
    ],
)
def test_it_is_told_where_most_calls_repeat_and_nothing_was_changed(
    late, stalls
):
    events = told(late)
    assert bool(events) is stalls
    if stalls:
        assert events[0].why.startswith("7 of 7 calls repeat")
        assert events[0].where.startswith("messages 14 to ")


def test_a_span_of_another_history_tells_nothing():
    session = Session(
        "gpt-4.1", policy=CUTS_ALWAYS, limits=Limits(window_tokens=200_000)
    )
    session.fit(
        histories.request("openai-chat", histories.wire("openai-chat", READ))
    )
    foreign = ReplaceSpan(b"a" * 16, b"b" * 16, "text", "ref", "why")
    assert stall(session.window, [ProposedEdit(foreign, ())]) == []
