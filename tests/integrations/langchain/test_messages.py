"""LangChain's messages as ullage's values: what each provider's classes put into them."""

import pytest

pytest.importorskip(
    "langchain", reason="langchain is not installed (make langchain)"
)

from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from ullage.core.values.messages import (
    Media,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.integrations.langchain import HOST
from ullage.testing import FormatContract

CALL = {"name": "look", "args": {"n": 1}, "id": "call_1"}
THINKING = {
    "type": "thinking",
    "thinking": "Look there.",
    "signature": "c2lnbmVk",
}
REDACTED = {"type": "redacted_thinking", "data": "c2VhbGVk"}
SUMMED = {
    "type": "reasoning",
    "summary": [{"text": "A"}, {"text": "B"}],
    "encrypted_content": "eA",
}
NEUTRAL = {
    "type": "reasoning",
    "reasoning": "Hm.",
    "extras": {"signature": "eA"},
}
BEDROCK = {
    "type": "reasoning_content",
    "reasoning_content": {"text": "Hm.", "signature": "eA"},
}
PICTURE = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
TEXT = {"type": "text", "text": "Look."}

MESSAGES = [
    SystemMessage("You look."),
    HumanMessage([TEXT, PICTURE, URL]),
    AIMessage(
        [THINKING, TEXT, {"type": "tool_use", "id": "call_1", "name": "look"}],
        tool_calls=[CALL],
    ),
    ToolMessage("It is there.", tool_call_id="call_1", name="look"),
    AIMessage(
        "", tool_calls=[CALL], additional_kwargs={"reasoning_content": "Hm."}
    ),
    ToolMessage([TEXT, PICTURE], tool_call_id="call_1", status="error"),
    AIMessage("Done."),
]


class TestFormat(FormatContract):
    format = HOST
    requests = ({"model": "gpt-4.1", "messages": MESSAGES},)


def read(message):
    return HOST.parse(message, "message")


def test_a_call_is_read_once_though_it_stands_in_the_content_too():
    thinking = Reasoning("Look there.", 0, True, 6)
    assert read(MESSAGES[2]).parts == (
        Text("Look.", 1),
        ToolCall("call_1", "look", '{"n":1}', 0),
        thinking,
    )


def test_a_result_says_its_tool_and_whether_it_failed():
    assert read(MESSAGES[3]).parts == (
        ToolResult("call_1", (Text("It is there."),), False, -1, "look"),
    )
    (failed,) = read(MESSAGES[5]).results
    assert failed.is_error
    assert [type(each) for each in failed.content] == [Text, Media]


@pytest.mark.parametrize(
    ("block", "text", "bound"),
    [
        (THINKING, "Look there.", True),
        (REDACTED, "", True),
        (SUMMED, "A\nB", True),
        (NEUTRAL, "Hm.", True),
        (BEDROCK, "Hm.", True),
        ({"type": "thinking", "thinking": "Hm."}, "Hm.", False),
    ],
)
def test_reasoning_is_read_as_reasoning_and_can_be_left_out(
    block, text, bound
):
    message = AIMessage([block, TEXT])
    said, thought = read(message).parts
    assert said == Text("Look.", 1)
    assert (thought.text, thought.bound) == (text, bound)
    assert HOST.edit(
        message, read(message), (), drop_reasoning=True
    ).content == [TEXT]
    assert message.content == [block, TEXT]


def test_reasoning_beside_the_content_is_left_out_too():
    shown = HOST.edit(MESSAGES[4], read(MESSAGES[4]), (), drop_reasoning=True)
    assert shown.additional_kwargs == {}
    assert shown.tool_calls == MESSAGES[4].tool_calls


def test_of_a_call_and_a_text_each_is_edited_where_it_stands():
    parsed = read(MESSAGES[2])
    shown = HOST.edit(
        MESSAGES[2], parsed, ((0, 0, "Short."), (1, 0, '{"n":2}'))
    )
    assert shown.content[1] == {"type": "text", "text": "Short."}
    assert shown.tool_calls[0]["args"] == {"n": 2}
    assert shown.content[0] is MESSAGES[2].content[0]
    assert MESSAGES[2].tool_calls[0]["args"] == {"n": 1}
