"""Which ref a reader opens for what it misses."""

from lab.replay.carried.opening import command, looked
from tests.cli.terminal import ran_by
from tests.cli.test_replay import errands
from tests.replay.evidence.conversation import call, run_of, user

ROW = "so it goes on and on and on with the harbour"


def listing(number):
    names = [f"hidden_{number}_{at}" for at in range(30)]
    return "\n".join([f"{ROW} {number}"] * 200 + names)


def test_the_ref_whose_call_the_reply_speaks_of_is_opened_first():
    read = [
        call("read", listing(n), path=f"chapter_{n}_of_the_book.py")
        for n in range(70)
    ]
    asks = [
        call(
            "open",
            "",
            said=f"Now chapter {n} of the book.",
            key=f"hidden_{n}_9",
        )
        for n in range(20)
    ]
    found = looked(run_of(user("Go."), *read, *asks), "no_lines", 200_000)
    values = [value for of in found for value in of]
    assert len(values) > 5
    assert all(value.by_notice == value.by_all == 0 for value in values)


def test_a_window_that_shows_all_misses_nothing(tmp_path):
    words = (
        errands(tmp_path, 1),
        "--split",
        "all",
        "--least-tokens",
        0,
        "--policy",
        "token_budget",
    )
    text = ran_by(command, (*words, "--window", 2_000_000)).text
    assert "1 runs, 0 calls, 0 values" in text
