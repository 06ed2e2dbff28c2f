"""What of the kept messages is cut, and in which order."""

import pytest

from lab.guard import POLICIES, rules_kept
from ullage import Limits, Session

LONG = "one word after another and so on and on "
TASK, NEWEST = f"The task. {LONG * 60}", f"And now? {LONG * 60}"


def bash(id, output):
    function = {"name": "bash", "arguments": "{}"}
    call = {"id": id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": output},
    ]


def fitted(messages, window_tokens):
    session = Session("gpt-4o", limits=Limits(window_tokens=window_tokens), recall=True)
    return session.fit({"model": "gpt-4o", "messages": messages})["messages"], session


def test_an_old_result_is_cut_before_what_the_user_says_now():
    messages = [
        {"role": "user", "content": TASK},
        *bash("call_1", LONG * 200),
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": NEWEST},
    ]
    view, session = fitted(messages, 3_200)
    assert view[0] is messages[0]
    assert view[-1] is messages[-1]
    assert session.window.estimate <= session.window.limit_tokens


def test_an_earlier_wish_is_cut_before_the_task_and_the_newest_and_they_go_last():
    messages = [
        {"role": "user", "content": TASK},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": f"A wish. {LONG * 60}"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": NEWEST},
    ]
    view, _ = fitted(messages, 2_600)
    assert (view[0], view[-1]) == (messages[0], messages[-1])
    assert "A wish." in str(view)
    smaller, session = fitted(messages, 1_200)
    assert session.window.estimate <= session.window.limit_tokens
    assert len(str(smaller[0])) < len(TASK)


def test_a_result_that_is_new_is_whole_while_older_ones_have_room_to_give():
    messages = [{"role": "user", "content": "Look."}, *bash("call_1", "old " + LONG * 80)]
    messages += [*bash("call_2", "older " + LONG * 80), *bash("call_3", "new " + LONG * 80)]
    view, _ = fitted(messages, 2_200)
    assert view[-1] is messages[-1]
    tight, session = fitted(messages, 1_400)
    assert session.window.estimate <= session.window.limit_tokens
    assert "Look." in str(tight)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("window_tokens", "least"), [(4_000, 0.90), (8_000, 1.0)])
def test_rules_that_a_user_plants_are_kept_word_for_word(policy, window_tokens, least):
    assert rules_kept(policy, window_tokens, seed=1) >= least
