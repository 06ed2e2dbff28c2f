"""Our table agrees with the list, unknown models are no error, nothing asks the network."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.tokens.catalog import _TABLE, NAMES, UNKNOWN_WINDOW_TOKENS, lookup
from ullage.tokens.price_list import price_list

PRICED = [name for name in NAMES if lookup(name).prices.input_usd is not None]


def test_all_of_our_table_but_the_newest_are_priced():
    assert set(NAMES) - set(PRICED) == {"gpt-6.2-astra"}


@pytest.mark.parametrize("model", PRICED)
def test_our_windows_agree_where_the_list_has_one(model):
    provider, listed = price_list().find(model)
    assert provider == lookup(model).provider
    assert listed.window in (0, _TABLE[model][0])


@pytest.mark.parametrize("model", PRICED)
def test_the_longer_cache_is_priced_where_the_shorter_is(model):
    info = lookup(model)
    for prices in (info.prices, *(dearer for _, dearer in info.tiers)):
        assert (prices.cache_write_usd is None) == (prices.long_write_usd is None)
        if prices.long_write_usd is not None:
            assert prices.long_write_usd > prices.cache_write_usd


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3.1-pro-preview", "gpt-6.2-astra"])
def test_windows_the_list_lacks(model):
    assert lookup(model).known
    assert lookup(model).window_tokens > 1_000_000
    assert lookup(model).max_output_tokens


@pytest.mark.parametrize(
    "name",
    [
        "claude-opus-4-5-20251101",
        "claude-opus-4.5",
        "anthropic/claude-opus-4.5",
        "openrouter/anthropic/claude-opus-4.5:thinking",
        "us.anthropic.claude-opus-4-5-20251101-v1:0",
        "bedrock/eu.anthropic.claude-opus-4-5-20251101-v1:0",
        "claude-opus-4-5@20251101",
        "CLAUDE-OPUS-4-5",
    ],
)
def test_prefixes_dates_and_versions_are_seen_through(name):
    info = lookup(name)
    assert info.id == name
    assert (info.window_tokens, info.prices.input_usd, info.provider) == (200_000, 5.0, "anthropic")


@given(model=st.text(max_size=40))
def test_any_name_has_an_answer(model):
    info = lookup(model)
    assert info.window_tokens > 0
    if not info.known:
        assert info.window_tokens == UNKNOWN_WINDOW_TOKENS


def test_an_unknown_model_has_a_window_and_no_prices():
    info = lookup("no-such-model-9000")
    assert (info.known, info.window_tokens, info.prices.input_usd) == (False, 128_000, None)
    assert info.tiers == ()


OFFLINE = """
import socket, sys
def refuse(*args, **kwargs):
    raise AssertionError("the network was asked")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from ullage.tokens.media import media_tokens
from ullage.tokens.models import counter_for
from ullage.tokens import catalog
from ullage.spend import cost
from ullage.values.messages import Media
catalog.lookup("claude-opus-5-5")
assert catalog.lookup("gpt-4-turbo").known
assert not catalog.lookup("no-such-model").known
assert "genai_prices" not in sys.modules
counter_for("gpt-5").count("hello")
counter_for("claude-opus-5-5").count("hello")
media_tokens("gpt-5", Media("image", "", "https://example.org/a.png", 0))
"""


def test_nothing_asks_the_network():
    subprocess.run([sys.executable, "-c", OFFLINE], check=True, timeout=60)
