"""The price profiles that ship: dated, whole, and as the maintained table has them."""

from datetime import UTC, date, datetime, time

import pytest
from genai_prices.data_snapshot import get_snapshot

from ullage.core.errors import ConfigError
from ullage.tools.replay.cost.prices import (
    PROFILES,
    Cliff,
    profile_at,
    profile_named,
)

NOON = time(12, tzinfo=UTC)
PRICED = [
    each for each in PROFILES.values() if each.hits != "never" and each.model
]


def by_name(profile):
    return profile.name


def listed(profile):
    """Prices of the profile's model in genai-prices, US dollars per million tokens.

    At noon of its date: some prices change by the hour.
    """
    _, model = get_snapshot().find_provider_model(
        profile.model, None, None, None
    )
    return model.get_prices(
        datetime.combine(date.fromisoformat(profile.as_of), NOON)
    )


def base(price):
    return float(getattr(price, "base", price))


def test_the_profiles_people_need_are_there():
    assert {
        *("anthropic-5m", "anthropic-1h", "openai-5", "openai-5.6"),
        *("gemini-implicit", "deepseek", "none"),
        *("llama-cpp", "ollama", "sglang", "vllm"),
    } <= set(PROFILES)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=by_name)
def test_every_profile_says_when_and_where_from(profile):
    assert date(2026, 1, 1) <= date.fromisoformat(profile.as_of)
    assert profile.source
    assert profile.prices(1_000) is not None


@pytest.mark.parametrize("profile", PRICED, ids=by_name)
def test_prices_are_those_of_the_maintained_table(profile):
    prices = listed(profile)
    assert profile.input_usd == base(prices.input_mtok)
    assert profile.output_usd == base(prices.output_mtok)
    assert profile.read * profile.input_usd == pytest.approx(
        base(prices.cache_read_mtok)
    )
    column = (
        "cache_write_1h_mtok"
        if profile.name == "anthropic-1h"
        else "cache_write_mtok"
    )
    write = getattr(prices, column, None)
    assert profile.write * profile.input_usd == pytest.approx(
        base(write or prices.input_mtok)
    )
    tiers = zip(
        getattr(prices.input_mtok, "tiers", ()),
        getattr(prices.output_mtok, "tiers", ()),
        strict=True,
    )
    assert profile.cliffs == tuple(
        Cliff(
            above_tokens=i.start,
            input_usd=float(i.price),
            output_usd=float(o.price),
        )
        for i, o in tiers
    )


def test_a_cliff_prices_the_whole_request():
    profile = profile_named("openai-5")
    assert profile.prices(272_000) == (2.5, 15.0)
    assert profile.prices(272_001) == (5.0, 22.5)


WHOLE = 'name="own"\nwrite=1.0\nread=0.5\nmin_tokens=0\nas_of="2026-11-21"\nsource="a contract"\n'


def test_a_profile_of_ones_own_is_a_file(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(WHOLE)
    profile = profile_at(path)
    assert (profile.name, profile.read) == ("own", 0.5)
    assert profile.prices(1_000) is None, "no price was given"


@pytest.mark.parametrize(
    "field", ["write", "read", "min_tokens", "as_of", "source"]
)
def test_a_term_left_out_is_refused_and_not_taken_as_nought(tmp_path, field):
    path = tmp_path / "own.toml"
    lines = [line for line in WHOLE.splitlines() if not line.startswith(field)]
    path.write_text("\n".join(lines))
    with pytest.raises(ConfigError, match=field):
        profile_at(path)


@pytest.mark.parametrize("text", ["ttl = 5\n", "write = free\n"])
def test_what_is_no_profile_is_told(tmp_path, text):
    path = tmp_path / "own.toml"
    path.write_text(WHOLE + text)
    with pytest.raises(ConfigError, match=r"own\.toml"):
        profile_at(path)


def test_an_unknown_name_says_which_are_known():
    with pytest.raises(ConfigError, match="'deepseek'"):
        profile_named("ether")


def test_only_a_server_of_ones_own_takes_no_money():
    free = {name for name, profile in PROFILES.items() if profile.is_free}
    assert free == {"llama-cpp", "ollama", "sglang", "vllm"}
