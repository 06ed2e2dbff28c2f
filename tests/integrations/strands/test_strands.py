"""Strands agents, with their own runner and session manager, kept within the window."""

import pytest

pytest.importorskip(
    "strands", reason="strands-agents is not installed (make strands)"
)

from strands.session.file_session_manager import FileSessionManager
from strands.tools.tools import PythonAgentTool
from strands.types.session import decode_bytes_values

from tests.integrations.outputs import NEEDLE, names_in, refs_in, story
from tests.integrations.strands.world import (
    GREP,
    Scripted,
    agent_of,
    calls,
    recalls,
    results,
    says,
    text_of,
)
from ullage import Budget, FormatError, Limits
from ullage.integrations.strands import HOST, UllageStrandsPlugin

SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)


def two_looks():
    both = calls(("look", {"n": 1}), ("look", {"n": 2}))
    return [both, recalls, says("In the fourth drawer.")]


def fifty(start=1, **more):
    return [
        calls(("turn", {"n": n}), **more) for n in range(start, start + 50)
    ]


def restored(folder, script, **settings):
    manager = FileSessionManager(
        session_id="incident-7", storage_dir=str(folder)
    )
    model = Scripted(script)
    return model, agent_of(
        model,
        UllageStrandsPlugin(limits=SMALL, **settings),
        session_manager=manager,
    )


def test_after_a_restart_a_recall_may_come_first(tmp_path):
    first, agent = restored(tmp_path, [*two_looks()[:1], says("I will look.")])
    agent("Find the needle.")
    ref = recalls(first.sent[1])[0][0]["toolUse"]["input"]
    _, again = restored(tmp_path, [])
    found = getattr(again.tool, GREP)(**ref, record_direct_tool_call=False)
    assert NEEDLE in found["content"][0]["text"]


def test_usage_is_counted_once_for_each_call_with_the_cache_apart():
    plugin = UllageStrandsPlugin(budget=(budget := Budget(tokens=0)))
    agent_of(
        Scripted([*fifty()[:2], says("Done.", read=700, written=200)]), plugin
    )("Find the needle.")
    spent = budget.spent
    assert (spent.calls, spent.usage.cache_read_tokens) == (3, 700)
    assert spent.usage.cache_write_tokens == 200
    assert spent.usage.fresh_tokens == 2 * 1_000 + 100


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
    "raw",
    [
        7,
        None,
        {},
        {"role": "tool", "content": []},
        {"role": "user", "content": 7},
    ],
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


class _Told(PythonAgentTool):
    """A tool that takes no other's place, as those of MCP servers."""

    supports_hot_reload = False


def told():
    """A tool of our name."""
    tell = story(GREP)

    def run(call, **more):
        content = [{"text": tell(**call["input"])}]
        return {
            "toolUseId": call["toolUseId"],
            "status": "success",
            "content": content,
        }

    properties = {"chapter": {"type": "string"}}
    schema = {"json": {"type": "object", "properties": properties}}
    spec = {"name": GREP, "description": "Tells.", "inputSchema": schema}
    return _Told(GREP, spec, run)


def test_an_agent_that_is_given_a_tool_of_our_name_under_way_keeps_it():
    """Strands takes no name twice: a tool that is loaded later would be refused."""
    first = calls(("look", {"n": 1}))
    model = Scripted([first, recalls, says("There.")])
    agent = agent_of(model, UllageStrandsPlugin())
    agent("Find the needle.")
    mine = told()
    agent.tool_registry.process_tools([mine])
    assert agent.tool_registry.registry[GREP] is mine
    with pytest.raises(ValueError, match="already exists"):
        agent.tool_registry.process_tools([told()])

    def searches(messages):
        text = text_of(messages)
        arguments = {"tool_call_id": refs_in(text)[-1], "words": "needle"}
        return calls((names_in(text)[-1], arguments))

    tells = calls((GREP, {"chapter": "two"}))
    model.script, model.sent = [searches, tells, says("Done.")], []
    agent("Once more.")
    *_, found, story_told = results(agent.messages)
    assert NEEDLE in found
    assert story_told == "And then, in two, it rained."
