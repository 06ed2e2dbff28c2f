"""`python -m lab.replay.carried` on small recordings."""

from functools import partial

from lab.replay.carried.__main__ import command
from lab.replay.carried.carry import Carrier
from lab.replay.carried.policies import POLICIES
from tests.cli.terminal import ran_by
from tests.cli.test_replay import errands
from tests.replay.evidence.conversation import call, errand, run_of, user
from ullage.core.contract.policy import Policy
from ullage.policy.stages.compact import asked, compact, newest_turns

_FORGETFUL = partial(
    compact,
    is_due=asked,
    keep_from=partial(newest_turns, turns=1),
    account_share=0.01,
    user_share=0.0,
    least_share=0.0,
)


def test_every_policy_is_a_row_in_every_window(tmp_path):
    words = (
        "--policy",
        "default",
        "--policy",
        "token_budget",
        "--window",
        16_000,
    )
    more = ("--window", "own", "--split", "all", "--least-tokens", 0)
    text = ran_by(command, (errands(tmp_path, 2), *words, *more)).text
    rows = [
        line.split()[0]
        for line in text.splitlines()
        if "errands.jsonl" in line
    ]
    assert rows == ["default", "default", "token_budget", "token_budget"] * 2
    assert "missed  faults  pages" in text
    assert "serviced: cost with every miss paid for" in text
    last = [
        line.split()
        for line in text.splitlines()
        if line.startswith("token_budget")
    ]
    assert [words[1:3] for words in last if words[1] != "·"] == [
        ["16,000", "2"],
        ["own", "2"],
    ]
    assert all("to" in words for words in last if words[1] != "·")


def test_a_window_with_room_for_all_shows_all():
    carried = Carrier(errand(1, turns=10)).under(
        POLICIES["token_budget"](), 2_000_000
    )
    assert (
        carried.shown.far
        == carried.shown.far_shown
        == carried.shown.far_lines
        > 0
    )
    assert carried.shown.faults == carried.over_limit == 0


def test_words_of_a_user_are_missed_and_said_to_fit_where_half_the_limit_holds_them():
    rules = [
        f"Rule {number}: " + f"keep harbour {number} open. " * 400
        for number in range(9)
    ]
    steps = [call("ls", f"x_{number}\n" * 900) for number in range(9)]
    short = [
        part
        for pair in zip(map(user, rules), steps, strict=True)
        for part in pair
    ]
    forgetful = Policy(name="forgetful", under_pressure=(_FORGETFUL,))
    found = Carrier(run_of(*short)).under(forgetful, 200_000).shown
    assert found.unsaid == found.unsaid_fits > 0
    long = [user("".join(rules)), *steps, user("".join(rules[::-1])), *steps]
    found = Carrier(run_of(*long)).under(POLICIES["default"](), 32_000).shown
    assert found.unsaid > found.unsaid_fits == 0


def test_a_small_window_costs_less_and_shows_less():
    carrier = Carrier(errand(1, turns=60))
    shown = carrier.under(POLICIES["default"](), 24_000).shown
    assert shown.cost(0.1) < carrier.raw.cost(0.1)
    assert shown.far_shown < shown.far
    assert shown.faults > shown.lost == 0
