"""An experiment: no run of lines is shown twice, as long as the first one is in view."""

from lab.replay.carried.carry import Carrier
from lab.replay.carried.policies import POLICIES
from tests.replay.evidence.conversation import call, run_of, user
from ullage import Session

TEXT = "\n".join(
    f"{number:5}\tthe line of entry_{number} in this file"
    for number in range(40)
)


def view_of(*results):
    run = run_of(
        user("Go."), *(call("read", text, path="a.py") for text in results)
    )
    session = Session("gpt-4.1", policy=POLICIES["no_repeats"](), recall=True)
    return [
        m["content"]
        for m in session.fit({"messages": run.messages})["messages"]
    ][2::2]


def test_what_an_earlier_result_shows_is_named_and_not_shown_again():
    first, again = view_of(TEXT, f"another beginning\n{TEXT}")
    assert first == TEXT
    start = "another beginning\n[ullage: lines 2 to 41 stand in an earlier result]\n[ullage: "
    assert again.startswith(start), "and it says what opens the whole"
    assert "line of entry" not in again


def test_few_lines_and_other_lines_are_shown():
    few = "\n".join(TEXT.splitlines()[:3])
    other = TEXT.replace("the line", "a line")
    assert view_of(TEXT, few, other) == [TEXT, few, other]


def test_nothing_is_missed_for_it_and_less_is_sent():
    read = [call("read", TEXT, path="a.py") for _ in range(8)]
    used = [call("open", "", key=f"entry_{number}") for number in range(20)]
    carrier = Carrier(run_of(user("Go."), *read, *used))
    default, once = (
        carrier.under(POLICIES[name](), None)
        for name in ("default", "no_repeats")
    )
    assert once.shown.far_shown == default.shown.far_shown > 0
    assert once.shown.cost(0.1) < default.shown.cost(0.1)
