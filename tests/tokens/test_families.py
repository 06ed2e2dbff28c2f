"""Rows of the table of families: none is idle, and none leaves a reply without room."""

import re

import pytest

from ullage.core.tokens import families
from ullage.core.tokens.families import family, is_chat, snapshot

TABLE = families._families()


@pytest.mark.parametrize("row", [*TABLE.snapshots, *TABLE.families])
def test_a_row_makes_sense(row):
    re.compile(row.pattern)
    assert 1_000 <= row.max_output_tokens <= row.window_tokens <= 3_000_000


def test_a_snapshot_differs_from_its_family():
    row, whole = snapshot("gpt-3.5-turbo-0613"), family("gpt-3.5-turbo")
    assert (row.window_tokens, whole.window_tokens) == (4_096, 16_385)
    assert snapshot("gpt-3.5-turbo-0125") is None
    assert family("no-such-model") is None


def test_what_is_narrow_stands_before_what_is_wide():
    assert (
        family("gpt-5.4-mini").window_tokens < family("gpt-5.4").window_tokens
    )
    assert (
        family("claude-opus-4-1").window_tokens
        < family("claude-opus-4-8").window_tokens
    )
    assert family("o1-mini").window_tokens < family("o1").window_tokens


@pytest.mark.parametrize(
    ("name", "chats"),
    [
        ("gpt-6.2-sol", True),
        ("gemini-live-2.5-flash", False),
        ("gpt-4o-search-preview", True),
        ("olive-7b", True),
        ("text-embedding-3-small", False),
        ("veo-2.0-generate-001", False),
    ],
)
def test_what_conversations_are_had_with(name, chats):
    assert is_chat(name) == chats
