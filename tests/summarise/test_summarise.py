"""Summaries by the vendors' own SDKs and by callables: sync, async, late, cancelled."""

import asyncio
import threading

import anthropic
import openai
import pytest
from google import genai

from tests import histories
from tests.histories import Call, Turn
from tests.servers import Reply as Scripted
from ullage import AsyncSession, ConfigError, Limits, Session, summarise
from ullage.core.values.effects import Reply, Summarise
from ullage.core.values.usage import Usage

TURNS = [
    Turn(user=f"Step {n}.", calls=(Call("bash", "x", "output\n" * 300),))
    for n in range(6)
]
REQUEST = histories.request(
    "openai-chat", histories.wire("openai-chat", TURNS)
)
GOOD = "<summary>The loader is next.</summary>"
MAKE = {
    "anthropic": summarise.anthropic,
    "openai-chat": summarise.openai,
    "gemini": summarise.gemini,
}
CUT_OFF = {
    "anthropic": "max_tokens",
    "openai-chat": "length",
    "gemini": "MAX_TOKENS",
}


def async_client(format, url):
    """The vendor's client for an event loop, pointed at a server of the tests."""
    if format == "anthropic":
        return anthropic.AsyncAnthropic(
            api_key="k", base_url=url, max_retries=0
        )
    if format == "openai-chat":
        return openai.AsyncOpenAI(
            api_key="k", base_url=f"{url}/v1", max_retries=0
        )
    return genai.Client(api_key="k", http_options={"base_url": url}).aio


def session(kind=Session, **more):
    return kind("gpt-4.1", limits=Limits(window_tokens=100_000), **more)


def shown(made):
    return made.window.summaries[-1].edit


def refusals(made):
    return [
        event.why for event in made.events if event.kind == "summary_refused"
    ]


@pytest.mark.parametrize("format", sorted(MAKE))
def test_each_sdk_writes_a_summary_that_is_paid_for(format, serve):
    server = serve(format, [GOOD], strict=True)
    made = session(summariser=MAKE[format](server.client(), "some-model"))
    assert made.compact(REQUEST)
    assert shown(made).model_text == "The loader is next."
    assert made.usage.input_tokens > 0
    assert made.budget.spent.usage == made.usage
    body = server.requests[0].body
    assert "tools" not in body
    assert "result of bash: output" in server.requests[0].raw.decode()


@pytest.mark.parametrize("format", sorted(MAKE))
def test_a_reply_that_was_cut_off_is_asked_for_again_with_more_room(
    format, serve
):
    server = serve(format, [Scripted(GOOD, stop=CUT_OFF[format]), GOOD])
    made = session(summariser=MAKE[format](server.client(), "some-model"))
    made.compact(REQUEST)
    assert shown(made).model_text == "The loader is next."
    first, second = (request.raw.decode() for request in server.requests)
    assert "2000" in first
    assert "4000" in second
    assert "it was not finished" in second


@pytest.mark.parametrize("format", sorted(MAKE))
def test_each_async_sdk_writes_one_too(format, serve):
    server = serve(format, [GOOD])

    async def run():
        made = session(
            AsyncSession,
            summariser=MAKE[format](async_client(format, server.url), "m"),
        )
        assert await made.compact(REQUEST)
        return made

    made = asyncio.run(run())
    assert shown(made).model_text == "The loader is next."
    assert made.usage.input_tokens > 0


def test_an_error_of_the_provider_leaves_the_deterministic_summary(serve):
    server = serve("anthropic", [])
    made = session(
        summariser=summarise.anthropic(server.client(), "some-model")
    )
    assert made.compact(REQUEST)
    assert shown(made).model_text == ""
    assert "raised InternalServerError" in refusals(made)[0]
    assert len(server.requests) == 2


def test_a_callable_may_give_a_text_or_a_reply_and_be_async():
    assert session(summariser=lambda asked: GOOD).compact(REQUEST)

    async def written(asked):
        assert isinstance(asked, Summarise)
        return Reply(text=GOOD, usage=Usage(fresh_tokens=700))

    async def run():
        made = session(AsyncSession, summariser=written)
        await made.compact(REQUEST)
        plain = session(AsyncSession, summariser=lambda asked: GOOD)
        await plain.compact(REQUEST)
        return made, plain

    made, plain = asyncio.run(run())
    assert (
        shown(made).model_text
        == shown(plain).model_text
        == "The loader is next."
    )
    assert made.usage.input_tokens == 700


def test_what_is_no_summariser_is_refused():
    with pytest.raises(ConfigError, match="cannot be called"):
        session(summariser=7)
    with pytest.raises(ConfigError, match="AsyncSession"):
        session(summariser=async_model)
    with pytest.raises(ConfigError, match="timeout_s"):
        summarise.of(len, timeout_s=0)
    wrong = session(summariser=lambda asked: 7)
    wrong.compact(REQUEST)
    assert "raised SummaryError" in refusals(wrong)[0]


async def async_model(asked):
    return GOOD


def test_one_that_hangs_is_given_up_once_and_what_it_costs_is_counted_when_it_comes():
    free, done = threading.Event(), threading.Event()
    asked = []

    def hangs(question):
        asked.append(question)
        free.wait()
        done.set()
        return Reply(text=GOOD, usage=Usage(fresh_tokens=900), model="gpt-4.1")

    made = session(summariser=summarise.of(hangs, timeout_s=0.05))
    assert made.compact(REQUEST)
    assert shown(made).model_text == ""
    assert "no reply within 0.05 seconds" in refusals(made)[0]
    assert len(asked) == 1
    free.set()
    done.wait()
    while made.budget.spent.tokens == 0:
        pass
    made.fit(REQUEST)
    assert made.usage.input_tokens == 900


def test_an_async_one_that_hangs_is_given_up_or_cancelled():
    called = asyncio.Event()

    async def hangs(asked):
        called.set()
        await asyncio.Event().wait()

    async def run():
        made = session(
            AsyncSession, summariser=summarise.of(hangs, timeout_s=0.05)
        )
        assert await made.compact(REQUEST)
        called.clear()
        slow = session(AsyncSession, summariser=hangs)
        task = asyncio.create_task(slow.compact(REQUEST))
        await called.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        slow._summaries = None
        return made, await slow.fit(REQUEST)

    made, view = asyncio.run(run())
    assert "no reply within" in refusals(made)[0]
    assert view["messages"] == REQUEST["messages"]


def test_an_interruption_leaves_nothing_half_done():
    class Stop(BaseException):
        pass

    made = session(summariser=lambda asked: GOOD)
    made._summaries.ask = lambda asked: (_ for _ in ()).throw(Stop())
    with pytest.raises(Stop) as held:
        made.compact(REQUEST)
    assert (
        held.value is not None
    )  # it is held, and with it every frame of the turn
    assert made.fit(REQUEST)["messages"] == REQUEST["messages"]


def test_the_model_of_the_conversation_is_asked_where_no_other_is_named():
    asked = []

    class Completions:
        def create(self, **request):
            asked.append(request["model"])
            raise OSError

    class Client:
        chat = type("Chat", (), {"completions": Completions()})

    session(summariser=summarise.openai(Client())).compact(REQUEST)
    session(summariser=summarise.openai(Client(), "gpt-5-mini")).compact(
        REQUEST
    )
    assert asked == ["gpt-4.1", "gpt-4.1", "gpt-5-mini", "gpt-5-mini"]
