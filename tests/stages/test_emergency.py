import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stages.conversations import cases, check
from ullage import Limits, OverLimitError, Session
from ullage.replay import reading


@pytest.mark.parametrize("case", cases("emergency"), ids=lambda case: case.title)
def test_the_conversation_comes_out_as_written(case):
    check(case)


def _played(title):
    return check(next(case for case in cases("emergency") if case.title.startswith(title)))


def test_the_task_and_the_tail_are_the_callers_own_objects():
    played = _played("The middle")
    view, messages = played.view[1:], played.messages  # the system message stands before
    assert view[0] is messages[0]
    assert all(a is b for a, b in zip(view[2:], messages[7:], strict=True))


def test_an_account_is_never_made_from_an_account():
    played = _played("A second emergency")
    condensed = [event for event in played.session.events if event.kind == "condensed"]
    assert len(condensed) == 2
    assert str(played.view).count("are condensed here") == 1
    index = reading.follow(played.session, condensed[-1].ref)
    assert "condensed" not in index
    assert all(f"## {number} " in index for number in range(2, 12))


@given(st.integers(1_200, 20_000), st.integers(1, 300_000))
def test_one_message_of_any_size_is_made_to_fit_and_opens(window, size):
    said = "the tide came in again. " * (size // 24) + "end"
    session = Session("gpt-4.1", limits=Limits(window_tokens=window), recall=True)
    request = {"model": "gpt-4.1", "messages": [{"role": "user", "content": said}]}
    shown = session.fit(request)["messages"][0]["content"]
    assert session.window.estimate <= session.window.limit_tokens
    assert shown == said or reading.follow(session, session.events[-1].ref) == said


def test_what_may_not_be_touched_and_is_too_large_is_refused_with_its_parts():
    system = {"role": "system", "content": "Never forget this. " * 2_000}
    session = Session("gpt-4.1", limits=Limits(window_tokens=4_000))
    with pytest.raises(OverLimitError, match="system text and tools") as caught:
        session.fit({"messages": [system, {"role": "user", "content": "Hello."}]})
    assert caught.value.need_tokens > caught.value.limit_tokens
    assert next(iter(caught.value.parts)) == "system text and tools"
