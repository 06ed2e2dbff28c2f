"""What a host reads of a session and gives it, also while a call is under way."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from ullage import Limits, Session
from ullage.wires import FORMATS

TIGHT = Limits(window_tokens=4_000, output_reserve_tokens=500)
formats = st.sampled_from(sorted(FORMATS))


def read_anew(request):
    """The request as another reading of the same JSON has it."""
    return json.loads(json.dumps(request))


@given(formats, histories.histories, st.lists(st.integers(1, 14), max_size=5))
def test_it_says_the_same_and_leads_to_the_same_view(format, turns, stops):
    """A history grows, is rewound and comes again: the bytes are those of a session without."""
    sharing, plain = _session(format), _session(format)
    for stop in stops:
        request = histories.request(
            format, histories.wire(format, turns[:stop])
        )
        found = sharing.intern(read_anew(request))
        assert json.dumps(found) == json.dumps(request)
        view, wanted = sharing.fit(found), plain.fit(read_anew(request))
        assert json.dumps(view) == json.dumps(wanted)
        assert json.dumps(found) == json.dumps(request)


def _session(format):
    return Session("gpt-4.1", format=format, limits=TIGHT)


def test_what_is_as_it_was_is_the_very_same_object():
    session, request = Session("gpt-4.1"), _asked("one", "two")
    first = session.fit(session.intern(read_anew(request)))
    again = session.intern(
        read_anew({**request, "messages": [*request["messages"], _said("3")]})
    )
    *known, new = again["messages"]
    pairs = zip(first["messages"], known, strict=True)
    assert all(one["content"] is other["content"] for one, other in pairs)
    view = session.fit(again)
    assert all(
        one is other
        for one, other in zip(view["messages"], again["messages"], strict=True)
    )
    assert new == _said("3")


def test_what_is_equal_and_written_otherwise_stays_as_it_came():
    """A client that mended true into 1 must not be sent back to what its provider refused."""
    session = Session("claude-opus-4-5")
    messages = [
        _said("run it"),
        _called({"n": 1}),
        _result(is_error=True),
        _said("so"),
    ]
    session.fit(session.intern({"messages": messages, "max_tokens": 9}))
    mended = [
        _said("run it"),
        _called({"n": 1.0}),
        _result(is_error=1),
        _said("so"),
    ]
    assert mended == messages
    found = session.intern({"messages": mended, "max_tokens": 9})
    assert json.dumps(found["messages"]) == json.dumps(mended)


def test_of_branches_the_one_that_goes_on_is_found():
    session = Session("gpt-4.1")
    one, other = _asked("one", "two"), _asked("one", "three")
    for request in (one, other):
        session.fit(session.intern(read_anew(request)))
    again = session.intern(read_anew(one))
    assert session.fit(again)["messages"][1] is again["messages"][1]


def test_the_newest_request_is_at_hand_until_what_is_remembered_goes():
    session = Session("gpt-4.1")
    assert session.newest_request() is None
    request = _asked("one", "two") | {"temperature": 0.5}
    request["messages"].insert(0, {"role": "system", "content": "Be brief."})
    session.fit(request)
    assert session.newest_request() == request
    session.take(())
    assert session.newest_request() == request


def _asked(*texts):
    return {"model": "gpt-4.1", "messages": list(map(_said, texts))}


def _said(text):
    return {"role": "user", "content": text}


def _called(given):
    call = {"type": "tool_use", "id": "c", "name": "run", "input": given}
    return {"role": "assistant", "content": [call]}


def _result(**fields):
    result = {
        "type": "tool_result",
        "tool_use_id": "c",
        "content": "ran",
        **fields,
    }
    return {"role": "user", "content": [result]}
