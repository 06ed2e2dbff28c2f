"""The definitions stand at the head of every request, so one changed byte empties the cache."""

import json
import os
from pathlib import Path

import pytest

from ullage import Session
from ullage.core.turn.names import definitions as tool_definitions
from ullage.core.values.toolset import OURS, RECALL_TOOLS, SHORT
from ullage.wires import FORMATS

GOLDEN = Path(__file__).parents[1] / "fixtures" / "recall"


def written(format, prefix=""):
    tools = tool_definitions(FORMATS[format], prefix, OURS)
    return json.dumps(tools, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_the_definitions_are_byte_for_byte_those_of_last_time(format):
    golden = GOLDEN / f"{format}.json"
    if os.environ.get("UPDATE_FIXTURES"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(written(format), encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == written(format)


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_prefix_leads_each_name_and_changes_nothing_else(format):
    assert written(format, "ullage_").replace(
        '"name": "ullage_', '"name": "'
    ) == written(format)
    assert OURS.names == RECALL_TOOLS


def test_that_of_the_default_is_short():
    (tool,) = tool_definitions(FORMATS["anthropic"], "", SHORT)
    assert len(json.dumps(tool, separators=(",", ":"))) <= 220


def test_they_stand_at_the_end_of_the_tools_in_every_request_and_once():
    mine = {"type": "function", "function": {"name": "bash", "parameters": {}}}
    messages = [{"role": "user", "content": "Hello."}]
    session = Session("gpt-4.1")
    first = session.fit({"messages": messages, "tools": [mine]})
    assert first["tools"] == [
        mine,
        *tool_definitions(FORMATS["openai-chat"], "", SHORT),
    ]
    second = session.fit({"messages": messages, "tools": first["tools"]})
    assert second["tools"] == first["tools"]


def test_a_tool_of_the_callers_with_one_of_our_names_makes_ours_give_way():
    theirs = {
        "type": "function",
        "function": {"name": "get_continuation", "parameters": {}},
    }
    request = {
        "messages": [{"role": "user", "content": "Hello."}],
        "tools": [theirs],
    }
    session = Session("gpt-4.1")
    view = session.fit(request)
    names = [tool["function"]["name"] for tool in view["tools"]]
    assert names[0] == "get_continuation"
    assert names[1:] == [f"ullage_{spec.name}" for spec in SHORT.tools]
    their_call = {
        "id": "1",
        "type": "function",
        "function": {"name": "get_continuation"},
    }
    assert not session.owns(their_call)


def test_without_recall_no_tool_is_added():
    request = {"messages": [{"role": "user", "content": "Hello."}]}
    assert "tools" not in Session("gpt-4.1", recall=False).fit(request)
