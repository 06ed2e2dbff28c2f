"""Which path is which wire: the paths that the vendors' SDKs really ask at."""

import pytest

from ullage.doors.exchange.routes import Route, route_of
from ullage.wires import WIRES, wire_named

VERTEX = "/v1/projects/p/locations/global/publishers"


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/v1/messages", Route("anthropic")),
        ("/v1/messages?beta=true", Route("anthropic")),
        ("/gateway/anthropic/v1/messages", Route("anthropic")),
        ("/v1/messages/count_tokens", Route("anthropic", "count")),
        ("/v1/messages/batches?beta=true", Route("anthropic", "batch")),
        (
            f"{VERTEX}/anthropic/models/claude-opus-4-5%4020251101:rawPredict",
            Route("anthropic", model="claude-opus-4-5@20251101"),
        ),
        (
            f"{VERTEX}/anthropic/models/claude-opus-4-5:streamRawPredict",
            Route("anthropic", model="claude-opus-4-5", streams=True),
        ),
        (
            f"{VERTEX}/anthropic/models/count-tokens:rawPredict",
            Route("anthropic", "count"),
        ),
        (
            "/model/us.anthropic.claude-opus-4-5-v1%3A0/invoke",
            Route(
                "anthropic",
                model="us.anthropic.claude-opus-4-5-v1:0",
                streams=False,
            ),
        ),
        (
            "/model/eu.anthropic.claude/invoke-with-response-stream",
            Route("anthropic", model="eu.anthropic.claude", streams=True),
        ),
        ("/v1/chat/completions", Route("openai-chat")),
        ("/api/v1/chat/completions/", Route("openai-chat")),
        (
            "/openai/deployments/my-gpt/chat/completions?api-version=2026-01-01",
            Route("openai-chat", model="my-gpt"),
        ),
        ("/openai/v1/responses", Route("openai-responses")),
        ("/v1/responses/input_tokens", Route("openai-responses", "count")),
        (
            "/v1beta/models/gemini-3-pro:generateContent",
            Route("gemini", model="gemini-3-pro", streams=False),
        ),
        (
            f"{VERTEX}/google/models/gemini-3-pro:streamGenerateContent?alt=sse",
            Route("gemini", model="gemini-3-pro", streams=True),
        ),
        (
            "/v1beta/models/gemini-3-pro:streamGenerateContent",
            Route("gemini", model="gemini-3-pro", streams=True, is_array=True),
        ),
        (
            "/v1beta/models/gemini-3-pro:countTokens",
            Route("gemini", "count", "gemini-3-pro"),
        ),
        (
            "/v1beta/models/gemini-3-pro:batchGenerateContent",
            Route("gemini", "batch", "gemini-3-pro"),
        ),
    ],
)
def test_a_path_says_what_is_asked_there(path, route):
    assert route_of("POST", path) == route


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models",
        "/v1/embeddings",
        "/v1/responses/resp_1/cancel",
        "/v1/chat/completions/chatcmpl_1",
        "/v1/threads/thread_1/messages",
        "/v1/messages/batches/b_1/cancel",
        "/v1beta/models/gemini-3-pro:embedContent",
        "/v1beta/cachedContents",
    ],
)
def test_other_paths_have_no_history_in_them(path):
    assert route_of("POST", path) is None


def test_only_what_is_posted_has_a_body():
    assert route_of("GET", "/v1/messages") is None
    assert route_of("post", "/v1/messages") == Route("anthropic")


REQUEST = {
    "model": "m",
    "messages": ["one"],
    "input": ["one"],
    "contents": ["one"],
    "stream": True,
    "max_tokens": 9,
    "metadata": {},
}
COUNTS = {
    ("anthropic", "/gateway/v1/messages"): (
        "/gateway/v1/messages/count_tokens",
        {"model": "m", "messages": ["one"]},
    ),
    ("openai-responses", "/v1/responses"): (
        "/v1/responses/input_tokens",
        {"model": "m", "input": ["one"]},
    ),
    ("gemini", "/v1beta/models/m:streamGenerateContent"): (
        "/v1beta/models/m:countTokens",
        {"generateContentRequest": {**REQUEST, "model": "models/m"}},
    ),
    ("anthropic", f"{VERTEX}/anthropic/models/m:streamRawPredict"): (
        f"{VERTEX}/anthropic/models/count-tokens:rawPredict",
        {"model": "m", "messages": ["one"]},
    ),
    ("gemini", f"{VERTEX}/google/models/m:generateContent"): (
        f"{VERTEX}/google/models/m:countTokens",
        {"contents": ["one"]},
    ),
    ("bedrock-converse", "/model/eu.m%3A0/converse-stream"): (
        "/model/eu.m%3A0/count-tokens",
        {"input": {"converse": {"messages": ["one"]}}},
    ),
}


@pytest.mark.parametrize("place", COUNTS)
def test_a_provider_that_counts_is_asked_where_its_sdk_asks(place):
    wire, path = place
    question = wire_named(wire).http.count_of(path, REQUEST)
    assert question == COUNTS[place]
    if wire != "bedrock-converse":  # nobody fits what asks there
        assert route_of("POST", question.path).kind == "count"


@pytest.mark.parametrize(
    ("wire", "path"),
    [
        ("anthropic", "/model/claude/invoke"),
        ("openai-chat", "/v1/chat/completions"),
        ("ollama", "/api/chat"),
    ],
)
def test_where_a_provider_counts_nothing_it_is_not_asked(wire, path):
    assert wire_named(wire).http.count_of(path, REQUEST) is None


@pytest.mark.parametrize("wire", [wire.name for wire in WIRES])
def test_what_is_no_count_is_none(wire):
    http = wire_named(wire).http
    assert http.counted({http.count_field: 12}) == 12
    fields = [{http.count_field: v} for v in (True, 0, -3, "12", None, 1.5)]
    for nonsense in (None, [], "12", {}, *fields):
        assert http.counted(nonsense) is None
