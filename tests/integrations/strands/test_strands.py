"""Strands agents, with their own runner and session manager, kept within the window."""

import asyncio

import pytest

pytest.importorskip("strands", reason="strands-agents is not installed (make strands)")

from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import ContextWindowOverflowException
from strands.types.session import decode_bytes_values

from tests.integrations.outputs import NEEDLE, big, page
from tests.integrations.strands.world import (
    GREP,
    Scripted,
    agent_of,
    calls,
    recalls,
    results,
    says,
    shown,
    text_of,
    usage,
)
from ullage import Budget, BudgetExceeded, FormatError, Limits
from ullage.integrations.strands import HOST, UllagePlugin

SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
TOO_LONG = ContextWindowOverflowException("prompt is too long: 15500 tokens > 8000 maximum")


def two_looks():
    both = calls(("look", {"n": 1}), ("look", {"n": 2}))
    return [both, recalls, says("In the fourth drawer.")]


def fifty(start=1, **more):
    return [calls(("turn", {"n": n}), **more) for n in range(start, start + 50)]


def test_two_large_results_and_a_recall():
    model, plugin = Scripted(two_looks()), UllagePlugin()
    agent = agent_of(model, plugin)
    assert str(agent("Find the needle.")) == "In the fourth drawer.\n"
    assert sorted(results(agent.messages)[:2]) == [big(1), big(2)]
    assert NEEDLE in results(agent.messages)[2]
    assert len(text_of(model.sent[1])) < 20_000
    assert [spec["name"] for spec in model.asked[0]["tools"]][-1] == GREP


def test_what_is_sent_is_legal_and_shares_its_prefix_over_a_hundred_calls():
    model = Scripted([*fifty(), *fifty(start=51), says("Done.")], "claude-opus-4-5")
    agent = agent_of(model, UllagePlugin(limits=SMALL))
    agent("Find the needle.")
    assert results(agent.messages) == [page(n) for n in range(1, 101)]
    kept = 0
    for before, after in zip(model.sent, model.sent[1:], strict=False):
        assert len(text_of(after)) / 3 < 16_000
        assert paired(after)
        kept += shown(after)[: len(before)] == shown(before)
    assert kept > 70


def paired(messages):
    """Whether each call is answered in the next message, as Converse asks."""
    waiting = set()
    for message in messages:
        answered = {b["toolResult"]["toolUseId"] for b in message["content"] if "toolResult" in b}
        if answered != waiting:
            return False
        waiting = {b["toolUse"]["toolUseId"] for b in message["content"] if "toolUse" in b}
    return not waiting


def restored(folder, script, **settings):
    manager = FileSessionManager(session_id="incident-7", storage_dir=str(folder))
    model = Scripted(script)
    return model, agent_of(model, UllagePlugin(limits=SMALL, **settings), session_manager=manager)


def test_a_restart_shows_the_same_bytes(tmp_path):
    warm, agent = restored(tmp_path, [*fifty(), says("So far nothing."), says("Nothing.")])
    agent("Find the needle.")
    cold, again = restored(tmp_path, [says("Nothing.")])
    assert shown(again.messages) == shown(agent.messages)
    again("And now?")
    agent("And now?")
    assert shown(cold.sent[0]) == shown(warm.sent[-1])


def test_after_a_restart_a_recall_may_come_first(tmp_path):
    first, agent = restored(tmp_path, [*two_looks()[:1], says("I will look.")])
    agent("Find the needle.")
    ref = recalls(first.sent[1])[0][0]["toolUse"]["input"]
    _, again = restored(tmp_path, [])
    found = getattr(again.tool, GREP)(**ref, record_direct_tool_call=False)
    assert NEEDLE in found["content"][0]["text"]


def test_a_request_that_is_refused_once_is_cut_deeper():
    model = Scripted([*fifty()[:12], TOO_LONG, says("Done.")])
    agent = agent_of(model, UllagePlugin(limits=SMALL))
    assert str(agent("Find the needle.")) == "Done.\n"
    assert len(text_of(model.sent[13])) < len(text_of(model.sent[12])) * 0.8
    assert results(agent.messages) == [page(n) for n in range(1, 13)]


def test_what_is_refused_for_ever_comes_out_as_the_frameworks_error():
    model = Scripted(lambda messages: TOO_LONG)
    with pytest.raises(ContextWindowOverflowException):
        agent_of(model, UllagePlugin())("Find the needle.")


def test_any_other_error_comes_out_at_once():
    model = Scripted([ValueError("no such key")])
    with pytest.raises(ValueError, match="no such key"):
        agent_of(model, UllagePlugin())("Find the needle.")
    assert len(model.sent) == 1


def test_twelve_agents_on_one_plugin_do_not_open_each_others_outputs():
    plugin = UllagePlugin()

    async def talk(n):
        def reply(messages):
            given = results(messages)
            if not given:
                return calls(("look", {"n": n}))
            return recalls(messages) if len(given) == 1 else says("Done.")

        agent = agent_of(Scripted(reply), plugin)
        await agent.invoke_async("Find the needle.")
        return agent

    async def main():
        return await asyncio.gather(*map(talk, range(12)))

    agents = asyncio.run(main())
    for n, agent in enumerate(agents):
        assert f"{NEEDLE} of cupboard {n}\n" in results(agent.messages)[1]
    asked = agents[0].messages[-3]["content"][0]["toolUse"]["input"]
    other = agent_of(Scripted([calls((GREP, asked)), says("Not there.")]), plugin)
    other("Find the needle.")
    assert "nothing is kept under" in results(other.messages)[0]
    assert other.messages[2]["content"][0]["toolResult"]["status"] == "error"


def test_an_agent_within_an_agent_has_a_conversation_of_its_own():
    plugin = UllagePlugin()
    inner = agent_of(Scripted(two_looks()), plugin, name="colleague")
    asks = calls(("colleague", {"input": "Where?"}))
    outer = agent_of(Scripted([asks, says("Found.")]), plugin, tools=[inner.as_tool()])
    outer("Find the needle.")
    assert "In the fourth drawer." in results(outer.messages)[0]
    assert len(plugin.sessions) == 2


def thoughts(messages):
    return sum("reasoningContent" in b for message in messages for b in message["content"])


def test_bound_reasoning_behind_an_edit_is_left_out():
    """What is sent before a thought is what it was thought upon, to the byte."""
    script = [*fifty(thought="A page.")[:30], says("Done.")]
    model = Scripted(script, "claude-sonnet-6")
    agent = agent_of(model, UllagePlugin(limits=SMALL))
    agent("Find the needle.")
    assert thoughts(agent.messages) == 30
    upon = [shown(sent) for sent in model.sent]
    for sent in model.sent:
        for at, message in enumerate(sent):
            if thoughts([message]):
                assert shown(sent[:at]) in upon
    assert len({thoughts(sent) for sent in model.sent[15:]}) > 1


def test_usage_is_counted_once_for_each_call_with_the_cache_apart():
    cached = usage(1_000, 20, read=700, written=200)
    plugin = UllagePlugin(budget=(budget := Budget(tokens=0)))
    agent_of(Scripted([*fifty()[:2], says("Done.", cached)]), plugin)("Find the needle.")
    spent = budget.spent
    assert (spent.calls, spent.usage.cache_read_tokens) == (3, 700)
    assert spent.usage.cache_write_tokens == 200
    assert spent.usage.fresh_tokens == 2 * 1_000 + 100


def test_the_last_request_of_a_budget_asks_to_end_and_the_next_is_refused():
    model = Scripted([*fifty()[:4], says("That is all."), says("More.")])
    agent = agent_of(model, UllagePlugin(budget=Budget(tokens=4_000), limits=SMALL))
    assert str(agent("Find the needle.")) == "That is all.\n"
    assert model.sent[-1][-1]["role"] == "user"
    assert "text" in model.sent[-1][-1]["content"][-1]
    with pytest.raises(BudgetExceeded):
        agent("And more?")


def test_a_cancelled_call_gives_back_what_it_claimed():
    budget = Budget(tokens=1_000_000)

    async def main():
        agent = agent_of(
            Scripted(lambda messages: asyncio.CancelledError()), UllagePlugin(budget=budget)
        )
        with pytest.raises(asyncio.CancelledError):
            await agent.invoke_async("Find the needle.")

    asyncio.run(main())
    assert budget.spent.calls == 0


# The messages themselves

PNG = {"image": {"format": "png", "source": {"bytes": b"\x89PNG" * 400}}}


def test_every_kind_of_block_is_read():
    message = HOST.parse(
        {
            "role": "user",
            "content": [
                {"text": "look"},
                PNG,
                {"cachePoint": {"type": "default"}},
                {
                    "toolResult": {
                        "toolUseId": "c",
                        "status": "error",
                        "content": [{"json": {"a": 1}}, PNG],
                    }
                },
                {"guardContent": {"text": {"text": "hm"}}},
            ],
        },
        "messages[0]",
    )
    kinds = [type(part).__name__ for part in message.parts]
    assert kinds == ["Text", "Media", "ToolResult", "Opaque"]
    (result,) = message.results
    assert (result.content[0].text, result.is_error) == ('{"a":1}', True)
    assert result.content[1].mime == "image/png"


@pytest.mark.parametrize(
    "raw", [7, None, {}, {"role": "tool", "content": []}, {"role": "user", "content": 7}]
)
def test_what_is_no_message_is_refused(raw):
    with pytest.raises(FormatError):
        HOST.parse(raw, "messages[0]")


def test_an_edited_message_is_another_one_and_the_rest_the_same_objects():
    call = {"toolUse": {"toolUseId": "c", "name": "turn", "input": {"n": 1}}}
    marker = {"cachePoint": {"type": "default"}}
    raw = {"role": "assistant", "content": [{"text": "said"}, marker, call]}
    message = HOST.parse(raw, "messages[0]")
    edited = HOST.edit(raw, message, [(0, 0, "shown"), (1, 0, '{"n":2}')])
    assert edited["content"][0] == {"text": "shown"}
    assert edited["content"][1] is marker
    assert edited["content"][2]["toolUse"]["input"] == {"n": 2}
    assert raw["content"][0] == {"text": "said"}


def test_a_picture_that_left_comes_back_as_what_it_was():
    message = HOST.parse({"role": "user", "content": [PNG]}, "messages[0]")
    assert decode_bytes_values(message.parts[0].block) == PNG
