"""A body that is written around copied bytes is the body that is written whole."""

import json
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.doors.exchange import bodies, splices
from ullage.doors.exchange.parsed_body import read_anew, read_on

TEXTS = st.text(max_size=6) | st.sampled_from(
    ["é", "日", "\u2028", "\x7f", "\\"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | TEXTS
    | st.sampled_from([1.0, 1e22, 0.1]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2)
    ),
    max_leaves=4,
)
MESSAGES = st.lists(
    st.dictionaries(st.sampled_from(["role", "content"]), VALUES), max_size=6
)


@st.composite
def styles(draw):
    """How a client writes JSON: most write it as we do."""
    comma = draw(st.sampled_from([",", ", ", " ,\n"]))
    return {
        "separators": (comma, draw(st.sampled_from([":", ": "]))),
        "ensure_ascii": draw(st.booleans()),
    }


@st.composite
def changes(draw, messages):
    """A view of some messages: some of them left out, changed, moved, or with others between."""
    indices = draw(
        st.lists(st.integers(-1, max(len(messages) - 1, 0)), max_size=9)
    )
    view = [
        messages[index] if 0 <= index < len(messages) else {"new": index}
        for index in indices
    ]
    return draw(
        st.sampled_from(
            [messages, view, [*messages, {"new": 1}], messages[1:], []]
        )
    )


@pytest.fixture(autouse=True)
def short():
    with patch.object(splices, "_LEAST_BYTES", 0):
        yield


@given(MESSAGES, MESSAGES, styles(), styles(), st.data())
def test_the_bytes_are_those_of_the_whole_written(
    earlier, more, style, other, data
):
    first = json.dumps({"model": "m", "messages": earlier}, **style).encode()
    body = json.dumps(
        {"model": "m", "messages": [*earlier, *more]}, **other
    ).encode()
    before = read_anew(first, "messages")
    for parsed in (
        read_anew(body, "messages"),
        before and read_on(before, body),
    ):
        if parsed is None:
            continue
        messages = parsed.value["messages"]
        view = {
            **parsed.value,
            "messages": data.draw(changes(messages)),
            "tools": [{"name": "x"}],
        }
        written = parsed.message_bytes(body).written(
            view, "messages", messages
        )
        assert written == bodies.write(view)


def body_of(messages):
    return bodies.write({"model": "m", "messages": messages, "stream": True})


def spoken(count):
    return [
        {"role": "user", "content": f"Say {number}."}
        for number in range(count)
    ]


def test_only_what_is_new_is_written():
    body = body_of(spoken(6))
    parsed = read_anew(body, "messages")
    messages = parsed.value["messages"]
    edited = {"role": "user", "content": "Said."}
    view = {**parsed.value, "messages": [*messages[:2], edited, *messages[3:]]}
    with patch.object(splices, "write", wraps=bodies.write) as write:
        sent = parsed.message_bytes(body).written(view, "messages", messages)
    ((around,), _) = write.call_args
    before, new, behind = around["messages"]
    assert (
        bytes(before) == body[body.index(b'{"role"') :][: len(bytes(before))]
    )
    assert new is edited
    assert bytes(behind).count(b"Say") == 3
    assert sent == bodies.write(view)


def test_a_client_that_writes_spaces_is_written_without_them():
    body = json.dumps({"messages": spoken(3)}).encode()
    parsed = read_anew(body, "messages")
    messages = parsed.value["messages"]
    view = {"messages": [*messages, {"role": "user", "content": "More."}]}
    sent = parsed.message_bytes(body).written(view, "messages", messages)
    assert sent == bodies.write(view)
    assert b": " not in sent


def test_what_msgspec_cannot_write_is_written_whole():
    body = body_of(spoken(3))
    parsed = read_anew(body, "messages")
    messages = parsed.value["messages"]
    view = {"messages": messages, "system": "\ud800"}
    sent = parsed.message_bytes(body).written(view, "messages", messages)
    assert json.loads(sent) == view


def test_messages_that_are_not_those_of_the_body_are_written():
    body = body_of(spoken(3))
    parsed = read_anew(body, "messages")
    fewer = parsed.value["messages"][:2]
    assert parsed.message_bytes(body).written(
        {"messages": fewer}, "messages", fewer
    ) == bodies.write({"messages": fewer})
