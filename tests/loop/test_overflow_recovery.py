"""A provider says that a request is too long: shortened, sent again, and never for ever."""

import asyncio
import json
from itertools import pairwise

import openai
import pytest

from tests.loop.replies import (
    FORMAT_NAMES,
    asking,
    plain,
    reply,
    request,
    results,
)
from tests.loop.server import calling, saying, serving
from tests.loop.test_turn import new_session, read_log
from ullage import AsyncSession, Limits, OverLimitError
from ullage.doors.loop import arun_turn, run_turn
from ullage.wires.overflow import Overflow

formats = pytest.mark.parametrize("format", FORMAT_NAMES)
LIMITS = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
WINDOW = 8_000
"""What the provider really has, in its own count."""


class TooLong(Exception):
    """What an SDK raises, as far as the loop can tell: words."""


class Provider:
    """Counts in its own way, refuses what is over its window, and wants ten logs."""

    def __init__(self, format, window, *, says="numbers", logs=10):
        self.format, self.window, self.says, self.logs = (
            format,
            window,
            says,
            logs,
        )
        self.sizes, self.refused = [], 0

    def __call__(self, **view):
        size = len(json.dumps(plain(view))) // 2
        self.sizes.append(size)
        if size > self.window:
            self.refused += 1
            return self.refuse(size)
        asked = len(self.sizes) - self.refused
        if asked > self.logs:
            return reply(self.format, "All is well.")
        body = reply(
            self.format,
            "",
            [("read_log", {"path": f"{asked}", "lines": 500})],
            asked,
        )
        self.report(body, size)
        return body

    def refuse(self, size):
        if self.says == "numbers":
            raise TooLong(
                f"prompt is too long: {size} tokens > {self.window} maximum"
            )
        raise TooLong("The input exceeds the context window of this model")

    def report(self, body, size):
        counts = {
            "openai-chat": ("usage", "prompt_tokens"),
            "openai-responses": ("usage", "input_tokens"),
            "anthropic": ("usage", "input_tokens"),
            "gemini": ("usageMetadata", "promptTokenCount"),
            "ollama": ("", "prompt_eval_count"),
            "bedrock-converse": ("usage", "inputTokens"),
        }
        where, name = counts[self.format]
        (body[where] if where else body)[name] = size


def run(format, provider, *, limits=LIMITS, history=None, **more):
    history = asking(format) if history is None else history
    session = new_session(format, limits=limits)
    made = request(format, history)
    return run_turn(provider, session, made, tools=[read_log], **more), session


def long_history(format, logs=12):
    """A history of its own making, so that no report came before."""
    history = asking(format)
    provider = Provider(format, 10**9, logs=logs)
    run_turn(
        provider,
        new_session(format),
        request(format, history),
        tools=[read_log],
    )
    history += asking(format, "And now?")
    return history


@formats
@pytest.mark.parametrize("says", ["numbers", "nothing"])
def test_a_provider_that_counts_more_than_we_do_is_obeyed(format, says):
    history = long_history(format)
    provider = Provider(format, WINDOW, says=says, logs=3)
    outcome, session = run(format, provider, history=history)
    assert outcome.text == "All is well."
    assert 1 <= provider.refused <= (2 if says == "numbers" else 4)
    assert all(
        sent > after
        for sent, after in pairwise(provider.sizes)
        if sent > WINDOW
    )
    told = [event for event in session.events if event.kind == "refused"]
    assert len(told) == provider.refused
    assert all(event.tokens_after < event.tokens_before for event in told)
    assert len(results(format, outcome.history)) == 15, (
        "the history has everything"
    )


@formats
def test_what_a_refusal_taught_is_not_asked_for_again(format):
    """After the first reply that reports usage, estimates are the provider's own."""
    provider = Provider(format, WINDOW, logs=30)
    outcome, _ = run(
        format, provider, history=long_history(format), max_iterations=50
    )
    assert outcome.why == "answered"
    assert provider.refused <= 2
    assert max(provider.sizes[3:]) <= WINDOW


def test_a_window_smaller_than_ours_is_learnt_from_the_refusal():
    """`failure-catalogue` F37: "learns from the overflow"."""
    format = "openai-chat"
    session = new_session(format, limits=Limits(window_tokens=100_000))
    session.fit(request(format, long_history(format)))
    found = session.refused(
        TooLong("prompt is too long: 44000 tokens > 32000 maximum")
    )
    assert found == Overflow(32_000, 44_000)
    asked = request(format, long_history(format, logs=2))
    session.fit(asked)
    session.observe(reply(format, "Done."))
    session.fit(asked)
    assert session.window.limit_tokens == Limits(
        window_tokens=32_000
    ).prompt_tokens(None)
    session.fit({**asked, "model": "gpt-4.1-mini"})
    assert session.window.limit_tokens == Limits(
        window_tokens=100_000
    ).prompt_tokens(None)


@formats
def test_a_provider_that_always_refuses_is_not_asked_for_ever(format):
    provider = Provider(format, 10)
    with pytest.raises((TooLong, OverLimitError)):
        run(format, provider, history=long_history(format))
    assert len(provider.sizes) <= 3
    assert provider.sizes == sorted(provider.sizes, reverse=True)


def test_any_other_error_is_raised_and_nothing_is_shortened():
    def call(**view):
        raise TooLong("Rate limit reached: 30000 tokens per min")

    history = long_history("openai-chat")
    session = new_session("openai-chat", limits=LIMITS)
    with pytest.raises(TooLong):
        run_turn(call, session, request("openai-chat", history))
    assert not [event for event in session.events if event.kind == "refused"]
    assert session.refused(ValueError("no")) is None


def test_a_refusal_with_http_200_is_one_too():
    """Gateways answer so: an error where the choices should be."""
    format = "openai-chat"

    class Gateway(Provider):
        def refuse(self, size):
            message = f"maximum context length is 8000 tokens. However, you requested {size}"
            return {
                "error": {
                    "code": 400,
                    "message": f"This model's {message} tokens",
                }
            }

    provider = Gateway(format, WINDOW, logs=1)
    outcome, _ = run(format, provider, history=long_history(format))
    assert outcome.text == "All is well."
    assert provider.refused >= 1


@formats
def test_the_async_loop_recovers_alike(format):
    history = long_history(format)
    provider, other = (Provider(format, WINDOW, logs=3) for _ in range(2))

    async def call(**view):
        return other(**view)

    session = new_session(format, AsyncSession, limits=LIMITS)
    made = request(format, list(history))
    two = asyncio.run(arun_turn(call, session, made, tools=[read_log]))
    one, _ = run(format, provider, history=list(history))
    assert one.history == two.history
    assert provider.sizes == other.sizes


def test_an_sdk_over_a_socket_is_recovered_from():
    """OpenAI's own error, with its code, raised by its own SDK."""
    sizes = []

    def script(body):
        sizes.append(len(json.dumps(body["messages"])))
        if sizes[-1] > 12_000:
            message = "Your input exceeds the context window of this model."
            return 400, {
                "error": {
                    "message": message,
                    "code": "context_length_exceeded",
                }
            }
        if body["messages"][-1]["role"] == "user":
            return calling(99, "read_log", path="a", lines=3)
        return saying("All is well.")

    with serving(script) as (url, _):
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        outcome, session = run(
            "openai-chat",
            client.chat.completions.create,
            history=long_history("openai-chat"),
        )
        client.close()
    assert outcome.text == "All is well."
    assert sizes[0] > sizes[1]
    assert [event.kind for event in session.events].count("refused") in (1, 2)


@pytest.mark.parametrize(
    ("found", "room"),
    [
        (Overflow(limit_tokens=100, size_tokens=200), 475),
        (
            Overflow(
                limit_tokens=100, size_tokens=200, asked_output_tokens=50
            ),
            316,
        ),
        (Overflow(limit_tokens=100), 750),
        (Overflow(), 750),
        (Overflow(limit_tokens=200, size_tokens=100), 750),
        (Overflow(limit_tokens=10, size_tokens=20, by="bytes"), 750),
        (Overflow(limit_tokens=1, size_tokens=10**9), 1),
    ],
)
def test_the_next_request_is_always_smaller(found, room):
    assert found.room_tokens(1_000) == room


def test_a_retry_keeps_to_less_until_a_reply_reports_and_a_named_window_stays():
    format = "openai-chat"
    session = new_session(format, limits=Limits(window_tokens=100_000))
    asked = request(format, long_history(format))
    session.fit(asked)
    session.refused(
        TooLong("prompt is too long: 44000 tokens > 32000 maximum")
    )
    lowered = session.fit(asked).sent.limit_tokens
    assert lowered < Limits(window_tokens=32_000).prompt_tokens(None)
    session.observe(reply(format, "Done."))
    assert session.fit(asked).sent.limit_tokens == Limits(
        window_tokens=32_000
    ).prompt_tokens(None)
