"""Events of a stream, in whatever blocks its bytes come."""

import asyncio

from ullage.doors.mcp.events import StreamPosition, events


class Stream:
    def __init__(self, text, size):
        self.blocks = [
            text[at : at + size] for at in range(0, len(text), size)
        ]

    async def iter_any(self):
        for block in self.blocks:
            yield block


def read(text, size, tell=None):
    place = StreamPosition()

    async def all_of():
        return [
            each async for each in events(Stream(text, size), 50, place, tell)
        ]

    return asyncio.run(all_of()), place


def test_events_come_in_any_blocks():
    text = (
        b': note\nid: 7\ndata: {"a":\ndata: 1}\r\n\r\nevent: x\n\ndata: %b\n\ndata:2\n\n'
        % (b"x" * 90)
    )
    for size in (1, 3, 1_000):
        told = []
        assert read(text, size, told.append)[0] == [b'{"a":\n1}', b"2"]
        assert told == ["an event of 90 bytes was left out: over 50"]


def test_the_place_is_that_of_the_last_event_that_came_whole():
    text = b"id: a\nretry: 2500\ndata:\n\nid: b\ndata: 1\n\ndata: 2\n\nid: c\ndata: 3\n"
    assert read(text, 5) == ([b"1", b"2"], StreamPosition("b", 2.5))
    assert read(b"retry: 999999999\nretry: soon\n\n", 5)[1] == StreamPosition(
        "", 60
    )
