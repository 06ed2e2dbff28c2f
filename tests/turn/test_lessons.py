"""Lessons: each holds for the conversations that begin as the one it was learnt in."""

from msgspec.structs import replace

from tests import histories
from tests.histories import Turn
from ullage import Limits, Session
from ullage.core.turn.lessons import Lesson, Lessons, limits_for


def transcript(*said):
    turns = [Turn(said=text, user="Go on.") for text in said]
    session = Session("gpt-4.1")
    session.fit(
        histories.request("openai-chat", histories.wire("openai-chat", turns))
    )
    return session.window.transcript


def learnt_in(line, learnt=Lessons(), **what):  # noqa: B008 - a value
    old = learnt.of(line, "gpt-4.1")
    return learnt.with_lesson(replace(old, **what), old, line, len(line))


def test_a_lesson_holds_for_what_goes_on_from_the_same_beginning():
    learnt = learnt_in(transcript("one", "two"), room_tokens=5)
    for same in (("one", "two", "three"), ("one", "another"), ("one",)):
        assert learnt.of(transcript(*same), "gpt-4.1").room_tokens == 5
    assert learnt.of(transcript("other", "two"), "gpt-4.1") == Lesson(
        model="gpt-4.1"
    )
    assert learnt.of(transcript("one", "two"), "gpt-4o").room_tokens is None


def test_a_lesson_takes_the_place_of_the_earlier_one():
    learnt = learnt_in(transcript("one"), room_tokens=5)
    learnt = learnt_in(transcript("one", "two"), learnt, room_tokens=4)
    assert [lesson.room_tokens for lesson in learnt.lessons] == [4]
    assert learnt_in(transcript("one"), learnt, room_tokens=4) is learnt


def test_as_many_lessons_are_kept_as_conversations_are_likely_to_be_under_way():
    learnt = Lessons()
    for n in range(70):
        learnt = learnt_in(transcript(f"{n}"), learnt, room_tokens=n + 1)
    assert len(learnt.lessons) == 64
    assert learnt.of(transcript("69"), "gpt-4.1").room_tokens == 70
    assert learnt.of(transcript("0"), "gpt-4.1").room_tokens is None


def test_the_smaller_of_a_given_and_a_named_window_holds():
    given = Limits(window_tokens=9_000, output_reserve_tokens=4_000)
    assert limits_for("gpt-4.1", given, Lesson()) == given
    assert limits_for("gpt-4.1", given, Lesson(window_tokens=9_500)) == given
    named = limits_for("gpt-4.1", given, Lesson(window_tokens=8_000))
    assert (named.window_tokens, named.output_reserve_tokens) == (8_000, 4_000)
    small = limits_for("gpt-4.1", given, Lesson(window_tokens=3_000))
    assert (small.window_tokens, small.output_reserve_tokens) == (3_000, None)
    assert limits_for("gpt-4.1", None, Lesson()).window_tokens == 1_000_000
