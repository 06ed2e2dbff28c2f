"""Turns whose replies come as streams: read to their end, and then as any other."""

import asyncio

import pytest

from tests.loop.replies import (
    FORMAT_NAMES,
    as_sdk,
    asking,
    reply,
    request,
    results,
)
from tests.loop.test_turn import Scripted, new_session, read_log, run
from tests.servers.streams import events_in, stream_of
from ullage import AsyncSession, FormatError
from ullage.doors.loop import arun_turn, run_turn
from ullage.wires import FORMATS
from ullage.wires.reported import is_stream

formats = pytest.mark.parametrize("format", FORMAT_NAMES)


def events_of(format, body):
    """The events of a reply, as a client parses them."""
    return events_in(
        stream_of(format, body, {"stream_options": {"include_usage": True}})
    )


def script(format):
    calls = [("read_log", {"path": "a", "lines": 2})]
    return [
        reply(format, "Let me look.", calls, 1),
        reply(format, "All is well."),
    ]


@formats
def test_a_turn_of_streams_is_a_turn_of_whole_replies(format):
    whole, _, session = run(format, *script(format), tools=[read_log])
    streams = [iter(events_of(format, body)) for body in script(format)]
    streamed, _, other = run(format, *streams, tools=[read_log])
    assert (streamed.text, streamed.why) == ("All is well.", "answered")
    wire = FORMATS[format]
    parsed = [
        [wire.parse(raw, "x") for raw in each.history]
        for each in (streamed, whole)
    ]
    assert parsed[0] == parsed[1]
    assert results(format, streamed.history) == results(format, whole.history)
    assert streamed.usage == whole.usage == other.usage == session.usage


@formats
def test_the_same_in_an_event_loop(format):
    class Client(Scripted):
        async def __call__(self, **view):
            return self.next_reply(view)

    async def events(body):
        for event in events_of(format, body):
            yield event

    client = Client(format, *map(events, script(format)))
    session = new_session(format, AsyncSession)
    asked = request(format, asking(format))
    outcome = asyncio.run(arun_turn(client, session, asked, tools=[read_log]))
    assert (outcome.text, outcome.usage) == ("All is well.", session.usage)


@pytest.mark.parametrize("format", ["anthropic", "openai-responses"])
def test_a_stream_that_breaks_off_adds_nothing_and_the_turn_can_be_run_again(
    format,
):
    history = asking(format)
    broken = iter(events_of(format, script(format)[0])[:-1])
    session = new_session(format)
    client = Scripted(format, broken, *script(format))
    with pytest.raises(FormatError, match="ended before the reply did"):
        run_turn(client, session, request(format, history), tools=[read_log])
    assert history == asking(format)
    outcome = run_turn(
        client, session, request(format, history), tools=[read_log]
    )
    assert outcome.text == "All is well."


@formats
def test_no_reply_is_taken_for_a_stream(format):
    body = reply(format, "All is well.")
    assert not is_stream(body)
    assert not is_stream(as_sdk(format, body))
    assert is_stream(iter([body]))
