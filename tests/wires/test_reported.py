"""What a reply reports, in every form a caller may hold it; and what says nothing, by name."""

import pytest

from tests.servers import Reply
from tests.servers.loops import request, user
from ullage import Session, Usage
from ullage.wires import FORMATS
from ullage.wires.reported import Unreadable, id_of, left_out_of, usage_of

every = pytest.mark.parametrize("format", tuple(FORMATS))
SAYING = Reply("It is the lock file.")


@every
def test_a_reply_its_events_and_its_raw_response_report_the_same(
    serve, format
):
    server = serve(format, [SAYING, SAYING])
    client, asked = server.client(), request(format, [user(format)], tools=())
    more = (
        {"stream_options": {"include_usage": True}}
        if format == "openai-chat"
        else {}
    )
    wire = FORMATS[format]
    reply = server.ask(client, asked)
    assert (
        usage_of(reply, wire)
        == usage_of(server.answered[0], wire)
        == wire.usage(reply)
    )
    events = server.ask(client, asked | more, stream=True)
    assert usage_of(events, wire) == wire.usage(server.answered[1])
    if format not in ("gemini", "ollama", "bedrock-converse"):
        assert id_of(reply)
        assert id_of(events) == server.answered[1]["id"]


def test_a_raw_response_reports_what_it_parses_to(serve):
    server = serve("anthropic", [SAYING])
    asked = request("anthropic", [user("anthropic")], tools=())
    response = server.client().messages.with_raw_response.create(**asked)
    assert usage_of(response, FORMATS["anthropic"]) == usage_of(
        server.answered[0], FORMATS["anthropic"]
    )


@every
def test_a_stream_is_not_read_for_its_usage(serve, format):
    server = serve(format, [SAYING])
    client, asked = server.client(), request(format, [user(format)], tools=())
    match format:
        case "bedrock-converse":
            stream = client.converse_stream(**asked)["stream"]
        case "gemini":
            stream = client.models.generate_content_stream(**asked)
        case "anthropic":
            stream = client.messages.create(**asked, stream=True)
        case "ollama":
            stream = client.chat(**asked, stream=True)
        case "openai-chat":
            stream = client.chat.completions.create(**asked, stream=True)
        case _:
            stream = client.responses.create(**asked, stream=True)
    found = usage_of(stream, FORMATS[format])
    assert isinstance(found, Unreadable)
    assert "give its events" in found.why
    assert list(stream)


@every
@pytest.mark.parametrize(
    "reply", [None, "x", b"{}", 7, True, [], {}, object(), Usage()]
)
def test_what_tells_nothing_is_unreadable_and_says_why(format, reply):
    found = usage_of(reply, FORMATS[format])
    assert isinstance(found, Unreadable)
    assert found.why


NONSENSE = [
    {"usage": {}},
    {"usage": {"input_tokens": 0, "output_tokens": 0}},
    {"usage": {"input_tokens": -5, "output_tokens": -1}},
    {"usage": {"input_tokens": "12", "output_tokens": 1.5}},
]


@pytest.mark.parametrize("reply", [None, "x", [], *NONSENSE])
def test_observing_what_says_nothing_is_an_event_with_our_estimate(reply):
    session = Session("claude-opus-4-8")
    session.fit(request("anthropic", [user("anthropic")], tools=()))
    session.observe(reply)
    event = session.events[-1]
    assert (event.kind, event.tokens_after) == (
        "unreported",
        session.window.estimate,
    )
    assert session.usage == Usage()


def test_reasoning_that_a_provider_left_out_is_told_by_events_as_well():
    told = [{"type": "thinking_dropped", "reason": "prefix"}] * 2
    start = {
        "type": "message_start",
        "message": {"input_transformations": told},
    }
    assert (
        left_out_of([start]) == left_out_of(start["message"]) == {"prefix": 2}
    )
