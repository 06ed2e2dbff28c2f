"""Four characters are one token, and the sum kept by the window is that of what is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from tests.history.test_window import builder_of, history
from ullage import Replace, ReplaceSpan
from ullage.core.values.messages import Message, Text, ToolCall
from ullage.policy.stages import rough
from ullage.wires import FORMATS


def test_each_text_is_rounded_up_by_itself():
    assert [rough.text_tokens("x" * n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    said, call = Text("x" * 5), ToolCall("1", "grep", '{"a": "bc"}', 0)
    assert (
        rough.message_tokens(Message("assistant", (said, call)), {})
        == 4 + 2 + 1 + 3
    )


@given(histories.histories, st.integers(0, 40))
def test_the_windows_sum_follows_what_is_shown(turns, pick):
    builder = builder_of(histories.wire("openai-chat", turns))
    window = builder.window
    before = rough.view_tokens(window)
    assert before == sum(
        rough.message_tokens(message, {})
        for message in window.transcript.messages
    )
    spots = list(window.results(0, window.size))
    if spots:
        spot = spots[pick % len(spots)]
        place, output = (
            window.transcript.address(spot),
            window.transcript.output(spot),
        )
        builder.apply(Replace(place, output.ref, "gone", "pruned", "test"))
        assert (
            rough.view_tokens(window)
            == before - rough.text_tokens(output.text) + 1
        )


def test_a_condensed_run_counts_as_its_account():
    builder = builder_of(history("x" * 400, "y" * 400))
    window = builder.window
    whole = rough.view_tokens(window)
    chain = window.transcript.chain
    builder.apply(ReplaceSpan(chain[1], chain[3], "account", "0" * 16, "test"))
    run = [
        rough.message_tokens(window.transcript.messages[n], {}) for n in (1, 2)
    ]
    assert rough.view_tokens(window) == whole - sum(run) + rough.text_tokens(
        "account"
    )


PARAMETERS = {"type": "object"}
TOOLS = {
    "openai-chat": {
        "type": "function",
        "function": {
            "name": "grep",
            "description": "Looks.",
            "parameters": PARAMETERS,
        },
    },
    "ollama": {
        "type": "function",
        "function": {
            "name": "grep",
            "description": "Looks.",
            "parameters": PARAMETERS,
        },
    },
    "openai-responses": {
        "type": "function",
        "name": "grep",
        "description": "Looks.",
        "parameters": PARAMETERS,
    },
    "anthropic": {
        "name": "grep",
        "description": "Looks.",
        "input_schema": PARAMETERS,
    },
    "gemini": {
        "functionDeclarations": [
            {"name": "grep", "description": "Looks.", "parameters": PARAMETERS}
        ]
    },
    "bedrock-converse": {
        "toolSpec": {
            "name": "grep",
            "description": "Looks.",
            "inputSchema": {"json": PARAMETERS},
        }
    },
}


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_of_a_tool_its_name_description_and_parameters_count_in_every_format(
    format,
):
    tools = {"tools": [TOOLS[format]]}
    tools = {"toolConfig": tools} if format == "bedrock-converse" else tools
    request = histories.request(format, histories.wire(format, []), **tools)
    texts = FORMATS[format].head(request).texts
    (system,) = (
        (text for text in texts if not text.startswith("{"))
        if texts[1:]
        else [""]
    )
    assert rough.head_tokens(texts) == rough.text_tokens(system) + 1 + 2 + 5


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        '{"type": "web_search"}',
        '{"name": 7}',
        '{"functionDeclarations": [1]}',
        "{'a'}",
    ],
)
def test_what_is_no_tool_counts_by_its_text(text):
    assert rough.head_tokens([text]) == rough.text_tokens(text)
