"""What a goal leaves for a summary, and how that is shared out."""

import pytest

from tests import histories
from tests.histories import Turn
from ullage import Limits, Session
from ullage.policy.stages.goals import (
    CHARS_PER_TOKEN,
    SummaryNeeds,
    by_budget,
    by_count,
    by_rough,
    held_tokens,
    left_tokens,
    needs_in,
    of_messages,
    places,
    room_in,
    spare_tokens,
)

SAID = "Keep the loader as it is, and mend the cache. " * 40
TURNS = [Turn(user=f"{n}. {SAID}", said=f"Done {n}. " * 40) for n in range(8)]
WANTED = SummaryNeeds(
    account_tokens=1_000, user_chars=100_000, words_tokens=500
)


@pytest.fixture(scope="module")
def window():
    session = Session(
        "gpt-4.1", limits=Limits(window_tokens=40_000, output_reserve_tokens=0)
    )
    session.fit(
        histories.request("openai-chat", histories.wire("openai-chat", TURNS))
    )
    return session.window


@pytest.mark.parametrize(
    "goal", [by_count(share=0.1), by_budget(tokens=4_000)]
)
def test_what_is_spared_and_what_is_held_are_the_view(window, goal):
    held = held_tokens(window, goal, 1, window.size - 1)
    assert 0 < held < window.tokens
    assert spare_tokens(
        window, goal, 1, window.size - 1
    ) == window.calibration.most(4_000) - (window.tokens - held)


def test_a_rough_goal_counts_four_characters_a_token(window):
    goal = by_rough(share=0.1)
    assert goal.most_tokens(window) == 4_000
    assert goal.text_tokens(window, "x" * 41) == 11


def test_where_all_fits_every_part_has_what_it_wants(window):
    room = room_in(window, [by_count(share=1.0)], 1, window.size - 1, WANTED)
    assert room.account_chars == 1_000 * CHARS_PER_TOKEN
    assert room.words_tokens == 500
    assert (room.short_tokens, room.missed_tokens) == (0, 0)


def test_the_least_room_of_several_goals_counts(window):
    goals = [by_count(share=1.0), by_budget(tokens=3_000)]
    both, tight = (
        room_in(window, each, 1, window.size - 1, WANTED)
        for each in (goals, goals[1:])
    )
    assert both == tight
    assert 0 < tight.user_chars < sum(len(turn.user) for turn in TURNS)
    assert tight.account_chars > 0
    assert tight.short_tokens > 0


def test_a_goal_below_what_stays_is_missed_and_the_summary_has_its_least_room(
    window,
):
    room = room_in(window, [by_budget(tokens=100)], 1, 3, WANTED)
    assert room.missed_tokens > 0
    assert room.account_chars > 0
    assert room.words_tokens > 0


def test_a_models_words_are_in_proportion_to_the_goal(window):
    assert (
        needs_in(window, [by_budget(tokens=800)], WANTED).words_tokens == 100
    )
    assert needs_in(window, [], WANTED) == WANTED


def test_what_a_summary_leaves_of_its_goal(window):
    assert left_tokens(window, (), 1, 5, "text") is None
    goal = by_count(share=1.0)
    spare = spare_tokens(window, goal, 1, 5)
    assert left_tokens(
        window, [goal], 1, 5, "text"
    ) == spare - window.texts_tokens(("text",))


def test_a_summary_may_end_where_a_reply_begins(window):
    ends = list(places(window, 1, 0, window.size - 1))
    roles = {window.transcript.messages[end].role for end in ends}
    assert roles == {"assistant"}
    assert ends[-1] == window.size - 1


def test_a_goal_of_the_messages_is_without_what_stands_outside_them():
    session = Session(
        "gpt-4.1", limits=Limits(window_tokens=10_000, output_reserve_tokens=0)
    )
    request = histories.request(
        "openai-chat", histories.wire("openai-chat", TURNS[:1])
    )
    rule = {"role": "system", "content": "a rule " * 200}
    session.fit({**request, "messages": [rule, *request["messages"]]})
    goal = of_messages(by_count(share=0.5), session.window)
    assert session.window.head_tokens > 200
    assert (
        goal.most_tokens(session.window) == 5_000 - session.window.head_tokens
    )
