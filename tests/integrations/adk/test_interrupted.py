"""Runs of a real ADK runner that are cut off, taken back, or side by side."""

import asyncio

import pytest

pytest.importorskip(
    "google.adk", reason="google-adk is not installed (make adk)"
)

from google.adk.agents import ParallelAgent

from tests.integrations.adk import world
from tests.integrations.adk.world import (
    agent_of,
    contents,
    interrupt,
    kept,
    narrative,
    new_service,
    responses,
    running,
    say,
    steps,
    text_of,
)
from ullage import Budget, summarise
from ullage.integrations.adk import UllageAdkPlugin


class Narrator:
    """Writes a narrative, and tells how often it was asked."""

    def __init__(self):
        self.asked = 0

    def __call__(self, question):
        self.asked += 1
        return f"<summary>Narrative {self.asked}: not the tide.</summary>"


def test_a_run_that_is_cut_off_in_a_tool_goes_on_with_a_legal_history(serve):
    server = serve("gemini", [*steps(15), "Found it."], strict=True)

    async def main():
        reached = asyncio.Event()

        async def read_file(path: str) -> str:
            """Reads a file."""
            if path == "9.log" and not reached.is_set():
                reached.set()
                await asyncio.sleep(3_600)
            return world.read_file(path)

        plugin = UllageAdkPlugin()
        async with running(
            agent_of(server, tools=[read_file]), plugin
        ) as runner:
            await interrupt(runner, reached)
            events = await say(runner, "Go on.")
            return events, plugin.family(await kept(runner)).budget

    events, budget = asyncio.run(main())
    assert events[-1].content.parts[0].text == "Found it."
    assert narrative(server.requests[-1]) is not None
    assert budget.spent.calls == len(server.requests) == 16
    assert budget.reserved.tokens == 0


def test_what_was_decided_for_a_call_that_never_came_back_is_not_lost(serve):
    """The run is cancelled between the narrative and the call it was made for.

    No event of that call reaches ADK's session. The next one brings what was decided, and a
    second process on the same session service asks nobody again.
    """
    server = serve("gemini", [*steps(30), "Found it."], strict=True)
    narrator = Narrator()

    async def main():
        service, reached = new_service("memory", None), asyncio.Event()

        async def hang(callback_context, llm_request):
            if narrator.asked == 1 and not reached.is_set():
                reached.set()
                await asyncio.sleep(3_600)

        plugin = UllageAdkPlugin(summariser=summarise.of(narrator))
        agent = agent_of(server, before_model_callback=hang)
        async with running(agent, plugin, service) as runner:
            await interrupt(runner, reached)
            assert not batches((await kept(runner)).state)
            server._replies[:] = ["I am here."]
            await say(runner, "Are you there?")
            assert len(batches((await kept(runner)).state)) == 1
        server._replies[:] = ["Still here."]
        other = UllageAdkPlugin(summariser=summarise.of(narrator))
        async with running(agent_of(server), other, service) as runner:
            await say(runner, "And now?")

    asyncio.run(main())
    assert narrator.asked == 1
    assert "> Narrative 1: not the tide." in narrative(server.requests[-2])
    assert narrative(server.requests[-1]) == narrative(server.requests[-2])


def batches(state):
    return [
        key for key in state if key.startswith("ullage:") and ":batch:" in key
    ]


def test_a_session_that_is_rewound_is_shown_as_it_was(serve):
    server = serve(
        "gemini",
        [*steps(4), "One.", *steps(20, 4), "Two.", "Three."],
        strict=True,
    )

    async def main():
        plugin = UllageAdkPlugin()
        async with running(agent_of(server), plugin) as runner:
            await say(runner)
            later = await say(runner, "Go on.")
            await runner.rewind_async(
                user_id=world.USER,
                session_id=world.SESSION,
                rewind_before_invocation_id=later[0].invocation_id,
            )
            assert not batches(
                {k: v for k, v in (await kept(runner)).state.items() if v}
            )
            await say(runner, "Something else.")

    asyncio.run(main())
    assert narrative(server.requests[-2]) is not None
    last = server.requests[-1]
    assert narrative(last) is None
    assert contents(last)[:10] == [
        *contents(server.requests[4]),
        contents(last)[9],
    ]
    assert text_of(contents(last)[10]) == "Something else."


@pytest.mark.filterwarnings("ignore:ParallelAgent is deprecated")
def test_agents_side_by_side_share_the_account_and_no_conversation(serve):
    def answer(captured):
        read = [
            each["response"]["result"].partition(".log")[0]
            for each in responses(captured)
        ]
        number = int(read[-1]) + 1 if read else 0
        return steps(1, number)[0] if number < 14 else "Found it."

    server = serve("gemini", answer, strict=True)

    async def main():
        agents = [
            agent_of(server, name=name)
            for name in ("logs", "metrics", "traces")
        ]
        plugin = UllageAdkPlugin()
        async with running(
            ParallelAgent(name="panels", sub_agents=agents), plugin
        ) as runner:
            events = await say(runner)
            return (
                events,
                await kept(runner),
                plugin.family(await kept(runner)),
            )

    events, session, family = asyncio.run(main())
    said = [event for event in events if event.is_final_response()]
    assert {event.author for event in said} == {"logs", "metrics", "traces"}
    assert {
        name: each.calls
        for name, each in family.budget.totals("agent").items()
    } == {
        "logs": 15,
        "metrics": 15,
        "traces": 15,
    }
    assert len(family.sessions) == 3
    told = [
        session.state[f"ullage:spent:{name}"]["calls"]
        for name in family.account.spent
    ]
    assert told == [15, 15, 15]
    assert all(len(captured.raw) // 4 < 32_000 for captured in server.requests)


@pytest.mark.filterwarnings("ignore:ParallelAgent is deprecated")
def test_eight_agents_side_by_side_all_answer_under_a_budget_that_is_theirs(
    serve,
):
    """What one claims beside the others is no reason to end it: next to nothing is spent."""
    server = serve("gemini", lambda captured: "Found nothing.", strict=True)

    async def main():
        agents = [agent_of(server, name=f"panel{n}") for n in range(8)]
        plugin = UllageAdkPlugin(budget=lambda: Budget(tokens=100_000))
        panels = ParallelAgent(name="panels", sub_agents=agents)
        async with running(panels, plugin) as runner:
            events = await say(runner)
            return events, plugin.family(await kept(runner)).budget

    events, budget = asyncio.run(main())
    assert [event.error_code for event in events] == [None] * 8
    assert {event.author for event in events} == {
        f"panel{n}" for n in range(8)
    }
    assert (budget.spent.calls, budget.reserved.tokens) == (8, 0)
