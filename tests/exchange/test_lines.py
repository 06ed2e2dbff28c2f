"""Lines of JSON in bytes that are cut anywhere."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.exchange.test_sse import pieces_of
from ullage.doors.exchange import lines
from ullage.doors.exchange.frames import EventTooLong
from ullage.doors.exchange.lines import LINES, LineReader, written

events = st.lists(
    st.sampled_from(['{"done": false}', "{}", "", "  ", '{"é": "\\n"}']),
    max_size=6,
)


def read(pieces):
    reader = LineReader()
    frames = [frame for piece in pieces for frame in reader.feed(piece)]
    return frames, reader.rest()


@given(
    events,
    st.sampled_from(("\n", "\r\n")),
    st.lists(st.integers(0, 90), max_size=8),
)
def test_no_cut_changes_what_is_read_and_no_byte_is_lost(said, end, cuts):
    raw = "".join(each + end for each in said).encode() + b'{"half'
    frames, rest = read(pieces_of(raw, cuts))
    assert b"".join(frame.raw for frame in frames) + rest == raw
    assert [frame.data for frame in frames] == [
        each.strip().encode() or None for each in said
    ]
    assert rest == b'{"half'


def test_an_event_is_written_as_one_line():
    event = {"message": {"content": "two\nlines"}, "done": True}
    assert json.loads(written(event)) == event
    assert written(event).count(b"\n") == 1


def test_it_is_told_by_the_content_type():
    assert "application/x-ndjson; charset=utf-8".startswith(LINES.content_type)


def test_a_line_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr(lines, "MOST_EVENT_BYTES", 100)
    reader = LineReader()
    reader.feed(b"x" * 100)
    with pytest.raises(EventTooLong):
        reader.feed(b"x")
