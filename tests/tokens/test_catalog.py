"""The table agrees with the library, unknown models are no error, nothing asks the network."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import anthropic.types
import openai.types
import pytest
from genai_prices.data_snapshot import get_snapshot
from google import genai
from hypothesis import given
from hypothesis import strategies as st

from ullage.core.installing import install_remedy
from ullage.core.tokens.catalog import (
    _TABLE,
    UNKNOWN_WINDOW_TOKENS,
    Prices,
    _from_library,
    lookup,
)

PRICED = [name for name, row in _TABLE.items() if row[2] is not None]
FIGURES = tuple(
    name for name in Prices.__struct_fields__ if name != "long_write_usd"
)


@pytest.mark.parametrize("model", PRICED)
def test_our_table_agrees_with_the_library(model):
    ours, theirs = lookup(model), _from_library(model, model)
    assert theirs is not None
    assert [above for above, _ in ours.tiers] == [
        above for above, _ in theirs.tiers
    ]
    mine, others = (
        [info.prices, *(p for _, p in info.tiers)] for info in (ours, theirs)
    )
    for one, other in zip(mine, others, strict=True):
        for figure in FIGURES:
            assert getattr(one, figure) == pytest.approx(
                getattr(other, figure)
            )
        assert other.long_write_usd in (
            None,
            pytest.approx(one.long_write_usd),
        )


@pytest.mark.parametrize("model", PRICED)
def test_our_windows_agree_where_the_library_has_one(model):
    provider, listed = get_snapshot().find_provider_model(
        model, None, None, None
    )
    assert provider.id == lookup(model).provider
    assert listed.context_window in (None, lookup(model).window_tokens)


@pytest.mark.parametrize(
    "model", ["gemini-2.5-pro", "gemini-3.1-pro-preview", "gpt-6.2-astra"]
)
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
    assert (info.window_tokens, info.prices.input_usd, info.provider) == (
        200_000,
        5.0,
        "anthropic",
    )


def names_in(literal: Any) -> Iterator[str]:
    """The names in a union of literals, as the SDKs type their models."""
    for argument in get_args(literal):
        if isinstance(argument, str):
            yield argument
        else:
            yield from names_in(argument)


def google_names() -> Iterator[str]:
    """Every Gemini or Gemma named in the source of Google's SDK: it types no list of them."""
    for file in Path(genai.__file__).parent.rglob("*.py"):
        yield from re.findall(
            r"\b((?:gemini|gemma)-\d[a-z0-9.-]*[a-z0-9])\b",
            file.read_text("utf-8"),
        )


SDK_NAMES = {
    "anthropic": set(names_in(anthropic.types.Model)),
    "openai": {
        *names_in(openai.types.AllModels),
        *names_in(openai.types.ChatModel),
    },
    "google": set(google_names()),
}
LIBRARY = ["with the library", "without it"]


@pytest.mark.parametrize("library", LIBRARY)
@pytest.mark.parametrize("sdk", SDK_NAMES)
def test_every_model_that_an_sdk_names_is_known(sdk, library, monkeypatch):
    if library == "without it":
        monkeypatch.setattr(
            "ullage.core.tokens.catalog.find_spec", lambda name: None
        )
    names = SDK_NAMES[sdk]
    assert len(names) >= 20
    lookup.cache_clear()
    infos = [lookup(name) for name in names]
    lookup.cache_clear()
    assert [info.id for info in infos if info.is_chat and not info.known] == []
    assert [
        info.id
        for info in infos
        if info.is_chat and not info.max_output_tokens
    ] == []


WINDOWS = {
    "gpt-4": 8_192,
    "gpt-4-0613": 8_192,
    "gpt-4-32k-0314": 32_768,
    "gpt-4-1106-preview": 128_000,
    "gpt-3.5-turbo-0613": 4_096,
    "gpt-3.5-turbo-0125": 16_385,
    "gpt-35-turbo-16k": 16_385,
    "gpt-5.2-chat-latest": 128_000,
    "gpt-5-pro": 400_000,
    "gpt-5.6-luna-fast": 1_050_000,
    "gpt-6.2-sol": 1_050_000,
    "gpt-7-terra": 1_050_000,
    "openai/gpt-6.3-astra:free": 1_050_000,
    "computer-use-preview": 8_192,
    "o1-mini-2024-09-12": 128_000,
    "claude-2.0": 100_000,
    "claude-3-haiku-20240307": 200_000,
    "claude-4-opus-20250514": 200_000,
    "claude-opus-4-6-fast": 1_000_000,
    "claude-sonnet-4-7": 1_000_000,
    "claude-mythos-6": 1_000_000,
    "us.anthropic.claude-fable-6-20270101-v1:0": 1_000_000,
    "gemini-pro": 32_768,
    "gemini-pro-latest": 1_048_576,
    "gemini-2.5-flash-001": 1_048_576,
    "gemini-2.5-flash-preview-09-2025": 1_048_576,
    "gemini-3-pro-image-preview": 65_536,
    "gemini-4-neon": 1_048_576,
    "gemini-5-ultra-exp-0827": 1_048_576,
}


@pytest.mark.parametrize("library", LIBRARY)
@pytest.mark.parametrize("model", WINDOWS)
def test_a_model_has_its_own_window_or_its_familys(
    model, library, monkeypatch
):
    if library == "without it":
        monkeypatch.setattr(
            "ullage.core.tokens.catalog.find_spec", lambda name: None
        )
    lookup.cache_clear()
    info = lookup(model)
    lookup.cache_clear()
    assert (info.known, info.is_chat) == (True, "image" not in model)
    rounded = {1_048_576: 1_000_000}.get(
        WINDOWS[model]
    )  # as the library has some of them
    assert info.window_tokens in (WINDOWS[model], rounded)


@pytest.mark.parametrize(
    "model",
    ["text-embedding-3-large", "gpt-4o-mini-tts", "gemini-embedding-2"],
)
def test_a_model_of_no_conversations_is_told(model):
    assert not lookup(model).is_chat


@given(model=st.text(max_size=40))
def test_any_name_has_an_answer(model):
    info = lookup(model)
    assert info.window_tokens > 0
    if not info.known:
        assert info.window_tokens == UNKNOWN_WINDOW_TOKENS


def test_an_unknown_model_has_a_window_and_no_prices():
    info = lookup("no-such-model-9000")
    assert (info.known, info.window_tokens, info.prices.input_usd) == (
        False,
        128_000,
        None,
    )
    assert info.tiers == ()


OFFLINE = """
import socket, sys
def refuse(*args, **kwargs):
    raise AssertionError("the network was asked")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from ullage.core.tokens.media import media_tokens
from ullage.core.tokens.models import counter_for
from ullage.core.tokens import catalog
from ullage.session.spend import cost
from ullage.core.values.messages import Media
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
from ullage.core.tokens import catalog
assert catalog.lookup("claude-3-5-sonnet-20241022").known and catalog.lookup("o3").prices.input_usd
assert not catalog.lookup("deepseek-chat").known
said = [{"role": "user", "content": "Go."}]
view = Session("deepseek-chat").fit({"model": "deepseek-chat", "messages": said})
print(*(event.why for event in view.events if event.kind == "unknown_model"))
"""


def test_without_the_library_our_table_stands_and_the_rest_is_unknown_and_says_what_helps():
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (
        "no window is known for 'deepseek-chat'; 128,000 tokens are assumed"
        in ran.stdout
    )
    assert install_remedy("prices") in ran.stdout
