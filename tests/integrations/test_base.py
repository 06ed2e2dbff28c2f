"""What adapters read alike: content in any form, counts, names of models."""

import pytest

from ullage import Usage
from ullage.integrations._base import counted, read_parts, show_text, wire_of
from ullage.values.messages import Media, Opaque, Text


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
    content = ["bare", {"type": "text", "text": "a block"}, picture, {"type": "odd", "n": 1}]
    found = read_parts(content, "content")
    assert [type(part) for part in found] == [Text, Text, Media, Opaque]
    assert found[2].mime == "image/png"
    assert show_text(content, 1, "new")[1] == {"type": "text", "text": "new"}
    assert show_text("whole", -1, "new") == "new"
    assert content[1] == {"type": "text", "text": "a block"}
