"""The account of calls: exact tokens of each, its price at that moment, sums by agent and model.

The prices are read from genai-prices and multiplied out here, class by class.
"""

from fractions import Fraction

import pytest
from genai_prices.data_snapshot import get_snapshot

from tests import histories
from tests.spending import FORMAT_NAMES, new_session, reply, request
from ullage import Budget, Call, Session, Spent, Usage
from ullage.core.tokens.catalog import lookup
from ullage.session.spend.calls import totals
from ullage.session.spend.cost import cost_usd, worst_usd


@pytest.mark.says(
    "multi-stage-strategy",
    "3. Usage & Cost Tracking",
    "**Token Auditing**: Exact prompt and candidate token counts are recorded via `UsageTracker`.",
    lives="ullage.session.spend.calls",
)
@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_every_call_is_listed_with_its_exact_tokens(format):
    session = new_session(format, agent="scout")
    estimates = []
    for turns, output in ((1, 100), (2, 250)):
        session.fit(request(format, turns))
        estimates.append(session.window.estimate)
        session.observe(reply(format, prompt=1_000 * turns, output=output))
    first, second = session.calls
    assert first == Call(
        agent="scout",
        model=histories.MODEL[format],
        usage=Usage(fresh_tokens=1_000, output_tokens=100),
        cost_usd=cost_usd(first.usage, lookup(first.model)),
        estimated_tokens=estimates[0],
    )
    assert (second.usage.input_tokens, second.usage.output_tokens) == (
        2_000,
        250,
    )
    assert (second.estimated_tokens, session.budget.spent.tokens) == (
        estimates[1],
        3_350,
    )
    known = [
        call.cost_usd for call in session.calls if call.cost_usd is not None
    ]
    assert (
        session.budget.spent.cost_usd
        == session.cost_usd
        == (sum(known) if known else None)
    )
    assert session.budget.calls == session.calls


def test_sums_by_agent_and_by_model():
    budget = Budget(tokens=100_000)
    lead = new_session(budget=budget, agent="lead")
    scout = new_session("anthropic", budget=budget, agent="scout")
    for session, format in (
        (lead, "openai-chat"),
        (scout, "anthropic"),
        (scout, "anthropic"),
    ):
        session.fit(request(format))
        session.observe(reply(format))
    budget.charge(Usage(fresh_tokens=7), "gpt-4.1", agent="scout")
    by_agent, by_model = budget.totals("agent"), budget.totals("model")
    assert {
        name: (spent.calls, spent.tokens) for name, spent in by_agent.items()
    } == {
        "lead": (1, 1_100),
        "scout": (3, 2_207),
    }
    assert {
        name: (spent.calls, spent.tokens) for name, spent in by_model.items()
    } == {
        "gpt-4.1": (2, 1_107),
        "claude-sonnet-4-5": (2, 2_200),
    }
    assert by_agent["lead"].cost_usd == lead.cost_usd
    total = sum(spent.cost_usd for spent in by_model.values())
    assert total == pytest.approx(budget.spent.cost_usd)


def test_a_sum_with_an_unknown_price_in_it_is_unknown():
    known = Call(
        agent="a", model="m", usage=Usage(fresh_tokens=1), cost_usd=0.5
    )
    unknown = Call(
        agent="a", model="n", usage=Usage(fresh_tokens=2), cost_usd=None
    )
    assert totals([known, unknown, known], "agent")["a"] == Spent(
        usage=Usage(fresh_tokens=4), cost_usd=None, calls=3
    )
    assert totals([known, unknown], "model")["m"].cost_usd == 0.5


# Gemini 2.5, whose prices the document names


def price_at(price, prompt_tokens):
    """USD per million tokens, in the tier of a prompt of this length."""
    tiers = [
        tier
        for tier in getattr(price, "tiers", ())
        if prompt_tokens > tier.start
    ]
    return Fraction(
        str(tiers[-1].price if tiers else getattr(price, "base", price))
    )


def by_hand(model, fresh, read, output):
    _, listed = get_snapshot().find_provider_model(model, None, "google", None)
    prices, prompt = listed.prices, fresh + read
    total = (
        fresh * price_at(prices.input_mtok, prompt)
        + read * price_at(prices.cache_read_mtok, prompt)
        + output * price_at(prices.output_mtok, prompt)
    )
    return float(total / 1_000_000)


@pytest.mark.says(
    "multi-stage-strategy",
    "3. Usage & Cost Tracking",
    "**Cost Estimation**: Real-time USD cost estimation based on Gemini 2.5 Flash/Pro pricing.",
    lives="ullage.session.spend.cost",
)
@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-2.5-pro"])
@pytest.mark.parametrize("prompt", [1_000, 200_000, 200_001, 850_000])
def test_a_call_of_gemini_costs_what_the_price_list_says(model, prompt):
    session = Session(model, format="gemini")
    session.fit({**request("gemini"), "model": model})
    session.observe(
        {
            "usageMetadata": {
                "promptTokenCount": prompt,
                "cachedContentTokenCount": 400,
                "candidatesTokenCount": 700,
                "thoughtsTokenCount": 300,
            }
        }
    )
    (call,) = session.calls
    assert (call.usage.input_tokens, call.usage.output_tokens) == (
        prompt,
        1_000,
    )
    assert call.cost_usd == pytest.approx(
        by_hand(model, prompt - 400, 400, 1_000), rel=1e-12
    )
    assert session.cost_usd == call.cost_usd


def test_only_pro_has_the_tier():
    flash, pro = (
        by_hand(model, 200_001, 0, 0) / by_hand(model, 200_000, 0, 0)
        for model in ("gemini-2.5-flash", "gemini-2.5-pro")
    )
    assert flash == pytest.approx(1, rel=1e-4)
    assert pro == pytest.approx(2, rel=1e-4)


@pytest.mark.parametrize(
    "model", ["claude-sonnet-4-5", "gpt-4.1", "gemini-2.5-pro"]
)
def test_the_worst_case_is_no_less_than_any_way_of_caching(model):
    info = lookup(model)
    worst = worst_usd(300_000, 1_000, info)
    for kind in ("fresh_tokens", "cache_read_tokens", "cache_write_tokens"):
        assert (
            cost_usd(Usage(**{kind: 300_000}, output_tokens=1_000), info)
            <= worst
        )
    assert worst_usd(1, 1, lookup("no-such-model")) is None
