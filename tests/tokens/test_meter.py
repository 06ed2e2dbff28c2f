"""What a message costs, and that it never costs more than was bounded without a tokeniser."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.core.tokens.meter import Meter, argument_text, overhead_for
from ullage.core.tokens.models import counter_for
from ullage.core.values.messages import (
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

MODELS = (
    *(
        "gpt-4o",
        "gpt-4o-mini",
        "gpt-5-nano",
        "gpt-5.4",
        "gpt-6.2-sol",
        "unknown",
    ),
    *(
        "claude-sonnet-4-5",
        "claude-opus-5-5",
        "gemini-2.5-pro",
        "gemini-4-argon",
    ),
)
DETAILS = ("", "low", "medium", "high", "ultra_high", "original", "odd")
HEADS = (
    b"",
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    b"%PDF-1.7 << /Type /Pages /Count 321 >>",
    b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0",
    b"\0\0\0\x6cmoov\0\0\0\x64mvhd\0\0\0\0",
    b"\x1a\x45\xdf\xa3\x44\x89\x88",
)
bodies = st.builds(
    bytes.__add__, st.sampled_from(HEADS), st.binary(max_size=120)
)
encoded = bodies.map(lambda raw: base64.b64encode(raw + b"\0" * 40).decode())
data = st.one_of(
    encoded,
    encoded.map("data:application/pdf;base64,".__add__),
    st.sampled_from(("", "file-1", "https://example.org/a")),
)
media = st.builds(
    Media,
    kind=st.sampled_from(("image", "document", "audio")),
    mime=st.sampled_from(
        ("", "image/png", "application/pdf", "text/plain", "video/mp4", "mp3")
    ),
    data=data,
    at=st.just(0),
    width=st.integers(0, 20_000),
    height=st.integers(0, 20_000),
    detail=st.sampled_from(DETAILS),
    clip_s=st.floats(0, 1e6),
    frames_per_s=st.floats(0.01, 24),
)
contents = st.one_of(
    media,
    st.builds(Text, text=st.text(), at=st.just(0)),
    st.builds(
        Opaque,
        kind=st.just("x"),
        text=st.text(),
        at=st.just(0),
        tokens=st.none(),
    ),
)
parts = st.one_of(
    contents,
    st.builds(
        Reasoning,
        text=st.text(),
        at=st.just(0),
        sealed_bytes=st.integers(0, 10**6),
    ),
    st.builds(
        ToolResult,
        call_id=st.just("c"),
        content=st.lists(contents, max_size=3).map(tuple),
        is_error=st.booleans(),
        at=st.just(0),
    ),
    st.builds(
        ToolCall,
        id=st.just("c"),
        name=st.text(max_size=9),
        arguments=st.text().map('{{"a":"{}"}}'.format),
        at=st.just(0),
    ),
)


def leaves_of(message):
    for part in message.parts:
        yield from part.content if isinstance(part, ToolResult) else (part,)


@given(
    model=st.sampled_from(MODELS),
    detail=st.sampled_from(DETAILS),
    parts=st.lists(parts, max_size=4).map(tuple),
)
def test_a_message_never_costs_more_than_its_bound(model, detail, parts):
    message, meter = Message("user", parts), Meter(model, detail)
    counted = meter.framing(message) + sum(map(meter.leaf, leaves_of(message)))
    assert counted <= meter.bound(message)


def test_a_long_document_is_in_the_bound():
    pdf = base64.b64encode(
        b"%PDF-1.7 << /Type /Pages /Count 600 >>" + bytes(90)
    ).decode()
    message = Message("user", (Media("document", "application/pdf", pdf, 0),))
    assert Meter("claude-opus-5-5").bound(message) > 600 * 3_500


@given(
    model=st.sampled_from(MODELS),
    text=st.text(),
    sealed_bytes=st.integers(0, 10**6),
)
def test_what_is_sealed_and_not_shown_is_estimated_beside_what_is_shown(
    model, text, sealed_bytes
):
    meter = Meter(model)
    shown = meter.text(text)
    thought = meter.leaf(Reasoning(text, 0, sealed_bytes=sealed_bytes))
    unseen_bytes = max(
        sealed_bytes - len(text.encode("utf-8", "surrogatepass")), 0
    )
    assert (
        shown + unseen_bytes / 4.01 - 1
        <= thought
        <= shown + unseen_bytes / 3 + 1
    )


def test_a_thought_that_is_shown_whole_costs_its_text():
    meter, text = (
        Meter("claude-opus-4-5"),
        "I should look at the loader first. " * 40,
    )
    whole = meter.leaf(Reasoning(text, 0, bound=True, sealed_bytes=len(text)))
    assert whole == meter.text(text)


# what stands around the texts

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "model", ["gpt-5", "claude-opus-4-5", "gemini-2.5-pro", "unknown"]
)
def test_every_family_has_its_overhead(model):
    overhead = overhead_for(model)
    assert (
        min(overhead.request, overhead.message, overhead.call, overhead.result)
        > 0
    )


def test_code_in_an_argument_counts_as_code_for_claude():
    code = 'if name == "x":\n\tprint("y")\n' * 50
    arguments = json.dumps({"content": code})
    shown = argument_text(arguments)
    assert code in shown
    counter = counter_for("claude-opus-4-5")
    assert counter.count(shown) < 0.9 * counter.count(arguments)


def test_unicode_escapes_are_written_out():
    assert "中文" in argument_text(json.dumps({"q": "中文\n"}))


@given(value=st.dictionaries(st.text(), JSON), junk=st.text())
def test_any_text_has_an_argument_text(value, junk):
    assert argument_text(json.dumps(value)) is not None
    assert isinstance(argument_text(junk + "\\u"), str)
