"""A tool of the application's that has the name of a recall tool."""

import asyncio
import json

import pytest

pytest.importorskip(
    "litellm", reason="litellm is not installed (make litellm)"
)

from tests.integrations.litellm.world import (
    DEFINITIONS,
    ask,
    calls,
    installed,
    run_tool,
    says,
    text_of,
    upstream,
)
from tests.integrations.outputs import GREP, NEEDLE, names_in, refs_in, story
from ullage.integrations.litellm import UllageCallback

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # LiteLLM leaves clients and tasks open
USER = {"role": "user", "content": "Find the needle."}
OURS = [GREP, f"ullage_{GREP}", f"ullage2_{GREP}"]


def mine(name):
    """The definition of a tool of the application's."""
    properties = {"chapter": {"type": "string"}}
    function = {
        "name": name,
        "description": "Goes on with a story.",
        "parameters": {"type": "object", "properties": properties},
    }
    return {"type": "function", "function": function}


def search(request):
    """A message that searches under the name that the last notice gives."""
    text = text_of(request["messages"])
    arguments = {"tool_call_id": refs_in(text)[-1], "pattern": "needle"}
    return calls((names_in(text)[-1], arguments))


async def run(ullage, server, messages, taken, *, tells_tools=True):
    """The loop of an application that has tools of these names."""
    tools = [*DEFINITIONS, *map(mine, taken), *ullage.tools]
    while True:
        before = list(messages)
        reply = await ask(server, messages, "t", tools=tools)
        message = reply.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return
        for call in message.tool_calls:
            asked = (call, tools) if tells_tools else (call,)
            name = call.function.name
            if ullage.owns(*asked):
                messages.append(await ullage.open("t", call, before))
                continue
            if name in taken:
                given = story(name)(**json.loads(call.function.arguments))
            else:
                given = run_tool(call)
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": given}
            )


def talk(ullage, script, messages, taken, **more):
    """What the upstream was sent."""
    with installed(ullage), upstream(script) as server:
        asyncio.run(run(ullage, server, messages, taken, **more))
    return server.sent


def results(messages):
    return [each["content"] for each in messages if each["role"] == "tool"]


def offered(request):
    """The names of its tools that are called as ours may be."""
    names = [tool["function"]["name"] for tool in request["tools"]]
    return [name for name in names if name.endswith(GREP)]


@pytest.mark.parametrize("tells_tools", [True, False])
@pytest.mark.parametrize("taken", [[], OURS[:1], OURS[:2]], ids=len)
def test_a_tool_of_the_applications_keeps_its_name_and_ours_opens_all_the_same(
    taken, tells_tools
):
    messages, ours = [USER], OURS[len(taken)]
    script = [calls(("look", {"n": 1})), search]
    script += [calls((name, {"chapter": "two"})) for name in taken]
    script.append(says("In the fourth drawer."))
    sent = talk(
        UllageCallback(), script, messages, taken, tells_tools=tells_tools
    )
    for request in sent:
        assert offered(request) == [*taken, ours]
    assert {*names_in(text_of(sent[1]["messages"]))} == {ours}
    _, found, *told = results(messages)
    assert NEEDLE in found
    assert told == ["And then, in two, it rained."] * len(taken)


def test_a_name_that_is_taken_under_way_renames_ours_and_back():
    ullage, messages = UllageCallback(), [USER]
    talk(
        ullage, [calls(("look", {"n": 1})), search, says("So.")], messages, []
    )
    for taken, ours in ([GREP], OURS[1]), ([], GREP):
        messages.append(USER)
        sent = talk(ullage, [search, says("There.")], messages, taken)
        assert offered(sent[0]) == [*taken, ours]
        assert names_in(text_of(sent[0]["messages"]))[-1] == ours
        assert NEEDLE in results(messages)[-1]


def test_where_every_name_is_taken_recall_is_off_and_an_event_says_so():
    events, messages = [], [USER]
    ullage = UllageCallback(on_event=events.append)
    script = [calls(("look", {"n": 1})), says("I have read it.")]
    sent = talk(ullage, script, messages, OURS)
    assert [offered(request) for request in sent] == [OURS, OURS]
    assert names_in(text_of(sent[1]["messages"])) == []
    assert any("recall is off" in event.why for event in events)


def test_tools_as_an_earlier_version_defined_them_are_ours():
    ullage = UllageCallback()
    short = {
        "tool_call_id": {"type": "string"},
        "offset": {"type": "integer"},
        "pattern": {"type": "string"},
    }
    former = mine(GREP)
    former["function"]["parameters"]["properties"] = short
    (call,) = calls((GREP, {"tool_call_id": "x"}))["tool_calls"]
    assert ullage.owns(call, [former])
    assert not ullage.owns(call, [mine(GREP), former])


def test_what_was_saved_is_told_by_the_adapter():
    ullage = UllageCallback()
    script = [calls(("look", {"n": 1})), search, says("There.")]
    talk(ullage, script, [USER], [])
    assert ullage.saved.requests == 3
    assert ullage.saved.raw.prompt > ullage.saved.sent.prompt
    assert ullage.saved.saved_usd > 0
