"""One exchange with a provider's API, with an upstream that answers from a script."""

import asyncio
import json

import pytest

from tests import histories
from tests.exchange.scripted import (
    SSE,
    Reply,
    Upstream,
    aask,
    ask,
    async_exchanges,
    exchanges,
    sse,
)
from tests.servers.refusals import too_long
from tests.servers.replies import Prompt, body_of
from tests.servers.streams import stream_of
from ullage import Budget, Limits, StoreError
from ullage.documents import NAMES
from ullage.doors.exchange import ExchangeCounts, amazon
from ullage.doors.exchange.answers import (
    TeedAnswer,
    UntouchedAnswer,
    WholeAnswer,
)
from ullage.doors.exchange.exchange import Exchange
from ullage.doors.exchange.replies import error_of
from ullage.doors.exchange.requests import client_session_in, is_same
from ullage.doors.exchange.streamed import StreamedAnswer
from ullage.session.drivers import drive
from ullage.stores import MemoryStore
from ullage.wires import FORMATS

PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-3-pro:generateContent",
}
every = pytest.mark.parametrize("format", PATHS)
LIMITS = Limits(window_tokens=8_000, output_reserve_tokens=500)
LONG = [
    histories.Turn(
        calls=(histories.Call("bash", f"{n}.py", f"line {n}\n" * 500),)
    )
    for n in range(12)
]


def body(format, turns=(), **more):
    request = {
        **histories.request(format, histories.wire(format, turns)),
        **more,
    }
    if format == "gemini":
        del request["model"]
    return request


def replied(format, text="Done."):
    return body_of(format, text, 1, Prompt(900))


def streamed(format, request, text="Done."):
    return Reply(
        stream_of(format, replied(format, text), request), content_type=SSE
    )


# ── fitted ───────────────────────────────────────────────────────────────────────────────


@every
def test_what_fits_is_sent_and_given_to_the_byte(format):
    door, reports = exchanges()
    raw = json.dumps(body(format), indent=3).encode()
    reply = json.dumps(replied(format), indent=2).encode()
    status, said, upstream = ask(door, PATHS[format], raw, Reply(reply))
    assert (status, said, upstream.sent) == (200, reply, [raw])
    (report,) = reports
    assert report.usage == FORMATS[format].usage(json.loads(reply))
    assert (report.is_changed, report.tries, report.passed) == (False, 1, None)


@every
def test_a_long_history_is_sent_shorter_and_says_so(format):
    door, reports = exchanges(limits=LIMITS)
    asked = body(format, LONG)
    _, _, upstream = ask(door, PATHS[format], asked, Reply(replied(format)))
    sent = json.loads(upstream.sent[0])
    assert len(upstream.sent[0]) < len(json.dumps(asked)) / 2
    assert {key: sent[key] for key in sent if key != FORMATS[format].key} == {
        key: asked[key] for key in asked if key != FORMATS[format].key
    }
    (report,) = reports
    assert report.is_changed
    assert 0 < report.view_tokens <= report.limit_tokens
    assert report.events
    assert door.counts == ExchangeCounts(
        requests=1, fitted=1, changed=1, usage=report.usage
    )


@every
def test_an_event_loop_sends_and_gives_the_same(format):
    asked = body(format, LONG)
    here = ask(
        exchanges(limits=LIMITS)[0],
        PATHS[format],
        asked,
        Reply(replied(format)),
    )
    door, _ = async_exchanges(limits=LIMITS)
    there = asyncio.run(
        aask(door, PATHS[format], asked, Reply(replied(format)))
    )
    assert here[:2] == there[:2]
    assert here[2].sent == there[2].sent


@every
def test_conversations_that_begin_alike_are_kept_warm_apart(format):
    door, reports = exchanges()
    for turns in range(4):
        for name in ("a.py", "b.py"):
            calls = (histories.Call("bash", name, f"the output of {name}"),)
            asked = body(format, [histories.Turn(calls=calls)] * turns)
            ask(door, PATHS[format], asked, Reply(replied(format)))
    keys = [report.conversation for report in reports]
    one, other = set(keys[::2]), set(keys[3::2])
    assert len(one) == len(other) == 1
    assert one != other
    assert len(door.sessions) == 2


@every
def test_conversations_that_do_not_stay_warm_are_sent_as_if_they_did(format):
    names = [f"{n}.py" for n in range(18)]
    sent, doors = (
        [],
        [
            exchanges(limits=LIMITS, **room)[0]
            for room in ({}, {"older_bytes": 1})
        ],
    )
    for door in doors:
        for stop in (10, 11, 12):
            for name in names:
                turns = [
                    histories.Turn(
                        calls=(
                            histories.Call("bash", name, f"{name}\n" * 400),
                        )
                    )
                ]
                asked = body(format, turns + LONG[:stop])
                _, _, upstream = ask(
                    door, PATHS[format], asked, Reply(replied(format))
                )
                sent += upstream.sent
    assert sent[: len(sent) // 2] == sent[len(sent) // 2 :]
    assert [door.counts.changed for door in doors] == [54, 54]
    assert [len(door.sessions) for door in doors] == [18, 16]
    assert [len(door.body_cache) for door in doors] == [18, 16]


@pytest.mark.parametrize(
    ("path", "format"),
    [
        (
            "/openai/deployments/gpt-4.1/chat/completions?api-version=1",
            "openai-chat",
        ),
        (
            "/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
            "gemini",
        ),
        (
            "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
            "anthropic",
        ),
        ("/model/anthropic.m-v1%3A0/invoke", "anthropic"),
    ],
)
def test_a_model_that_the_path_names_stays_out_of_the_body(path, format):
    asked = body(format, LONG)
    asked.pop("model", None)
    asked |= (
        {"anthropic_version": "vertex-2023-10-16"}
        if format == "anthropic"
        else {}
    )
    door, _ = exchanges(limits=LIMITS)
    _, _, upstream = ask(door, path, asked, Reply(replied(format)))
    assert json.loads(upstream.sent[0]).keys() == asked.keys()
    assert door.counts.changed == 1


# ── streams ──────────────────────────────────────────────────────────────────────────────


@every
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_stream_leaves_as_the_bytes_that_came_however_they_are_cut(
    format, size
):
    door, reports = exchanges()
    options = (
        {"stream_options": {"include_usage": True}}
        if format == "openai-chat"
        else {}
    )
    asked = body(format, stream=True, **options)
    raw = stream_of(format, replied(format), asked)
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    reply = Reply(pieces, content_type=SSE)
    _, said, _ = ask(door, PATHS[format], asked, reply)
    assert said == raw
    assert reply.closed
    assert reports[0].usage == FORMATS[format].usage(replied(format))


@every
@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_reply_is_given_before_it_is_taken_in(
    format, is_streamed, monkeypatch
):
    """Writing down what it reports is no reason to let a client wait."""
    done = []
    observe = Exchange.observe
    monkeypatch.setattr(
        Exchange, "observe", lambda *given: done.append(1) or observe(*given)
    )
    door, reports = exchanges()
    asked = body(format, stream=True) if is_streamed else body(format)
    reply = streamed(format, asked) if is_streamed else Reply(replied(format))
    upstream = Upstream(reply)
    answer = drive(
        door.of(
            "POST", PATHS[format], json.dumps(asked).encode(), upstream
        ).steps()
    )
    while drive(answer.next()):
        assert not done
    assert not done
    assert not reports
    drive(answer.close())
    assert done == [1]
    assert len(reports) == 1


def test_usage_is_asked_for_and_kept_from_a_client_that_did_not_ask():
    door, reports = exchanges()
    asked = body("openai-chat", stream=True)
    wanted = {**asked, "stream_options": {"include_usage": True}}
    _, said, upstream = ask(
        door, "/v1/chat/completions", asked, streamed("openai-chat", wanted)
    )
    assert json.loads(upstream.sent[0]) == wanted
    assert said == stream_of("openai-chat", replied("openai-chat"), asked)
    assert reports[0].usage == FORMATS["openai-chat"].usage(
        replied("openai-chat")
    )
    assert not reports[0].is_changed


def test_a_server_that_reports_no_usage_of_streams_is_not_asked_again():
    door, _ = exchanges()
    asked = body("openai-chat", stream=True)
    no = Reply({"error": {"message": "unknown field stream_options"}}, 400)
    plain = streamed("openai-chat", asked), streamed("openai-chat", asked)
    status, said, upstream = ask(
        door, "/v1/chat/completions", asked, no, plain[0]
    )
    assert (status, said) == (
        200,
        stream_of("openai-chat", replied("openai-chat"), asked),
    )
    assert json.loads(upstream.sent[1]) == asked
    _, _, upstream = ask(door, "/v1/chat/completions", asked, plain[1])
    assert json.loads(upstream.sent[0]) == asked


@every
def test_a_client_that_goes_away_closes_the_upstream_and_is_counted(format):
    door, reports = exchanges()
    asked = body(format, stream=True)
    reply = Reply(
        [stream_of(format, replied(format), asked)[:60]] * 99, content_type=SSE
    )
    upstream = Upstream(reply)
    answer = drive(
        door.of(
            "POST", PATHS[format], json.dumps(asked).encode(), upstream
        ).steps()
    )
    drive(answer.next())
    drive(answer.close())
    drive(answer.close())
    assert reply.closed == 1
    assert len(reports) == 1


@every
def test_a_stream_that_breaks_off_breaks_off_for_the_client(format):
    door, reports = exchanges()
    asked = body(format, stream=True, stream_options={"include_usage": True})
    raw = stream_of(format, replied(format), asked)
    with pytest.raises(ConnectionError):
        ask(
            door,
            PATHS[format],
            asked,
            Reply([raw, ConnectionError()], content_type=SSE),
        )
    assert reports[0].usage is not None


# ── too long ─────────────────────────────────────────────────────────────────────────────


def refusal(format, tokens=9_000, limit=6_000):
    no = too_long(format, tokens, limit)
    return Reply(no.body, no.status)


@every
def test_a_refusal_for_length_is_followed_by_a_shorter_try(format):
    door, reports = exchanges()
    asked = body(format, LONG)
    status, said, upstream = ask(
        door, PATHS[format], asked, refusal(format), Reply(replied(format))
    )
    assert (status, json.loads(said)) == (200, replied(format))
    first, second = upstream.sent
    assert len(second) < len(first)
    assert (reports[0].tries, door.counts.refused) == (2, 1)


@every
def test_two_refusals_are_one_for_the_client(format):
    door, _ = exchanges()
    last = refusal(format, 7_000)
    words = last.pieces[0]
    status, said, upstream = ask(
        door, PATHS[format], body(format, LONG), refusal(format), last
    )
    assert (status, said, len(upstream.sent)) == (400, words, 2)


def test_a_text_over_a_limit_of_its_own_is_cut_and_sent_once_more():
    door, _ = exchanges(model="gpt-4.1", recall=False)
    door.recalls = False
    long = [
        histories.Turn(
            calls=(histories.Call("bash", "a.py", "line of a log\n" * 3_000),)
        )
    ]
    words = (
        "Invalid 'messages[2].content': string too long. Expected a string with maximum length "
        "20000, but got a string with length 42000 instead."
    )
    no = Reply(
        {"error": {"message": words, "code": "string_above_max_length"}}, 400
    )
    yes = Reply(replied("openai-chat"))
    status, _, upstream = ask(
        door, PATHS["openai-chat"], body("openai-chat", long), no, yes
    )
    first, second = (
        json.loads(sent)["messages"][-1]["content"] for sent in upstream.sent
    )
    assert (status, len(first)) == (200, 42_000)
    assert len(second) <= 20_000
    assert second.startswith("line of a log\n")


def test_a_refusal_that_no_shorter_view_answers_is_the_clients():
    door, _ = exchanges()
    no = refusal("anthropic", 250_000, 200_000)
    words = no.pieces[0]
    status, said, upstream = ask(
        door, PATHS["anthropic"], body("anthropic", LONG), no
    )
    assert (status, said, len(upstream.sent)) == (400, words, 1)


def test_a_provider_that_counts_too_little_is_reported():
    door, reports = exchanges()
    asked = body("openai-chat", LONG)
    for _ in range(4):
        reply = {
            **replied("openai-chat"),
            "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        }
        ask(
            door,
            PATHS["openai-chat"],
            asked,
            Reply({**reply, "id": f"chatcmpl-{len(reports)}"}),
        )
    assert [report.is_undercounted for report in reports] == [
        False,
        False,
        False,
        True,
    ]
    kinds = [[event.kind for event in report.events] for report in reports]
    assert ["undercounted" in each for each in kinds] == [
        False,
        False,
        True,
        False,
    ]


def test_another_refusal_is_the_clients():
    door, _ = exchanges()
    no = Reply({"error": {"message": "Rate limit of tokens per min"}}, 429)
    words = no.pieces[0]
    status, said, upstream = ask(
        door, PATHS["openai-chat"], body("openai-chat", LONG), no
    )
    assert (status, said, len(upstream.sent)) == (429, words, 1)


ERRORS = {
    "anthropic": {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "prompt is too long: 9000 > 6000",
        },
    },
    "openai-responses": {
        "type": "response.failed",
        "response": {
            "error": {"code": "context_length_exceeded", "message": "too long"}
        },
    },
    "openai-chat": {
        "error": {"code": "context_length_exceeded", "message": "too long"}
    },
}
OPENINGS = {
    "anthropic": [
        {"type": "message_start", "message": {"usage": {"input_tokens": 3}}}
    ],
    "openai-responses": [{"type": "response.created", "response": {}}],
    "openai-chat": [],
}


@pytest.mark.parametrize("format", ERRORS)
def test_a_stream_that_begins_with_a_refusal_is_replaced(format):
    door, reports = exchanges()
    asked = body(format, LONG, stream=True)
    no = Reply(sse(*OPENINGS[format], ERRORS[format]), content_type=SSE)
    yes = {**asked, "stream_options": {"include_usage": True}}
    _, said, upstream = ask(
        door, PATHS[format], asked, no, streamed(format, yes)
    )
    whole = stream_of(format, replied(format), asked)
    first = sse(*OPENINGS[format])
    assert said.startswith(first)
    assert whole.endswith(said[len(first) :])
    assert b"Do" in said[len(first) :]
    assert len(said) - len(first) < len(whole) or not OPENINGS[format]
    assert len(upstream.sent[1]) < len(upstream.sent[0])
    assert reports[0].usage == FORMATS[format].usage(replied(format))
    assert no.closed
    assert reports[0].tries == 2


def test_what_opens_a_stream_is_given_at_once():
    door, _ = exchanges()
    raw = json.dumps(body("anthropic", stream=True)).encode()
    opening = sse(*OPENINGS["anthropic"], {"type": "ping"})
    reply = Reply(
        [opening, AssertionError("it was asked for more")], content_type=SSE
    )
    answer = drive(
        door.of("POST", "/v1/messages", raw, Upstream(reply)).steps()
    )
    assert drive(answer.next()) == opening
    drive(answer.close())


@pytest.mark.parametrize("format", ERRORS)
def test_where_the_second_try_fails_the_first_refusal_stands(format):
    door, _ = exchanges()
    asked = body(format, LONG, stream=True)
    raw = sse(*OPENINGS[format], ERRORS[format])
    no = Reply(raw, content_type=SSE)
    _, said, _ = ask(
        door, PATHS[format], asked, no, Reply({"error": "busy"}, 529)
    )
    assert said == raw


def test_an_error_under_status_200_is_one():
    door, _ = exchanges()
    no = Reply(
        {
            "error": "The number of tokens to keep from the initial prompt is greater than the "
            "context length"
        }
    )
    yes = Reply(replied("openai-chat"))
    _, said, upstream = ask(
        door, PATHS["openai-chat"], body("openai-chat", LONG), no, yes
    )
    assert json.loads(said) == replied("openai-chat")
    assert len(upstream.sent) == 2


# ── passed on ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "raw", "why"),
    [
        ("/v1/embeddings", b'{"input": "a"}', "path"),
        ("/v1/messages", b"{not json", "body"),
        ("/v1/messages", b"[1]", "body"),
        (
            "/v1/responses",
            b'{"conversation": {"id": "c"}, "input": []}',
            "elsewhere",
        ),
        (
            PATHS["gemini"],
            b'{"cachedContent": "c/1", "contents": []}',
            "elsewhere",
        ),
        ("/v1/messages", b'{"model": "claude-x", "messages": 7}', "content"),
        ("/model/amazon.nova/invoke", b'{"messages": []}', "content"),
    ],
)
def test_what_cannot_be_fitted_passes_to_the_byte_with_its_reason(
    path, raw, why
):
    door, reports = exchanges()
    status, said, upstream = ask(door, path, raw, Reply([b"a", b"b"], 418))
    assert (status, said, upstream.sent) == (418, b"ab", [raw])
    assert door.counts.passed == {why: 1}
    assert reports[0].passed == why


def test_a_door_may_be_asked_not_to_touch():
    door, _ = exchanges(limits=LIMITS)
    raw = json.dumps(body("anthropic", LONG)).encode()
    _, _, upstream = ask(
        door, "/v1/messages", raw, Reply(b"x"), passed="asked"
    )
    assert upstream.sent == [raw]
    assert door.counts.passed == {"asked": 1}


def test_what_cannot_be_made_to_fit_is_the_providers_to_refuse():
    door, _ = exchanges(
        limits=Limits(window_tokens=600, output_reserve_tokens=100)
    )
    raw = json.dumps(
        body("anthropic", LONG) | {"system": "word " * 5_000}
    ).encode()
    _, _, upstream = ask(door, "/v1/messages", raw, Reply(b"x", 400))
    assert upstream.sent == [raw]
    assert door.counts.passed == {"limit": 1}


class Failing(MemoryStore):
    error: Exception

    def commit(self, *_):
        raise self.error

    put = append = commit


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (StoreError("memory", "commit", "no room"), "store"),
        (ZeroDivisionError(), "error"),
    ],
)
def test_a_mistake_of_ours_breaks_no_run(error, why):
    store = Failing()
    store.error = error
    door, reports = exchanges(limits=LIMITS, store=store)
    raw = json.dumps(body("anthropic", LONG)).encode()
    reply = json.dumps(replied("anthropic")).encode()
    status, said, upstream = ask(door, "/v1/messages", raw, Reply(reply))
    assert (status, said, upstream.sent) == (200, reply, [raw])
    assert door.counts.passed == {why: 1}
    told = {
        "store": "StoreError: memory, commit",
        "error": "ZeroDivisionError",
    }
    assert reports[0].problem == told[why]


def test_a_reply_that_is_no_json_is_given_all_the_same():
    door, _ = exchanges()
    status, said, _ = ask(
        door, "/v1/messages", body("anthropic"), Reply(b"<html>")
    )
    assert (status, said) == (200, b"<html>")


@pytest.mark.parametrize("policy", NAMES)
def test_no_policy_refuses_a_model_that_nobody_knows(policy):
    """What the client would have got without us: the provider may know its window."""
    door, reports = exchanges(policy=policy, limits=None)
    asked = body("anthropic", model="somebodys-own-1")
    raw = json.dumps(asked).encode()
    status, _, upstream = ask(
        door, "/v1/messages", raw, Reply(replied("anthropic"))
    )
    assert (status, len(upstream.sent)) == (200, 1)
    assert reports[0].passed in (None, "settings")
    if reports[0].passed:
        assert upstream.sent[0] == raw
        assert reports[0].problem == "ConfigError: model"


def test_a_spent_budget_is_an_error_of_ours_and_nothing_is_sent():
    door, _ = exchanges(budget=Budget(tokens=10))
    for _ in range(2):  # the second one asks the model to sum up
        ask(
            door,
            "/v1/messages",
            body("anthropic"),
            Reply(replied("anthropic")),
        )
    status, said, upstream = ask(door, "/v1/messages", body("anthropic"))
    error = json.loads(said)
    assert (status, upstream.sent) == (402, [])
    assert (
        error["type"],
        "budget of 10 tokens" in error["error"]["message"],
    ) == (
        "error",
        True,
    )


def test_an_upstream_that_cannot_be_reached_is_the_clients_to_hear_of():
    door, reports = exchanges()
    with pytest.raises(ConnectionError):
        ask(door, "/v1/messages", body("anthropic"), ConnectionError())
    assert [report.status for report in reports] == [0]


# ── other things that are asked ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("/v1/messages/count_tokens", "anthropic"),
        ("/v1/responses/input_tokens", "openai-responses"),
        ("/v1/responses/compact", "openai-responses"),
        ("/v1beta/models/gemini-3-pro:countTokens", "gemini"),
    ],
)
def test_what_is_counted_or_compacted_is_the_view(path, format):
    door, _ = exchanges(limits=LIMITS)
    asked = body(format, LONG)
    _, said, counted = ask(door, path, asked, Reply(b'{"input_tokens": 7}'))
    _, _, sent = ask(door, PATHS[format], asked, Reply(replied(format)))
    assert said == b'{"input_tokens": 7}'
    assert counted.sent == sent.sent


def test_a_compaction_of_the_providers_is_asked_of_what_its_turns_were_asked_of():
    door, reports = exchanges(limits=LIMITS)
    asked = body("openai-responses", LONG)
    _, _, turn = ask(
        door, "/v1/responses", asked, Reply(replied("openai-responses"))
    )
    bare = {key: asked[key] for key in ("model", "input")}
    output = Reply(
        {"object": "response.compaction", "output": [{"type": "compaction"}]}
    )
    status, said, compact = ask(door, "/v1/responses/compact", bare, output)
    assert (status, json.loads(said)["object"]) == (200, "response.compaction")
    shown = [
        json.loads(upstream.sent[0])["input"] for upstream in (turn, compact)
    ]
    assert shown[0] == shown[1]
    assert "tools" not in json.loads(compact.sent[0])
    assert [report.passed for report in reports] == [None, None]


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_a_batch_is_fitted_one_by_one(format):
    long, short = body(format, LONG), body(format, LONG[:1])
    if format == "anthropic":
        path = "/v1/messages/batches"
        batch = {
            "requests": [
                {"custom_id": "a", "params": each} for each in (long, short)
            ]
        }
    else:
        path = "/v1beta/models/gemini-3-pro:batchGenerateContent"
        inner = [
            {"request": each, "metadata": {"key": "a"}}
            for each in (long, short)
        ]
        batch = {
            "batch": {
                "displayName": "b",
                "inputConfig": {"requests": {"requests": inner}},
            }
        }
    door, _ = exchanges(limits=LIMITS)
    _, _, upstream = ask(door, path, batch, Reply(b"{}"))
    sent = json.loads(upstream.sent[0])
    place = (
        sent["requests"]
        if format == "anthropic"
        else (sent["batch"]["inputConfig"]["requests"]["requests"])
    )
    first, second = (
        item["params" if format == "anthropic" else "request"]
        for item in place
    )
    assert len(json.dumps(first)) < len(json.dumps(long)) / 2
    assert second == short
    assert door.counts.changed == 1


# ── streams of other kinds ───────────────────────────────────────────────────────────────


def test_amazons_binary_stream_is_fitted_observed_and_given_as_it_comes():
    door, reports = exchanges(limits=LIMITS)
    asked = body("anthropic", LONG, anthropic_version="bedrock-2023-05-31")
    del asked["model"]
    raw = stream_of("anthropic", replied("anthropic"), asked).decode()
    events = [
        json.loads(line[5:])
        for line in raw.splitlines()
        if line.startswith("data:")
    ]
    frames = b"".join(map(amazon.written, events))
    reply = Reply(
        [frames[:50], frames[50:]],
        content_type="application/vnd.amazon.eventstream",
    )
    path = "/model/anthropic.claude-opus-4-8-v1:0/invoke-with-response-stream"
    _, said, upstream = ask(door, path, asked, reply)
    assert said == frames
    assert len(upstream.sent[0]) < len(json.dumps(asked)) / 2
    assert reports[0].usage == FORMATS["anthropic"].usage(replied("anthropic"))


def test_a_stream_that_is_one_json_array_is_observed_at_its_end():
    door, reports = exchanges()
    path = "/v1beta/models/gemini-3-pro:streamGenerateContent"
    raw = (
        b"["
        + json.dumps(replied("gemini")).encode()
        + b",\n"
        + b'{"candidates": []}]'
    )
    _, said, _ = ask(door, path, body("gemini"), Reply([raw[:9], raw[9:]]))
    assert said == raw
    assert reports[0].usage == FORMATS["gemini"].usage(replied("gemini"))


def test_which_answer_is_which():
    kinds = (WholeAnswer, UntouchedAnswer, TeedAnswer, StreamedAnswer)
    assert [kind.is_untouched for kind in kinds] == [False, True, False, False]
    assert Exchange.steps.__doc__
    assert error_of("gemini", 402, "spent")["error"]["code"] == 402
    one = {"messages": [object()], "model": "m"}
    assert is_same(one, {**one, "messages": [*one["messages"]]})
    assert not is_same(one, {**one, "messages": [object()]})


@pytest.mark.parametrize("model", ["m" * 257, {"SECRET": 1}, ["m"], 5])
def test_a_model_that_has_no_name_is_sent_as_it_came_and_nothing_is_kept_of_it(
    model,
):
    door, reports = exchanges()
    raw = json.dumps(body("anthropic", model=model)).encode()
    _, _, upstream = ask(
        door, "/v1/messages", raw, Reply(replied("anthropic"))
    )
    assert upstream.sent == [raw]
    assert (reports[0].passed, reports[0].model, reports[0].conversation) == (
        "content",
        "",
        "",
    )
    assert reports[0].problem == "FormatError at model"
    assert len(door.sessions) == 0


def test_a_broken_cache_is_in_the_report_of_its_exchange():
    door, reports = exchanges()
    asked = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "system": "Be brief. " * 900,
        "messages": [{"role": "user", "content": "Go on. " * 900}],
    }
    cached = {
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 4_500,
    }
    reply = {**replied("anthropic"), "usage": {"input_tokens": 1, **cached}}
    reply["usage"]["output_tokens"] = 3
    for end in ("", "!"):
        reply["id"] = f"msg_{end}"
        changed = {**asked, "system": asked["system"] + end}
        ask(door, PATHS["anthropic"], changed, Reply(reply))
        asked["messages"] += [
            {"role": "assistant", "content": "So."},
            {"role": "user", "content": "And?"},
        ]
    first, second = reports
    assert not [event for event in first.events if event.broken]
    (event,) = [event for event in second.events if event.broken]
    assert (event.kind, event.broken.cause) == ("cache_broken", "system")
    assert event.broken.place == "at character 9,001"


UUID = "0d9b7a3e-52f1-4a0c-9a53-8a1f2f6f7c11"


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ({"prompt_cache_key": UUID}, UUID),
        ({"metadata": {"user_id": f"user_1_account_2_session_{UUID}"}}, UUID),
        ({"prompt_cache_key": "the-shop", "metadata": {"user_id": "ada"}}, ""),
        ({"metadata": [UUID], "prompt_cache_key": 5}, ""),
        ({}, ""),
    ],
)
def test_a_request_names_the_session_of_its_client(request_, name):
    assert client_session_in(request_) == name
