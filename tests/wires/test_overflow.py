"""What counts as "too long", from whatever carries it, and what does not."""

import json
from pathlib import Path
from types import SimpleNamespace

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from ullage.wires import overflow
from ullage.wires.overflow import Overflow, is_overflow
from ullage.wires.overflow._evidence import Evidence

CODE = "context_length_exceeded"


def bodies(name):
    """The rows of a file under ``fixtures/overflow``: a body, and what is to be read of it."""
    path = (
        Path(__file__).parents[1] / "fixtures" / "overflow" / f"{name}.jsonl"
    )
    return [json.loads(line) for line in path.read_text().splitlines()]


def openai_body(message, code=None):
    return {
        "error": {
            "message": message,
            "type": "invalid_request_error",
            "code": code,
        }
    }


def gemini_body(message, code=400, status="INVALID_ARGUMENT"):
    return {"error": {"code": code, "message": message, "status": status}}


def plain(message, code=400):
    return {"error": {"message": message, "code": code}}


TOO_LONG = bodies("too_long")
TEXT_TOO_LONG = bodies("text_too_long")
TOO_MANY_BYTES = [row["body"] for row in bodies("too_many_bytes")]
SOMETHING_ELSE = [row["body"] for row in bodies("something_else")]
PROMPT = {"type": "error", "error": {
    "type": "invalid_request_error",
    "message": "prompt is too long: 213462 tokens > 200000 maximum"}}  # fmt: skip
GEMINI = gemini_body(
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576)."
)
RATE = openai_body(
    "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 38000.",
    "rate_limit_exceeded",
)

UNION = [
    "prompt is too long",
    "input is too long for requested model",
    "exceeds the context window",
    "input token count 5 exceeds the maximum",
    "maximum context length",
    "maximum prompt length",
    "reduce the length of the messages",
    "exceeds the limit of 4096",
    "available context size",
    "greater than the context length",
    "context window exceeds limit",
    "exceeded model token limit",
    "context length exceeded",
    "context_length_exceeded",
    "too many tokens",
    "token limit exceeded",
]


@pytest.mark.parametrize("row", TOO_LONG)
def test_the_providers_own_words(row):
    said = {
        name: value
        for name, value in row.items()
        if name not in ("provider", "body")
    }
    assert is_overflow(row["body"]) == Overflow(**said)


@pytest.mark.parametrize("row", TOO_LONG)
def test_numbers_make_sense_together(row):
    found = is_overflow(row["body"])
    if found.limit_tokens and found.size_tokens:
        assert found.size_tokens > found.limit_tokens
        assert (found.asked_output_tokens or 0) < found.limit_tokens


def test_every_row_of_the_table_decides_somewhere():
    """No row without its example, and none that an earlier row makes idle."""
    every = (
        [row["body"] for row in TOO_LONG + TEXT_TOO_LONG]
        + TOO_MANY_BYTES
        + SOMETHING_ELSE
        + UNION
    )
    texts = ["\n".join(Evidence.of(body).texts) for body in every]
    texts.append(
        "\n".join(Evidence.of(ContextWindowExceededError("no details")).texts)
    )
    known = overflow.wordings()
    patterns = [
        [row.pattern for row in rows] for rows in (known.exact, known.loose)
    ]
    rows = [*patterns[0], *known.lookalikes, *patterns[1]]
    deciding = {
        next(
            (row for row in rows if overflow._pattern(row).search(text)), None
        )
        for text in texts
    }
    assert [row for row in rows if row not in deciding] == []


@pytest.mark.parametrize("wording", UNION)
def test_wordings_that_public_agents_look_for(wording):
    assert is_overflow(f"Error: {wording}").by == "tokens"
    assert is_overflow({"error": {"message": wording.upper()}}).by == "tokens"


@pytest.mark.parametrize("body", TOO_MANY_BYTES)
def test_too_many_bytes(body):
    found = is_overflow(body)
    assert (found.by, found.limit_tokens, found.size_tokens) == (
        "bytes",
        None,
        None,
    )


@pytest.mark.parametrize("row", TEXT_TOO_LONG)
def test_one_text_too_long(row):
    assert is_overflow(row["body"]) == Overflow(
        by="text", limit_chars=row["limit_chars"], size_chars=row["size_chars"]
    )


@pytest.mark.parametrize("body", SOMETHING_ELSE)
def test_near_misses(body):
    assert is_overflow(body) is None


# -- what carries it ------------------------------------------------------------------------

ANTHROPIC = "https://api.anthropic.com/v1/messages"
OPENAI = "https://api.openai.com/v1/chat/completions"
BODIES = [row["body"] for row in TOO_LONG if isinstance(row["body"], dict)]


def response(status, body, url=OPENAI):
    return httpx2.Response(
        status, json=body, request=httpx2.Request("POST", url)
    )


def raised_by(client, status, body, url):
    """The exception the SDK itself makes of a response."""
    return client._make_status_error_from_response(response(status, body, url))


OPENAI_CLIENT = openai.OpenAI(api_key="x")
ANTHROPIC_CLIENT = anthropic.Anthropic(api_key="x")


def from_openai(status, body, url=OPENAI):
    return raised_by(OPENAI_CLIENT, status, body, url)


def from_anthropic(status, body, url=ANTHROPIC):
    return raised_by(ANTHROPIC_CLIENT, status, body, url)


@pytest.mark.parametrize(
    "carry",
    [
        json.dumps,
        lambda body: json.dumps(body).encode(),
        lambda body: f"Error code: 400 - {body}",
        lambda body: f"data: {json.dumps(body)}\n\ndata: [DONE]\n\n",
        lambda body: response(400, body),
        lambda body: response(200, body),
        lambda body: from_openai(400, body),
        lambda body: from_anthropic(400, body),
        lambda body: openai.APIError(
            "failed", httpx2.Request("POST", OPENAI), body=body
        ),
        lambda body: RuntimeError(f"the model refused: {body}"),
    ],
)
def test_every_carrier_says_the_same(carry):
    assert len(BODIES) > 70
    for body in BODIES:
        plainly, carried = is_overflow(body), is_overflow(carry(body))
        assert carried is not None, body
        for name in (
            "limit_tokens",
            "size_tokens",
            "by",
            "asked_output_tokens",
        ):
            assert getattr(carried, name) == getattr(plainly, name), body


@pytest.mark.parametrize(
    "body", [body for body in SOMETHING_ELSE if isinstance(body, dict)]
)
@pytest.mark.parametrize("make", [from_openai, from_anthropic])
def test_near_misses_raised_by_an_sdk(body, make):
    assert is_overflow(make(400, body)) is None
    assert is_overflow(make(429, body)) is None


def test_413_is_bytes_unless_it_is_a_rate():
    assert is_overflow(from_anthropic(413, {})).by == "bytes"
    assert is_overflow(httpx2.Response(413, text="")).by == "bytes"
    assert is_overflow(from_openai(413, RATE)) is None


def test_a_status_outweighs_loose_wordings_only():
    assert is_overflow(from_openai(429, plain("too many tokens"))) is None
    assert (
        is_overflow(from_openai(429, openai_body("", code=CODE))).by
        == "tokens"
    )
    assert (
        is_overflow(from_openai(400, plain("too many tokens"))).by == "tokens"
    )


# -- wrapped and chained --------------------------------------------------------------------

TOO_LONG_400 = from_anthropic(400, PROMPT)
RATE_429 = from_anthropic(429, RATE)


def chained(outer, inner, *, stated=True, hidden=False):
    try:
        try:
            raise inner
        except type(inner) as caught:
            if hidden:
                raise outer from None
            if stated:
                raise outer from caught
            raise outer  # noqa: B904
    except type(outer) as caught:
        return caught


def test_causes_and_contexts_are_looked_through():
    assert (
        is_overflow(
            chained(RuntimeError("call failed"), TOO_LONG_400)
        ).size_tokens
        == 213_462
    )
    assert is_overflow(chained(ValueError("oops"), TOO_LONG_400, stated=False))
    assert is_overflow(
        chained(from_openai(500, plain("upstream failed")), TOO_LONG_400)
    )
    twice = chained(KeyError("a"), chained(RuntimeError("b"), TOO_LONG_400))
    assert is_overflow(twice).size_tokens == 213_462


def test_what_was_met_while_an_overflow_was_handled_is_no_overflow():
    assert (
        is_overflow(chained(from_openai(500, {}), TOO_LONG_400, stated=False))
        is None
    )
    assert is_overflow(chained(RATE_429.__class__("x", response=RATE_429.response, body=None),
                               TOO_LONG_400)) is None  # fmt: skip
    unreached = openai.APITimeoutError(httpx2.Request("POST", OPENAI))
    assert is_overflow(chained(unreached, TOO_LONG_400, stated=False)) is None
    assert is_overflow(chained(ValueError("x"), from_anthropic(400, PROMPT),
                               hidden=True)) is None  # fmt: skip


def test_a_circle_of_causes_ends():
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert is_overflow(one) is None


def test_a_group_is_an_overflow_if_one_of_it_is():
    found = is_overflow(
        ExceptionGroup("two calls", [ValueError("x"), RATE_429, TOO_LONG_400])
    )
    assert found.size_tokens == 213_462
    assert (
        is_overflow(ExceptionGroup("two calls", [ValueError("x"), RATE_429]))
        is None
    )


class ContextWindowExceededError(Exception):
    """As a gateway has it: status, message and provider as attributes, text of its own."""

    def __init__(self, message):
        super().__init__(message)
        self.status_code = 400
        self.message = message
        self.llm_provider = "vertex_ai"


class ClientError(Exception):
    """As Google's SDK has it."""

    def __init__(self, code, body):
        error = body["error"]
        super().__init__(f"{code} {error['status']}. {body}")
        self.code, self.status, self.message = (
            code,
            error["status"],
            error["message"],
        )
        self.details = body
        self.response = None


class BedrockError(Exception):
    """As botocore has it: the body under ``response``, a dict."""

    def __init__(self, code, message):
        super().__init__(
            f"An error occurred ({code}) when calling Converse: {message}"
        )
        self.response = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": 400},
        }


def test_classes_of_gateways_and_other_sdks():
    assert is_overflow(ContextWindowExceededError("no details")) == Overflow()
    google = ClientError(400, GEMINI)
    assert is_overflow(google) == Overflow(1_048_576, 1_196_265)
    assert (
        is_overflow(
            ClientError(429, gemini_body("quota", 429, "RESOURCE_EXHAUSTED"))
        )
        is None
    )
    bedrock = BedrockError(
        "ValidationException", "Input is too long for requested model."
    )
    assert is_overflow(bedrock) == Overflow()
    assert (
        is_overflow(
            BedrockError("ThrottlingException", "Too many tokens, wait.")
        )
        is None
    )


@pytest.mark.parametrize(
    "name",
    [
        "ContextWindowExceededError",
        "ContextOverflowError",
        "ContextWindowOverflowException",
    ],
)
def test_the_errors_of_frameworks_are_known_by_their_names_alone(name):
    assert is_overflow(type(name, (Exception,), {})()) == Overflow()


def test_a_reply_that_a_full_window_ended_is_known_by_the_word_of_a_framework():
    output = SimpleNamespace(stop_reason="model_length", choices=[])
    assert is_overflow(output).by == "after_output"


def test_a_response_that_was_not_read_is_judged_by_its_status():
    def chunks():
        yield b"x"

    request = httpx2.Request("POST", ANTHROPIC)
    assert (
        is_overflow(httpx2.Response(413, content=chunks(), request=request)).by
        == "bytes"
    )
    assert (
        is_overflow(httpx2.Response(400, content=chunks(), request=request))
        is None
    )


# -- replies and events ---------------------------------------------------------------------

SAID = "prompt is too long: 213462 tokens > 200000 maximum (context_length_exceeded)"


def message(stop_reason, text="hello"):
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": text}], "stop_reason": stop_reason,
        "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 9},
    }  # fmt: skip


def completion(finish_reason, text="hello", **more):
    choice = {"index": 0, "message": {"role": "assistant", "content": text},
              "finish_reason": finish_reason}  # fmt: skip
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [choice], **more}  # fmt: skip


def responses_reply(status, error=None, reason=None, text="hello"):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed",
            "content": content}  # fmt: skip
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "status": status,
        "error": error, "incomplete_details": reason and {"reason": reason}, "output": [item],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


FAILED = {
    "code": CODE,
    "message": "Your input exceeds the context window of this model.",
}


def test_a_reply_that_ended_because_the_window_was_full():
    cut = message("model_context_window_exceeded")
    event = {
        "type": "message_delta",
        "delta": {"stop_reason": cut["stop_reason"]},
        "usage": {},
    }
    converse = {"stopReason": cut["stop_reason"], "usage": {"inputTokens": 9}}
    stopped = {"messageStop": {"stopReason": cut["stop_reason"]}}
    for reply in (
        cut,
        Message.model_validate(cut),
        event,
        json.dumps(cut),
        converse,
        stopped,
    ):
        assert is_overflow(reply).by == "after_output"
    assert (
        is_overflow(completion("model_context_window_exceeded")).by
        == "after_output"
    )
    assert is_overflow(
        {"error": "Reached context length of 4096 tokens with model"}
    ) == Overflow(4_096, by="after_output")


def test_a_response_that_failed():
    failed = responses_reply("failed", FAILED)
    event = {
        "type": "response.failed",
        "sequence_number": 3,
        "response": failed,
    }
    flat = {"type": "error", "code": CODE, "message": None, "param": "input"}
    for reply in (failed, Response.construct(**failed), event, flat):
        assert is_overflow(reply).by == "tokens"
    cut = responses_reply("incomplete", reason="context_length_exceeded")
    assert is_overflow(cut).by == "after_output"
    for reason in ("max_output_tokens", "content_filter"):
        assert (
            is_overflow(responses_reply("incomplete", reason=reason)) is None
        )


def test_an_error_inside_a_good_status():
    broken = completion(
        "stop",
        error=plain("prompt is too long: 9 tokens > 8 maximum")["error"],
    )
    assert is_overflow(ChatCompletion.construct(**broken)).size_tokens == 9
    assert is_overflow(httpx2.Response(200, json=broken)).limit_tokens == 8


def test_what_a_model_says_of_overflow_is_none():
    replies = [
        message("end_turn", SAID),
        completion("stop", SAID),
        responses_reply("completed", text=SAID),
        {
            "type": "content_block_delta",
            "delta": {"type": "text_delta", "text": SAID},
        },
        {"type": "response.output_text.delta", "delta": SAID},
        {"choices": [{"delta": {"content": SAID}, "finish_reason": None}]},
        {"choices": [{"text": SAID, "finish_reason": "stop"}]},
        {
            "candidates": [
                {
                    "content": {"parts": [{"text": SAID}]},
                    "finishReason": "STOP",
                }
            ]
        },
    ]
    for reply in replies:
        assert is_overflow(reply) is None
        assert is_overflow(httpx2.Response(200, json=reply)) is None
        assert (
            is_overflow(
                httpx2.Response(200, text=f"data: {json.dumps(reply)}\n\n")
            )
            is None
        )
    assert is_overflow(Message.model_validate(replies[0])) is None
    assert is_overflow(ChatCompletion.model_validate(replies[1])) is None
