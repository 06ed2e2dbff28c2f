"""The conversation of a session as it stands is what its store tells of it."""

import pytest

from tests.session.test_deciding import WIRES, fit, gone, new_session, pressed
from tests.session.test_stored import talked
from ullage import Session, SqliteStore
from ullage.session.drivers import run
from ullage.session.stored.conversation import (
    conversation,
    decide,
    decision_of,
)
from ullage.session.stored.current import current


@pytest.fixture
def store(tmp_path):
    with_file = SqliteStore(tmp_path / "store.db")
    yield with_file
    with_file.close()


def now(session):
    return run(current(session), session.store, session.settings.tenant)


def states(stored):
    return [(leaf.name, leaf.state, leaf.batch) for leaf in stored.leaves()]


@pytest.mark.parametrize("wire", WIRES)
def test_it_is_what_the_store_tells(wire, store):
    session, messages = talked(wire, store)
    session.pin(gone(session)[0])
    fit(session, wire, messages)
    here, there = now(session), conversation(store, "")
    assert states(here) == states(there)
    assert here.outline.name == there.outline.name
    assert here.hand.decisions == there.hand.decisions
    heads = [leaf.head for leaf in here.leaves()]
    assert heads == [leaf.head for leaf in there.leaves()]


def test_it_needs_no_outline_and_no_lasting_store():
    session, _, _ = pressed("anthropic")
    here = now(session)
    assert {leaf.state for leaf in here.leaves()} >= {"whole", "set aside"}
    assert all(
        name in {leaf.name.partition(".")[0] for leaf in here.leaves()}
        for name in gone(session)
    )


def test_it_knows_what_another_worker_decided_and_changes_nothing(store):
    session, _ = talked("anthropic", store)
    stored = conversation(store, "")
    decide(store, stored, decision_of(stored, "note", text="From beside."))
    before = session.state
    (one,) = now(session).hand.decisions
    assert one.decision.text == "From beside."
    assert session.state == before
    assert session.decisions == ()


def test_of_nothing_there_is_nothing():
    assert now(Session("gpt-4.1")) is None
    assert now(new_session("gemini")) is None
