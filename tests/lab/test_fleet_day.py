"""The day of a fleet in small, and that its judge sees what would be wrong."""

import pytest
from msgspec.structs import replace

from lab.fleet_day.__main__ import Pace, run
from lab.fleet_day.accounts import Accounts, account_problems
from lab.fleet_day.tally import TeamSums

TOLD = Accounts(3, 0.5, 0.5, {"open": 100}, {"open": 0.5})
CHARGED = {"open": (100, 0.5)}


@pytest.mark.timeout(400)
def test_users_notice_no_kill_budgets_hold_and_the_accounts_agree():
    """Two proxies on one store: one is upgraded, workers are killed, then a whole proxy."""
    tally, problems = run(users=10, pace=Pace(deeds=6, turns=20))
    assert problems == []
    assert tally.kills == 6
    assert tally.answered >= 120
    assert tally.stopped.keys() == {"tight"}


def test_accounts_that_do_not_agree_are_told():
    assert account_problems(TOLD, CHARGED, 3) == []
    for change, words in (
        ({"page_requests": 2}, "page: 2 of 3"),
        ({"page_usd": 0.4}, "page: $0.400000"),
        ({"metrics_usd": 0.6}, "metrics: $0.600000"),
        ({"report_usd": {"open": 0.1}}, "report: $0.100000"),
        ({"report_tokens": {"open": 99}}, "report: {'open': 99}"),
    ):
        (problem,) = account_problems(TOLD._replace(**change), CHARGED, 3)
        assert problem.startswith(words)


def test_what_was_charged_meanwhile_is_a_difference():
    now = TeamSums(replies=3, tokens=30, usd=0.5)
    assert now.minus(replace(now, tokens=10, usd=0.25)) == (20, 0.25)
