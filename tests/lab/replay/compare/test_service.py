"""Full service of many runs, under every price profile."""

import pytest

from lab.replay.compare.service import service_of, service_table
from lab.replay.served import full_service
from lab.replay.service import cost_usd
from tests.lab.replay.test_service import served as serviced_alone
from tests.replay.evidence.conversation import errand
from ullage.tools.replay.cost.prices import PROFILES

PROFILES_ASKED = [PROFILES["anthropic-5m"], PROFILES["openai-5"]]


def served(policy, *seeds):
    return [
        full_service(
            errand(seed), 8_000, profiles=PROFILES_ASKED, policy=policy
        )
        for seed in seeds
    ]


@pytest.mark.parametrize("policy", ["last_call", "default"])
def test_a_run_at_full_service_is_what_the_service_says_under_each_profile(
    policy,
):
    (found,) = served(policy, 1)
    alone = serviced_alone(policy, errand(1), 8_000)
    assert found.faults == alone.faults > 0
    assert cost_usd(found) == cost_usd(alone)
    assert [totals.profile.name for totals in found.totals] == [
        "anthropic-5m",
        "openai-5",
    ]
    assert cost_usd(found, 0) != cost_usd(found, 1)


def test_runs_are_summed_and_their_costs_spread():
    each = served("last_call", 1, 2)
    found = service_of(each)
    assert (found.runs, found.faults) == (2, sum(one.faults for one in each))
    paid, raw = zip(*map(cost_usd, each), strict=True)
    assert found.usd["anthropic-5m"].pooled == pytest.approx(
        sum(paid) / sum(raw)
    )
    assert found.usd["anthropic-5m"].runs == 2
    assert found.failed_share == found.failed / found.calls
    assert service_of([]) is None


def test_each_profile_has_its_row():
    table = service_table("served", service_of(served("last_call", 1)))
    assert [*table.columns[0].cells] == ["anthropic-5m", "openai-5"]
    assert "%" in next(iter(table.columns[1].cells))
