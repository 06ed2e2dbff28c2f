"""An answer that takes half of the window is told of: it is why so little is left."""

import pytest

from ullage import Limits, Session

ASK = {
    "model": "claude-opus-4-8",
    "messages": [{"role": "user", "content": "Find the fault."}],
}


def session_in(window_tokens, **more):
    limits = Limits(window_tokens=window_tokens, **more)
    return Session(ASK["model"], format="anthropic", limits=limits)


def reserves_of(session, max_tokens):
    view = session.fit({**ASK, "max_tokens": max_tokens})
    return [event for event in view.events if event.kind == "large_reserve"]


def test_an_answer_over_half_of_the_window_is_told_of_with_its_numbers():
    (event,) = reserves_of(session_in(32_000), 128_000)
    assert event.where == "max_tokens"
    assert event.why == (
        "an answer of 128,000 tokens is asked in a window of 32,000: half is kept for it, "
        "and 16,000 are left for the prompt"
    )


def test_it_is_told_of_once():
    session = session_in(32_000)
    assert len(reserves_of(session, 128_000)) == 1
    assert reserves_of(session, 128_000) == []


@pytest.mark.parametrize(
    ("max_tokens", "more"),
    [(16_000, {}), (128_000, {"output_reserve_tokens": 4_000})],
)
def test_nothing_is_told_where_the_answer_has_room_or_a_reserve_is_set(
    max_tokens, more
):
    assert reserves_of(session_in(32_000, **more), max_tokens) == []
