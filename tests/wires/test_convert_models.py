"""What comes of any legal history is legal for the very model that it is for.

The histories hold what one wire or one model takes and another does not: names of tools,
system messages in the middle, empty messages, several texts and pictures in a result, refusals.
"""

import copy
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests import histories
from tests.wires.test_convert import IMAGE, whole
from ullage import convert, problems
from ullage.wires import FORMATS, ToolSpec

MODELS = {
    "anthropic": (
        None,
        "claude-sonnet-4-5",
        "claude-opus-4-8",
        "claude-sonnet-5",
        "claude-5-5",
    ),
    "openai-chat": (
        None,
        "gpt-4.1",
        "gpt-6.2",
        "gemini-3-pro",
        "deepseek-chat",
    ),
    "openai-responses": (None, "gpt-4.1", "gpt-5.6", "gpt-6.2"),
    "gemini": (None, "gemini-2.5-pro", "gemini-3-pro", "gemini-4-flash"),
    "ollama": (None, "qwen3:8b", "gpt-oss:120b-cloud"),
    "bedrock-converse": (
        None,
        "anthropic.claude-opus-4-8-v1:0",
        "us.amazon.nova-pro-v1:0",
    ),
}
NAMES = {
    "anthropic": ("bash", "1st", "n" * 128),
    "openai-chat": ("bash", "1st", "n" * 64),
    "openai-responses": ("bash", "1st", "n" * 64),
    "gemini": ("bash", "ns.bash", "ns:bash", "ns_bash", "n" * 128),
    "ollama": ("bash", "1st", "n" * 64),
    "bedrock-converse": ("bash", "1st", "n" * 64),
}
TEXT = {
    "anthropic": {"type": "text", "text": "more"},
    "openai-chat": {"type": "text", "text": "more"},
    "openai-responses": {"type": "input_text", "text": "more"},
    "bedrock-converse": {"text": "more"},
}
SYSTEM = {
    "openai-chat": "system",
    "openai-responses": "developer",
    "anthropic": "system",
    "ollama": "system",
}
EMPTY = {"openai-chat", "openai-responses", "ollama"}
REFUSAL = {
    "role": "assistant",
    "content": None,
    "refusal": "I had rather not.",
}
PAIRS = list(permutations(FORMATS, 2))


@st.composite
def requests(draw, format):
    """A legal request of a format, with much that other wires do not take."""
    turns = draw(st.lists(histories.turns, min_size=1, max_size=6))
    name = st.sampled_from(NAMES[format])
    named = [
        replace(
            turn,
            calls=tuple(replace(call, tool=draw(name)) for call in turn.calls),
        )
        for turn in turns
    ]
    asked = whole(format, named)
    key = FORMATS[format].key
    asked[key] = [
        new
        for raw in asked[key]
        for new in odd(format, raw, draw(st.integers(0, 5)))
    ]
    tools = [
        FORMATS[format].tool(ToolSpec(name, "", {"type": "object"}))
        for name in NAMES[format]
    ]
    if format == "gemini":
        tools = [{"functionDeclarations": tools}]
    if format == "bedrock-converse":
        return {**asked, "toolConfig": {"tools": tools}}
    return {**asked, "tools": tools} if draw(st.booleans()) else asked


def odd(format, raw, kind):
    """The message as it is, or some others that may stand in its place."""
    raw = copy.deepcopy(raw)
    if kind == 1:
        return [with_much_in_its_results(format, raw)]
    if (
        kind == 2
        and raw.get("role") == "assistant"
        and format == "openai-chat"
    ):
        return [{**raw, "refusal": "I had rather not."}]
    if raw.get("role") == "user" and isinstance(raw.get("content"), str):
        return said_by_the_user(format, raw, kind)
    return [raw]


def with_much_in_its_results(format, raw):
    """The message, each of its results with several texts, and pictures where they may stand."""
    much = [TEXT.get(format), IMAGE[format], TEXT.get(format)]
    if format == "gemini":
        for part in raw["parts"]:
            if "functionResponse" in part:
                part["functionResponse"]["parts"] = [IMAGE["gemini"]]
    elif format == "bedrock-converse":
        for given in (
            block["toolResult"]
            for block in raw["content"]
            if "toolResult" in block
        ):
            given["content"] = much
    elif "output" in raw:
        raw["output"] = much
    elif raw.get("role") == "tool" and format == "ollama":
        raw["images"] = IMAGE["ollama"]["images"]
    elif raw.get("role") == "tool":
        raw["content"] = [TEXT[format]] * 2
    elif raw.get("role") == "user" and not isinstance(raw["content"], str):
        raw["content"] = [
            {**block, "content": much} for block in raw["content"]
        ]
    return raw


def said_by_the_user(format, raw, kind):
    """Nothing, a refusal and then nothing, or with a word of the system behind it."""
    silence = {**raw, "content": ""}
    if kind == 3 and format in EMPTY:
        return [silence]
    if kind == 4 and format == "openai-chat":
        return [raw, REFUSAL, silence]
    return (
        [raw, {"role": SYSTEM[format], "content": "Be brief."}]
        if kind == 5
        else [raw]
    )


def legal(format, request):
    return problems(request, format) == []


@pytest.mark.parametrize(
    ("source", "target"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS]
)
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_legal_there_is_legal_here_for_each_model(
    source, target, data
):
    asked = data.draw(
        requests(source).filter(lambda request: legal(source, request))
    )
    before = copy.deepcopy(asked)
    model = data.draw(st.sampled_from(MODELS[target]))
    there = convert(
        asked, target, format=source, model=model, lossy="describe"
    )
    assert asked == before
    assert problems(there, target) == []
