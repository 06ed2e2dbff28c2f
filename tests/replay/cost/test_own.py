"""Each run at the prices of its own model; where they are not known, it says so."""

import pytest
from msgspec.structs import replace

from tests.replay.test_run import small_run
from ullage.core.tokens.catalog import lookup
from ullage.tools.replay.cost.prices import (
    OWN,
    PROFILES,
    own_profile,
    profiles_for,
)


@pytest.mark.parametrize(
    ("model", "wire", "terms"),
    [
        ("claude-sonnet-4-5", "anthropic", "anthropic-5m"),
        ("claude-opus-5-5", "anthropic", "anthropic-5.5"),
        ("gpt-5.1", "openai-responses", "openai-5"),
        ("openai/gpt-6-sol", "openai-chat", "openai-5.6"),
        ("gemini-2.5-pro", "openai-chat", "gemini-implicit"),
        ("deepseek-chat", "openai-chat", "deepseek"),
    ],
)
def test_a_model_has_the_catalogues_prices_and_its_vendors_cache(
    model, wire, terms
):
    own, prices = own_profile(model, wire), lookup(model).prices
    assert (own.name, own.model, own.in_place_of) == (OWN, model, "")
    assert own.prices(1_000) == (prices.input_usd, prices.output_usd)
    assert own.read * own.input_usd == pytest.approx(prices.cache_read_usd)
    assert (own.hits, own.min_tokens) == (
        PROFILES[terms].hits,
        PROFILES[terms].min_tokens,
    )


def test_long_prompts_are_as_dear_as_the_catalogue_says():
    own = own_profile("claude-sonnet-4-5", "anthropic")
    assert own.prices(200_000) == (3.0, 15.0)
    assert own.prices(200_001) == (6.0, 22.5)


@pytest.mark.parametrize(
    ("model", "named"),
    [("house-model-7b", "house-model-7b"), ("", "an unnamed model")],
)
def test_a_model_without_prices_is_priced_as_another_and_says_so(model, named):
    own = own_profile(model, "openai-chat")
    assert own.whose == f"gpt-5.4 (no price is known of {named})"
    assert own.prices(1_000) == PROFILES["openai-5"].prices(1_000)


def test_a_model_without_a_price_of_its_cache_has_none():
    own = own_profile("gpt-4", "openai-chat")
    assert lookup("gpt-4").prices.cache_read_usd is None
    assert (own.read, own.hits) == (1.0, "never")


def test_a_profile_asked_for_by_name_stays():
    run = replace(small_run("openai-chat", 1), request={"model": "gpt-5.1"})
    found = profiles_for([PROFILES["none"], OWN], run)
    assert found[0] is PROFILES["none"]
    assert found[1].model == "gpt-5.1"
