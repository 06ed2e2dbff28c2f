"""A decision is carried out once, and what it costs is told."""

import pytest

from tests.session.test_deciding import (
    fit,
    gone,
    messages_of,
    new_session,
    pressed,
)
from ullage.core.history.again import seat_of
from ullage.core.turn.again import may_be_added
from ullage.core.turn.hand import described, lines_of, rewriting_usd
from ullage.core.values.decisions import Decision, LedgerRef, Target
from ullage.core.values.edits import Insert


def test_a_decision_is_carried_out_once():
    session, messages, _ = pressed("anthropic")
    session.pin(gone(session)[0])
    fit(session, "anthropic", messages)
    key = session._newest.key
    batches = session.state.ledger.at(key).batches
    fit(session, "anthropic", messages)
    assert session.state.ledger.at(key).batches == batches
    (one,) = session.decisions
    assert len(one.carried_out) == 1


def test_a_decision_with_nothing_to_do_is_carried_out_too():
    session, messages = new_session("anthropic"), messages_of("anthropic", 1)
    view = fit(session, "anthropic", messages)
    session.pin("m1")
    assert fit(session, "anthropic", messages) == view
    (event,) = session._newest.events
    assert event.kind == "decided"
    assert "no cache is broken" in event.why
    assert [bool(one.carried_out) for one in session.decisions] == [True]


def test_an_event_tells_the_tokens_and_the_price():
    session, messages, _ = pressed("anthropic")
    session.pin(gone(session)[-1], author="ann")
    view = fit(session, "anthropic", messages)
    event = next(event for event in view.events if event.kind == "decided")
    assert event.why.startswith("ann asked for it (d")
    assert (
        "tokens are written to the prompt cache again, about $0." in event.why
    )
    assert event.tokens_after > event.tokens_before


def test_a_note_waits_until_the_model_has_the_word():
    """A prefilled answer goes on: a text of the user's behind it would end it."""
    session, messages = new_session("anthropic"), messages_of("anthropic", 1)
    fit(session, "anthropic", messages)
    session.note("Never touch main.")
    prefill = {"role": "assistant", "content": "The fault is"}
    view = fit(session, "anthropic", [*messages, prefill])
    assert view["messages"][-1] == prefill
    view = fit(session, "anthropic", messages)
    assert "Never touch main." in str(view["messages"][-1])


def test_what_is_written_anew_costs_more_than_what_is_read():
    session, messages = new_session("anthropic"), messages_of("anthropic", 1)
    fit(session, "anthropic", messages)
    assert rewriting_usd("claude-sonnet-4-5", 1_000_000) > 0


@pytest.mark.parametrize(
    ("lines", "text"),
    [((1, 1), "a"), ((2, 3), "b\nc"), ((3, 9), "c"), ((9, 9), "")],
)
def test_lines_of_a_text(lines, text):
    assert lines_of("a\nb\nc\n", lines) == text


def test_a_decision_in_a_few_words():
    session, messages = new_session("anthropic"), messages_of("anthropic", 1)
    transcript = fit(session, "anthropic", messages).sent.transcript
    target = Target(transcript.chain[1], transcript.address((0, 0, 0)), (2, 4))
    pin = Decision(verb="pin", target=target)
    assert described(pin, transcript) == "pin message 1, text 1, lines 2 to 4"
    undo = Decision(
        verb="undo", undoes=LedgerRef("batch", transcript.chain[0], 0)
    )
    assert described(undo, transcript).startswith("undo b")
    assert described(Decision(verb="note", text="hush"), transcript) == "note"


def test_a_text_is_added_where_the_history_may_be_parted():
    session, messages = new_session("anthropic"), messages_of("anthropic", 2)
    fit(session, "anthropic", messages)
    window = session.window
    chain = window.transcript.chain
    assert seat_of(window, [0, 1, 2, 3, 4], 3) == 3
    assert seat_of(window, [0, "a summary"], 3) == 2
    assert may_be_added(
        window, Insert(chain[-1], "Keep it short.", "why", "dname")
    )
    assert may_be_added(
        window, Insert(b"elsewhere elsewh", "Keep it short.", "why", "dname")
    )
    between = Insert(
        chain[len(messages) - 1], "Keep it short.", "why", "dname"
    )
    assert not may_be_added(window, between), "between a call and its result"
    assert not may_be_added(window, Insert(chain[-1], " ", "why", "dname"))
