"""Recall inside an exchange, where something goes wrong after the first round."""

import json

import pytest

from tests.exchange.scripted import Reply, ask, exchanges, stream_type
from tests.servers.loops import READ, user
from tests.servers.replies import Call, Prompt, body_of
from tests.servers.replies import Reply as Said
from tests.servers.streams import events_in, stream_of
from ullage import Budget, MemoryStore, StoreError
from ullage.doors.exchange import amazon
from ullage.doors.exchange.exchange import MOST_RECALLS, Exchange
from ullage.doors.hidden_turns import StreamedRounds
from ullage.wires import FORMATS

PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
    "ollama": "/api/chat",
}
every = pytest.mark.parametrize("format", PATHS)
RECALL = Call("get_continuation", {"tool_call_id": "0123456789abcdef"})
LOOKS = Said("I look.", [RECALL])


def asked(format, **more):
    tool = FORMATS[format].tool(READ)
    tools = (
        [{"functionDeclarations": [tool]}] if format == "gemini" else [tool]
    )
    head = {
        "anthropic": {"max_tokens": 500},
        "ollama": {"options": {"num_ctx": 100_000}},
    }
    request = {
        FORMATS[format].key: [user(format)],
        "tools": tools,
        **head.get(format, {}),
        **more,
    }
    return request if format == "gemini" else {"model": "m", **request}


def whole(format, said, number=1):
    return Reply(body_of(format, said, number, Prompt(900)))


def streamed(format, said, number=1):
    options = {"stream_options": {"include_usage": True}}
    raw = stream_of(
        format, body_of(format, said, number, Prompt(900)), options
    )
    return Reply(raw, content_type=stream_type(format))


@every
def test_rounds_are_counted_and_their_usage_is_summed(format):
    door, reports = exchanges()
    replies = streamed(format, LOOKS), streamed(format, "Nothing there.", 2)
    _, said, upstream = ask(
        door, PATHS[format], asked(format, stream=True), *replies
    )
    assert b"Nothing" in said
    assert b"get_continuation" not in said
    assert len(upstream.sent) == 2
    one = FORMATS[format].usage(body_of(format, LOOKS, 1, Prompt(900)))
    two = FORMATS[format].usage(
        body_of(format, "Nothing there.", 2, Prompt(900))
    )
    (report,) = reports
    assert (report.recalled, report.tries, report.usage) == (1, 2, one + two)


@every
def test_a_refusal_of_a_later_round_is_an_event_of_the_stream(format):
    door, reports = exchanges()
    no = Reply(
        {"error": {"message": "overloaded", "type": "overloaded_error"}}, 529
    )
    _, said, _ = ask(
        door,
        PATHS[format],
        asked(format, stream=True),
        streamed(format, LOOKS),
        no,
    )
    text = said.decode()
    assert "I l" in text
    assert "overloaded" in text.rpartition("data: ")[2]
    assert "get_continuation" not in text
    assert reports[0].tries == 2


def test_a_refusal_of_a_later_round_is_the_answer_where_nothing_was_given():
    door, _ = exchanges()
    no = Reply(b'{"error": "overloaded"}', 529)
    replies = whole("anthropic", LOOKS), no
    status, said, _ = ask(door, "/v1/messages", asked("anthropic"), *replies)
    assert (status, said) == (529, b'{"error": "overloaded"}')


def test_a_budget_that_ends_between_two_rounds_ends_the_answer():
    budget = Budget(tokens=10)
    door, _ = exchanges(budget=budget)
    ask(door, "/v1/messages", asked("anthropic"), whole("anthropic", "Yes."))
    status, said, upstream = ask(
        door, "/v1/messages", asked("anthropic"), whole("anthropic", LOOKS)
    )
    assert status == 402
    assert "budget of 10 tokens" in json.loads(said)["error"]["message"]
    assert len(upstream.sent) == 1


def failing_after(monkeypatch, times):
    """The fit of an exchange fails after it went well so many times."""
    prepare, seen = Exchange.prepare, []

    def fail(self, request):
        seen.append(request)
        if len(seen) > times:
            raise ZeroDivisionError
        yield from prepare(self, request)

    monkeypatch.setattr(Exchange, "prepare", fail)


def test_a_mistake_of_ours_between_two_rounds_sends_what_came(monkeypatch):
    failing_after(monkeypatch, 1)
    door, reports = exchanges()
    raw = json.dumps(asked("anthropic")).encode()
    replies = whole("anthropic", LOOKS), Reply(b'{"content": "Plain."}')
    _, said, upstream = ask(door, "/v1/messages", raw, *replies)
    assert said == b'{"content": "Plain."}'
    assert upstream.sent[1] == raw
    assert (reports[0].passed, reports[0].problem) == (
        "error",
        "ZeroDivisionError",
    )


def test_a_mistake_of_ours_between_two_rounds_of_a_stream_is_an_event(
    monkeypatch,
):
    failing_after(monkeypatch, 1)
    door, _ = exchanges()
    request = asked("anthropic", stream=True)
    _, said, _ = ask(
        door, "/v1/messages", request, streamed("anthropic", LOOKS)
    )
    last = json.loads(said.rpartition(b"data: ")[2])
    assert (last["type"], last["error"]["type"]) == ("error", "ullage_error")


@every
def test_a_mistake_of_ours_in_a_stream_lets_it_go_on_as_it_comes(
    format, monkeypatch
):
    def fail(self, event):
        raise ZeroDivisionError

    monkeypatch.setattr(StreamedRounds, "feed", fail)
    door, reports = exchanges()
    reply = streamed(format, "Done.")
    raw = reply.pieces[0]
    options = {"stream_options": {"include_usage": True}}
    _, said, _ = ask(
        door, PATHS[format], asked(format, stream=True, **options), reply
    )
    assert said == raw
    assert reports[0].problem == "ZeroDivisionError"


class Forgetful(MemoryStore):
    """Keeps all but what was hidden from a client."""

    def commit(self, tenant, outputs, records):
        if any(record.kind == "splice" for record in records):
            raise StoreError("memory", "commit", "no room")
        return super().commit(tenant, outputs, records)


@every
def test_what_was_hidden_may_be_lost_and_the_reply_is_given_all_the_same(
    format,
):
    door, reports = exchanges(store=Forgetful())
    replies = streamed(format, LOOKS), streamed(format, "Nothing there.", 2)
    _, said, _ = ask(door, PATHS[format], asked(format, stream=True), *replies)
    assert b"Nothing" in said
    assert reports[0].problem == "StoreError"


@every
@pytest.mark.parametrize("good", [0, 2, 4])
def test_a_mistake_of_ours_in_a_stream_shows_no_private_call(
    format, good, monkeypatch
):
    """However much went well before: what is begun of one ends with an error, not as it comes."""
    feed, fed = StreamedRounds.feed, []

    def fail(self, event):
        fed.append(event)
        if len(fed) > good:
            raise ZeroDivisionError
        return feed(self, event)

    monkeypatch.setattr(StreamedRounds, "feed", fail)
    door, reports = exchanges()
    replies = streamed(format, LOOKS), streamed(format, "Nothing there.", 2)
    _, said, upstream = ask(
        door, PATHS[format], asked(format, stream=True), *replies
    )
    assert b"get_continuation" not in said
    assert b"tool_call_id" not in said
    if len(upstream.sent) == 1:
        error = events_in(said)[-1]["error"]
        words = error if isinstance(error, str) else error["message"]
        assert words.startswith("the answer could not be gone on with")
        assert reports[0].problem == "ZeroDivisionError"


def test_bedrocks_stream_recalls_too():
    def framed(reply):
        lines = reply.pieces[0].decode().splitlines()
        events = [
            json.loads(line[5:]) for line in lines if line.startswith("data:")
        ]
        raw = b"".join(map(amazon.written, events))
        return Reply(
            [raw[:99], raw[99:]],
            content_type="application/vnd.amazon.eventstream",
        )

    door, reports = exchanges()
    request = asked("anthropic", anthropic_version="bedrock-2023-05-31")
    del request["model"]
    replies = (
        framed(streamed("anthropic", LOOKS)),
        framed(streamed("anthropic", "Nothing.", 2)),
    )
    path = "/model/anthropic.claude-opus-4-8-v1:0/invoke-with-response-stream"
    _, said, _ = ask(door, path, request, *replies)
    reader = amazon.AmazonReader()
    events = [json.loads(frame.data) for frame in reader.feed(said)]
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-1], kinds.count("message_start")) == (
        "message_start",
        "message_stop",
        1,
    )
    assert "get_continuation" not in json.dumps(events)
    assert reports[0].recalled == 1


def held(previous, *items, **more):
    """A request of Responses whose history is at the provider."""
    return {
        **asked("openai-responses"),
        "previous_response_id": previous,
        "input": items,
        **more,
    }


def said_both(door):
    """The id of a reply with a private call and one of the client's, and the result of that."""
    both = Said(
        "Both.", [RECALL, Call("read_file", {"path": "a"}, "call_mine")]
    )
    path = "/v1/responses"
    _, said, _ = ask(
        door, path, asked("openai-responses"), whole("openai-responses", both)
    )
    reply = json.loads(said)
    assert [item.get("name") for item in reply["output"]][1:] == ["read_file"]
    return reply["id"], {
        "type": "function_call_output",
        "call_id": "call_mine",
        "output": "x",
    }


def test_what_waits_for_a_client_whose_history_is_at_the_provider_is_put_in():
    door, reports = exchanges()
    previous, result = said_both(door)
    _, _, upstream = ask(
        door, "/v1/responses", held(previous, result), Reply(b"{}")
    )
    sent = json.loads(upstream.sent[0])
    assert len(sent["input"]) == 2
    assert sent["input"][-1] == result
    assert (reports[1].passed, reports[1].is_changed) == (None, True)


def test_what_waits_goes_on_even_where_nothing_can_be_fitted(monkeypatch):
    door, reports = exchanges()
    previous, result = said_both(door)
    monkeypatch.setattr(Exchange, "prepare", fails)
    _, _, upstream = ask(
        door, "/v1/responses", held(previous, result), Reply(b"{}")
    )
    assert len(json.loads(upstream.sent[0])["input"]) == 2
    assert reports[1].passed == "error"


def test_what_is_new_to_a_history_at_the_provider_is_fitted_and_recalled():
    door, reports = exchanges()
    output = "".join(f"line {n} of the log\n" for n in range(9_000))
    result = {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": output,
    }
    request = held("resp_before", result)
    replies = (
        whole("openai-responses", LOOKS),
        whole("openai-responses", "Done.", 2),
    )
    _, said, upstream = ask(door, "/v1/responses", request, *replies)
    first, second = map(json.loads, upstream.sent)
    assert len(first["input"][0]["output"]) < len(output) / 4
    assert (
        first["previous_response_id"]
        == second["previous_response_id"]
        == "resp_before"
    )
    assert second["input"][: len(first["input"])] == first["input"]
    assert b"get_continuation" not in said
    assert (
        reports[0].recalled,
        reports[0].passed,
        reports[0].conversation,
    ) == (
        1,
        None,
        "",
    )
    _, _, upstream = ask(
        door, "/v1/responses", held(json.loads(said)["id"]), Reply(b"{}")
    )
    last = body_of("openai-responses", "Done.", 2, Prompt(900))["id"]
    assert json.loads(upstream.sent[0])["previous_response_id"] == last


def fails(*_):
    raise ZeroDivisionError
    yield


@every
def test_one_reply_may_look_up_only_so_much(format):
    door, reports = exchanges()
    many = Said("I look.", [RECALL] * (MOST_RECALLS + 2))
    replies = whole(format, many), whole(format, "Enough.", 2)
    path = PATHS[format].replace(
        "streamGenerateContent?alt=sse", "generateContent"
    )
    _, said, upstream = ask(door, path, asked(format), *replies)
    assert b"Enough." in said
    assert reports[0].recalled == MOST_RECALLS
    assert (
        upstream.sent[1].count(b"this reply has looked up as much as one may")
        == 2
    )


def test_one_reply_may_take_only_so_long_to_look_things_up():
    door, reports = exchanges()
    ticks = iter(range(0, 1_000, 3))
    door.now_s = lambda: next(ticks)  # each call takes three seconds
    replies = (
        whole("anthropic", Said("I look.", [RECALL] * 5)),
        whole("anthropic", "Enough.", 2),
    )
    _, _, upstream = ask(door, "/v1/messages", asked("anthropic"), *replies)
    assert reports[0].recalled == 2
    assert (
        upstream.sent[1].count(b"this reply has looked up as much as one may")
        == 3
    )
