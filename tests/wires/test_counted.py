"""What a provider charges for is in the estimate: thoughts, schemas, and media as asked for."""

import base64
import struct
from typing import Any

import pytest
from google.genai import types
from pydantic import BaseModel, create_model

from tests import histories
from ullage import Limits, Session
from ullage.core.tokens.meter import Meter
from ullage.core.values.messages import Reasoning
from ullage.wires import FORMATS
from ullage.wires.base import detail_of
from ullage.wires.gemini.fields import clip_of

ALL = sorted(histories.MODEL)
WORDS = "alpha beta gamma delta " * 1_000
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string", "description": WORDS}},
}
WORDY = create_model("Wordy", __doc__=WORDS, a=(str, ...))


class Small(BaseModel):
    """A schema of few words."""

    a: str


def estimate(format, more=None, model=None, say="Go on.", messages=None):
    """What a short request with these fields beside its history is estimated at."""
    model = model or histories.MODEL[format]
    messages = messages or [histories.user(format, say)]
    request = (
        histories.request(format, messages) | {"model": model} | (more or {})
    )
    session = Session(model, format=format, limits=Limits(window_tokens=10**6))
    session.fit(request)
    return session.window.estimate


# Thoughts that are sealed


def thinking(block, model="claude-opus-5-5"):
    messages = [
        {"role": "user", "content": "Go on."},
        {
            "role": "assistant",
            "content": [block, {"type": "text", "text": "Done."}],
        },
        {"role": "user", "content": "And now?"},
    ]
    return estimate("anthropic", model=model, messages=messages)


OMITTED = {"type": "thinking", "thinking": "", "signature": "A" * 200_000}
REDACTED = {"type": "redacted_thinking", "data": "A" * 200_000}


@pytest.mark.parametrize(
    "block", [OMITTED, REDACTED], ids=["omitted", "redacted"]
)
def test_a_sealed_thought_costs_what_its_size_says(block):
    assert 37_000 < thinking(block) < 55_000


def test_of_a_summed_up_thought_the_rest_is_estimated():
    summary = "I looked at the loader. " * 40
    block = {
        "type": "thinking",
        "thinking": summary,
        "signature": "A" * 20_000,
    }
    assert 3_500 < thinking(block) < 6_000
    whole = block | {"signature": "A" * (4 * (len(summary) + 170) // 3)}
    bare = {"type": "text", "text": summary}
    assert abs(thinking(whole) - thinking(bare)) < 10


def openrouter(**thought):
    messages = [
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": "Done.", **thought},
        {"role": "user", "content": "And now?"},
    ]
    return estimate("openai-chat", model="qwen3", messages=messages)


def test_every_name_of_a_thought_is_counted_and_no_thought_twice():
    one = openrouter(reasoning_content=WORDS)
    assert one > openrouter() + 3_000
    text = {
        "type": "reasoning.text",
        "text": WORDS,
        "format": "unknown",
        "index": 0,
    }
    assert openrouter(reasoning=WORDS) == one
    assert openrouter(reasoning_details=[text]) == one
    assert openrouter(reasoning=WORDS, reasoning_details=[text]) == one
    sealed = {"type": "reasoning.encrypted", "data": "A" * 80_000, "index": 0}
    assert openrouter(reasoning_details=[sealed]) > openrouter() + 14_000


@pytest.mark.parametrize(
    "odd", [7, "x", [7], [None], [{"text": 7}], {"text": "x"}]
)
def test_odd_thoughts_are_nothing(odd):
    raw = {
        "role": "assistant",
        "content": "Done.",
        "reasoning_details": odd,
        "reasoning": {},
    }
    message = FORMATS["openai-chat"].parse(raw, "messages[0]")
    assert not [part for part in message.parts if isinstance(part, Reasoning)]


def test_a_thought_of_any_name_is_left_out_with_the_others():
    wire = FORMATS["openai-chat"]
    raw = {
        "role": "assistant",
        "content": "Done.",
        "reasoning": "hm",
        "reasoning_details": [],
    }
    message = wire.parse(raw, "messages[0]")
    assert wire.edit(raw, message, (), drop_reasoning=True) == {
        "role": "assistant",
        "content": "Done.",
    }


# Schemas


def named(schema):
    return {
        "type": "json_schema",
        "json_schema": {"name": "a", "schema": schema},
    }


HEADS: list[tuple[str, dict[str, Any]]] = [
    (
        "anthropic",
        {"output_format": {"type": "json_schema", "schema": SCHEMA}},
    ),
    (
        "anthropic",
        {
            "output_config": {
                "format": {"type": "json_schema", "schema": SCHEMA}
            }
        },
    ),
    ("anthropic", {"output_format": WORDY}),
    ("openai-chat", {"response_format": named(SCHEMA)}),
    ("openai-chat", {"response_format": WORDY}),
    ("openai-chat", {"functions": [{"name": "run", "parameters": SCHEMA}]}),
    (
        "openai-responses",
        {"text": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    ),
    ("openai-responses", {"text_format": WORDY}),
    ("gemini", {"generationConfig": {"responseSchema": SCHEMA}}),
    ("gemini", {"generationConfig": {"responseJsonSchema": SCHEMA}}),
    ("gemini", {"config": {"response_json_schema": SCHEMA}}),
    ("gemini", {"config": {"response_schema": WORDY}}),
    ("gemini", {"config": {"response_schema": list[WORDY]}}),
    (
        "gemini",
        {"config": types.GenerateContentConfig(response_schema=SCHEMA)},
    ),
]


@pytest.mark.parametrize(
    ("format", "more"), HEADS, ids=lambda value: str(value)[:40]
)
def test_a_schema_that_the_model_is_shown_is_counted(format, more):
    assert estimate(format, more) > estimate(format) + 3_000


def test_a_schema_is_no_tool():
    wire = FORMATS["openai-chat"]
    request = histories.request(
        "openai-chat", [histories.user("openai-chat", "Go on.")]
    )
    bare, head = (
        wire.head(request),
        wire.head(request | {"response_format": named({"a": 1})}),
    )
    assert (head.texts, head.tools) == (bare.texts, bare.tools)
    assert head.schemas == ('{"a":1}',)


@pytest.mark.parametrize(
    "odd", [7, "text", [], {}, {"type": "text"}, {"schema": 7}, object()]
)
@pytest.mark.parametrize("format", ALL)
def test_no_odd_schema_stops_a_request(format, odd):
    keys = (
        "output_format",
        "response_format",
        "text",
        "text_format",
        "generationConfig",
    )
    for key in keys:
        FORMATS[format].head(histories.request(format, []) | {key: odd})
    within = {
        "config": {"response_schema": {"items": object(), "type": Small}}
    }
    FORMATS["gemini"].head(histories.request("gemini", []) | within)


# Media as they are asked for


def png(width, height):
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)
    return base64.b64encode(head + bytes(100)).decode()


PIXELS = png(3000, 3000)


def picture(format, detail, pixels=PIXELS):
    """A user's message with a picture, looked at so."""
    url = f"data:image/png;base64,{pixels}"
    said = {} if detail is None else {"detail": detail}
    match format:
        case "openai-chat":
            content = [
                {"type": "image_url", "image_url": {"url": url, **said}}
            ]
        case "openai-responses":
            content = [{"type": "input_image", "image_url": url, **said}]
        case "gemini":
            said = (
                {}
                if detail is None
                else {"mediaResolution": {"level": detail}}
            )
            part = {
                "inlineData": {"mimeType": "image/png", "data": pixels},
                **said,
            }
            return {"role": "user", "parts": [part]}
    return {"role": "user", "content": content}


def seen(format, detail, model, more=None):
    return estimate(format, more, model, messages=[picture(format, detail)])


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses"])
def test_a_picture_costs_what_its_detail_asks_for(format):
    tiles = [
        seen(format, detail, "gpt-4o")
        for detail in ("low", "high", "auto", None)
    ]
    assert tiles[1] - tiles[0] == 4 * 170 * 1
    assert tiles[1:] == tiles[1:2] * 3
    low, high, original, auto = (
        seen(format, detail, "gpt-6")
        for detail in ("low", "high", "original", "auto")
    )
    assert low < high < original == auto


LOW, HIGH = "MEDIA_RESOLUTION_LOW", "MEDIA_RESOLUTION_HIGH"


def test_a_geminis_picture_costs_what_its_resolution_asks_for():
    low, high = (
        seen("gemini", level, "gemini-3-pro") for level in (LOW, HIGH)
    )
    assert high - low == pytest.approx(1120 - 280, rel=0.3)
    said = {"generationConfig": {"mediaResolution": LOW}}
    assert seen("gemini", None, "gemini-3-pro", said) == low
    assert seen("gemini", HIGH, "gemini-3-pro", said) == high, (
        "the part has the last word"
    )
    for config in (dict, types.GenerateContentConfig):
        asked = (
            {"config": config(media_resolution=types.MediaResolution(r))}
            for r in (LOW, HIGH)
        )
        fewer, more = (
            seen("gemini", None, "gemini-3-pro", each) for each in asked
        )
        assert more - fewer == high - low


def test_a_part_of_the_sdk_says_its_resolution():
    level = types.PartMediaResolutionLevel.MEDIA_RESOLUTION_MEDIUM
    blob = types.Blob(mime_type="image/png", data=base64.b64decode(PIXELS))
    part = types.Part(
        inline_data=blob,
        media_resolution=types.PartMediaResolution(level=level),
    )
    (medium,) = (
        FORMATS["gemini"]
        .parse(types.Content(role="user", parts=[part]), "")
        .parts
    )
    assert medium.detail == "medium"
    assert Meter("gemini-3-pro").leaf(medium) == 560


def test_another_detail_is_counted_anew_by_the_same_session():
    session = Session("gpt-4o", format="openai-chat")
    for detail, tokens in (("high", 765), ("low", 85), ("high", 765)):
        session.fit({"messages": [picture("openai-chat", detail)]})
        assert session.window.leaf_counts(0) == (tokens,)
    session = Session("gemini-3-pro", format="gemini")
    for level, tokens in ((HIGH, 1120), (LOW, 280)):
        more = {"generationConfig": {"mediaResolution": level}}
        session.fit({"contents": [picture("gemini", None)], **more})
        assert session.window.leaf_counts(0) == (tokens,)


@pytest.mark.parametrize(
    "said",
    [None, 7, [], {}, {"level": 7}, "auto", "MEDIA_RESOLUTION_UNSPECIFIED"],
)
def test_what_says_no_detail_says_nothing(said):
    assert detail_of(said) == ""


@pytest.mark.parametrize(
    ("said", "clip"),
    [
        (None, (0.0, 1.0)),
        ({"startOffset": "10s", "endOffset": "70.5s"}, (60.5, 1.0)),
        ({"end_offset": "20s", "fps": 5}, (20.0, 5.0)),
        ({"startOffset": "10s"}, (0.0, 1.0)),
        ({"startOffset": 7, "endOffset": "soon", "fps": "all"}, (0.0, 1.0)),
        ({"fps": -3}, (0.0, 1.0)),
        (types.VideoMetadata(end_offset="9s", fps=2.0), (9.0, 2.0)),
    ],
)
def test_a_clip_is_as_long_as_it_was_asked_for(said, clip):
    assert clip_of(said) == clip
