"""Which requests are given the recall tools, and what joining half-way costs."""

import pytest

from ullage import Limits, MemoryStore, Session

READ = {"name": "read", "input_schema": {"type": "object"}}
BOUND = "claude-opus-5-5"
ASKED = [{"role": "user", "content": "Look."}]
UNDER_WAY = [
    *ASKED,
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "t", "signature": "c2lnbmF0dXJl"},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}],
    },
]


def fit(session, messages, tools=(READ,), **more):
    asked = {"model": BOUND, "max_tokens": 1_000, "messages": messages, **more}
    if tools:
        asked["tools"] = list(tools)
    view = session.fit(asked)
    return [tool["name"] for tool in view.get("tools", ())], view["messages"]


def blocks(messages):
    return [block["type"] for block in messages[1]["content"]]


def test_a_request_without_tools_gets_none_and_the_conversation_behind_it_does():
    session = Session(BOUND)
    assert fit(session, [{"role": "user", "content": "A title, please."}], tools=())[0] == []
    assert len(fit(session, ASKED)[0]) > 1
    assert fit(session, [{"role": "user", "content": "A title?"}], tools=())[0] == []


def test_a_request_without_tools_decides_nothing_for_the_same_beginning_with_tools():
    session = Session(BOUND)
    assert fit(session, ASKED, tools=())[0] == []
    names, _ = fit(session, ASKED)
    assert names[0] == "read"
    assert len(names) > 1
    again = Session(BOUND, store=session.store)
    assert fit(again, ASKED)[0] == names


def test_a_title_without_tools_on_one_worker_leaves_the_tools_to_the_other():
    store = MemoryStore()
    one, other = Session(BOUND, store=store), Session(BOUND, store=store)
    assert fit(one, ASKED, tools=())[0] == []
    names, _ = fit(other, ASKED)
    assert len(names) > 1
    assert fit(one, UNDER_WAY)[0] == fit(other, UNDER_WAY)[0] == names


def test_a_request_that_forbids_tools_gets_none_added_and_keeps_those_that_were():
    none = {"tool_choice": {"type": "none"}}
    assert fit(Session(BOUND), ASKED, **none)[0] == ["read"]
    session = Session(BOUND)
    names, _ = fit(session, ASKED)
    assert fit(session, UNDER_WAY, **none)[0] == names


@pytest.mark.parametrize("policy", ["continuation", "output_cache"])
def test_a_preset_whose_document_injects_its_tools_has_them_from_any_turn_on(policy):
    names, messages = fit(Session(BOUND, policy=policy), UNDER_WAY)
    assert len(names) > 1
    assert blocks(messages) == ["tool_use"], "thinking was bound to a request without these tools"


def test_asking_for_the_tools_half_way_drops_the_thinking_that_is_bound():
    names, messages = fit(Session(BOUND, recall=True), UNDER_WAY)
    assert len(names) > 1
    assert blocks(messages) == ["tool_use"]
    kept, whole = fit(Session(BOUND), UNDER_WAY)
    assert kept == ["read"]
    assert blocks(whole) == ["thinking", "tool_use"]


def test_an_account_that_was_made_when_joining_leaves_no_bound_thinking_behind_it():
    messages = []
    for number in range(12):
        thinking = {"type": "thinking", "thinking": "t", "signature": f"c2ln{number:04}"}
        answer = {"type": "text", "text": f"answer {number}"}
        messages.append({"role": "user", "content": f"detail {number} of the matter. " * 400})
        messages.append({"role": "assistant", "content": [thinking, answer]})
    messages.append({"role": "user", "content": "and now?"})
    session = Session(BOUND, limits=Limits(window_tokens=32_000))
    _, view = fit(session, messages)
    assert "condensed" in {event.kind for event in session.events}
    assert "'thinking'" not in str(view[1:])
