"""What a history held is kept as marks; what was not in it is new, wherever it stands."""

from tests import histories
from tests.histories import Call, Turn
from ullage import MemoryStore, Session
from ullage.core.errors import StoreError
from ullage.core.history.canon import digest_of
from ullage.core.history.ledger import (
    MARK_BYTES,
    Ledger,
    PolicyRecord,
    RequestRecord,
    UsageRecord,
)
from ullage.core.history.transcript import Transcript
from ullage.core.turn.changes import (
    arrived,
    changed,
    key_of,
    note_answered,
    remember,
)
from ullage.wires import FORMATS

TURNS = [
    Turn(said=f"Step {n}.", calls=(Call("bash", f"{n}", f"gave {n}"),))
    for n in range(40)
]


def transcript(turns=12, **gave):
    """A history; ``gave`` says what some of its calls gave instead."""
    every = list(TURNS[:turns])
    for name, text in gave.items():
        number = int(name.removeprefix("at_"))
        every[number] = Turn(
            said=f"Step {number}.", calls=(Call("bash", f"{number}", text),)
        )
    new = Transcript(b"root")
    for raw in histories.wire("openai-chat", every):
        message = FORMATS["openai-chat"].parse(raw, "message")
        new.append(message, digest_of(message))
    return new


def known(history):
    ledger, records = remember(history, Ledger(), is_decided=True)
    assert [record.kind for record in records] == ["shown"]
    return ledger


def seen(history, ledger):
    """The ledger with what is seen of changes in a history."""
    found = changed(history, ledger)
    key = history.decision_key(len(history))
    return ledger.with_seen(key, RequestRecord(changed=found))[0]


def test_nothing_is_kept_before_the_first_reply_and_little_behind_it():
    assert key_of(transcript(0)) is None
    assert remember(transcript(0), Ledger(), is_decided=True) == (Ledger(), ())
    history = transcript()
    shown = known(history).at(key_of(history)).shown
    assert len(shown.marks) == MARK_BYTES * len(history)


def is_kept(before, now, *, is_decided=False):
    """Whether it is kept what a history of so many turns holds, after one of fewer turns was."""
    return (
        remember(
            transcript(now), known(transcript(before)), is_decided=is_decided
        )[1]
        != ()
    )


def test_it_is_kept_with_a_decision_and_after_some_replies():
    assert is_kept(2, 3, is_decided=True)
    assert not is_kept(2, 2, is_decided=True), "the same once more"
    assert is_kept(2, 3), "a short history is kept with every reply"
    assert not is_kept(20, 25)
    assert is_kept(20, 26), "a longer one after a quarter of its replies"
    assert not is_kept(32, 39)
    assert is_kept(32, 40), "and any after eight"


def test_it_is_kept_with_each_reply_that_is_observed():
    history = transcript(4)
    ledger, records = note_answered(history, 7, known(transcript(2)))
    assert [record.kind for record in records] == ["shown"]
    shown = ledger.at(key_of(history)).shown
    assert (shown.chain, len(shown.message_marks())) == (
        history.chain[7],
        7,
    ), "of the view it answers"
    assert note_answered(transcript(0), 1, Ledger()) == (Ledger(), ())


def test_where_replies_are_observed_it_is_kept_with_them_alone():
    history, ledger = transcript(3), known(transcript(2))
    observed = UsageRecord(900, 900, 30, "gpt-4.1")
    ledger = ledger.with_observed(history.decision_key(5), observed)[0]
    assert remember(history, ledger, is_decided=False)[1] == ()


def test_a_history_that_grew_or_was_rewound_changed_nothing():
    ledger = known(transcript(6))
    for turns in (1, 3, 6, 7, 12):
        assert changed(transcript(turns), ledger) == ()
    assert changed(transcript(6, at_5="another end"), ledger) == (), (
        "nothing comes behind it"
    )


def test_what_was_not_there_is_as_new_as_what_comes_now():
    ledger = known(transcript())
    history = transcript(at_3="approved")
    assert changed(history, ledger) == (
        (history.chain[9], history.decision_key(len(history))),
    )
    ledger = seen(history, ledger)
    assert arrived(history, ledger) == {
        8: history.decision_index(len(history))
    }
    assert changed(history, ledger) == (), "it is seen once"
    assert arrived(transcript(), ledger) == {}, (
        "the history as it was has nothing new"
    )


def test_what_replaced_the_end_of_the_history_is_new_though_a_reply_came_since():
    ledger = known(transcript(6))
    history = transcript(7, at_5="approved")
    place = history.decision_key(len(history))
    assert changed(history, ledger) == ((history.chain[13], place),)


def test_a_history_that_was_answered_before_holds_nothing_new_at_its_old_end():
    """A branch may have been shown since; that this one is opened anew says nothing."""
    ledger, history = known(transcript(6)), transcript(7, at_5="approved")
    key = history.decision_key(len(history))
    ledger = ledger.with_policy(key, PolicyRecord("default", recall=True))[0]
    assert len(changed(history, ledger)) == 1
    ledger = ledger.with_observed(key, UsageRecord(900, 900, 30, "gpt-4.1"))[0]
    assert changed(history, ledger) == ()


def test_it_stays_as_new_where_something_before_it_changes_later():
    history = transcript(at_6="approved")
    ledger = seen(history, known(transcript()))
    ledger = remember(history, ledger, is_decided=True)[0]
    both = transcript(at_2="refused", at_6="approved")
    ledger = seen(both, ledger)
    assert arrived(both, ledger) == {
        14: len(history) - 1,
        6: both.decision_index(len(both)),
    }


def test_what_stands_there_in_the_same_words_more_than_once_is_no_news():
    ledger = known(transcript())
    assert (
        changed(transcript(at_2="[cleared]", at_3="[cleared]"), ledger) == ()
    )
    assert (
        len(
            changed(
                transcript(
                    at_2="[cleared]", at_3="approved", at_4="[cleared]"
                ),
                ledger,
            )
        )
        == 1
    )


class Unwilling(MemoryStore):
    """Takes nothing any more from a moment on."""

    fails = False

    def commit(self, tenant, outputs, records):
        if self.fails:
            raise StoreError("memory", "commit", "the disk is gone")
        return super().commit(tenant, outputs, records)


def test_a_turn_that_decides_nothing_needs_no_store():
    session = Session("gpt-4.1", store=(store := Unwilling()))
    for turns in range(12):
        store.fails = turns > 0
        messages = histories.wire("openai-chat", TURNS[:turns])
        view = session.fit(histories.request("openai-chat", messages))
        assert view["messages"] == messages
        assert "unkept" not in {event.kind for event in session.events}
    shown = session.state.ledger.at(key_of(session.window.transcript)).shown
    assert shown is None
