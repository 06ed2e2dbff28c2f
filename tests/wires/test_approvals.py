"""Approvals of a server's tools in Responses: asked for and answered, or neither is sent."""

import json

import pytest

from tests.wires.rule_examples import GO, NEXT, asked, mused, put, said
from tests.wires.test_repair import repaired
from ullage import fit, problems
from ullage.session.session import Session

ASKS = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "name": "run",
    "arguments": "{}",
}
ASKS |= {"server_label": "files"}
GIVEN = {
    "type": "mcp_approval_response",
    "approval_request_id": "mcpr_1",
    "approve": True,
}
CUSTOM = {
    "type": "custom_tool_call",
    "call_id": "c1",
    "name": "sh",
    "input": "ls",
}
FREED = {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}


def mended(*items):
    found = repaired("openai-responses", list(items))
    assert problems({"model": "gpt-5", "input": list(found.messages)}) == []
    assert (
        repaired("openai-responses", found.messages).messages is found.messages
    )
    return found


@pytest.mark.parametrize(
    "items",
    [
        (GO, ASKS, GIVEN),
        (GO, ASKS, NEXT, GIVEN),
        (GO, mused(), ASKS, GIVEN, said(), NEXT),
    ],
)
def test_an_approval_that_was_asked_for_is_left_alone(items):
    assert list(mended(*items).messages) == list(items)


@pytest.mark.parametrize(
    ("items", "orphan", "words"),
    [
        ((GO, GIVEN, NEXT), GIVEN, "an approval without its request"),
        (
            (GO, GIVEN, ASKS, said(), NEXT),
            GIVEN,
            "an approval without its request",
        ),
        ((GO, ASKS, NEXT), ASKS, "a request for approval without an answer"),
        ((GO, ASKS), ASKS, "a request for approval without an answer"),
        (
            (GO, ASKS, GIVEN, GIVEN, NEXT),
            GIVEN,
            "an approval without its request",
        ),
    ],
)
def test_an_orphan_is_set_aside_and_named(items, orphan, words):
    found = mended(*items)
    kept = {key: value for key, value in orphan.items() if key != "id"}
    assert kept in [json.loads(output.text) for output in found.outputs]
    assert any(words in event.why for event in found.events)
    assert any(
        words in str(message.get("content")) for message in found.messages
    )


def test_reasoning_goes_with_the_request_it_was_made_with():
    assert mused() not in mended(GO, mused(), ASKS, NEXT).messages


def test_a_reference_may_stand_for_the_request():
    items = [GO, {"type": "item_reference", "id": "mcpr_1"}, GIVEN, NEXT]
    assert repaired("openai-responses", items).messages is items


def test_a_late_approval_brings_its_request_back():
    session = Session("gpt-5", repair=True)
    request = {"model": "gpt-5", "input": [GO, ASKS, NEXT]}
    assert ASKS not in session.fit(request)["input"]
    grown = {"model": "gpt-5", "input": [GO, ASKS, NEXT, GIVEN]}
    assert session.fit(grown)["input"] == grown["input"]
    assert session.fit(grown)["input"] == fit(grown, repair=True)["input"]


def test_a_result_gets_the_type_of_its_call():
    assert list(mended(GO, CUSTOM, put(), NEXT).messages) == [
        GO,
        CUSTOM,
        FREED,
        NEXT,
    ]
    assert list(mended(GO, asked(), FREED, NEXT).messages) == [
        GO,
        asked(),
        put(),
        NEXT,
    ]
