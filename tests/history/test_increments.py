"""A conversation's state as increments: whoever has taken them all shows the same views."""

import pickle
import random

import msgspec
import pytest

from tests.sessions import long_history, request
from ullage import Limits, Record, Session
from ullage.core.history.ledger import Ledger, merge_records, records_since

SMALL = Limits(window_tokens=8_000, output_reserve_tokens=500)
MODEL = {"openai-chat": "gpt-4.1", "anthropic": "claude-sonnet-6"}
every = pytest.mark.parametrize("format", ["openai-chat", "anthropic"])


def session_of(format):
    return Session(MODEL[format], format=format, limits=SMALL, recall=True)


def asked(format, messages):
    return request(format, messages, model=MODEL[format])


def usage(format, tokens):
    names = (
        ("prompt", "completion")
        if format == "openai-chat"
        else ("input", "output")
    )
    return {"usage": {f"{names[0]}_tokens": tokens, f"{names[1]}_tokens": 7}}


def played(format, turns=30):
    """A conversation as it went: its increments after each turn, its boundaries and views."""
    session, history = session_of(format), long_history(format, turns)
    increments, views = [], []
    for stop in (
        n
        for n in range(1, len(history) + 1)
        if history[n - 1]["role"] != "assistant"
    ):
        view = session.fit(asked(format, history[:stop]))
        session.observe(usage(format, session.window.tokens + 300))
        increments.append(session.news())
        views.append((stop, view["messages"]))
    return session, history, increments, views


@every
def test_a_fresh_process_shows_what_the_warm_one_shows(format):
    warm, history, increments, views = played(format)
    assert any(event.kind in ("pruned", "condensed") for event in warm.events)
    fresh = session_of(format)
    for increment in increments:
        fresh.take(increment)
    assert fresh.fit(asked(format, history)) == warm.fit(
        asked(format, history)
    )
    for stop, shown in views[::7]:
        assert fresh.fit(asked(format, history[:stop]))["messages"] == shown


@every
def test_going_on_from_a_checkpoint_in_the_middle(format):
    """As a framework does that keeps the increments so far, and another worker takes over."""
    _, history, increments, views = played(format)
    half = len(increments) // 2
    fresh = session_of(format)
    fresh.take(
        [record for increment in increments[:half] for record in increment]
    )
    stop, shown = views[half]
    assert fresh.fit(asked(format, history[:stop]))["messages"] == shown


@every
def test_increments_hold_what_is_new_and_nothing_else(format):
    session, _, increments, _ = played(format)
    every_record = [record for increment in increments for record in increment]
    assert len(every_record) == len(set(every_record))
    assert session.news() == ()
    sizes = [len(msgspec.json.encode(increment)) for increment in increments]
    assert sorted(sizes)[len(sizes) // 2] < 600
    session.fit(
        asked(format, [{"role": "user", "content": "Something else."}])
    )
    assert session.news()


@every
@pytest.mark.parametrize("seed", range(5))
def test_any_order_and_any_number_of_times_is_the_same(format, seed):
    warm, history, increments, _ = played(format)
    shuffled = [*increments, *increments[::2]]
    random.Random(seed).shuffle(shuffled)
    fresh = session_of(format)
    for increment in shuffled:
        fresh.take(reversed(increment))
    assert fresh.fit(asked(format, history)) == warm.fit(
        asked(format, history)
    )


@every
def test_increments_travel_as_json_and_pickle(format):
    _, _, increments, _ = played(format, 12)
    for increment in increments:
        text = msgspec.json.encode(increment)
        assert msgspec.json.decode(text, type=tuple[Record, ...]) == increment
        assert pickle.loads(pickle.dumps(increment)) == increment


@every
def test_what_was_taken_is_no_news(format):
    _, _, increments, _ = played(format, 12)
    fresh = session_of(format)
    for increment in increments:
        fresh.take(increment)
    assert fresh.news() == ()


@every
def test_taking_what_is_known_forgets_nothing(format):
    """A host may give all it has at every step; then what is remembered is kept."""
    session, history, increments, _ = played(format, 12)
    session.fit(asked(format, history))
    working = session._state.newest.working
    for increment in increments:
        session.take(increment)
    session.fit(asked(format, history))
    assert session._state.newest.working is working


@pytest.mark.parametrize(
    "record",
    [
        Record(b"k" * 16, "batch", 0, b"nonsense"),
        Record(b"k" * 16, "of a later version", 0, b""),
        Record(b"", "opened", 99, b"\x00"),
        Record(b"k" * 16, "observed", -1, b"{"),
    ],
)
def test_nonsense_in_a_hosts_state_is_passed_over(record):
    _, history, increments, _ = played("openai-chat", 12)
    fresh = session_of("openai-chat")
    fresh.take(
        [record, *(each for increment in increments for each in increment)]
    )
    again = session_of("openai-chat")
    again.take(each for increment in increments for each in increment)
    assert fresh.fit(asked("openai-chat", history)) == again.fit(
        asked("openai-chat", history)
    )


def test_where_two_decided_at_one_place_every_reader_takes_the_same():
    one, _, increments, _ = played("openai-chat", 30)
    (batch,) = [
        r for increment in increments for r in increment if r.kind == "batch"
    ][:1]
    key, data = batch.key, one.state.ledger.at(batch.key).batches[0]
    other = Ledger().with_batch(key, msgspec.structs.replace(data, edits=()))[
        1
    ]
    assert other != batch
    orders = [(batch, other), (other, batch)]
    ledgers = [
        merge_records(merge_records(Ledger(), (a,))[0], (b,))[0]
        for a, b in orders
    ]
    assert ledgers[0] == ledgers[1]


def test_a_record_waits_for_the_one_before_it():
    entries = played("openai-chat", 4)[0].state.ledger.entries.values()
    opened = next(entry.policies[0] for entry in entries if entry.policies)
    ledger, records = Ledger(), []
    for _ in range(3):
        ledger, record = ledger.with_policy(b"k" * 16, opened)
        records.append(record)
    first, waiting = merge_records(Ledger(), records[1:])
    assert first == Ledger()
    assert len(waiting) == 2
    whole, none = merge_records(first, (*waiting, records[0]))
    assert whole == ledger
    assert none == ()


def test_changes_are_those_of_one_ledger_beside_another():
    _, _, increments, _ = played("openai-chat", 12)
    ledger, _ = merge_records(
        Ledger(), [r for increment in increments for r in increment]
    )
    assert set(records_since(ledger, Ledger())) == {
        r for increment in increments for r in increment
    }
    assert records_since(ledger, ledger) == ()
