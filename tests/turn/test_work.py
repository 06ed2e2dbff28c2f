"""How much work a turn is: counted, not timed. What is as it was is not worked out again."""

from collections import Counter

import pytest
from msgspec.structs import replace

from tests import histories
from ullage import Limits, Session
from ullage.history import canon
from ullage.stages.default import DEFAULT
from ullage.wires import FORMATS

ALL = sorted(histories.MODEL)
KEY = {format: FORMATS[format].key for format in ALL}


@pytest.fixture
def work(monkeypatch):
    """How often messages are parsed, digested and edited, whatever the format."""
    count = Counter()

    def counting(owner, name):
        whole = getattr(owner, name)

        def counted(*args, **more):
            count[name] += 1
            return whole(*args, **more)

        monkeypatch.setattr(owner, name, counted)

    counting(canon, "digest_of")
    for wire in FORMATS.values():
        counting(wire, "parse")
        counting(wire, "edit")
    return count


CUTTING = replace(DEFAULT, name="cutting", under_pressure=())
"""Cuts at first sight, and makes no batch."""
VAST = Limits(window_tokens=10**6)


def step(format, number):
    """A turn whose result is cut at first sight."""
    call = histories.Call("bash", "a", f"{number} of many lines\n" * 600)
    return histories.wire(format, [histories.Turn(said="ok", calls=(call,))], start=number)


def started(format, turns=40):
    """A session, and a history of which every result is cut."""
    messages = [histories.user(format, "Go on.")]
    for number in range(1, turns):
        messages += step(format, number)
    session = Session(
        histories.MODEL[format], recall=True, format=format, policy=CUTTING, limits=VAST
    )
    session.fit(histories.request(format, messages))
    assert len(session.window.changed) == turns - 1
    return session, messages


@pytest.mark.parametrize("format", ALL)
def test_a_turn_parses_and_edits_what_is_new_and_nothing_else(format, work):
    session, messages = started(format)
    for number in range(40, 45):
        new = step(format, number)
        messages += new
        work.clear()
        session.fit(histories.request(format, messages))
        assert work == {"parse": len(new), "digest_of": len(new), "edit": 1}
    work.clear()
    session.fit(histories.request(format, messages))
    assert not work


@pytest.mark.parametrize("format", ALL)
def test_an_edited_message_is_the_same_object_at_every_turn(format):
    session, messages = started(format)
    one = session.fit(histories.request(format, messages))[KEY[format]]
    two = session.fit(histories.request(format, [*messages, *step(format, 40)]))[KEY[format]]
    assert all(a is b for a, b in zip(one, two, strict=False))
    assert one is not two


def edited(session, messages):
    """The first message of a view that the session edited, and its index."""
    index = min(session.window.changed)
    return messages[index], index


def marked(message):
    """The innermost dicts of a message, where callers put cache markers."""
    inner = [message]
    for value in message.values():
        inner += (
            [block for block in value if isinstance(block, dict)] if type(value) is list else []
        )
    return inner


@pytest.mark.parametrize("format", ALL)
def test_what_a_caller_writes_into_a_view_is_not_in_the_next(format, work):
    session, messages = started(format)
    request = histories.request(format, messages)
    view = session.fit(request)[KEY[format]]
    message, index = edited(session, view)
    before = repr(message)
    marked(message)[0]["cache_control"] = {"type": "ephemeral"}
    work.clear()
    assert repr(session.fit(request)[KEY[format]][index]) == before
    assert work == {"edit": 1}


@pytest.mark.parametrize("format", ALL)
def test_what_a_caller_writes_into_an_edited_message_of_his_is_in_the_view(format, work):
    """In place, or in a copy that takes its place: the same text, another marker."""
    session, messages = started(format)
    session.fit(histories.request(format, messages))
    _, index = edited(session, messages)
    messages[index]["cache_control"] = {"type": "ephemeral"}
    view = session.fit(histories.request(format, messages))[KEY[format]]
    assert view[index]["cache_control"] == {"type": "ephemeral"}
    messages[index] = dict(reversed(messages[index].items()))
    view = session.fit(histories.request(format, messages))[KEY[format]]
    assert list(view[index]) == list(messages[index]), "in the order of the caller's own"


def test_a_batch_that_stands_is_not_shown_again(monkeypatch):
    """Users who go on without a reply: every batch is under the one key."""
    from ullage.history.builder import WindowBuilder as Builder

    applied, apply = [], Builder.apply
    monkeypatch.setattr(Builder, "apply", lambda builder, e: applied.append(e) or apply(builder, e))
    session = Session("gpt-4.1", recall=True, limits=Limits(window_tokens=16_000))
    messages = histories.wire("openai-chat", [])
    for number in range(80):
        more = step("openai-chat", number)
        messages += more[1:] if number else more  # nothing but results behind the first call
        session.fit({"messages": messages})
    told = [event for event in session.events if event.kind in SHOWN]
    assert len({event.ref for event in told}) < len(told), "some were cut again"
    assert len(applied) <= len(told)


@pytest.mark.parametrize("format", ALL)
def test_what_stays_behind_a_change_is_not_made_a_digest_of_again(format, monkeypatch):
    """The history behind the change is gone through anew; the texts in it are the same."""
    from ullage.stages import digest

    made, make = [], digest._digest
    monkeypatch.setattr(
        digest, "_digest", lambda lines, chars: made.append(0) or make(lines, chars)
    )
    monkeypatch.setattr(digest, "_remembered", {})
    session = Session(histories.MODEL[format], recall=True, format=format, limits=VAST)
    messages = [histories.user(format, "Go on.")]
    for number in range(1, 60):
        messages += step(format, number)
    session.fit(histories.request(format, messages))
    assert len(made) > 20
    made.clear()
    messages[0] = histories.user(format, "Go on, please.")
    session.fit(histories.request(format, messages))
    assert session.window.changed
    assert made == []


SHOWN = ("truncated", "pruned", "cut", "condensed")
