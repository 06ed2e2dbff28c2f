"""Rent or buy: a batch comes when what is old has been paid for often enough."""

from functools import partial

import pytest

from tests import histories
from tests.histories import Call, Turn
from tests.history.test_window import set_to
from ullage import Limits, Session
from ullage.policy.stages import carrying_cost
from ullage.wires import FORMATS

LIMITS = Limits(window_tokens=1_000_000)
FILE = "def step(x):\n    return known_name(x) + another_name\n" * 40
VAST = {"openai-chat": "gpt-4.1", "anthropic": "claude-sonnet-4-5"}


def turns(count, lines=40):
    text = FILE[: lines * 50]
    return [
        Turn(
            said="Next.",
            calls=(Call("read_file", f"{n}.py", f"# {n}\n{text}"),),
        )
        for n in range(count)
    ]


def batches_of(format, turns, **more):
    """At which calls a batch was made, in a window that nothing fills."""
    messages, made = histories.wire(format, turns), []
    session = Session(
        VAST[format], format=format, limits=LIMITS, recall=True, **more
    )
    for index, message in enumerate(messages):
        if FORMATS[format].parse(message, "m").role == "assistant":
            before = len(session.events)
            session.fit(histories.request(format, messages[:index]))
            if any(
                event.kind == "pruned" for event in session.events[before:]
            ):
                made.append(index)
    return made, len(messages), session


@pytest.mark.parametrize("format", sorted(VAST))
def test_in_a_window_that_nothing_fills_batches_are_made_all_the_same_and_are_rare(
    format,
):
    made, messages, session = batches_of(format, turns(400, lines=200))
    calls = messages / 2
    assert 1 <= len(made) <= calls / 30
    assert session.window.tokens < 150_000


def test_a_short_history_is_left_alone():
    made, _, session = batches_of("openai-chat", turns(30))
    assert made == []
    assert not session.window.summaries


def test_what_is_small_is_never_due_however_long_it_stands():
    made, _, _ = batches_of("openai-chat", turns(300, lines=3))
    assert made == []


def test_the_same_request_again_adds_nothing():
    messages = histories.wire("openai-chat", turns(400, lines=200))
    session = Session("gpt-4.1", limits=LIMITS, recall=True)
    for length in range(3, len(messages), 2):
        view = session.fit(histories.request("openai-chat", messages[:length]))
        again = session.fit(
            histories.request("openai-chat", messages[:length])
        )
        assert again == view
    assert session.window.summaries


def test_a_session_without_memory_comes_to_the_same_batches():
    messages = histories.wire("openai-chat", turns(300, lines=200))
    warm = Session("gpt-4.1", limits=LIMITS, recall=True)
    for length in range(1, len(messages), 2):
        view = warm.fit(histories.request("openai-chat", messages[:length]))
    cold = Session("gpt-4.1", limits=LIMITS, recall=True)
    assert (
        cold.fit(histories.request("openai-chat", messages[:length])) == view
    )
    assert warm.window.summaries


def test_nothing_is_due_before_anything_is_old():
    messages = histories.wire("openai-chat", turns(3))
    session = Session("gpt-4.1", limits=LIMITS, recall=True)
    session.fit(histories.request("openai-chat", messages))
    assert not carrying_cost.pays(
        session.window, times=0.0, tail_chars=1_000_000
    )
    assert carrying_cost.pays(session.window, times=0.0, tail_chars=0)
    assert not carrying_cost.pays(session.window, times=1_000.0, tail_chars=0)


def test_batches_are_so_many_calls_apart_as_they_have_to_be():
    messages = histories.wire("openai-chat", turns(40))
    session = Session("gpt-4.1", limits=LIMITS, recall=True)
    session.fit(histories.request("openai-chat", messages))
    due = partial(carrying_cost.pays, session.window, times=0.0, tail_chars=0)
    assert due(least_calls=40)
    assert not due(least_calls=41)


def test_a_batch_looks_only_at_what_came_after_the_last_one():
    made, _, session = batches_of("openai-chat", turns(400, lines=200))
    new = carrying_cost.new_from(session.window)
    assert made[-2] < new <= made[-1]
    starts = [placed.start for placed in session.window.summaries]
    assert starts == sorted(starts)
    assert session.window.summaries[-1].stop == new


def test_nothing_is_due_where_a_batch_stands():
    """The guard made one here, say, and so what a second would have to write anew is less."""
    messages = histories.wire("openai-chat", turns(3))
    session = Session("gpt-4.1", limits=LIMITS, recall=True)
    session.fit(histories.request("openai-chat", messages))
    window = session.window
    assert carrying_cost.pays(window, times=0.0, tail_chars=0)
    set_to(window, applied={window.transcript.decision_key(window.size): 1})
    assert not carrying_cost.pays(window, times=0.0, tail_chars=0)
