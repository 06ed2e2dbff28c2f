"""`multi-stage-strategy.md` in its own host: the sliding window, in a real ADK runner."""

import asyncio
from itertools import count

import pytest

pytest.importorskip(
    "google.adk", reason="google-adk is not installed (make adk)"
)

from google.adk.events import Event, EventActions

from tests.integrations.adk import world
from tests.integrations.adk.world import (
    agent_of,
    contents,
    functions,
    kept,
    narrative,
    new_service,
    plugin_of,
    running,
    say,
    steps,
    text_of,
)
from tests.servers import Call, Reply
from ullage import summarise
from ullage.documents.presets.multi_stage import NARRATIVE
from ullage.integrations.adk import UllageAdkPlugin

durable = pytest.mark.parametrize("kind", ["sqlite", "database"])


def telling():
    """What a writer answers: another narrative each time, for one that repeats is refused."""
    numbers = count(1)
    return lambda _: (
        f"<summary>Narrative {next(numbers)}: it was not the tide.</summary>"
    )


@pytest.mark.says(
    "multi-stage-strategy",
    "Sliding Window Compaction (Runner Level)",
    "As events are added to a session, older events are summarized into a natural language "
    "narrative, while the most recent `N` events are kept in full.",
    lives="ullage.integrations.adk",
)
@pytest.mark.says(
    "multi-stage-strategy",
    "3. Usage & Cost Tracking",
    "All agents are wrapped with `before_model_callback` and `after_model_callback` to track "
    "telemetry:",
    lives="ullage.integrations.adk",
)
def test_a_long_investigation_stays_within_the_window(serve):
    server = serve("gemini", [*steps(40), "Found it."], strict=True)

    async def main():
        plugin = UllageAdkPlugin()
        async with running(agent_of(server), plugin) as runner:
            events = await say(runner)
            return (
                events,
                await kept(runner),
                plugin.family(await kept(runner)),
            )

    events, session, family = asyncio.run(main())
    assert events[-1].content.parts[0].text == "Found it."
    assert len(server.requests) == 41
    for captured in server.requests:
        assert len(captured.raw) // 4 < 32_000
        assert text_of(contents(captured)[0]) == "Find the fault."
    last = server.requests[-1]
    assert narrative(last) == text_of(contents(last)[1])
    assert '"0.log": read (message 3)' in narrative(last)
    newest = [world.read_file(f"{n}.log") for n in range(35, 40)]
    assert [
        each["response"]["result"] for each in world.responses(last)[-5:]
    ] == newest
    # ADK's own events are all there, and whole
    results = [
        each
        for event in session.events
        for each in event.get_function_responses()
    ]
    assert [each.response["result"] for each in results] == [
        world.read_file(f"{n}.log") for n in range(40)
    ]
    kinds = [
        event.kind for ullage in family.sessions for event in ullage.events
    ]
    assert kinds.count("observed") == 41
    assert 2 < kinds.count("compacted") < 12


@pytest.mark.says(
    "multi-stage-strategy",
    "Sliding Window Compaction (Runner Level)",
    "The `context_compactor.py` implements a persistent sliding window at the `Runner` level.",
    lives="ullage.integrations.adk",
)
@durable
def test_another_runner_on_the_same_sessions_goes_on_from_the_narrative(
    serve, tmp_path, kind
):
    """The model is asked for each narrative once; both runners show it to the byte."""
    server = serve(
        "gemini",
        [*steps(28), "Not the tide.", *steps(2, 28), "Found it."],
        strict=True,
    )
    writer = serve("gemini", telling())

    async def live(text):
        summariser = summarise.gemini(
            world.client_of(writer), "gemini-2.5-flash"
        )
        plugin = UllageAdkPlugin(summariser=summariser)
        async with running(
            agent_of(server), plugin, new_service(kind, tmp_path)
        ) as runner:
            await say(runner, text)
            return plugin.family(await kept(runner)).budget.spent

    before = asyncio.run(live("Find the fault."))
    asked, told = len(writer.requests), narrative(server.requests[28])
    assert asked > 1
    assert f"> Narrative {asked}: it was not the tide." in told
    after = asyncio.run(live("Go on."))
    assert narrative(server.requests[29]) == told
    assert contents(server.requests[29])[
        : len(contents(server.requests[28]))
    ] == contents(server.requests[28])
    assert len(writer.requests) == asked
    assert before.calls == 29 + asked
    assert after.calls == before.calls + 3
    assert after.cost_usd > before.cost_usd > 0


def test_the_writer_is_told_to_narrate_and_given_its_earlier_narrative(serve):
    server, writer = (
        serve("gemini", [*steps(28), "Done."]),
        serve("gemini", telling()),
    )

    async def main():
        client = world.client_of(writer)
        plugin = UllageAdkPlugin(
            summariser=summarise.gemini(client.aio, "gemini-2.5-flash")
        )
        async with running(agent_of(server), plugin) as runner:
            await say(runner)
            return plugin.family(await kept(runner)).budget

    budget = asyncio.run(main())
    first, second, *_ = (captured.body for captured in writer.requests)
    assert first["systemInstruction"]["parts"][0]["text"] == NARRATIVE.system
    assert "it was not the tide" not in str(first)
    assert "it was not the tide" in str(second["contents"])
    assert set(budget.totals("model")) == {
        "gemini-2.5-pro",
        "gemini-2.5-flash",
    }


@pytest.mark.parametrize(
    "reply", ["", "no tags at all", "<summary></summary>", "[Compaction"]
)
def test_where_the_writer_fails_the_deterministic_narrative_stands(
    serve, reply
):
    server, writer = (
        serve("gemini", [*steps(20), "Done."]),
        serve("gemini", lambda _: reply),
    )

    async def main():
        summariser = summarise.gemini(
            world.client_of(writer), "gemini-2.5-flash"
        )
        async with running(
            agent_of(server), UllageAdkPlugin(summariser=summariser)
        ) as runner:
            return await say(runner)

    assert asyncio.run(main())[-1].content.parts[0].text == "Done."
    assert '"0.log": read (message 3)' in narrative(server.requests[-1])
    assert "\n> " not in narrative(server.requests[-1])


def test_each_agent_has_a_conversation_of_its_own_and_they_share_the_account(
    serve,
):
    hand_over = Reply(
        "Not my field.",
        [Call("transfer_to_agent", {"agent_name": "database"})],
    )
    server = serve("gemini", [*steps(12), hand_over, *steps(2), "Found it."])

    async def main():
        other = agent_of(
            server, name="database", description="Knows the database."
        )
        plugin = UllageAdkPlugin()
        lead = agent_of(server, sub_agents=[other])
        async with running(lead, plugin) as runner:
            events = await say(runner)
            return events, plugin.family(await kept(runner))

    events, family = asyncio.run(main())
    assert events[-1].author == "database"
    assert events[-1].content.parts[0].text == "Found it."
    spent = family.budget.totals("agent")
    assert {name: each.calls for name, each in spent.items()} == {
        "investigator": 13,
        "database": 3,
    }
    assert family.budget.spent.tokens == sum(
        body["usageMetadata"]["totalTokenCount"] for body in server.answered
    )


def test_a_session_that_was_under_way_is_taken_over_and_gets_the_tools_with_its_first_cut(
    serve,
):
    server = serve("gemini", [*steps(20), "Not the tide.", "Found it."])

    async def main():
        service = new_service("memory", None)
        async with running(agent_of(server), None, service) as runner:
            await say(runner)
        async with running(
            agent_of(server), UllageAdkPlugin(), service
        ) as runner:
            await say(runner, "Go on.")

    asyncio.run(main())
    assert len(server.requests[20].raw) > 3 * len(server.requests[21].raw)
    assert narrative(server.requests[20]) is None
    assert narrative(server.requests[21]) is not None
    assert functions(server.requests[20]) == ["read_file"]
    assert "get_continuation" in functions(server.requests[21]), (
        "what was cached is lost anyway"
    )


def test_what_the_state_holds_of_others_or_is_nonsense_is_left_alone(serve):
    server = serve("gemini", [*steps(20), "Done."])
    chain = "00" * 16
    nonsense = {
        "case": 7,
        "ullage:spent:investigator": "much",
        f"ullage:{chain}:batch:0": "no base64",
        f"ullage:{chain}:observed:0": "/w==",
        f"ullage:{chain}:opened:0": None,
    }

    async def main():
        service = new_service("memory", None)
        await service.create_session(
            app_name=world.APP,
            user_id=world.USER,
            session_id=world.SESSION,
            state=nonsense,
        )
        async with running(
            agent_of(server), UllageAdkPlugin(), service
        ) as runner:
            await say(runner)
            return (await kept(runner)).state

    state = asyncio.run(main())
    assert narrative(server.requests[-1]) is not None
    assert {
        key: state[key]
        for key in nonsense
        if not key.startswith("ullage:spent")
    } == {
        key: value
        for key, value in nonsense.items()
        if not key.startswith("ullage:spent")
    }
    assert state["ullage:spent:investigator"]["calls"] == 21


def test_a_ledger_that_somebody_wrote_over_is_as_if_it_were_not_there(serve):
    """The state can be written by whoever may append to the session."""
    server = serve(
        "gemini", [*steps(20), "Not the tide.", "Found it."], strict=True
    )

    async def main():
        service = new_service("memory", None)
        async with running(
            agent_of(server), UllageAdkPlugin(), service
        ) as runner:
            await say(runner)
            session = await kept(runner)
            ours = [
                key
                for key in session.state
                if ":batch:" in key or ":observed:" in key
            ]
            nonsense = dict.fromkeys(ours, "AAAA") | {
                f"{key}0": "AAAA" for key in ours
            }
            actions = EventActions(state_delta=nonsense)
            await service.append_event(
                session, Event(author="user", actions=actions)
            )
        async with running(
            agent_of(server), UllageAdkPlugin(), service
        ) as runner:
            return await say(runner, "Go on.")

    assert asyncio.run(main())[-1].content.parts[0].text == "Found it."
    assert narrative(server.requests[-1]) is not None


def test_two_processes_that_take_turns_show_the_same_view(serve):
    """Two runners, each with a plugin of its own, on one session service."""
    server = serve(
        "gemini", [*steps(10), "A.", *steps(10, 10), "B.", *steps(1, 20), "C."]
    )
    writer = serve("gemini", telling())

    async def main():
        service = new_service("memory", None)
        client = world.client_of(writer)
        plugins = [
            UllageAdkPlugin(summariser=summarise.gemini(client))
            for _ in range(2)
        ]
        async with (
            running(agent_of(server), plugins[0], service) as first,
            running(agent_of(server), plugins[1], service) as second,
        ):
            await say(first)
            await say(second, "Go on.")
            asked = len(writer.requests)
            await say(first, "And now?")
            return asked, plugins[0].family(await kept(first)).budget.spent

    asked, spent = asyncio.run(main())
    assert "> Narrative 1: " in narrative(server.requests[21])
    assert narrative(server.requests[22]) == narrative(server.requests[21])
    assert len(writer.requests) == asked
    assert spent.calls == len(server.requests) + len(writer.requests)


def test_the_window_can_be_switched_off(serve):
    server = serve("gemini", [*steps(20), "Done."])

    async def main():
        plugin = plugin_of(COMPACTION_TRIGGER_TOKENS=0)
        async with running(agent_of(server), plugin) as runner:
            await say(runner)

    asyncio.run(main())
    assert narrative(server.requests[-1]) is None
    assert len(contents(server.requests[-1])) == 41
