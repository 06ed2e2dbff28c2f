"""When a batch is made, how much it should win, and what it must leave alone."""

import pytest

from tests import histories
from tests.history.test_window import history, set_to, window_of
from ullage.policy.stages import pressure, rough
from ullage.policy.stages.prune import results_only

LONG = "tide " * 400


def window_with(context=100_000, *outputs):
    window = window_of(history(*(outputs or (LONG, LONG, LONG))))
    return set_to(window, limit_tokens=context, context_tokens=context)


def test_the_newest_share_is_widened_to_whole_turns():
    window = window_with(10_000, LONG, LONG)
    assert pressure.newest_share(window, share=0.0001) == (3, 0)
    assert pressure.newest_share(window, share=0.05) == (1, 0)
    assert pressure.newest_share(window, share=100) == (0, 0)
    assert pressure.newest_share(window, share=100, most_tokens=1) == (3, 0)


def test_over_a_share_it_wants_the_low_mark():
    window = window_with()
    set_to(window, limit_tokens=2 * window.calibration.upper(window.tokens))
    assert pressure.over_share(window, high=0.51, low=0.1) is None
    wanted = pressure.over_share(window, high=0.49, low=0.1)
    assert window.estimate - wanted == window.limit_tokens // 10


@pytest.mark.parametrize(
    ("reported", "budget", "presses"),
    [(40_000, 40_000, False), (40_001, 40_000, True), (99_999, 0, False)],
)
def test_the_report_decides_over_the_estimate(reported, budget, presses):
    window = set_to(window_with(), reported_tokens=reported)
    assert (
        pressure.over_reported(window, budget_tokens=budget) is not None
    ) == presses


def test_without_a_report_the_estimate_stands_in():
    window = window_with()
    held = window.estimate
    assert pressure.over_reported(window, budget_tokens=held) is None
    assert pressure.over_reported(window, budget_tokens=held - 1) is not None


def test_a_batch_is_the_results_of_one_reply_in_one_message_or_several():
    call = histories.Call("read", "a.py", "text")
    turns = [
        histories.Turn(user="Go.", calls=(call, call)),
        histories.Turn(calls=(call, call)),
    ]
    messages = histories.wire("openai-chat", turns)
    roles = [message["role"] for message in messages]
    window = window_of(messages)
    assert pressure.newest_batch(window) == (len(roles) - 2, 0)
    assert [spot[0] for spot in results_only(window, (len(roles) - 2, 0))] == [
        n for n, role in enumerate(roles[:-2]) if role == "tool"
    ]
    assert pressure.newest_batch(window_of(messages[:1])) == (0, 0)


def test_rough_pressure_is_a_share_or_what_is_kept_for_the_answer():
    held = rough.view_tokens(window_with())
    ask = {
        "share": 0.85,
        "reserve_tokens": 0,
        "least_tokens": 0,
        "minimum_tokens": 7,
    }
    assert pressure.rough_over(window_with(held), **ask) == 7
    assert pressure.rough_over(window_with(held * 2), **ask) is None
    assert (
        pressure.rough_over(
            window_with(held * 2), **ask | {"reserve_tokens": held}
        )
        == 7
    )
    assert (
        pressure.rough_over(
            window_with(held), **ask | {"least_tokens": held + 1}
        )
        is None
    )


def test_the_newest_parts_up_to_a_number_of_rough_tokens_stay():
    window = window_with()
    result = -(-len(LONG) // 4)
    assert pressure.newest_rough(window, tokens=result - 1) == (6, 1)
    assert pressure.newest_rough(window, tokens=result) == (5, 1)
    assert pressure.newest_rough(window, tokens=10**9) == (0, 0)


def test_outputs_have_a_budget_of_their_own():
    window = window_with(400_000, *(f"{n} " + LONG * 120 for n in range(3)))
    held = window.total(pressure.output_tokens)
    assert held > 60_000
    assert pressure.outputs_over(window, budget_tokens=None) == held - 60_000
    assert pressure.outputs_over(window, budget_tokens=held) is None
    set_to(window, context_tokens=10_000)
    assert pressure.outputs_over(window, budget_tokens=None) == held - 20_000
    set_to(window, context_tokens=200_000)
    assert pressure.outputs_over(window, budget_tokens=None) == held - 50_000
