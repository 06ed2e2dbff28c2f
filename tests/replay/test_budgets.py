"""A window in tokens, or a share of each run's largest request."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lab.replay.past import budget_of
from tests.replay.evidence.conversation import call, errand, run_of, user
from tests.replay.test_run import small_run
from ullage.core.values.limits import Limits
from ullage.tools.replay.calls import label_of, window_for, window_of
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.run import replay_run

SMALL = run_of(user("Go."), call("bash", "ok", command="a"))


@given(st.integers(1, 2_000_000), st.none() | st.integers(1, 300_000))
def test_a_window_leaves_its_prompt_what_was_asked_and_no_smaller_one_does(
    prompt, asked
):
    window = window_for(prompt, asked)
    room = Limits(window_tokens=window).prompt_tokens(asked)
    assert room >= prompt
    if window > 1:
        assert Limits(window_tokens=window - 1).prompt_tokens(asked) < prompt


def test_a_share_is_of_the_largest_request_with_its_head():
    run, judge = small_run("openai-chat"), Judge()
    run = replace(
        run, request={**run.request, "tools": [{"type": "function"}] * 50}
    )
    head = judge.text(head_of(run.request))
    assert head > 200
    peak = (
        head
        + replay_run(run, 200_000, profiles=[PROFILES["none"]]).raw_peak_tokens
    )
    assert (
        abs(budget_of(run, window_of(run, 0.2), judge) + head - 0.2 * peak)
        <= 2
    )


def test_a_window_is_taken_as_it_is():
    assert window_of(errand(1, turns=2), 16_000) == 16_000
    assert window_of(SMALL, 0.1) > 0


def test_rooms_are_told_as_they_were_asked_for():
    assert [label_of(room) for room in (64_000, 0.2, 0.125)] == [
        "64k",
        "20%",
        "12.5%",
    ]
