"""What knowing all that replies need would come to, and the policies that must lose."""

import pytest

from lab.replay.carried.__main__ import command
from lab.replay.carried.carry import Carrier
from lab.replay.carried.policies import POLICIES
from tests.cli.terminal import ran_by
from tests.cli.test_replay import errands
from tests.replay.evidence.conversation import call, errand, run_of, user


@pytest.fixture(scope="module")
def carrier():
    return Carrier(errand(1, turns=60))


@pytest.fixture(scope="module")
def default(carrier):
    return carrier.under(POLICIES["default"](), 8_000, with_oracle=True)


def test_an_oracle_shows_what_is_missed_at_the_same_breaks(default):
    assert (
        default.shown.far_shown < default.shown.far == default.known.far_shown
    )
    assert default.known.far_lines == default.known.far
    assert default.known.faults == 0 < default.shown.faults
    assert default.known.breaks == default.shown.breaks > 0


def test_its_notes_are_paid_for(default):
    assert default.known.cost(0.1, "none") > default.shown.cost(0.1, "none")
    assert default.known.cost(0.1) < default.shown.cost(0.1)


def test_its_notes_stay_within_the_limit(default):
    assert default.shown.peak <= default.known.peak <= 8_000


def test_where_nothing_is_missed_it_adds_nothing(carrier):
    carried = Carrier(errand(1, turns=10)).under(
        POLICIES["token_budget"](), 2_000_000, with_oracle=True
    )
    assert (
        carried.known.cost(0.1)
        == carried.shown.cost(0.1)
        == carried.raw.cost(0.1)
    )


def test_lines_by_lot_and_none_at_all_show_less_than_the_lines_that_tell_most():
    listed = [
        "\n".join(
            ["so it goes on and on"] * 90 + [f"the entry_{number} is here"]
        )
        for number in range(70)
    ]
    read = [call("read", text, path="here") for text in listed]
    used = [call("open", "", key=f"entry_{number}") for number in range(60)]
    found = Carrier(run_of(user("Go."), *read, *used))
    names = ("default", "random_lines", "no_lines")
    lines = [
        found.under(POLICIES[name](), 200_000).shown.far_lines
        for name in names
    ]
    assert lines[0] == 60 > lines[1] >= lines[2]


def test_lines_by_lot_are_the_same_twice(carrier):
    twice = [
        carrier.under(POLICIES["random_lines"](), 32_000).shown
        for _ in range(2)
    ]
    assert twice[0] == twice[1]


def test_runs_in_which_something_is_cut_can_be_left_out(tmp_path):
    words = (
        errands(tmp_path, 2),
        "--split",
        "all",
        "--least-tokens",
        0,
        "--uncut",
    )
    assert (
        "errands.jsonl" in ran_by(command, (*words, "--window", 200_000)).text
    )
    assert (
        "errands.jsonl"
        not in ran_by(command, (*words, "--window", 4_000)).text
    )


def test_an_oracle_is_a_row_beside_each_policy(tmp_path):
    words = (
        errands(tmp_path, 2),
        "--split",
        "all",
        "--least-tokens",
        0,
        "--oracle",
    )
    text = ran_by(command, words).text
    assert "default + oracle · errands.jsonl" in text
