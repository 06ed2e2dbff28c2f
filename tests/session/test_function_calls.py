"""Deprecated calls of Chat Completions: ``function_call``, answered by a ``function`` message."""

import json

import pytest

from ullage import Limits, Session, convert
from ullage.documents import NAMES

TOOLS = [
    {
        "type": "function",
        "function": {"name": "bash", "parameters": {"type": "object"}},
    }
]
LOG = "".join(f"row {n} of the log\n" for n in range(300))


def asks(command):
    call = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"role": "assistant", "content": None, "function_call": call}


def gave(text):
    return {"role": "function", "name": "bash", "content": text}


def history(calls):
    messages = [{"role": "user", "content": "Find the row."}]
    for number in range(calls):
        messages += [asks(f"cat {number}.log"), gave(f"log {number}\n{LOG}")]
    return messages


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.parametrize("recall", ["auto", True])
def test_a_call_and_its_result_stay_together(policy, recall):
    """Whatever leaves the view, no half of a pair stays."""
    messages = history(20)
    session = Session(
        "gpt-4.1",
        policy=policy,
        limits=Limits(window_tokens=16_000),
        recall=recall,
    )
    has_left = False
    for size in range(1, len(messages) + 1, 2):
        request = {
            "model": "gpt-4.1",
            "messages": messages[:size],
            "tools": TOOLS,
        }
        view = session.fit(request)["messages"]
        calls = [
            at for at, each in enumerate(view) if each.get("function_call")
        ]
        results = [
            at for at, each in enumerate(view) if each["role"] == "function"
        ]
        assert results == [at + 1 for at in calls]
        has_left = has_left or len(calls) < size // 2
    assert has_left or policy in ("token_budget", "continuation")


def test_long_arguments_are_cut_in_their_field():
    """What a call says is shortened like any other call's."""
    wire = (
        Session("gpt-4.1")
        .fit({"model": "gpt-4.1", "messages": history(1)})
        .wire
    )
    raw = asks("echo " + "x" * 9_000)
    message = wire.parse(raw, "message")
    new = wire.edit(raw, message, [(0, 0, '{"command": "echo …"}')])
    assert new["function_call"] == {
        "name": "bash",
        "arguments": '{"command": "echo …"}',
    }


def test_a_pair_becomes_a_pair_of_another_wire():
    messages = convert(history(2), format="openai-chat", to="anthropic")
    uses = [
        block["id"]
        for message in messages[1::2]
        for block in message["content"]
    ]
    results = [
        block["tool_use_id"]
        for message in messages[2::2]
        for block in message["content"]
    ]
    assert len(uses) == 2
    assert uses == results
