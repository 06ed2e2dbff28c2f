"""Repairing as a history grows: as if it had been mended whole, for the work of what is new."""

import copy
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from tests.wires.test_repair import ALL, WRITERS, break_up, formats, legal
from ullage import Limits, Session
from ullage.wires.repair.mend import _HISTORIES, MOVED, Repairing, mend


def at_once(format, messages):
    """What a history becomes if nothing of it is ever closed: one segment, made once."""
    history = _HISTORIES[format]()
    history.raws[:] = messages
    for at in range(len(messages)):
        history.read(at)
    made, _ = history.make(0, len(messages), 0, None)
    made += history.ending(made[-1] if made else None)
    stale = set(map(id, history.stale))
    outputs, events = history.bench.told()
    places = tuple(at for at, message in enumerate(made) if id(message) in stale)
    return made, outputs, events, places


def is_as_at_once(format, mended, messages):
    made, outputs, events, stale = at_once(format, messages)
    assert list(mended.messages) == made
    assert mended.stale == stale
    assert set(outputs) <= set(mended.outputs)
    assert set(events) <= set(mended.events)


def grown(data, format, messages):
    """One mending that follows a history as it grows, now and then to the end of it."""
    mending, length = Repairing(_HISTORIES[format]), 0
    while length < len(messages):
        length = data.draw(st.integers(length + 1, len(messages)))
        raws = messages[:length]
        mended = mending.follow(raws, "messages", mending.changes(raws))
        is_as_at_once(format, mended, raws)
        mine = set(map(id, raws))
        whole = mend(format, raws).messages
        assert [id(m) in mine for m in mended.messages] == [id(m) in mine for m in whole]


@given(formats, st.data())
def test_segments_and_growth_change_nothing(format, data):
    messages = break_up(data, format, data.draw(legal(format)))
    mended = mend(format, messages)
    is_as_at_once(format, mended, messages)
    assert mended.events == at_once(format, messages)[2], "no more is told than at once"
    assert mended.outputs == at_once(format, messages)[1]
    grown(data, format, messages)


@given(formats, st.data())
def test_nor_do_they_for_any_short_history(format, data):
    write, words = WRITERS[format]
    drawn = data.draw(st.lists(st.sampled_from(words.split()), max_size=12))
    grown(data, format, write(" ".join(drawn)))


@given(st.sampled_from(("anthropic", "openai-chat")), st.data())
def test_moved_cache_markers_are_followed(format, data):
    """In place, or in copies: every block is as the caller has it now."""
    messages = break_up(data, format, data.draw(legal(format)))
    mending = Repairing(_HISTORIES[format])
    mending.follow(messages, "messages")
    mending.settle()
    for _ in range(3):
        at = data.draw(st.integers(0, len(messages) - 1))
        if data.draw(st.booleans()):
            messages[at] = copy.deepcopy(messages[at])
        content = messages[at].get("content")
        for block in content if isinstance(content, list) else ():
            if not block.pop("cache_control", None):
                block["cache_control"] = {"type": "ephemeral"}
        changed = mending.changes(messages)
        assert changed is not None
        assert (
            list(mending.follow(messages, "messages", changed).messages)
            == at_once(format, messages)[0]
        )


@given(formats, st.data())
def test_what_is_not_the_same_history_is_not_followed(format, data):
    messages = data.draw(legal(format))
    mending = Repairing(_HISTORIES[format])
    mending.follow(messages, "messages")
    assert mending.changes(messages[:-1]) is None
    other = [*messages[:-1], histories.user(format, "something else")]
    assert mending.changes(other) is None
    assert mending.changes([*messages, *other]) == []


def turns(format, count, *, lose=()):
    """Turns of one call and result; those whose result is lost."""
    steps = []
    for number in range(count):
        call = histories.Call("bash", "a", f"{number} done")
        first = [] if number else [histories.user(format, "go")]
        said = histories.wire(format, [histories.Turn(calls=(call,))], start=number)
        steps.append([*first, *said[-2:]])
    late = {number: steps[number].pop() for number in lose}
    return steps, late


def counted(monkeypatch, format):
    """How often a session reads and makes messages."""
    work, kind = Counter(), _HISTORIES[format]

    class Counting(kind):
        def read(self, at):
            work["read"] += 1
            super().read(at)

        def make(self, since, stop, count, last):
            work["made"] += stop - since
            return super().make(since, stop, count, last)

    monkeypatch.setitem(_HISTORIES, format, Counting)
    return work


@pytest.mark.parametrize("format", ALL)
def test_a_turn_reads_what_is_new_and_makes_the_last_turn(format, monkeypatch):
    """Also of a history that holds an interrupted call, and with branches in turn."""
    work = counted(monkeypatch, format)
    session = Session(histories.MODEL[format], repair=True, limits=Limits(window_tokens=10**6))
    steps, _ = turns(format, 60, lose=[10, 40])
    messages = [message for step in steps[:50] for message in step]
    session.fit(histories.request(format, messages))
    other = [*messages, histories.user(format, "another way")]
    for branch in (other, messages, *[other] * 10):
        session.fit(histories.request(format, branch))
    for step in steps[50:]:
        session.fit(histories.request(format, other))
        messages = [*messages, *step]
        work.clear()
        view = session.fit(histories.request(format, messages))
        assert work["read"] <= len(step)
        assert work["made"] <= 3 * len(step)
    cold = Session(histories.MODEL[format], repair=True, limits=Limits(window_tokens=10**6))
    cold._kept = cold._kept._replace(state=session.state)
    assert cold.fit(histories.request(format, messages)) == view


@pytest.mark.parametrize("format", ALL)
def test_a_late_result_is_made_from_its_call_on_and_nothing_before(format, monkeypatch):
    work = counted(monkeypatch, format)
    steps, late = turns(format, 60, lose=[50])
    messages = [message for step in steps for message in step]
    mending = Repairing(_HISTORIES[format])
    before = mending.follow(messages, "messages").messages
    work.clear()
    after = mending.follow([*messages, late[50]], "messages").messages
    assert MOVED in str(after[-1])
    place = next(
        at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]
    )
    assert all(a is b for a, b in zip(before[:place], after[:place], strict=True))
    assert work["read"] == 1
    assert work["made"] <= 2 * len([message for step in steps[49:] for message in step]) + 1


@pytest.mark.parametrize("format", ALL)
def test_what_was_mended_is_the_same_object_at_every_turn(format):
    steps, _ = turns(format, 20, lose=[3])
    messages, mending, seen = [], Repairing(_HISTORIES[format]), []
    for step in steps:
        messages = [*messages, *step]
        made = mending.follow(messages, "messages", mending.changes(messages)).messages
        whole = made[: len(seen) - 4]  # the last turn may be made again
        assert all(a is b for a, b in zip(whole, seen, strict=False))
        seen = made
