"""Pydantic AI's messages as ullage's values: every kind of part."""

import pytest

pytest.importorskip(
    "pydantic_ai", reason="pydantic-ai is not installed (make pydantic-ai)"
)

from pydantic_ai.messages import (
    BinaryContent,
    CompactionPart,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from ullage.core.values.messages import (
    Media,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.integrations.pydantic_ai import HOST
from ullage.integrations.pydantic_ai._messages import content_of
from ullage.testing import FormatContract

PICTURE = BinaryContent(b"picture", media_type="image/png")
URL = ImageUrl("https://example.org/a.png")
CALL = ToolCallPart("look", {"n": 1}, "call_1")
THOUGHT = ThinkingPart("Hm.", signature="c2lnbmVk", provider_name="anthropic")
RETURN = ToolReturnPart("look", "It is there.", "call_1")

MESSAGES = [
    ModelRequest(
        parts=[SystemPromptPart("You look."), UserPromptPart("Look.")]
    ),
    ModelResponse(parts=[THOUGHT, TextPart("I look."), CALL]),
    ModelRequest(parts=[RETURN, UserPromptPart("And?")]),
    ModelResponse(parts=[ToolCallPart("look", '{"n": 2}', "call_2")]),
    ModelRequest(parts=[ToolReturnPart("look", {"found": [1, 2]}, "call_2")]),
    ModelResponse(parts=[ToolCallPart("see", None, "call_3")]),
    ModelRequest(
        parts=[
            ToolReturnPart(
                "see", ["Here.", PICTURE], "call_3", outcome="failed"
            )
        ]
    ),
    ModelRequest(parts=[UserPromptPart(["Look at", URL])]),
    ModelResponse(
        parts=[
            NativeToolCallPart("web_search", {"query": "a"}, "srv_1"),
            NativeToolReturnPart("web_search", "found", "srv_1"),
            TextPart("Done."),
        ]
    ),
]


class TestFormat(FormatContract):
    format = HOST
    requests = ({"model": "claude-opus-4-5", "messages": MESSAGES},)


def read(message):
    return HOST.parse(message, "message")


def test_a_response_is_read_with_its_reasoning_last():
    said, called, thought = read(MESSAGES[1]).parts
    assert said == Text("I look.", 1)
    assert called == ToolCall("call_1", "look", '{"n":1}', 2)
    assert thought == Reasoning("Hm.", 0, True, 6)


def test_reasoning_is_left_out_and_the_original_keeps_it():
    shown = HOST.edit(MESSAGES[1], read(MESSAGES[1]), (), drop_reasoning=True)
    assert shown.parts == [MESSAGES[1].parts[1], CALL]
    assert MESSAGES[1].parts[0] is THOUGHT


def test_a_result_that_is_no_text_is_read_as_the_text_that_is_sent():
    (result,) = read(MESSAGES[4]).parts
    assert result == ToolResult(
        "call_2", (Text('{"found":[1,2]}'),), False, 0, "look"
    )


def test_media_of_a_result_and_of_the_user_are_media_and_come_back_as_they_were():
    (result,) = read(MESSAGES[6]).parts
    assert result.is_error
    text, picture = result.content
    assert (text.text, picture.kind, picture.mime) == (
        "Here.",
        "image",
        "image/png",
    )
    assert content_of(picture.block).data == PICTURE.data
    at_first, linked = read(MESSAGES[7]).parts
    assert isinstance(linked, Media)
    assert (at_first.text, linked.data) == (
        "Look at",
        "https://example.org/a.png",
    )
    assert content_of(linked.block).url == URL.url


def test_a_servers_tool_and_its_result_belong_together():
    opened, closed, _ = read(MESSAGES[8]).parts
    assert isinstance(opened, Opaque)
    assert opened.opens == closed.closes == "srv_1"


def test_nothing_before_a_compaction_of_the_providers_is_read():
    message = ModelResponse(
        parts=[CompactionPart("So far.", provider_name="anthropic")]
    )
    assert read(message).supersedes


def test_an_edit_of_one_part_leaves_the_others_the_same_objects():
    shown = HOST.edit(MESSAGES[2], read(MESSAGES[2]), ((0, 0, "short"),))
    assert shown.parts[0].content == "short"
    assert shown.parts[1] is MESSAGES[2].parts[1]
    assert RETURN.content == "It is there."


def test_what_a_human_said_who_denied_a_call_is_the_users():
    """The message says so itself; a failure is the tool's."""
    said = ToolReturnPart(
        "deploy", "Not on a Friday.", "call_4", outcome="denied"
    )
    failed = ToolReturnPart(
        "deploy", "No route to host.", "call_4", outcome="failed"
    )
    for part, author in ((said, "user"), (failed, "tool"), (RETURN, "tool")):
        (result,) = read(ModelRequest(parts=[part])).parts
        assert result.author == author
