"""Amazon's binary frames, in bytes that are cut anywhere."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.exchange.test_sse import pieces_of
from ullage.doors.exchange.amazon import AmazonReader, written
from ullage.doors.exchange.frames import EventFrame

EVENTS = [
    {"type": "message_start"},
    {"type": "ping", "text": "é" * 300},
    {"type": "message_stop"},
]
RAW = b"".join(map(written, EVENTS))


def read(pieces):
    reader = AmazonReader()
    return [
        frame for piece in pieces for frame in reader.feed(piece)
    ], reader.rest()


@given(
    st.lists(st.integers(0, len(RAW) + 9), max_size=8), st.binary(max_size=9)
)
def test_no_cut_changes_what_is_read_and_no_byte_is_lost(cuts, rest):
    frames, left = read(pieces_of(RAW + rest, cuts))
    assert [json.loads(frame.data) for frame in frames] == EVENTS
    assert b"".join(frame.raw for frame in frames) + left == RAW + rest


def test_a_frame_is_as_amazon_describes_it():
    """Lengths and checksums by hand, for the least of events."""
    raw = written({})
    assert raw[:4] == len(raw).to_bytes(4, "big")
    assert raw[12:].startswith(b"\x0b:event-type\x07\x00\x05chunk")
    assert b'{"bytes":"e30="}' in raw


def test_an_error_of_amazons_is_no_event():
    payload = b'{"message":"slow down"}'
    raw = (
        (16 + len(payload)).to_bytes(4, "big") + bytes(8) + payload + bytes(4)
    )
    assert read([raw]) == ([EventFrame(raw, None)], b"")


def test_what_is_no_frame_is_left():
    assert read([b"<html> no such thing </html>"]) == (
        [],
        b"<html> no such thing </html>",
    )
