"""What counts as "too long", from whatever carries it, and what does not."""

import json
import time

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import Message
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from ullage.overflow import Overflow, is_overflow

CODE = "context_length_exceeded"


def openai_body(message, code=CODE, param="messages", type="invalid_request_error"):
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def anthropic_body(message, type="invalid_request_error"):
    error = {"type": type, "message": message}
    return {"type": "error", "error": error, "request_id": "req_011CVjxiYzEF"}


def gemini_body(message, code=400, status="INVALID_ARGUMENT"):
    return {"error": {"code": code, "message": message, "status": status}}


def plain(message, code=400):
    return {"error": {"message": message, "code": code}}


MAX = "This model's maximum context length is"

# body, then provider, limit, size, asked for the answer
TOO_LONG = [
    (
        anthropic_body("prompt is too long: 213462 tokens > 200000 maximum"),
        ("anthropic", 200_000, 213_462, None),
    ),
    (
        anthropic_body(
            "input length and `max_tokens` exceed context limit: 143653 + 64000 > 200000, "
            "decrease input length or `max_tokens` and try again"
        ),
        ("anthropic", 200_000, 207_653, 64_000),
    ),
    (
        openai_body(
            f"{MAX} 128000 tokens. However, your messages resulted in 140123 tokens. "
            "Please reduce the length of the messages."
        ),
        ("", 128_000, 140_123, None),
    ),
    (
        openai_body(
            f"{MAX} 8192 tokens. However, you requested 10203 tokens (7691 in the messages, "
            "2512 in the completion). Please reduce the length of the messages or completion."
        ),
        ("", 8_192, 10_203, 2_512),
    ),
    (
        openai_body(
            f"{MAX} 16385 tokens. However, you requested 18000 tokens (15000 in the messages, "
            "900 in the functions, and 2100 in the completion). Please reduce the length."
        ),
        ("", 16_385, 18_000, 2_100),
    ),
    (
        openai_body(
            f"{MAX} 4097 tokens, however you requested 5360 tokens (4360 in your prompt; "
            "1000 for the completion). Please reduce your prompt; or completion length.",
            code=None,
        ),
        ("", 4_097, 5_360, 1_000),
    ),
    (
        openai_body(
            "Your input exceeds the context window of this model. Please adjust your input "
            "and try again.",
            param="input",
        ),
        ("", None, None, None),
    ),
    (openai_body(""), ("", None, None, None)),
    (openai_body(None), ("", None, None, None)),
    (
        openai_body(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted "
            "in 276192 tokens. Please reduce the length of the messages."
        ),
        ("openai", 272_000, 276_192, None),
    ),
    (
        gemini_body(
            "The input token count (1196265) exceeds the maximum number of tokens allowed "
            "(1048576)."
        ),
        ("gemini", 1_048_576, 1_196_265, None),
    ),
    (
        gemini_body(
            "The input token count exceeds the maximum number of tokens allowed 1048576."
        ),
        ("gemini", 1_048_576, None, None),
    ),
    (
        gemini_body(
            "Unable to submit request because the input token count is 1200000 but model only "
            "supports up to 1048576. Reduce the input token count and try again."
        ),
        ("gemini", 1_048_576, 1_200_000, None),
    ),
    (
        [gemini_body("The input token count (1,196,265) exceeds the maximum number of tokens "
                     "allowed (1,048,576).")],
        ("gemini", 1_048_576, 1_196_265, None),
    ),
    (
        {"message": "Input is too long for requested model.", "__type": "ValidationException"},
        ("bedrock", None, None, None),
    ),
    (
        {
            "message": "400 Bad Request: Too many input tokens. Max input tokens: 8192, "
            "request input token count: 9821"
        },
        ("bedrock", 8_192, 9_821, None),
    ),
    (
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains "
            "537812 tokens.",
        },
        ("xai", 131_072, 537_812, None),
    ),
    (
        openai_body("Please reduce the length of the messages or completion.", code=None),
        ("", None, None, None),
    ),
    (
        openai_body(
            "Please reduce the length of the messages or completion. Current length is 9011 "
            "while limit is 8192",
            type="invalid_request_error",
        ),
        ("cerebras", 8_192, 9_011, None),
    ),
    (
        plain(
            "This endpoint's maximum context length is 163840 tokens. However, you requested "
            "about 181500 tokens (170000 of text input, 3500 of tool input, 8000 in the "
            'output). Please reduce the length of either one, or use the "middle-out" '
            "transform to compress your prompt automatically."
        ),
        ("openrouter", 163_840, 181_500, 8_000),
    ),
    (
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "raw": json.dumps(
                        anthropic_body("prompt is too long: 208310 tokens > 200000 maximum")
                    ),
                    "provider_name": "Anthropic",
                },
            }
        },
        ("anthropic", 200_000, 208_310, None),
    ),
    (
        {
            "error": {
                "code": 400,
                "message": "request (8302 tokens) exceeds the available context size "
                "(4096 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 8302,
                "n_ctx": 4096,
            }
        },
        ("llama.cpp", 4_096, 8_302, None),
    ),
    (
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size. try increasing the "
                "context size or enable context shift",
                "n_ctx": 4096,
                "n_prompt_tokens": 8302,
                "type": "exceed_context_size_error",
            }
        },
        ("llama.cpp", 4_096, 8_302, None),
    ),
    (
        plain("the request exceeds the available context size, try increasing it"),
        ("llama.cpp", None, None, None),
    ),
    (
        "Requested tokens (612) exceed context window of 512",
        ("llama.cpp", 512, 612, None),
    ),
    (
        openai_body(
            f"{MAX} 32768 tokens. However, you requested 4000 output tokens and your prompt "
            "contains 30001 input tokens, for a total of 34001 tokens. Please reduce the "
            "length of the input prompt or the number of requested output tokens.",
            code=400,
            type="BadRequestError",
        ),
        ("vllm", 32_768, 34_001, 4_000),
    ),
    (
        openai_body(
            f"{MAX} 262144 tokens. However, you requested 128000 output tokens and your prompt "
            "contains at least 134145 input tokens, for a total of at least 262145 tokens.",
            code=400,
        ),
        ("vllm", 262_144, None, 128_000),
    ),
    (
        openai_body(
            "'max_tokens' or 'max_completion_tokens' is too large: 4000. "
            f"{MAX} 16384 tokens and your request has 15000 input tokens (4000 > 16384 - "
            "15000).",
            code=400,
        ),
        ("vllm", 16_384, 19_000, 4_000),
    ),
    (
        {
            "object": "error",
            "message": f"{MAX} 16384 tokens. However, your request has 17003 input tokens. "
            "Please reduce the length of the input messages.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        ("vllm", 16_384, 17_003, None),
    ),
    (
        plain(
            "You passed 32769 input tokens and requested 512 output tokens. However, the "
            "model's context length is only 32768 tokens, resulting in a maximum input length "
            "of 32256 tokens. Please reduce the length of the input prompt."
        ),
        ("vllm", 32_768, 33_281, 512),
    ),
    (
        plain(
            "The decoder prompt (length 33000) is longer than the maximum model length of "
            "32768. Make sure that `max_model_len` is no smaller."
        ),
        ("vllm", 32_768, 33_000, None),
    ),
    (
        plain(
            "Requested token count exceeds the model's maximum context length of 131072 "
            "tokens. You requested a total of 140000 tokens: 130000 tokens from the input "
            "messages and 10000 tokens for the completion."
        ),
        ("sglang", 131_072, 140_000, 10_000),
    ),
    (
        plain("Input length (265330) exceeds model's maximum context length (262144)."),
        ("sglang", 262_144, 265_330, None),
    ),
    (
        {"error": "prompt too long; exceeded max context length by 100918 tokens"},
        ("ollama", None, None, None),
    ),
    ({"error": "the input length exceeds the context length"}, ("ollama", None, None, None)),
    (
        openai_body(
            "Your request exceeded model token limit: 262144 (requested: 300001)", code=None
        ),
        ("kimi", 262_144, 300_001, None),
    ),
    (
        {
            "base_resp": {
                "status_code": 2013,
                "status_msg": "invalid params, context window exceeds limit (2013)",
            }
        },
        ("minimax", None, None, None),
    ),
    (
        openai_body(
            f"{MAX} 131072 tokens. However, you requested 140002 tokens (131810 in the "
            "messages, 8192 in the completion). Please reduce the length of the messages or "
            "completion.",
            code="invalid_request_error",
        ),
        ("", 131_072, 140_002, 8_192),
    ),
    (
        {
            "object": "error",
            "message": "Prompt contains 65673 tokens and 0 draft tokens, too large for model "
            "with 32768 maximum context length",
            "type": "invalid_request_error",
            "code": "3051",
        },
        ("mistral", 32_768, 65_673, None),
    ),
    (
        {
            "message": "too many tokens: total number of tokens in the prompt cannot exceed "
            "4081 - received 6354. Try using a shorter prompt"
        },
        ("cohere", 4_081, 6_354, None),
    ),
    (
        {
            "message": "too many tokens: size limit exceeded by 11326 tokens. Try using "
            "shorter or fewer inputs, or setting prompt_truncation='AUTO'."
        },
        ("cohere", None, None, None),
    ),
    (
        plain("The input (516368 tokens) is longer than the model's context length "
              "(262144 tokens)."),
        ("together", 262_144, 516_368, None),
    ),
    (
        plain(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 16384. "
            "Given: 15870 `inputs` tokens and 1024 `max_new_tokens`"
        ),
        ("together", 16_384, 16_894, 1_024),
    ),
    (
        {
            "error": "Trying to keep the first 111490 tokens when context the overflows. "
            "However, the model is loaded with context length of only 32768 tokens, which is "
            "not enough. Try to load the model with a larger context length."
        },
        ("lm-studio", 32_768, 111_490, None),
    ),
    (
        {
            "error": "The number of tokens to keep from the initial prompt is greater than the "
            "context length (n_keep: 9011>= n_ctx: 4096)."
        },
        ("lm-studio", 4_096, 9_011, None),
    ),
    (
        {
            "error": {
                "message": "prompt token count of 145000 exceeds the limit of 128000",
                "code": "model_max_prompt_tokens_exceeded",
            }
        },
        ("copilot", 128_000, 145_000, None),
    ),
    (
        {
            "error": {
                "code": "tokens_limit_reached",
                "message": "Request body too large for gpt-4o model. Max size: 8000 tokens.",
            }
        },
        ("github", 8_000, None, None),
    ),
    (
        {"code": "InvalidParameter", "message": "Range of input length should be [1, 129024]"},
        ("dashscope", 129_024, None, None),
    ),
    ({"error": {"code": "1261", "message": "Prompt exceeds max length"}}, ("",) + (None,) * 3),
    (plain("the prompt has 5 parts and exceeds the limit of 131072"), ("", 131_072, None, None)),
    (plain(f"{MAX} 128K tokens."), ("", None, None, None)),
    (plain("token limit exceeded"), ("", None, None, None)),
]  # fmt: skip

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

TOO_MANY_BYTES = [
    anthropic_body("Request exceeds the maximum size", "request_too_large"),
    anthropic_body(
        "Request exceeds the maximum allowed number of bytes. The maximum request size is 32 MB.",
        "request_too_large",
    ),
    gemini_body("Request payload size exceeds the limit: 20971520 bytes."),
    plain("Request Entity Too Large", 413),
    "<html><head><title>413 Request Entity Too Large</title></head></html>",
    "413 status code (no body)",
    plain("Maximum content size limit (26214400) exceeded (26428490 bytes read)"),
    openai_body(
        "Invalid 'messages[3].content': string too long. Expected a string with maximum length "
        "10485760, but got a string with length 20000000 instead.",
        code="string_above_max_length",
    ),
    plain("total message size 2306631 exceeds limit 2097152"),
    plain("Sent message larger than max (5000000 vs. 4194304)"),
]

SOMETHING_ELSE = [
    openai_body(
        "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit "
        "30000, Requested 38000. The input or output tokens must be reduced in order to run "
        "successfully.",
        code="rate_limit_exceeded",
        type="tokens",
    ),
    openai_body(
        "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit "
        "6000, Requested 9087, please reduce your message size and try again.",
        code="rate_limit_exceeded",
        type="tokens",
    ),
    anthropic_body(
        "This request would exceed your organization's rate limit of 30,000 input tokens per "
        "minute. Please reduce the prompt length or the maximum tokens requested.",
        "rate_limit_error",
    ),
    {"__type": "ThrottlingException",
     "message": "Too many tokens, please wait before trying again."},
    {"message": "Too many tokens per day, please wait before trying again."},
    gemini_body("You exceeded your current quota, please check your plan and billing details.",
                429, "RESOURCE_EXHAUSTED"),
    "Error code: 429 - {'error': {'message': 'too many tokens'}}",
    plain("too many tokens in flight", 429),
    anthropic_body(
        "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for "
        "claude-3-5-sonnet-20241022"
    ),
    openai_body(
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, "
        "whereas you provided 100000.",
        code=None,
        param="max_tokens",
    ),
    openai_body("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
                code="invalid_request_error"),
    anthropic_body("`max_tokens` must be greater than `thinking.budget_tokens`."),
    plain("max_completion_tokens must be at most the maximum context length 32768"),
    plain(
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 30 "
        "`inputs` tokens and 999999999 `max_new_tokens`"
    ),
    openai_body(
        f"{MAX} 4096 tokens. However, you requested 100007 tokens (7 in the messages, 100000 "
        "in the completion). Please reduce the length of the messages or completion."
    ),
    gemini_body(
        "Unable to submit request because it has a maxOutputTokens value of 100000 but the "
        "supported range is from 1 (inclusive) to 65537 (exclusive)."
    ),
    openai_body(
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with "
        "maximum length 40, but got a string with length 52 instead.",
        code="string_above_max_length",
    ),
    openai_body(
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got "
        "an array with length 140 instead.",
        code="array_above_max_length",
    ),
    anthropic_body(
        "messages.3.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > "
        "5242880 bytes"
    ),
    anthropic_body(
        "At least one of the image dimensions exceed max allowed size for many-image requests: "
        "2000 pixels"
    ),
    openai_body("The image is too large.", code="image_too_large"),
    plain("The number of tools exceeds the limit of 128"),
    plain("File size exceeds the limit of 50 MB"),
    plain("Your request rate exceeds the limit of 60 requests per minute"),
    anthropic_body("Your credit balance is too low to access the Anthropic API."),
    openai_body("You exceeded your current quota.", code="insufficient_quota",
                type="insufficient_quota"),
    openai_body(
        "The response was filtered due to the prompt triggering Azure OpenAI's content "
        "management policy.",
        code="content_filter",
        param="prompt",
    ),
    {}, "", b"", None, [], {"error": None}, {"error": {}},
    "400 status code (no body)",
    anthropic_body("messages.1: `tool_use` ids were found without `tool_result` blocks"),
    anthropic_body("Overloaded", "overloaded_error"),
    openai_body("The model `gpt-9` does not exist", code="model_not_found"),
    plain("Internal server error", 500),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), TOO_LONG)
def test_the_providers_own_words(body, expected):
    found = is_overflow(body)
    assert found is not None
    assert found.by == "tokens"
    got = (found.provider, found.limit_tokens, found.size_tokens, found.asked_output_tokens)
    assert got == expected


@pytest.mark.parametrize(("body", "expected"), TOO_LONG)
def test_numbers_make_sense_together(body, expected):
    found = is_overflow(body)
    if found.limit_tokens and found.size_tokens:
        assert found.size_tokens > found.limit_tokens
        assert (found.asked_output_tokens or 0) < found.limit_tokens


@pytest.mark.parametrize("wording", UNION)
def test_wordings_that_public_agents_look_for(wording):
    assert is_overflow(f"Error: {wording}").by == "tokens"
    assert is_overflow({"error": {"message": wording.upper()}}).by == "tokens"


@pytest.mark.parametrize("body", TOO_MANY_BYTES)
def test_too_many_bytes(body):
    found = is_overflow(body)
    assert (found.by, found.limit_tokens, found.size_tokens) == ("bytes", None, None)


@pytest.mark.parametrize("body", SOMETHING_ELSE)
def test_near_misses(body):
    assert is_overflow(body) is None


# -- what carries it ------------------------------------------------------------------------

ANTHROPIC = "https://api.anthropic.com/v1/messages"
OPENAI = "https://api.openai.com/v1/chat/completions"
BODIES = [body for body, _ in TOO_LONG if isinstance(body, dict)]


def response(status, body, url=OPENAI):
    return httpx2.Response(status, json=body, request=httpx2.Request("POST", url))


def raised_by(client, status, body, url):
    """The exception the SDK itself makes of a response."""
    return client._make_status_error_from_response(response(status, body, url))


def from_openai(status, body, url=OPENAI):
    return raised_by(openai.OpenAI(api_key="x"), status, body, url)


def from_anthropic(status, body, url=ANTHROPIC):
    return raised_by(anthropic.Anthropic(api_key="x"), status, body, url)


@pytest.mark.parametrize("body", BODIES)
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
        lambda body: openai.APIError("failed", httpx2.Request("POST", OPENAI), body=body),
        lambda body: RuntimeError(f"the model refused: {body}"),
    ],
)
def test_every_carrier_says_the_same(body, carry):
    plainly, carried = is_overflow(body), is_overflow(carry(body))
    assert carried is not None
    for name in ("limit_tokens", "size_tokens", "by", "asked_output_tokens"):
        assert getattr(carried, name) == getattr(plainly, name)


@pytest.mark.parametrize("body", [body for body in SOMETHING_ELSE if isinstance(body, dict)])
@pytest.mark.parametrize("make", [from_openai, from_anthropic])
def test_near_misses_raised_by_an_sdk(body, make):
    assert is_overflow(make(400, body)) is None
    assert is_overflow(make(429, body)) is None


def test_413_is_bytes_unless_it_is_a_rate():
    assert is_overflow(from_anthropic(413, {})).by == "bytes"
    assert is_overflow(httpx2.Response(413, text="")).by == "bytes"
    assert is_overflow(from_openai(413, SOMETHING_ELSE[1])) is None


def test_a_status_outweighs_loose_wordings_only():
    assert is_overflow(from_openai(429, plain("too many tokens"))) is None
    assert is_overflow(from_openai(429, openai_body("", code=CODE))).by == "tokens"
    assert is_overflow(from_openai(400, plain("too many tokens"))).by == "tokens"


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        (OPENAI, "openai"),
        ("https://x.openai.azure.com/openai/deployments/y", "azure"),
        ("https://openrouter.ai/api/v1/chat/completions", "openrouter"),
        ("https://api.deepseek.com/chat/completions", "deepseek"),
        ("https://api.groq.com/openai/v1/chat/completions", "groq"),
        ("http://localhost:8000/v1/chat/completions", ""),
    ],
)
def test_the_provider_is_who_was_asked(url, provider):
    body = openai_body("Please reduce the length of the messages.")
    assert is_overflow(from_openai(400, body, url)).provider == provider
    assert is_overflow(response(400, body, url)).provider == provider


def test_the_package_is_a_last_guess():
    error = openai.OpenAIError("Your input exceeds the context window of this model")
    assert is_overflow(error).provider == "openai"


# -- wrapped and chained --------------------------------------------------------------------

TOO_LONG_400 = from_anthropic(400, TOO_LONG[0][0])
RATE_429 = from_anthropic(429, SOMETHING_ELSE[2])


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
    assert is_overflow(chained(RuntimeError("call failed"), TOO_LONG_400)).size_tokens == 213_462
    assert is_overflow(chained(ValueError("oops"), TOO_LONG_400, stated=False))
    assert is_overflow(chained(from_openai(500, plain("upstream failed")), TOO_LONG_400))
    twice = chained(KeyError("a"), chained(RuntimeError("b"), TOO_LONG_400))
    assert is_overflow(twice).provider == "anthropic"


def test_what_was_met_while_an_overflow_was_handled_is_no_overflow():
    assert is_overflow(chained(from_openai(500, {}), TOO_LONG_400, stated=False)) is None
    assert is_overflow(chained(RATE_429.__class__("x", response=RATE_429.response, body=None),
                               TOO_LONG_400)) is None  # fmt: skip
    unreached = openai.APITimeoutError(httpx2.Request("POST", OPENAI))
    assert is_overflow(chained(unreached, TOO_LONG_400, stated=False)) is None
    assert is_overflow(chained(ValueError("x"), from_anthropic(400, TOO_LONG[0][0]),
                               hidden=True)) is None  # fmt: skip


def test_a_circle_of_causes_ends():
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert is_overflow(one) is None


def test_a_group_is_an_overflow_if_one_of_it_is():
    found = is_overflow(ExceptionGroup("two calls", [ValueError("x"), RATE_429, TOO_LONG_400]))
    assert found.size_tokens == 213_462
    assert is_overflow(ExceptionGroup("two calls", [ValueError("x"), RATE_429])) is None


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
        self.code, self.status, self.message = code, error["status"], error["message"]
        self.details = body
        self.response = None


class BedrockError(Exception):
    """As botocore has it: the body under ``response``, a dict."""

    def __init__(self, code, message):
        super().__init__(f"An error occurred ({code}) when calling Converse: {message}")
        self.response = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": 400},
        }


def test_classes_of_gateways_and_other_sdks():
    assert is_overflow(ContextWindowExceededError("no details")) == Overflow("gemini")
    google = ClientError(400, TOO_LONG[10][0])
    assert is_overflow(google) == Overflow("gemini", 1_048_576, 1_196_265)
    assert is_overflow(ClientError(429, gemini_body("quota", 429, "RESOURCE_EXHAUSTED"))) is None
    bedrock = BedrockError("ValidationException", "Input is too long for requested model.")
    assert is_overflow(bedrock).provider == "bedrock"
    assert is_overflow(BedrockError("ThrottlingException", "Too many tokens, wait.")) is None


def test_a_response_that_was_not_read_is_judged_by_its_status():
    def chunks():
        yield b"x"

    request = httpx2.Request("POST", ANTHROPIC)
    assert is_overflow(httpx2.Response(413, content=chunks(), request=request)).by == "bytes"
    assert is_overflow(httpx2.Response(400, content=chunks(), request=request)) is None


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


FAILED = {"code": CODE, "message": "Your input exceeds the context window of this model."}


def test_a_reply_that_ended_because_the_window_was_full():
    cut = message("model_context_window_exceeded")
    event = {"type": "message_delta", "delta": {"stop_reason": cut["stop_reason"]}, "usage": {}}
    for reply in (cut, Message.model_validate(cut), event, json.dumps(cut)):
        assert is_overflow(reply).by == "after_output"
    assert is_overflow(completion("model_context_window_exceeded")).by == "after_output"
    assert is_overflow({"error": "Reached context length of 4096 tokens with model"}) == Overflow(
        "lm-studio", 4_096, by="after_output"
    )


def test_a_response_that_failed():
    failed = responses_reply("failed", FAILED)
    event = {"type": "response.failed", "sequence_number": 3, "response": failed}
    flat = {"type": "error", "code": CODE, "message": None, "param": "input"}
    for reply in (failed, Response.construct(**failed), event, flat):
        assert is_overflow(reply).by == "tokens"
    cut = responses_reply("incomplete", reason="context_length_exceeded")
    assert is_overflow(cut).by == "after_output"
    for reason in ("max_output_tokens", "content_filter"):
        assert is_overflow(responses_reply("incomplete", reason=reason)) is None


def test_an_error_inside_a_good_status():
    broken = completion("stop", error=plain("prompt is too long: 9 tokens > 8 maximum")["error"])
    assert is_overflow(ChatCompletion.construct(**broken)).size_tokens == 9
    assert is_overflow(httpx2.Response(200, json=broken)).limit_tokens == 8


def test_what_a_model_says_of_overflow_is_none():
    replies = [
        message("end_turn", SAID),
        completion("stop", SAID),
        responses_reply("completed", text=SAID),
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": SAID}},
        {"type": "response.output_text.delta", "delta": SAID},
        {"choices": [{"delta": {"content": SAID}, "finish_reason": None}]},
        {"choices": [{"text": SAID, "finish_reason": "stop"}]},
        {"candidates": [{"content": {"parts": [{"text": SAID}]}, "finishReason": "STOP"}]},
    ]
    for reply in replies:
        assert is_overflow(reply) is None
        assert is_overflow(httpx2.Response(200, json=reply)) is None
        assert is_overflow(httpx2.Response(200, text=f"data: {json.dumps(reply)}\n\n")) is None
    assert is_overflow(Message.model_validate(replies[0])) is None
    assert is_overflow(ChatCompletion.model_validate(replies[1])) is None


# -- anything at all ------------------------------------------------------------------------

jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(("error", "message", "code", "status", "details", "x")) | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


class Hostile(Exception):  # noqa: N818
    def __getattribute__(self, name):
        raise ZeroDivisionError(name)

    def __str__(self):
        raise ZeroDivisionError


@given(jsons)
def test_any_json_is_judged(value):
    for carried in (value, json.dumps(value), ValueError(value), {"error": value}):
        assert isinstance(is_overflow(carried), (Overflow, type(None)))


@given(st.text(), st.sampled_from(UNION), st.text())
def test_words_around_do_not_break_it(before, wording, after):
    assert isinstance(is_overflow(f"{before}{wording}{after}"), (Overflow, type(None)))


@given(st.binary())
def test_any_bytes_are_judged(value):
    assert is_overflow(value) is None


def test_any_object_is_judged():
    for value in (Hostile, Hostile(), object(), is_overflow, int, st, ..., 3, 1j, {3: Hostile()}):
        assert is_overflow(value) is None
    assert is_overflow({"details": Hostile(), "error": TOO_LONG[0][0]}).size_tokens == 213_462


@given(
    st.integers(1_000, 9_999_999),
    st.integers(1_000, 9_999_999),
    st.sampled_from((",", "_", ".", "'", " ", "\u00a0", "\u202f", "")),
)
def test_numbers_are_read_with_any_separator(size, limit, mark):
    written = (f"{number:,}".replace(",", mark) for number in (size, limit))
    found = is_overflow("prompt is too long: {} tokens > {} maximum".format(*written))
    assert (found.size_tokens, found.limit_tokens) == (size, limit)


def test_deep_wide_and_long_bodies_take_no_time():
    deep = wide = {"error": "x"}
    for _ in range(5_000):
        deep = {"error": deep}
    wide = {"errors": [{"error": {"message": "y" * 99}} for _ in range(20_000)]}
    long = {"error": {"message": "prompt input token count " * 40_000}}
    start = time.perf_counter()
    for body in (deep, wide, long, long["error"]["message"], "1,000 " * 100_000):
        assert is_overflow(body) is None
    assert time.perf_counter() - start < 2


def test_a_long_message_is_read_at_both_ends():
    echo = "x" * 1_000_000
    for text in (f"{SAID} {echo}", f"{echo} {SAID}"):
        assert is_overflow({"error": {"message": text}}).size_tokens == 213_462
