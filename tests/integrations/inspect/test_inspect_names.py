"""A tool of the user's that has the name of a recall tool."""

import pytest

pytest.importorskip(
    "inspect_ai", reason="inspect-ai is not installed (make inspect)"
)

from inspect_ai.tool import ToolDef

from tests.integrations.inspect.world import (
    Script,
    calls,
    evaluate,
    look,
    results,
    says,
    text_of,
)
from tests.integrations.outputs import GREP, NEEDLE, names_in, refs_in, story
from ullage.integrations.inspect_ai import UllageModel

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # Inspect leaves files and loops open
OURS = [GREP, f"ullage_{GREP}", f"ullage2_{GREP}"]


def mine(name):
    """A tool of the user's of this name."""

    def make():
        async def tell(chapter: str) -> str:
            return story(name)(chapter)

        told = {"chapter": "Which one."}
        return ToolDef(tell, name, "Goes on with a story.", told).as_tool()

    return make


def search(messages):
    """An output that searches under the name that the last notice gives."""
    text = text_of(messages)
    arguments = {"tool_call_id": refs_in(text)[-1], "pattern": "needle"}
    return calls((names_in(text)[-1], arguments))


def offered(script):
    """The names of the tools of each request that are called as ours may be."""
    requests = [[tool.name for tool in tools] for tools, _ in script.asked]
    return [[n for n in names if n.endswith(GREP)] for names in requests]


@pytest.mark.parametrize("taken", [[], OURS[:1], OURS[:2]], ids=len)
def test_a_tool_of_the_users_keeps_its_name_and_ours_opens_all_the_same(
    tmp_path, taken
):
    steps = [calls(("look", {"n": 1})), search]
    steps += [calls((name, {"chapter": "two"})) for name in taken]
    script = Script([*steps, says("In the fourth drawer.")])
    tools = [look, *map(mine, taken)]
    log = evaluate(script, UllageModel(), tmp_path, tools=tools)
    assert (log.status, log.error) == ("success", None)
    ours = OURS[len(taken)]
    for names in offered(script):
        assert sorted(names) == sorted([*taken, ours])
    assert {*names_in(text_of(script.sent[1]))} == {ours}
    _, found, *told = results(log.samples[0].messages)
    assert NEEDLE in found
    assert told == ["And then, in two, it rained."] * len(taken)


def test_where_the_user_has_every_name_recall_is_off_and_an_event_says_so(
    tmp_path,
):
    script = Script([calls(("look", {"n": 1})), says("I have read it.")])
    ullage, events = (
        UllageModel(on_event=lambda event: events.append(event)),
        [],
    )
    log = evaluate(script, ullage, tmp_path, tools=[look, *map(mine, OURS)])
    assert (log.status, log.error) == ("success", None)
    assert offered(script) == [OURS, OURS]
    assert names_in(text_of(script.sent[1])) == []
    assert any("recall is off" in event.why for event in events)


def test_what_was_saved_is_told_by_the_adapter(tmp_path):
    script = Script([calls(("look", {"n": 1})), search, says("There.")])
    ullage = UllageModel()
    evaluate(script, ullage, tmp_path)
    assert ullage.saved.requests == 3
    assert ullage.saved.raw.prompt > ullage.saved.sent.prompt
    assert ullage.saved.saved_usd > 0
