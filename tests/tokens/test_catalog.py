"""The table agrees with the library, unknown models are no error, nothing asks the network."""

import subprocess
import sys

import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from ullage.tokens.catalog import _TABLE, UNKNOWN_WINDOW_TOKENS, Prices, _from_library, lookup

PRICED = [name for name, row in _TABLE.items() if row[2] is not None]
FIGURES = tuple(name for name in Prices.__struct_fields__ if name != "long_write_usd")


@pytest.mark.parametrize("model", PRICED)
def test_our_table_agrees_with_the_library(model):
    ours, theirs = lookup(model), _from_library(model, model)
    assert theirs is not None
    assert [above for above, _ in ours.tiers] == [above for above, _ in theirs.tiers]
    mine, others = ([info.prices, *(p for _, p in info.tiers)] for info in (ours, theirs))
    for one, other in zip(mine, others, strict=True):
        for figure in FIGURES:
            assert getattr(one, figure) == pytest.approx(getattr(other, figure))
        assert other.long_write_usd in (None, pytest.approx(one.long_write_usd))


@pytest.mark.parametrize("model", PRICED)
def test_our_windows_agree_where_the_library_has_one(model):
    provider, listed = get_snapshot().find_provider_model(model, None, None, None)
    assert provider.id == lookup(model).provider
    assert listed.context_window in (None, lookup(model).window_tokens)


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3.1-pro-preview", "gpt-6.2-astra"])
def test_windows_the_library_lacks(model):
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
assert "genai_prices" not in sys.modules
catalog.lookup("claude-opus-5-5")
assert "genai_prices" not in sys.modules, "a model of our table needs no import"
assert catalog.lookup("deepseek-chat").known
assert not catalog.lookup("no-such-model").known
counter_for("gpt-5").count("hello")
counter_for("claude-opus-5-5").count("hello")
media_tokens("gpt-5", Media("image", "", "https://example.org/a.png", 0))
"""


def test_nothing_asks_the_network():
    subprocess.run([sys.executable, "-c", OFFLINE], check=True, timeout=60)


WITHOUT = """
import sys
sys.modules["genai_prices"] = None
from ullage import Session
from ullage.tokens import catalog
assert catalog.lookup("claude-3-5-sonnet-20241022").known and catalog.lookup("o3").prices.input_usd
assert not catalog.lookup("deepseek-chat").known
said = [{"role": "user", "content": "Go."}]
view = Session("deepseek-chat").fit({"model": "deepseek-chat", "messages": said})
print(*(event.why for event in view.events if event.kind == "unknown_model"))
"""


def test_without_the_library_our_table_stands_and_the_rest_is_unknown_and_says_what_helps():
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "no window is known for 'deepseek-chat'; 128,000 tokens are assumed" in ran.stdout
    assert "pip install 'ullage[prices]'" in ran.stdout
