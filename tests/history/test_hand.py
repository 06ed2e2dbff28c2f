"""Which decisions stand in a history, and what follows from them."""

from tests.history.test_transcript import transcript_of
from tests.history.test_window import history
from ullage.core.history.hand import (
    EMPTY,
    Pins,
    hand_of,
    locations_of,
    name_of,
    shown_under,
)
from ullage.core.history.ledger import Ledger, merge_records, records_since
from ullage.core.values.decisions import Decision, LedgerRef, Target
from ullage.core.values.edits import Batch

TRANSCRIPT = transcript_of(history("first", "second", "third"))
KEY = TRANSCRIPT.chain[2]
FIRST = Target(TRANSCRIPT.chain[1])
PIN = Decision(verb="pin", target=FIRST, author="ann")
BATCH = Batch("prune", "default-1", (), 9, 4)


def decided(*decisions, ledger=None, key=KEY):
    """A ledger with decisions at one place, and where it keeps each."""
    ledger, made = ledger or Ledger(), []
    for decision in decisions:
        made.append(LedgerRef("decision", key, len(ledger.at(key).decisions)))
        ledger, _ = ledger.with_decision(key, decision)
    return ledger, made


def undo(made):
    return Decision(verb="undo", undoes=made)


def test_a_ledger_without_decisions_is_not_looked_through():
    ledger, _ = Ledger().with_batch(KEY, BATCH)
    assert ledger.by_user == frozenset()
    assert hand_of(TRANSCRIPT, ledger) is EMPTY


def test_a_decision_stands_where_its_place_is():
    ledger, _ = decided(PIN)
    hand = hand_of(TRANSCRIPT, ledger)
    assert [one.decision for one in hand.decisions] == [PIN]
    assert hand.due == hand.decisions
    assert hand.pins == Pins(messages=frozenset({0}), whole=frozenset({0}))
    assert hand_of(TRANSCRIPT.upto(1), ledger) is EMPTY, (
        "the other branch ends before it"
    )


def test_the_newest_undo_is_asked_first():
    ledger, (pin,) = decided(PIN)
    ledger, (first,) = decided(undo(pin), ledger=ledger)
    assert not hand_of(TRANSCRIPT, ledger).pins
    ledger, _ = decided(undo(first), ledger=ledger)
    hand = hand_of(TRANSCRIPT, ledger)
    assert hand.pins.messages == {0}
    assert [one.decision.verb for one in hand.decisions] == ["pin", "undo"]


def test_a_batch_goes_with_the_decision_it_carries_out_and_so_does_what_followed_from_it():
    ledger, (pin,) = decided(PIN)
    name = name_of(pin)
    for decision in ("", name, "", "dsomeother"):
        batch = Batch("user", "default-1", (), 9, 4, decision)
        ledger, _ = ledger.with_batch(KEY, batch)
    ledger, _ = decided(undo(pin), ledger=ledger)
    hand = hand_of(TRANSCRIPT, ledger)
    assert hand.undone == {
        LedgerRef("batch", KEY, 1),
        LedgerRef("batch", KEY, 2),
    }
    assert len(shown_under(KEY, ledger, hand)) == 2


def test_an_undo_waits_while_nothing_that_was_sent_may_change():
    ledger, _ = Ledger().with_batch(KEY, BATCH)
    ledger, _ = decided(undo(LedgerRef("batch", KEY, 0)), ledger=ledger)
    assert hand_of(TRANSCRIPT, ledger).undone == {LedgerRef("batch", KEY, 0)}
    waiting = hand_of(TRANSCRIPT, ledger, is_frozen=True)
    assert waiting.undone == frozenset()
    assert len(waiting.due) == 1


def test_of_a_pin_and_a_drop_of_the_same_the_later_counts():
    drop = Decision(verb="drop", target=FIRST)
    assert not hand_of(TRANSCRIPT, decided(PIN, drop)[0]).pins
    assert hand_of(TRANSCRIPT, decided(drop, PIN)[0]).pins.messages == {0}


def test_lines_stay_without_the_rest_of_their_text():
    place = TRANSCRIPT.address((0, 0, 0))
    lines = Decision(verb="pin", target=Target(FIRST.message, place, (2, 3)))
    pins = hand_of(TRANSCRIPT, decided(lines)[0]).pins
    assert pins.messages == {0}
    assert not pins.covers((0, 0, 0))
    assert pins.lines == {(0, 0, 0): ((2, 3),)}


def test_a_target_of_another_history_means_nothing():
    assert locations_of(TRANSCRIPT, Target(b"elsewhere elsewh")) == []
    other = transcript_of(history("first", "other"))
    place = TRANSCRIPT.address((1, 0, 0))
    assert locations_of(other, Target(other.chain[1], place)) == []


def test_decisions_go_with_the_records_that_a_host_carries():
    ledger, _ = decided(PIN, Decision(verb="note", text="Keep it short."))
    records = records_since(ledger, Ledger())
    assert [record.kind for record in records] == ["decision", "decision"]
    again, waiting = merge_records(Ledger(), reversed(records))
    assert (again, waiting) == (ledger, ())
    assert hand_of(TRANSCRIPT, again) == hand_of(TRANSCRIPT, ledger)
