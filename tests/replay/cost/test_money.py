"""What a run costs: several profiles and clocks in one replay, and how it is summed."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.replay.cost.test_cache import said, terms
from tests.replay.test_run import small_run
from ullage.tools.replay.cost.money import Bill, BillSide, CostMeter, clocks_of
from ullage.tools.replay.cost.prefix import Prefix
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.report.words import in_words
from ullage.tools.replay.rows import charges_of, row_of
from ullage.tools.replay.run import replay_run
from ullage.tools.replay.tables import tables_of

PRICED = terms(name="priced", input_usd=2.0, output_usd=10.0, ttl_s=300)
HISTORY = [said("a" * 500), said("b" * 500, "assistant"), said("c" * 500)]
CUT = [said("gone"), *HISTORY[1:]]


def bills(profiles, views, times=(0.0, 0.0)):
    meter = CostMeter(profiles, ("", ""), {"recorded": times}, len)
    for number, view in enumerate(views):
        meter.take(number, HISTORY[: 2 * number + 1], view, 100)
    return meter


def test_both_sides_of_a_run_are_priced_by_hand():
    (bill,) = bills([PRICED], [HISTORY[:1], CUT]).bills()
    sizes = [
        Prefix(len).measure(messages).prompt_tokens
        for messages in (HISTORY[:1], HISTORY, CUT)
    ]
    first, whole, cut = sizes
    answers = 2 * 100 * 10.0
    raw = 1.25 * first + 0.1 * first + 1.25 * (whole - first)
    assert bill.raw.cost_usd == pytest.approx((2.0 * raw + answers) / 1e6)
    shown = 1.25 * first + 1.25 * cut
    assert bill.shown.cost_usd == pytest.approx((2.0 * shown + answers) / 1e6)


def test_what_is_rewritten_and_how_deep():
    meter = bills([PRICED], [HISTORY[:1], CUT])
    first = Prefix(len).measure(HISTORY[:1]).prompt_tokens
    assert (meter.raw.breaks, meter.raw.rewritten_tokens) == (0, 0)
    assert (meter.shown.breaks, meter.shown.rewritten_tokens) == (1, first)
    assert meter.shown.rewritten_share == 1.0


def test_tools_that_were_added_are_paid_for():
    meter = CostMeter([PRICED], ("h" * 10, "h" * 110), {"warm": [0.0]}, len)
    meter.take(0, HISTORY, HISTORY, 0)
    (bill,) = meter.bills()
    assert bill.shown.written_tokens == bill.raw.written_tokens + 100


def test_recorded_times_decide_what_the_cache_still_holds():
    (warm,) = bills(
        [PRICED], [HISTORY[:1], HISTORY], times=(0.0, 300.0)
    ).bills()
    (cold,) = bills(
        [PRICED], [HISTORY[:1], HISTORY], times=(0.0, 301.0)
    ).bills()
    assert warm.shown.cached_tokens > 0 == cold.shown.cached_tokens
    assert cold.shown.cost_usd > warm.shown.cost_usd


def test_without_a_time_to_live_the_recorded_clock_is_refused():
    clocks = {"warm": [0.0], "recorded": [0.0], "lossy": [0.0]}
    unknown, never = (
        terms(name="unknown"),
        terms(name="never", hits="never", ttl_s=300),
    )
    found = CostMeter([unknown, PRICED, never], ("", ""), clocks, len).bills()
    assert [(bill.profile, bill.clock) for bill in found] == [
        *(("unknown", "warm"), ("unknown", "lossy")),
        *(("priced", "warm"), ("priced", "recorded"), ("priced", "lossy")),
        ("never", "warm"),
    ]


def test_clocks_of_a_run_with_and_without_stamps():
    clocks = clocks_of("run", [1, 3, 5], {0: 100.0, 2: 160.0})
    assert clocks["warm"] == [0.0, 0.0, 0.0]
    assert clocks["recorded"] == [100.0, 160.0, 160.0]
    assert "recorded" not in clocks_of("run", [1, 3, 5], {})
    assert "recorded" not in clocks_of("run", [1, 3, 5], {2: 160.0}), (
        "the first has no time"
    )


def test_the_lossy_clock_loses_one_gap_in_twenty_and_always_the_same():
    lengths = range(4_000)
    lossy = clocks_of("run", lengths, {})["lossy"]
    lost = sum(after > before for before, after in pairwise(lossy))
    assert 150 <= lost <= 250
    assert lossy == clocks_of("run", lengths, {})["lossy"]
    assert lossy != clocks_of("another", lengths, {})["lossy"]


def side(cost_usd, cached=0, fresh=100):
    return BillSide(
        cached_tokens=cached,
        fresh_tokens=fresh,
        input_units=fresh,
        cost_usd=cost_usd,
    )


def bill(raw_usd, usd, **of):
    return Bill(
        profile="p", clock="warm", raw=side(raw_usd), shown=side(usd, **of)
    )


def test_a_cost_that_is_not_known_is_told_and_never_nought():
    (charge,) = charges_of([[bill(10.0, 5.0)], [bill(None, None)]])
    assert charge.raw.cost_usd is charge.usd_share is None
    row = replace(row_of("all", [small_replay()]), charges=[charge])
    *_, costs = tables_of([row], [row])
    (column,) = (c for c in costs.columns if c.header == "$")
    assert [*column.cells] == ["unknown"]


@pytest.mark.parametrize("name", ["llama-cpp", "ollama", "sglang", "vllm"])
def test_a_server_of_ones_own_is_told_by_what_it_works_out(name):
    run = small_run("openai-chat", 8)
    row = row_of(
        "all", [replay_run(run, 16_000, profiles=[PROFILES[name]])] * 2
    )
    (charge, *_) = row.charges
    side = charge.shown
    assert charge.is_free
    assert side.prefill_tokens == side.written_tokens + side.fresh_tokens
    assert 0 < charge.prefill_share < 2
    words = in_words(row)
    assert f"works out {side.prefill_tokens:,} prompt tokens" in words
    assert "$" not in words
    *_, prefill = tables_of([row], [row])
    assert "your own server" in prefill.title
    (column,) = (c for c in prefill.columns if c.header == "prefill")
    assert next(iter(column.cells)) == f"{side.prefill_tokens:,}"


def small_replay():
    return replay_run(
        small_run("openai-chat", 1), 16_000, profiles=[PROFILES["none"]]
    )


@given(
    costs=st.lists(
        st.tuples(*[st.floats(0.01, 100)] * 2), min_size=1, max_size=20
    )
)
def test_the_sum_is_that_of_the_runs(costs):
    (charge,) = charges_of([[bill(raw, usd)] for raw, usd in costs])
    assert charge.raw.cost_usd == pytest.approx(sum(raw for raw, _ in costs))
    shares = [usd / raw for raw, usd in costs]
    assert (
        min(shares) * (1 - 1e-9)
        <= charge.usd_share
        <= max(shares) * (1 + 1e-9)
    )


def test_one_replay_prices_every_profile():
    replayed = replay_run(
        small_run("openai-chat", 8), 16_000, profiles=list(PROFILES.values())
    )
    warm = {
        bill.profile: bill for bill in replayed.bills if bill.clock == "warm"
    }
    assert set(warm) == set(PROFILES)
    assert (
        warm["anthropic-1h"].raw.cost_usd > warm["anthropic-5m"].raw.cost_usd
    )
    assert warm["none"].raw.cached_tokens == 0
    sizes = {
        b.raw.cached_tokens + b.raw.written_tokens + b.raw.fresh_tokens
        for b in warm.values()
    }
    assert warm["vllm"].raw.cached_tokens % 16 == 0
    assert len(sizes) == 1, "every profile prices the same requests"
