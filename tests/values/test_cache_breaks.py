"""A break of a prompt cache, in words that people read."""

from typing import get_args

import msgspec
import pytest

from ullage.core.values.cache_breaks import (
    PARTIES,
    CacheBreak,
    Cause,
    dollars,
    duration,
)

SENTENCES = {
    CacheBreak(
        "system", "at character 1,204", 41_000, 0.15, 40_000, 0
    ): "The system prompt changed at character 1,204, so 41,000 tokens were billed again: $0.15.",
    CacheBreak(
        "tools", "(`x` added)", 900, None, 880, 12
    ): "The tools changed (`x` added), so 900 tokens were billed again.",
    CacheBreak(
        "batch", "message 2 on", 3_320, 0.01145, 4_900, 7_104, name="b1"
    ): "Batch b1 by ullage changed the request from message 2 on, so 3,320 tokens were billed "
    "again: $0.0115 (4,900 tokens reckoned).",
    CacheBreak(
        "expired", tokens=500, gap_s=420, lives_s=300
    ): "The last call was 7 minutes ago, and its cache lives 5 minutes, so about 500 tokens are "
    "billed again.",
    CacheBreak(
        "evicted", tokens=70, read_tokens=30, held_tokens=100
    ): "Nothing changed, but the provider read 30 of the 100 tokens in its cache (expired or "
    "evicted), so 70 tokens were billed again.",
    CacheBreak(
        "message", "message 4, which it had sent before", 5, read_tokens=1
    ): "The client changed message 4, which it had sent before, so 5 tokens were billed again.",
}


@pytest.mark.parametrize("broken", SENTENCES)
def test_it_is_one_plain_sentence(broken):
    assert str(broken) == SENTENCES[broken]


@pytest.mark.parametrize("cause", get_args(Cause))
def test_every_cause_has_words_and_is_somebodys_doing(cause):
    broken = CacheBreak(cause, tokens=300, reckoned_tokens=300)
    assert broken.party == PARTIES[cause]
    assert str(broken)[0].isupper()
    assert "{" not in str(broken)
    assert broken.where


def test_it_comes_back_as_it_was_and_from_a_later_version_too():
    broken = CacheBreak("model", "from a to b", 7, 0.5, 8, 9, 10, "", 11)
    encoded = msgspec.msgpack.encode(broken)
    assert msgspec.msgpack.decode(encoded, type=CacheBreak) == broken
    longer = msgspec.msgpack.encode(
        [*msgspec.msgpack.decode(encoded), "of a later version"]
    )
    assert msgspec.msgpack.decode(longer, type=CacheBreak) == broken


def test_on_a_span_it_has_its_cause_and_figures_and_no_price_that_is_unknown():
    attributes = CacheBreak("expired", tokens=5).attributes
    assert attributes["ullage.cache.cause"] == "expired"
    assert attributes["ullage.cache.by"] == "time"
    assert attributes["ullage.cache.rebilled_tokens"] == 5
    assert "ullage.cache.cost_usd" not in attributes


def test_amounts_and_times_are_as_people_read_them():
    assert [dollars(usd) for usd in (0, 0.0115, 12.3456, 1_234.5)] == [
        "$0.00",
        "$0.0115",
        "$12.35",
        "$1,234.50",
    ]
    assert [duration(s) for s in (5, 89, 420, 7_200, 400_000)] == [
        "5 seconds",
        "89 seconds",
        "7 minutes",
        "2 hours",
        "5 days",
    ]
