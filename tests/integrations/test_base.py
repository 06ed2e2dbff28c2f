"""What adapters share: a ledger that a framework's state carries, counts, names of models."""

import pytest

from ullage import Limits, Session, Usage
from ullage.history.ledger import Ledger, Opened
from ullage.integrations._base import (
    Entries,
    counted,
    entry_of,
    limits_of,
    read_parts,
    record_of,
    show_text,
    wire_of,
)
from ullage.values.messages import Media, Opaque, Text

REQUEST = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hello."}]}


def record():
    return Ledger().with_opened(bytes(16), Opened("first", recall=False))[1]


def test_a_record_is_an_entry_and_a_record_again():
    key, value = entry_of(record())
    assert key == f"ullage:{'00' * 16}:opened:0"
    assert record_of(key, value) == record()
    assert [record_of(*other) for other in ((f"{key}0", value), ("a", value), (key, 7))] == [
        None
    ] * 3


def test_a_state_that_lost_what_was_written_is_given_it_again():
    session, entries = Session("gpt-4.1"), Entries()
    session.fit(REQUEST)
    first = entries.missing(session, {})
    assert first
    assert entries.missing(session, {}) == first  # the step that should have written it failed
    assert entries.missing(session, first) == {}


def test_what_a_state_holds_is_taken_in_once():
    session, entries = Session("gpt-4.1"), Entries()
    session.fit(REQUEST)
    state = {**entries.missing(session, {}), "case": "7"}
    other = Session("gpt-4.1")
    new = entries.unknown(other, state)
    other.take(new)
    assert len(new) == len(state) - 1
    assert entries.unknown(other, state) == []
    assert entries.missing(other, state) == {}


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


def test_a_window_that_only_the_framework_knows_is_a_limit():
    assert limits_of("my-own", 40_000) == {"limits": Limits(window_tokens=40_000)}
    assert limits_of("my-own", 0) == limits_of("gpt-4.1", 40_000) == {}


def test_content_is_read_and_shown_in_any_form():
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    content = ["bare", {"type": "text", "text": "a block"}, picture, {"type": "odd", "n": 1}]
    found = read_parts(content, "content")
    assert [type(part) for part in found] == [Text, Text, Media, Opaque]
    assert found[2].mime == "image/png"
    assert show_text(content, 1, "new")[1] == {"type": "text", "text": "new"}
    assert show_text("whole", -1, "new") == "new"
    assert content[1] == {"type": "text", "text": "a block"}
