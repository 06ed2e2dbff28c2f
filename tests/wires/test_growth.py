"""Repairing as a history grows: as if it had been repaired whole, for the work of what is new."""

import copy
from collections import Counter
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests import histories
from tests.wires.test_repair import (
    ALL,
    WRITERS,
    anthropic,
    break_up,
    formats,
    legal,
    repaired,
)
from ullage import Limits, Session
from ullage.core.contract.repaired import news, remember
from ullage.core.history.pairing import Pairing
from ullage.wires import FORMATS, wire_named
from ullage.wires.repair import apply
from ullage.wires.repair.base import MOVED, RepairedPrefix, in_order


def repair_of(format):
    """The module that repairs histories of a wire."""
    return import_module(
        wire_named(format).home.removesuffix("wire") + "repair"
    )


def at_once(format, messages):
    """What a history becomes if no beginning of it is ever closed: made once, in one piece."""
    reading = wire_named(format).repair(messages, Pairing())
    for at in range(len(messages)):
        reading.read(at)
    made, _ = reading.made(len(messages), RepairedPrefix())
    outputs = {output.ref: output for output in made.outputs}
    return (
        made.sent(messages),
        tuple(outputs.values()),
        in_order(made.reports),
        made.stale,
    )


def is_as_at_once(format, found, messages):
    assert (list(found.messages), *parts(found)) == at_once(format, messages)


def parts(found):
    return found.outputs, found.events, found.stale


def gone_on(format, messages, known):
    """A history repaired with what is known, which is as if nothing were; and what is known now."""
    found = apply.repair(FORMATS[format], messages, known)
    is_as_at_once(format, found, messages)
    mine = set(map(id, messages))
    whole = repaired(format, messages).messages
    assert [id(m) in mine for m in found.messages] == [
        id(m) in mine for m in whole
    ]
    return found, remember(found, known)


def grown(data, format, messages):
    """A history repaired as it grows and is rewound, now and then to the end of it."""
    known, length = (), 0
    while length < len(messages):
        back = data.draw(st.integers(0, 2)) if length > 2 else 0
        length = data.draw(st.integers(length + 1 - back, len(messages)))
        _, known = gone_on(format, messages[:length], known)


@given(formats, st.data())
def test_closing_and_growth_change_nothing(format, data):
    messages = break_up(data, format, data.draw(legal(format)))
    is_as_at_once(format, repaired(format, messages), messages)
    grown(data, format, messages)


@given(formats, st.data())
def test_nor_do_they_for_any_short_history(format, data):
    write, words = WRITERS[format]
    drawn = data.draw(st.lists(st.sampled_from(words.split()), max_size=12))
    grown(data, format, write(" ".join(drawn)))


@given(formats, st.data())
def test_another_end_goes_on_from_the_same_beginning(format, data):
    """What is known is a value: one end leaves nothing behind for another."""
    write, words = WRITERS[format]
    word = st.lists(st.sampled_from(words.split()), max_size=6).map(" ".join)
    start, *ends = (write(data.draw(word)) for _ in range(4))
    known = ()
    for end in (*ends, *ends):
        _, known = gone_on(format, [*start, *copy.deepcopy(end)], known)


@given(st.sampled_from(("anthropic", "openai-chat")), st.data())
def test_moved_cache_markers_are_followed(format, data):
    """In place, or in copies: every block is as the caller has it now."""
    messages = break_up(data, format, data.draw(legal(format)))
    _, known = gone_on(format, messages, ())
    for _ in range(3):
        at = data.draw(st.integers(0, len(messages) - 1))
        if data.draw(st.booleans()):
            messages[at] = copy.deepcopy(messages[at])
        content = messages[at].get("content")
        for block in content if isinstance(content, list) else ():
            if not block.pop("cache_control", None):
                block["cache_control"] = {"type": "ephemeral"}
        _, known = gone_on(format, messages, known)


def test_a_moved_marker_is_followed_in_a_message_that_was_repaired():
    messages = anthropic("u:do a?x?y y=out+u:on a:ok u:more a:well u:so")
    _, known = gone_on("anthropic", messages, ())
    assert known[0].closed.stop > 3
    messages[2] = copy.deepcopy(messages[2])
    messages[2]["content"][1]["cache_control"] = {"type": "ephemeral"}
    later, _ = gone_on("anthropic", messages, known)
    assert "cache_control" in str(later.messages[2])


@given(formats, st.data())
def test_what_was_rewritten_in_place_is_noticed(format, data):
    messages = break_up(data, format, data.draw(legal(format)))
    _, known = gone_on(format, messages, ())
    at = data.draw(st.integers(0, len(messages) - 1))
    messages[at] = copy.deepcopy(
        messages[data.draw(st.integers(0, len(messages) - 1))]
    )
    gone_on(format, messages, known)


def turns(format, count, *, lose=()):
    """Turns of one call and result; those whose result is lost."""
    steps = []
    for number in range(count):
        call = histories.Call("bash", "a", f"{number} done")
        first = [] if number else [histories.user(format, "go")]
        said = histories.wire(
            format, [histories.Turn(calls=(call,))], start=number
        )
        steps.append([*first, *said[-2:]])
    late = {number: steps[number].pop() for number in lose}
    return steps, late


def counted(monkeypatch, format):
    """How often messages are read and made."""
    work, module = Counter(), repair_of(format)
    kind = module.REPAIR

    class Counting(kind):
        def read(self, at):
            work["read"] += 1
            super().read(at)

        def _make(self, since, stop, count, last):
            work["made"] += stop - since
            return super()._make(since, stop, count, last)

    monkeypatch.setattr(module, "REPAIR", Counting)
    return work


@pytest.mark.parametrize("format", ALL)
def test_a_turn_reads_and_makes_the_last_turn_and_what_is_new(
    format, monkeypatch
):
    """Also of a history that holds an interrupted call, and with branches in turn."""
    work = counted(monkeypatch, format)
    session = Session(
        histories.MODEL[format],
        repair=True,
        limits=Limits(window_tokens=10**6),
    )
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
        assert work["read"] <= 3 * len(step)
        assert work["made"] <= 3 * len(step)
    cold = Session(
        histories.MODEL[format],
        repair=True,
        limits=Limits(window_tokens=10**6),
    )
    cold._state = replace(cold._state, persisted=session.state)
    assert cold.fit(histories.request(format, messages)) == view


@pytest.mark.parametrize("format", ALL)
def test_after_a_late_result_the_work_is_that_of_the_last_turn_again(
    format, monkeypatch
):
    work = counted(monkeypatch, format)
    steps, late = turns(format, 60, lose=[50])
    messages = [message for step in steps[:55] for message in step]
    before, known = gone_on(format, messages, ())
    found, known = gone_on(format, [*messages, late[50]], known)
    assert MOVED in str(found.messages[-1])
    assert [event.why for event in news(found, (before,)).events] == [
        "a result came late"
    ]
    messages = [*messages, late[50]]
    for step in steps[55:]:
        messages = [*messages, *step]
        work.clear()
        found = apply.repair(FORMATS[format], messages, known)
        known = remember(found, known)
        assert work["read"] <= 3 * len(step) or step is steps[55]


@pytest.mark.parametrize("format", ALL)
def test_what_was_made_is_the_same_object_at_every_turn(format):
    steps, _ = turns(format, 20, lose=[3])
    messages, known, seen = [], (), []
    for step in steps:
        messages = [*messages, *step]
        found = apply.repair(FORMATS[format], messages, known)
        known = remember(found, known)
        whole = found.messages[
            : len(seen) - 4
        ]  # the last turn may be made again
        assert all(a is b for a, b in zip(whole, seen, strict=False))
        seen = found.messages


@pytest.mark.parametrize("format", ALL)
def test_what_is_known_is_bounded_and_reported_once(format):
    steps, _ = turns(format, 20, lose=[3, 9])
    messages, known, told = [], (), []
    for step in steps:
        messages = [*messages, *step]
        found = apply.repair(FORMATS[format], messages, known)
        told += news(found, known).events
        known = remember(found, known)
        assert len(known) <= 2, "one that was not closed yet, and the newest"
    assert [event.why for event in told] == ["a call had no result"] * 2
    for number in range(9):
        other = [histories.user(format, f"{number}"), *messages]
        known = remember(apply.repair(FORMATS[format], other, known), known)
    assert len(known) == 4
