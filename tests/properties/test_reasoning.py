"""Reasoning that is bound to the messages before it (`provider-rules` A13 to A16).

The judge here is a small stand-in for the provider: it remembers, for each thinking block it
returned, what had been sent before it, and looks whether the same stands before it now.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from tests.properties.test_gates import boundaries
from ullage import Limits, Session, problems
from ullage.wires.rules.checker import problems_of

BOUND, FREE = "claude-opus-5-5", "claude-sonnet-4-5"
windows = st.sampled_from((4_000, 6_000, 12_000))


def new_session(model, window, **more):
    limits = Limits(window_tokens=window)
    return Session(
        model, limits=limits, format="anthropic", recall=True, **more
    )


def request(model, messages, **more):
    return {**histories.request("anthropic", messages), "model": model, **more}


def without_thinking(message):
    if isinstance(message["content"], str):
        return message
    kept = [
        block for block in message["content"] if block["type"] != "thinking"
    ]
    return {**message, "content": kept}


def signatures(messages):
    """Each thinking block's signature, with what stands before its message."""
    before = []
    for message in messages:
        for block in (
            message["content"] if isinstance(message["content"], list) else ()
        ):
            if block["type"] == "thinking":
                yield block["signature"], json.dumps(before)
        before.append(without_thinking(message))


def thinking_of(message):
    blocks = message["content"] if isinstance(message["content"], list) else ()
    return [
        block["signature"] for block in blocks if block["type"] == "thinking"
    ]


@given(
    windows,
    histories.histories,
    st.lists(st.sampled_from((BOUND, FREE)), max_size=8),
)
def test_no_thinking_is_shown_behind_anything_that_was_changed(
    window, turns, others
):
    """Whatever models the requests were for in between; one that does not check may be shown it."""
    messages = histories.wire("anthropic", turns)
    session, returned = new_session(BOUND, window), {}
    for number, length in enumerate(boundaries("anthropic", messages)):
        model = others[number % len(others)] if others else BOUND
        view = session.fit(request(model, messages[:length]))["messages"]
        if model == BOUND:
            for signature, before in signatures(view):
                assert returned[signature] == before
        assert problems_of("anthropic", view) == []
        before = [without_thinking(m) for m in view]
        for message in messages[length:]:
            if message["role"] != "assistant":
                break
            returned |= dict.fromkeys(thinking_of(message), json.dumps(before))
            before.append(without_thinking(message))


@given(windows, histories.histories)
def test_models_that_do_not_check_keep_their_thinking(window, turns):
    messages = histories.wire("anthropic", turns)
    session = new_session(FREE, window)
    session.fit(request(FREE, messages))
    assert not [event for event in session.events if event.kind == "reasoning"]


def thoughtful(turns):
    call = histories.Call("bash", "a.py", "a line of output\n" * 200)
    return histories.wire(
        "anthropic", [histories.Turn(calls=(call,), thought=True)] * turns
    )


def played(session, messages, **more):
    for length in boundaries("anthropic", messages):
        view = session.fit(request(BOUND, messages[:length], **more))[
            "messages"
        ]
    return view


def test_a_batch_takes_the_thinking_behind_it_and_leaves_what_stands_before_it():
    messages = thoughtful(32)
    session = new_session(BOUND, 16_000)
    view = played(session, messages)
    assert {"pruned", "reasoning"} <= {event.kind for event in session.events}
    first = next(i for i, m in enumerate(view) if m is not messages[i])
    assert all(thinking_of(m) for m in messages[1:first:2])
    newest = [bool(thinking_of(m)) for m in view if m["role"] == "assistant"]
    assert not all(newest)
    assert newest[-1], "what was thought after the batch stays"


def test_what_another_model_left_behind_a_batch_goes_when_the_first_comes_back():
    """Reasoning is free at the one, so none goes with its batch; to the other it is bound."""
    messages, session = thoughtful(32), new_session(BOUND, 16_000)
    lengths = list(boundaries("anthropic", messages))
    played(session, messages[: lengths[16]])
    for length in lengths[17:]:
        session.fit(request(FREE, messages[:length]))
        if session.events[-1].kind == "pruned":
            break
    now = lengths.index(length)
    assert now < len(lengths) - 2
    assert session._state.cache.histories[0].builder.stale, (
        "thinking stays behind what was edited"
    )
    view = session.fit(request(BOUND, messages[: lengths[now]]))["messages"]
    assert session.events[-1].kind == "reasoning"
    first = next(i for i, m in enumerate(view) if m is not messages[i])
    assert not any(map(thinking_of, view[first:]))
    again = session.fit(request(BOUND, messages[: lengths[now + 1]]))[
        "messages"
    ]
    assert again[: len(view)] == view
    assert thinking_of(again[-2]), "what was thought since then stays"


def test_who_asked_the_provider_to_drop_blocks_keeps_them_all():
    asked = {
        "type": "adaptive",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    view = played(new_session(BOUND, 16_000), thoughtful(30), thinking=asked)
    assert all(thinking_of(m) for m in view if m["role"] == "assistant")


def test_manual_thinking_holds_a_batch_back_while_its_turn_is_open():
    manual = {"type": "enabled", "budget_tokens": 1_024}
    session = new_session(BOUND, 16_000)
    played(session, thoughtful(16), thinking=manual)
    kinds = {event.kind for event in session.events}
    assert kinds == {"held", "condensed", "reasoning"}


@pytest.mark.parametrize("model", [BOUND, FREE, "claude-opus-4-6"])
@pytest.mark.parametrize("window", [9_000, 14_000, 24_000])
@pytest.mark.parametrize(
    "joins", [False, True], ids=["from the start", "half-way"]
)
def test_a_loop_that_was_thought_about_once_keeps_its_beginning_or_goes_whole(
    model, window, joins
):
    """With manual thinking a tool loop is one turn and must begin with thinking (A14)."""
    manual = {"type": "enabled", "budget_tokens": 1_024}
    call = histories.Call("bash", "a.py", "a line of output\n" * 200)
    steps = [
        histories.Turn(said="So.", calls=(call,), thought=n == 0)
        for n in range(24)
    ]
    messages = histories.wire("anthropic", steps)
    session = new_session(model, window)
    lengths = list(boundaries("anthropic", messages))
    for length in lengths[-2:] if joins else lengths:
        asked = request(model, messages[:length], thinking=manual)
        view = session.fit(asked)
        assert problems(view) == []
        assert problems(asked) == []
    assert session.events


def test_joining_half_way_treats_first_cuts_as_a_batch():
    messages = thoughtful(32)
    messages[2]["content"][0]["content"] = "a line of a log\n" * 2_000
    session = Session(
        BOUND,
        policy=histories.CUTS_ALWAYS,
        limits=Limits(window_tokens=100_000),
    )
    view = session.fit(request(BOUND, messages))["messages"]
    assert session.events[0].kind == "joined"
    assert not any(thinking_of(m) for m in view), (
        "the newest is behind the cut (A13)"
    )
