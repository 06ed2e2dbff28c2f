"""Server-sent events in bytes that are cut anywhere."""

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ullage.doors.exchange.sse import SseReader

ENDS = ("\n", "\r\n", "\r")
lines = st.sampled_from(
    [
        "data: {}",
        "data:x",
        "data",
        ": a comment",
        "event: ping",
        "id: 7",
        "né:",
    ]
)
events = st.lists(st.lists(lines, min_size=1, max_size=4), max_size=6)


def read(pieces):
    reader = SseReader()
    frames = [frame for piece in pieces for frame in reader.feed(piece)]
    return frames, reader.rest()


def pieces_of(raw, cuts):
    places = sorted({min(cut, len(raw)) for cut in cuts} | {0, len(raw)})
    return [raw[a:b] for a, b in pairwise(places)]


@given(
    events,
    st.sampled_from(ENDS),
    st.lists(st.integers(0, 200), max_size=8),
    st.text(),
)
def test_no_cut_changes_what_is_read_and_no_byte_is_lost(
    events, end, cuts, rest
):
    raw = (
        "".join(end.join(event) + end + end for event in events).encode()
        + rest.encode()
    )
    whole, _ = read([raw])
    frames, left = read(pieces_of(raw, cuts))
    assert b"".join(frame.raw for frame in frames) + left == raw
    assert [f.data for f in frames if f.data is not None] == [
        f.data for f in whole if f.data is not None
    ]


def test_an_event_says_what_its_data_lines_say():
    raw = b'\xef\xbb\xbfevent: a\ndata: {"a":\ndata: 1}\n\n: still here\n\ndata:[DONE]\r\n\r\n'
    frames, rest = read([raw])
    assert [frame.data for frame in frames] == [b'{"a":\n1}', None, b"[DONE]"]
    assert json.loads(frames[0].data) == {"a": 1}
    assert rest == b""


def test_what_ends_without_an_empty_line_is_left():
    frames, rest = read([b"data: 1\n\ndata: 2\n"])
    assert [frame.data for frame in frames] == [b"1"]
    assert rest == b"data: 2\n"


def test_one_huge_event_in_small_pieces_is_read_once():
    data = b'{"text": "' + b"a" * 4_000_000 + b'"}'
    raw = b"data: " + data + b"\n\n"
    frames, _ = read(raw[at : at + 4_096] for at in range(0, len(raw), 4_096))
    assert [frame.data for frame in frames] == [data]
