"""What adapters read alike: content in any form, counts, names of models."""

import json
from base64 import b64encode

import pytest

from ullage import Usage
from ullage.core.values.messages import Media, Opaque, Text
from ullage.integrations._base import (
    counted,
    read_parts,
    show_text,
    wire_of,
    with_bytes,
)
from ullage.wires.unknown_media import MOST_TOKENS


def test_counts_are_told_apart_and_nonsense_counts_nothing():
    assert counted(1_000, 20, read=700, written=200, reasoning=5) == Usage(
        fresh_tokens=100,
        cache_read_tokens=700,
        cache_write_tokens=200,
        output_tokens=20,
        reasoning_tokens=5,
    )
    assert counted(None, None) is None
    assert counted(0, 3) is None
    assert counted("many", 3) is None


@pytest.mark.parametrize(
    ("model", "wire"),
    [
        ("anthropic:claude-opus-4-5", "anthropic"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic"),
        ("google-gla:gemini-2.5-pro", "gemini"),
        ("openai:gpt-5.2", "openai-responses"),
        ("o4-mini", "openai-responses"),
        ("gpt-4.1", "openai-chat"),
        ("", "openai-chat"),
    ],
)
def test_a_model_is_asked_on_its_makers_wire(model, wire):
    assert wire_of({"model": model}) == wire


def test_content_is_read_and_shown_in_any_form():
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    content = [
        "bare",
        {"type": "text", "text": "a block"},
        picture,
        {"type": "odd", "n": 1},
    ]
    found = read_parts(content, "content")
    assert [type(part) for part in found] == [Text, Text, Media, Opaque]
    assert found[2].mime == "image/png"
    assert show_text(content, 1, "new")[1] == {"type": "text", "text": "new"}
    assert show_text("whole", -1, "new") == "new"
    assert content[1] == {"type": "text", "text": "a block"}


PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x58\x00\x00\x01\x90"
    + bytes(range(256)) * 900
)
IN_BASE64 = b64encode(PNG).decode()
CONVERSE = {"format": "png", "source": {"bytes": PNG}}


@pytest.mark.parametrize(
    ("block", "kind", "mime"),
    [
        (
            {"type": "media", "mime_type": "image/png", "data": IN_BASE64},
            "image",
            "image/png",
        ),
        (
            {"type": "media", "mime_type": "image/png", "data": PNG},
            "image",
            "image/png",
        ),
        (
            {"type": "media", "mime_type": "audio/wav", "data": PNG},
            "audio",
            "audio/wav",
        ),
        (
            {"type": "media", "mime_type": "video/mp4", "file_uri": "gs://a"},
            "document",
            "video/mp4",
        ),
        ({"image": CONVERSE}, "image", "image/png"),
        (
            {
                "type": "image",
                "image": {"format": "png", "source": {"bytes": PNG}},
            },
            "image",
            "image/png",
        ),
        (
            {"document": {"format": "pdf", "source": {"bytes": PNG}}},
            "document",
            "application/pdf",
        ),
        (
            {"type": "image", "data": PNG, "mime_type": "image/png"},
            "image",
            "image/png",
        ),
        ({"type": "audio", "data": PNG}, "audio", "audio/*"),
        (
            {
                "type": "file",
                "base64": IN_BASE64,
                "mime_type": "application/pdf",
            },
            "document",
            "application/pdf",
        ),
        (
            {
                "image": {
                    "format": "png",
                    "source": {"s3Location": {"uri": "gs://a"}},
                }
            },
            "image",
            "image/png",
        ),
        (
            {
                "type": "image_url",
                "image_url": f"data:image/png;base64,{IN_BASE64}",
            },
            "image",
            "",
        ),
        ({"type": "input_image", "image_url": IN_BASE64}, "image", ""),
        (
            {"type": "image", "base64": IN_BASE64, "mime_type": "image/png"},
            "image",
            "image/png",
        ),
    ],
)
def test_a_medium_in_a_framework_s_own_form_is_a_medium(block, kind, mime):
    content = [{"type": "text", "text": "Look."}, block]
    _, found = read_parts(content, "content")
    assert (type(found), found.kind, found.mime) == (Media, kind, mime)
    assert found.data in (
        IN_BASE64,
        f"data:image/png;base64,{IN_BASE64}",
        "gs://a",
    )
    assert show_text(content, 1, "gone")[1] == {"type": "text", "text": "gone"}
    assert content[1] is block
    kept = json.loads(json.dumps(found.block))
    assert with_bytes(kept) == block, (
        "what is set aside comes back as what it was"
    )


def test_a_block_that_is_not_as_its_type_has_it_is_carried_through():
    odd = [
        {"type": "text", "text": 7},
        {"type": "image", "base64": 7},
        {"type": "new", "raw": PNG},
    ]
    found = read_parts(odd, "content")
    assert [type(part) for part in found] == [Opaque, Opaque, Opaque]
    assert MOST_TOKENS <= found[2].tokens < MOST_TOKENS + 10
