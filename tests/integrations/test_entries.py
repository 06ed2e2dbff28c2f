"""What lasts of conversations, as entries of a state that a framework keeps."""

from ullage import Session
from ullage.core.history.ledger import Ledger, PolicyRecord
from ullage.integrations._entries import Entries, entry_of, record_of

REQUEST = {
    "model": "gpt-4.1",
    "messages": [{"role": "user", "content": "Hello."}],
}


def record():
    return Ledger().with_policy(
        bytes(16), PolicyRecord("first", recall=False)
    )[1]


def test_a_record_is_an_entry_and_a_record_again():
    key, value = entry_of(record())
    assert key == f"ullage:{'00' * 16}:opened:0"
    assert record_of(key, value) == record()
    assert [
        record_of(*other)
        for other in ((f"{key}0", value), ("a", value), (key, 7))
    ] == [None] * 3


def test_of_two_values_for_one_record_the_state_can_hold_but_one():
    place, value = entry_of(record())
    assert record_of(place, value) == record()
    assert record_of(f"{place}0", value) is None


def test_a_state_that_lost_what_was_written_is_given_it_again():
    session, entries = Session("gpt-4.1"), Entries()
    session.fit(REQUEST)
    first = entries.missing(session, {})
    assert first
    assert (
        entries.missing(session, {}) == first
    )  # the step that should have written it failed
    assert entries.missing(session, first) == {}


def test_what_a_state_holds_is_taken_in_once():
    session, entries = Session("gpt-4.1"), Entries()
    session.fit(REQUEST)
    state = {**entries.missing(session, {}), "case": "7"}
    other = Session("gpt-4.1")
    new = entries.unknown(other, state)
    other.take(new)
    assert len(new) == len(state) - 1
    assert entries.unknown(other, state) == []
    assert entries.missing(other, state) == {}
