"""Costs are those the reference library computes, tiers and caches included."""

import genai_prices
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ullage.core.tokens.catalog import ModelInfo, Prices, lookup
from ullage.core.values.usage import Modalities, Usage
from ullage.session.spend.cost import cost_usd

COUNTS = st.integers(0, 400_000)
MODELS = (
    "claude-sonnet-4-5",
    "claude-haiku-5-5",
    "claude-opus-5-5",
    "gpt-6-astra",
    "gpt-5.4",
    "gpt-4o",
    "gemini-2.5-pro",
    "gpt-4-turbo",
    "deepseek-chat",
)


@pytest.mark.parametrize("model", MODELS)
@given(fresh=COUNTS, read=COUNTS, write=COUNTS, output=COUNTS)
def test_costs_equal_the_reference(model, fresh, read, write, output):
    info = lookup(model)
    has_write_price = info.prices.cache_write_usd is not None
    usage = Usage(
        fresh_tokens=fresh,
        cache_read_tokens=read,
        cache_write_tokens=write if has_write_price else 0,
        output_tokens=output,
    )
    theirs = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=usage.input_tokens,
            cache_read_tokens=read,
            cache_write_tokens=usage.cache_write_tokens,
            output_tokens=output,
        ),
        model,
        provider_id=info.provider,
    )
    assert cost_usd(usage, info) == pytest.approx(float(theirs.total_price))


@given(
    fresh=COUNTS,
    heard=COUNTS,
    read=COUNTS,
    heard_again=COUNTS,
    said=COUNTS,
    spoken=COUNTS,
)
@pytest.mark.parametrize(
    "model",
    ["gemini-2.5-flash", "gemini-3-flash-preview", "gpt-4o-audio-preview"],
)
def test_what_is_heard_and_spoken_has_prices_of_its_own(
    model, fresh, heard, read, heard_again, said, spoken
):
    info = lookup(model)
    has_cache = info.prices.cache_read_usd is not None
    read, heard_again = (read, heard_again) if has_cache else (0, 0)
    usage = Usage(
        fresh_tokens=fresh + heard,
        cache_read_tokens=read + heard_again,
        output_tokens=said + spoken,
        input_media=Modalities(audio_tokens=heard + heard_again),
        cache_read_media=Modalities(audio_tokens=heard_again),
        output_media=Modalities(audio_tokens=spoken),
    )
    theirs = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=usage.input_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
            input_audio_tokens=heard + heard_again,
            cache_audio_read_tokens=heard_again,
            output_audio_tokens=spoken if info.prices.audio_output_usd else 0,
        ),
        model,
        provider_id=info.provider,
    )
    assert cost_usd(usage, info) == pytest.approx(float(theirs.total_price))


@pytest.mark.parametrize(
    "model", ["claude-opus-5-5", "claude-sonnet-4-5", "claude-haiku-5-5"]
)
@given(fresh=COUNTS, briefly=COUNTS, long=COUNTS)
def test_what_is_cached_for_an_hour_costs_more(model, fresh, briefly, long):
    usage = Usage(
        fresh_tokens=fresh,
        cache_write_tokens=briefly + long,
        long_write_tokens=long,
    )
    theirs = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=usage.input_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cache_write_1h_tokens=long,
        ),
        model,
    )
    assert cost_usd(usage, lookup(model)) == pytest.approx(
        float(theirs.total_price)
    )


def test_the_longer_cache_of_openai_is_twice_the_shorter():
    """2.5 times the input, and 1.25 times (`provider-rules` §3)."""
    info = lookup("gpt-5.6-sol")
    long = Usage(cache_write_tokens=1_000_000, long_write_tokens=1_000_000)
    assert cost_usd(replace(long, long_write_tokens=0), info) == pytest.approx(
        1.25 * 4 * 2
    )
    assert cost_usd(long, info) == pytest.approx(2.5 * 4 * 2), (
        "at the dearer tier"
    )


def test_the_cliff_prices_the_whole_request():
    info = lookup("claude-haiku-5-5")
    below = cost_usd(Usage(fresh_tokens=100_000, output_tokens=1_000), info)
    above = cost_usd(Usage(fresh_tokens=100_001, output_tokens=1_000), info)
    assert above == pytest.approx(5 * below, rel=1e-4)


def test_an_unknown_price_is_not_nought():
    usage = Usage(fresh_tokens=1_000, output_tokens=10)
    assert cost_usd(usage, lookup("no-such-model")) is None
    assert (
        cost_usd(usage, ModelInfo(id="x", prices=Prices(input_usd=1.0)))
        is None
    )


def test_a_missing_cache_price_costs_as_much_as_fresh():
    info = ModelInfo(id="x", prices=Prices(input_usd=2.0, output_usd=4.0))
    cached = Usage(cache_read_tokens=500, cache_write_tokens=500)
    assert (
        cost_usd(cached, info)
        == cost_usd(Usage(fresh_tokens=1_000), info)
        == 0.002
    )
