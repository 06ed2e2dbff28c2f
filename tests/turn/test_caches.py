"""Snapshots: whatever a caller does to his messages afterwards is noticed."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from ullage import Limits, Session
from ullage.core.history.snapshots import snapshot

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=4), inner, max_size=4),
        st.tuples(inner, inner),
    ),
    max_leaves=20,
)


class Block:
    """What an SDK gives: fields, and no equality of its own."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


@given(values)
def test_a_snapshot_equals_what_it_was_taken_of(value):
    assert snapshot(value) == value
    assert snapshot(value) == copy.deepcopy(value)


@given(st.lists(values, min_size=1), st.integers(), values)
def test_a_changed_element_is_noticed_at_any_depth(value, at, new):
    taken, before = snapshot(value), copy.deepcopy(value)
    _change(value, at % len(value), new)
    assert (taken == value) == (before == value)
    assert taken == before


def _change(value, at, new):
    """Change the innermost list or dict on the way down, in place."""
    inner = value[at]
    if isinstance(inner, list) and inner:
        _change(inner, at % len(inner), new)
    elif isinstance(inner, dict) and inner:
        inner[next(iter(inner))] = new
    else:
        value[at] = new


@given(values)
def test_leaves_are_shared_and_containers_are_not(value):
    taken = snapshot([value, "a leaf" * 9])
    assert taken[1] is not None
    if isinstance(value, (list, dict)):
        assert taken[0] is not value


def test_leaf_strings_are_the_callers_own():
    text = "long " * 9_000
    assert (
        snapshot({"content": [{"text": text}]})["content"][0]["text"] is text
    )


def test_an_sdk_object_equals_one_of_its_type_with_equal_fields():
    taken = snapshot(Block(type="text", text=["so"]))
    assert taken == Block(type="text", text=["so"])
    assert taken != Block(type="text", text=["so", "on"])
    assert taken != {"type": "text", "text": ["so"]}


def test_a_changed_field_of_an_sdk_object_is_noticed():
    block = Block(text="one")
    taken = snapshot([block])
    assert taken == [block]
    block.text = "two"
    assert taken != [block]


def test_what_cannot_be_looked_into_is_looked_at_every_time():
    strange = object.__new__(type("Slots", (), {"__slots__": ("x",)}))
    assert snapshot(strange) != strange
    assert snapshot([strange]) != [strange]


def test_a_message_changed_in_place_is_sent_as_it_is_now():
    messages = [
        {"role": "user", "content": "the tide came in"},
        {"role": "user", "content": "so"},
    ]
    session = new_session()
    session.fit({"messages": messages})
    messages[0]["content"] = "the tide went out"
    assert session.fit({"messages": messages})["messages"] == messages
    cold = new_session()
    cold.fit({"messages": messages})
    assert [*session.window.transcript.chain] == [
        *cold.window.transcript.chain
    ]


@given(histories.histories, st.data())
def test_a_memo_changes_nothing_but_speed(turns, data):
    """Messages changed in place: the same view with the memo, and from the state alone."""
    messages = histories.wire("openai-chat", turns)
    remembering = new_session()
    remembering.fit({"messages": messages})
    index = data.draw(st.integers(0, len(messages) - 1))
    messages[index]["content"] = "something else"
    forgetful = new_session(state=remembering.state)
    assert forgetful.fit({"messages": messages}) == remembering.fit(
        {"messages": messages}
    )


def new_session(**more):
    return Session(
        "gpt-4.1", limits=Limits(window_tokens=6_000), recall=True, **more
    )


def test_arguments_in_other_words_of_the_same_meaning_are_counted_anew():
    messages = histories.wire(
        "openai-chat",
        [histories.Turn(calls=(histories.Call("bash", "a.py", "tide"),))],
    )
    (asking,) = (message for message in messages if message.get("tool_calls"))
    session, again = new_session(), new_session()
    session.fit({"messages": messages})
    function = asking["tool_calls"][0]["function"]
    function["arguments"] = function["arguments"].replace(
        ":", " \n" * 40 + ":"
    )
    assert session.fit({"messages": messages}) == again.fit(
        {"messages": messages}
    )
    assert session.window.tokens == again.window.tokens


def test_a_rewound_history_is_the_shorter_one():
    messages = [
        {"role": "user", "content": f"the tide of day {day}"}
        for day in range(6)
    ]
    session = new_session()
    session.fit({"messages": messages})
    assert session.fit({"messages": messages[:2]})["messages"] == messages[:2]
    assert session.window.size == 2


def test_another_models_counts_are_its_own():
    said = [
        {
            "role": "user",
            "content": "".join(chr(0x4E00 + n) for n in range(900)),
        }
    ]
    session, other = new_session(), new_session()
    for model in ("gpt-4.1", "claude-sonnet-4-5"):
        session.fit({"model": model, "messages": said})
    other.fit({"model": "claude-sonnet-4-5", "messages": said})
    assert session.window.message_tokens(0) == other.window.message_tokens(0)


def test_a_branch_hears_of_what_is_decided_at_its_beginning():
    call = histories.Call("bash", "a.py", "a line of output\n" * 100)
    messages = histories.wire(
        "openai-chat", [histories.Turn(calls=(call,))] * 12
    )
    session = new_session()
    fork = [*messages[:-2], {"role": "user", "content": "Something else."}]
    session.fit({"messages": messages[:-4]})
    session.fit({"messages": fork})
    session.fit({"messages": messages})
    cold = new_session(state=session.state)
    assert session.fit({"messages": fork}) == cold.fit({"messages": fork})


def test_a_model_that_comes_back_hears_of_what_another_changed_meanwhile():
    """What the first model's line remembers was opened anew where it had not walked yet."""
    bound, free = "claude-opus-5-5", "claude-opus-4-8"
    messages = histories.wire(
        "anthropic", [histories.Turn(said="Aye.", user="Go on.")] * 4
    )
    session, thinking = new_session(format="anthropic"), {"type": "adaptive"}
    for model, length in ((bound, 1), (free, 3), (bound, 5)):
        request = {
            "model": model,
            "thinking": thinking,
            "messages": messages[:length],
        }
        view = session.fit(request)
    opened = [event.kind for event in session.events]
    assert opened == ["changed", "changed"]
    cold = new_session(format="anthropic", state=session.state)
    assert cold.fit(request) == view
    assert cold.events == ()
