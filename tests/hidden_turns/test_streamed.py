"""The events of several rounds as those of one reply."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hidden_turns.talk import (
    OWN,
    RECALL,
    Reply,
    knitted,
    owns,
    start,
    text_in,
)
from tests.servers.replies import Prompt, body_of
from ullage.doors.hidden_turns import (
    FinishedReply,
    PrivateCalls,
    Rounds,
    StreamedRounds,
)
from ullage.wires import FORMATS


@pytest.mark.parametrize("format", FORMATS)
def test_events_of_a_plain_reply_are_given_on_as_the_same_objects(format):
    talk = start((format, True))
    streamed = StreamedRounds(
        Rounds(talk.wire, knitted(talk), lambda call: False)
    )
    body = body_of(format, Reply("Hello.", [OWN], thought="Hm."), 1, Prompt(9))
    for event in talk.cut(body, {}):
        given = streamed.feed(event)
        if not (
            format == "openai-chat" and event.get("usage")
        ):  # nobody asked for it
            assert given == (event,)
            assert given[0] is event
    done = streamed.end()
    assert (done.events, done.records) == ((), ())
    assert talk.wire.reply(streamed.reply)[-1] is not None


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_that_broke_off_ends_without_an_end(format):
    talk = start((format, True))
    streamed = StreamedRounds(Rounds(talk.wire, knitted(talk), owns))
    events = talk.cut(
        body_of(format, Reply("Hello.", [RECALL]), 1, Prompt(9)), {}
    )
    given = [
        each
        for event in events[: len(events) // 2]
        for each in streamed.feed(event)
    ]
    assert given
    assert streamed.end() == FinishedReply(None)


@pytest.mark.parametrize("format", FORMATS)
def test_text_is_never_kept_back(format):
    """Each event with text gives text at once, in every round."""
    talk = start((format, True))
    streamed = StreamedRounds(Rounds(talk.wire, knitted(talk), owns))
    for number, reply in enumerate(
        (Reply("abcdefgh", [RECALL]), Reply("ijklmnop"))
    ):
        for event in talk.cut(body_of(format, reply, number, Prompt(9)), {}):
            given = "".join(
                _said(format, each) for each in streamed.feed(event)
            )
            assert given.strip() == _said(format, event)
        step = streamed.end()
        if isinstance(step, PrivateCalls):
            streamed.answer(talk.recall(step.calls))


def _said(format, event):
    """The text in an event, ``""`` for none."""
    if format == "gemini":
        parts = event["candidates"][0]["content"]["parts"]
        return "".join(part.get("text", "") for part in parts)
    if format == "openai-responses" and "output_text" not in event["type"]:
        return ""
    holder, name = text_in(format, event)
    return (
        holder[name] if holder and name in ("text", "content", "delta") else ""
    )


oddities = st.sampled_from(
    (None, 7, -1, "x", [], {}, [None, 1], {"index": "a"}, True)
)


@given(
    format=st.sampled_from(list(FORMATS)),
    odd=st.lists(
        st.tuples(st.integers(0, 99), st.integers(0, 99), oddities), max_size=6
    ),
)
def test_what_servers_send_that_is_no_event_of_theirs_breaks_nothing(
    format, odd
):
    """Whatever stands in any field of any event: it is never an error of ours."""
    talk = start((format, True))
    streamed = StreamedRounds(Rounds(talk.wire, knitted(talk), owns))
    events = talk.cut(
        body_of(format, Reply("Hello.", [OWN], thought="Hm."), 1, Prompt(9)),
        {},
    )
    for number, spot, value in odd:
        spots = list(_spots(events[number % len(events)]))
        holder, name = spots[spot % len(spots)]
        holder[name] = copy.deepcopy(value)
    for event in events:
        streamed.feed(event)
    streamed.end()


def _spots(value):
    """Every field and item in a value."""
    names = value if isinstance(value, dict) else range(len(value))
    for name in list(names):
        yield value, name
        if isinstance(value[name], (dict, list)):
            yield from _spots(value[name])
