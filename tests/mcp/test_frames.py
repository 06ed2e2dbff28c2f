"""Frames: parted anywhere, read no further than needed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mcp.values import JSON, parted
from ullage.doors.mcp.frames import (
    FrameSplitter,
    UnreadableFrame,
    encode,
    failure,
    fields_of,
    items_of,
    reply,
    rpc_message_of,
    value_of,
    with_field,
)

STREAMS = st.binary(max_size=60) | st.lists(
    st.sampled_from([b"a", b"\n", b"bc\r\n"])
).map(b"".join)


def pieces(stream, cuts, most_bytes):
    splitter = FrameSplitter(most_bytes)
    for part in parted(stream, cuts):
        yield from splitter.feed(part)
    yield from splitter.end()


@given(STREAMS, st.lists(st.integers(0, 60)), st.integers(1, 20))
def test_all_pieces_joined_are_the_stream_and_each_frame_comes_whole(
    stream, cuts, most
):
    found = list(pieces(stream, cuts, most))
    assert b"".join(piece.data for piece in found) == stream
    *lines, rest = stream.split(b"\n")
    frames = [line + b"\n" for line in lines] + [rest] * bool(rest)
    assert [piece.data for piece in pieces(stream, cuts, 100)] == frames
    assert all(piece.data in frames for piece in found if piece.is_frame)


def test_an_overlong_frame_comes_in_parts_and_the_next_one_whole_again():
    splitter = FrameSplitter(4)
    found = [
        *splitter.feed(b"12345"),
        *splitter.feed(b"67"),
        *splitter.feed(b"8\nok\n"),
    ]
    assert [tuple(piece) for piece in found] == [
        (b"12345", False, False),
        (b"67", False, False),
        (b"8\n", False, True),
        (b"ok\n", True, True),
    ]


@pytest.mark.parametrize(
    "frame",
    [b"", b"[]", b"1", b"{", b'{"id": true}', b'{"method": 1}', b"\xff"],
)
def test_what_is_no_message_has_no_envelope(frame):
    assert rpc_message_of(frame) is None


def test_a_message_with_half_a_surrogate_pair_is_read_too():
    frame = (
        rb'{"jsonrpc":"2.0","id":"7","result":{"content":[{"text":"\ud83d"}]}}'
        + b"\r\n"
    )
    message = rpc_message_of(frame)
    assert message.id == "7"
    (block,) = items_of(fields_of(message.result)["content"])
    assert value_of(fields_of(block)["text"]) == "\ud83d"
    assert json.loads(with_field(frame, "result", b"1")) == {
        "jsonrpc": "2.0",
        "id": "7",
        "result": 1,
    }
    assert with_field(frame, "result", b"1").endswith(b"}\r\n")


@pytest.mark.parametrize(
    "raw", [rb'{"a": 1e400, "b": "\ud83d"}', rb'{"a": NaN}']
)
def test_a_number_that_json_has_not_is_never_written_as_something_else(raw):
    with pytest.raises(UnreadableFrame):
        fields_of(raw)
    assert rpc_message_of(b'{"id":1,"result":' + raw + b"}") is None


@given(JSON)
def test_slices_are_what_was_there(value):
    frame = (
        json.dumps({"id": 1, "result": value, "x": [value]}).encode() + b"\n"
    )
    assert json.loads(with_field(frame, "id", b"2")) == {
        "id": 2,
        "result": value,
        "x": [value],
    }
    assert value_of(rpc_message_of(frame).result) == value


def test_what_is_expected_is_an_object_or_a_list():
    with pytest.raises(UnreadableFrame):
        fields_of(b"[1]")
    with pytest.raises(UnreadableFrame):
        items_of(b'{"a": "\\ud800"}')
    with pytest.raises(UnreadableFrame):
        value_of(b"{")


def test_answers_of_our_own():
    assert json.loads(reply("a", {"t": "\ud83d"})) == {
        "jsonrpc": "2.0",
        "id": "a",
        "result": {"t": "\ud83d"},
    }
    assert json.loads(failure(3, -32000, "gone"))["error"] == {
        "code": -32000,
        "message": "gone",
    }
    assert encode({"é": 1}) == '{"é":1}'.encode()
