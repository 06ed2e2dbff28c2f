"""Calls of LiteLLM, made by it over HTTP, kept within the window by a callback."""

import asyncio
import gc
from contextlib import suppress
from threading import Event

import pytest

pytest.importorskip(
    "litellm", reason="litellm is not installed (make litellm)"
)

import litellm

from tests.histories import CUTS_ALWAYS
from tests.integrations.litellm.world import (
    TOO_LONG,
    ask,
    calls,
    installed,
    recalls,
    run,
    says,
    text_of,
    upstream,
)
from tests.integrations.outputs import NEEDLE, big, page
from ullage import Budget, Limits, OverLimitError
from ullage.integrations.litellm import UllageCallback

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # LiteLLM leaves clients and tasks open
SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
USER = {"role": "user", "content": "Find the needle."}
TWO_LOOKS = [
    calls(("look", {"n": 1}), ("look", {"n": 2})),
    recalls,
    says("In the fourth drawer."),
]


def results(messages):
    return [each["content"] for each in messages if each["role"] == "tool"]


def talk(ullage, script, messages, conversation="t", **more):
    """What an application gets, and what the upstream was sent."""
    with installed(ullage), upstream(script) as server:
        said = asyncio.run(run(ullage, server, messages, conversation, **more))
    return said, [request["messages"] for request in server.sent]


def turns(count, start=1):
    return [calls(("turn", {"n": n})) for n in range(start, start + count)]


def test_two_large_results_and_a_recall():
    messages = [USER]
    said, sent = talk(UllageCallback(), TWO_LOOKS, messages)
    assert said == "In the fourth drawer."
    given = results(messages)
    assert given[:2] == [big(1), big(2)]
    assert f"{NEEDLE} of cupboard 2\n" in given[2]
    assert len(text_of(sent[1])) < 20_000


def test_a_restart_shows_the_same(tmp_path):
    messages = [USER]
    ullage = UllageCallback(store=tmp_path / "u.db", limits=SMALL)
    _, first = talk(ullage, [*turns(30), says("So far nothing.")], messages)
    assert results(messages) == list(map(page, range(1, 31)))
    again = UllageCallback(store=tmp_path / "u.db", limits=SMALL)
    _, second = talk(again, [says("Nothing.")], [*messages, USER])
    assert second[0][: len(first[-1])] == first[-1]
    assert text_of(second[0]).count("[ullage") > 1


def test_what_was_refused_once_is_cut_deeper_by_the_next_call():
    messages, ullage = [USER], UllageCallback(limits=SMALL)
    script = [*turns(12), TOO_LONG, says("Done.")]

    async def main(server):
        with pytest.raises(litellm.ContextWindowExceededError):
            await run(ullage, server, messages, "t")
        return await run(ullage, server, messages, "t")

    with installed(ullage), upstream(script) as server:
        assert asyncio.run(main(server)) == "Done."
    refused, then = (
        text_of(request["messages"]) for request in server.sent[-2:]
    )
    assert len(then) < len(refused) * 0.8


def test_twelve_conversations_do_not_open_each_others_outputs():
    def script(request):
        n = int(request["messages"][0]["content"])
        steps = [calls(("look", {"n": n})), recalls, says("Done.")]
        step = steps[
            sum(each["role"] == "assistant" for each in request["messages"])
        ]
        return step(request) if callable(step) else step

    ullage = UllageCallback()
    talks = [[{"role": "user", "content": str(n)}] for n in range(12)]

    async def main(server):
        await asyncio.gather(
            *(
                run(ullage, server, each, str(n))
                for n, each in enumerate(talks)
            )
        )
        refs = [
            next(
                call for call in messages[3]["tool_calls"] if ullage.owns(call)
            )
            for messages in talks
        ]
        return await ullage.open("0", refs[1])

    with installed(ullage), upstream(script) as server:
        other = asyncio.run(main(server))
    for n, messages in enumerate(talks):
        assert f"{NEEDLE} of cupboard {n}\n" in results(messages)[1]
    assert "nothing is kept under" in other["content"]


def test_usage_is_counted_once_streamed_or_not():
    budget = Budget(tokens=0)
    ullage, another = UllageCallback(budget=budget), UllageCallback()

    async def main(server):
        await ask(server, [USER], "t")
        stream = await ask(
            server,
            [USER],
            "t",
            stream=True,
            stream_options={"include_usage": True},
        )
        said = [chunk async for chunk in stream]
        while budget.spent.calls < 2:  # noqa: ASYNC110 - LiteLLM tells it beside the stream
            await asyncio.sleep(0.01)
        return said

    with (
        installed(another),
        installed(ullage),
        upstream([says("Yes."), says("Yes.")]) as server,
    ):
        assert len(asyncio.run(main(server))) > 1
    usage = budget.spent.usage
    assert (
        usage.fresh_tokens,
        usage.cache_read_tokens,
        usage.output_tokens,
    ) == (
        600,
        1_400,
        20,
    )


def test_the_last_request_of_a_budget_forbids_tools():
    ullage = UllageCallback(budget=Budget(tokens=4_000), limits=SMALL)
    with (
        installed(ullage),
        upstream([*turns(4), says("That is all.")]) as server,
    ):
        assert asyncio.run(run(ullage, server, [USER], "t")) == "That is all."
    assert server.sent[-1]["tool_choice"] == "none"


@pytest.mark.parametrize("settings", [{"policy": CUTS_ALWAYS}, {}])
def test_a_call_that_lists_no_recall_tools_is_told_of_none(settings):
    call = calls(("look", {"n": 1}))
    result = {
        "role": "tool",
        "tool_call_id": call["tool_calls"][0]["id"],
        "content": big(1),
    }
    ullage = UllageCallback(**settings)
    with installed(ullage), upstream([says("Yes.")]) as server:
        asyncio.run(ask(server, [USER, call, result], "t"))
    (request,) = server.sent
    whole = big(1) in text_of(request["messages"])
    assert whole == (
        not settings
    )  # what nothing could open the default does not cut
    assert whole or len(text_of(request["messages"])) < 20_000
    assert "tool_output_cache" not in text_of(request["messages"])
    assert [tool["function"]["name"] for tool in request["tools"]] == [
        "look",
        "turn",
    ]


def test_a_call_without_a_conversation_goes_as_it_is():
    with installed(UllageCallback()), upstream([says("Yes.")]) as server:
        asyncio.run(ask(server, [{"role": "user", "content": big(1)}]))
    assert server.sent[0]["messages"][0]["content"] == big(1)


def test_a_session_of_another_key_of_the_proxy_is_another():
    ullage = UllageCallback()
    with installed(ullage), upstream(lambda request: says("Yes.")) as server:

        async def main():
            for key in ("a", "b", "a"):
                metadata = {"session_id": "t", "user_api_key": key}
                await ask(server, [USER], metadata=metadata)

        asyncio.run(main())
    assert len(ullage.sessions) == 2


def test_what_is_refused_for_ever_is_the_applications_error_each_time():
    budget = Budget(tokens=0)
    ullage = UllageCallback(limits=SMALL, budget=budget)

    async def main(server):
        for _ in range(6):
            with pytest.raises(
                (litellm.ContextWindowExceededError, OverLimitError)
            ):
                await ask(server, [USER], "t")

    with installed(ullage), upstream(lambda request: TOO_LONG) as server:
        asyncio.run(main(server))
    assert budget.spent.calls == 0
    assert not budget.reserved.tokens


def test_a_call_that_is_cancelled_claims_nothing_and_the_next_goes_on():
    budget, hangs, held = Budget(tokens=100_000), Event(), Event()
    ullage = UllageCallback(budget=budget)

    def script(request):
        if not hangs.is_set():
            hangs.set()
            held.wait(30)
        return says("Yes.")

    async def main(server):
        call = asyncio.create_task(ask(server, [USER], "t"))
        await asyncio.to_thread(hangs.wait, 30)
        assert budget.reserved.tokens
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        del call
        held.set()
        while (
            budget.reserved.tokens
        ):  # LiteLLM tells nobody: it goes with the call's own objects
            gc.collect()
            await asyncio.sleep(0)
        reply = await ask(server, [USER], "t")
        return reply.choices[0].message.content

    with installed(ullage), upstream(script) as server:
        assert asyncio.run(main(server)) == "Yes."
    assert not budget.reserved.tokens
