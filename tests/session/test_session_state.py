"""What a session knows between two calls is a value: none of it changes, all of it is bounded."""

from msgspec.structs import replace

from tests.history.test_increments import played, session_of
from ullage import State
from ullage.core.history.ledger import Ledger
from ullage.core.turn.caches import SessionCache
from ullage.core.values.events import Event
from ullage.session.state import EVENTS_KEPT, SessionState


def state_of(**more):
    return SessionState(State(), **more)


def event(n):
    return Event(kind="observed", where="reply", why=str(n))


def test_the_newest_events_are_kept_and_no_more():
    full = state_of().with_events(*(event(n) for n in range(EVENTS_KEPT + 3)))
    assert len(full.events) == EVENTS_KEPT
    assert full.events[-1] == event(EVENTS_KEPT + 2)
    assert full.with_events() is full


def test_what_is_told_once_is_not_told_again():
    session, _, increments, _ = played("openai-chat", 6)
    one = replace(state_of(), persisted=session.state)
    told, found = one.with_news()
    assert set(found) == {
        record for increment in increments for record in increment
    }
    assert told.with_news() == (told, ())
    assert one.carried == Ledger()


def test_new_records_drop_what_is_remembered_and_known_ones_do_not():
    _, _, increments, _ = played("openai-chat", 6)
    records = [record for increment in increments for record in increment]
    one = state_of(cache=SessionCache()).with_records(records)
    assert one.cache is None
    again = replace(one, cache=SessionCache())
    assert again.with_records(records).cache is again.cache
    assert session_of("openai-chat").news() == ()
