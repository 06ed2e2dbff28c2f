"""Which requests are open, and which answers are nobody's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.doors.mcp.waiting import Strays, Waiting, same_id

IDS = st.integers(0, 3) | st.sampled_from(["0", "1", "a"])


def test_each_request_is_closed_by_one_answer():
    waiting = Waiting({1: "before"})
    waiting.ask("a", "asked")
    assert waiting.open == {1: "before", "a": "asked"}
    assert waiting.answer("a") == (True, "asked")
    assert waiting.answer("a") == (False, None)
    assert waiting.end() == [1]
    assert waiting.answer(1) == (False, None)


def test_an_answer_to_what_was_cancelled_goes_on_once():
    waiting = Waiting({1: "before"})
    waiting.cancel(1)
    assert waiting.open == {}
    assert waiting.answer(1) == (True, None)
    assert waiting.answer(1) == (False, None)


def test_where_something_was_passed_on_unread_an_unknown_answer_goes_on():
    waiting = Waiting({1: "before"})
    waiting.ask_unread()
    assert waiting.answer(7) == (True, None)
    assert waiting.answer(1) == (True, "before")
    assert waiting.answer(1) == (False, None)


@pytest.mark.parametrize(
    ("id", "found"),
    [
        (1, 1),
        ("1", 1),
        (2, "2"),
        ("2", "2"),
        ("01", 1),
        ("x", None),
        (9, None),
    ],
)
def test_a_number_and_its_digits_are_one_id(id, found):
    assert same_id(id, {1: "", "2": ""}) == found


@given(st.lists(st.tuples(st.booleans(), IDS)))
def test_no_more_answers_go_on_than_requests_came(steps):
    waiting, asked, answered = Waiting(), 0, 0
    for is_answer, id in steps:
        if is_answer:
            answered += waiting.answer(id)[0]
        else:
            asked += id not in waiting.open
            waiting.ask(id, "")
    assert answered <= asked
    assert len(waiting.open) == asked - answered


def test_many_open_requests_are_not_all_remembered_and_their_answers_go_on():
    waiting = Waiting()
    for id in range(12_000):
        waiting.ask(id, "")
    assert len(waiting.open) == 10_000
    assert waiting.answer(0) == (True, None)


def test_strays_are_told_of_in_few_lines():
    lines = []
    strays = Strays(lines.append)
    for _ in range(50):
        strays.dropped()
    assert len(lines) == 10
    assert lines[-1].endswith("no more of them are told of")
