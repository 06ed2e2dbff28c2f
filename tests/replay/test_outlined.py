"""A conversation turn by turn from its store alone, beside the session that was there."""

import pytest
from msgspec.structs import replace

from tests.session.test_deciding import WIRES, fit, messages_of, new_session
from tests.session.test_stored import talked
from ullage import SqliteStore, Usage
from ullage.session.stored.conversation import conversation
from ullage.tools.replay.outlined import Savings, from_outline, savings_of
from ullage.tools.replay.trace import KINDS, SUMMED_UP, WHOLE


@pytest.fixture
def store(tmp_path):
    with_file = SqliteStore(tmp_path / "store.db")
    yield with_file
    with_file.close()


@pytest.mark.parametrize("wire", WIRES)
def test_each_request_comes_to_what_its_provider_reported(wire, store):
    session, _ = talked(wire, store)
    stored = conversation(store, "")
    trace = from_outline(stored).trace
    reports = [
        entry
        for key in dict.fromkeys(session._newest.transcript.chain)
        for entry in session.state.ledger.at(key).observed.values()
    ]
    assert [sum(sizes) for sizes in trace.sizes] == [
        entry.reported_tokens for entry in reports
    ]
    assert trace.lengths == sorted(trace.lengths)
    assert trace.raw == [entry.raw_tokens for entry in reports]
    assert all(
        read + written == sum(sizes)
        for read, written, sizes in zip(
            trace.cached, trace.written, trace.sizes, strict=True
        )
    )


def test_what_left_the_window_is_marked_where_it_first_shows(store):
    session, _ = talked("anthropic", store)
    run = from_outline(conversation(store, ""))
    refs = {event.ref for event in session.events if event.kind == "pruned"}
    assert {
        mark.ref for mark in run.trace.marks if mark.kind == "pruned"
    } == refs
    turn = min(mark.turn for mark in run.trace.marks if mark.kind == "pruned")
    places = [KINDS.index(kind) for kind in ("excerpt", "notice", "record")]
    instead = [
        sum(sizes[place] for place in places) for sizes in run.trace.sizes
    ]
    assert not any(instead[:turn])
    assert all(instead[turn:])
    shown = {index: state for _, index, state in run.trace.changes}
    assert SUMMED_UP in shown.values()
    assert shown.get(0, WHOLE) == WHOLE
    assert run.trace.rewritten[turn] > 0, "the cache begins anew there"
    assert run.policy == session.settings.policy.name


def test_what_is_shortened_when_it_arrives_is_marked_once(store):
    session, messages = (
        new_session("anthropic", store=store),
        messages_of("anthropic", 1),
    )
    messages[-1]["content"][0]["content"] = "a long line of a log\n" * 2_000
    view = fit(session, "anthropic", messages)
    view.observe(Usage(fresh_tokens=9_000, output_tokens=9))
    stored = conversation(store, "")
    run = from_outline(stored)
    (mark,) = run.trace.marks
    assert (mark.kind, mark.turn, mark.message, mark.is_new) == (
        "truncated",
        0,
        2,
        True,
    )
    assert mark.tokens_before > mark.tokens_after > 0
    savings = savings_of(stored, run.trace)
    assert (savings.requests, savings.sent_tokens) == (1, 9_000)
    assert savings.raw_tokens > 9_000
    assert run.story.parts[2][0].text.startswith("a long line of a log")


def test_the_share_that_was_saved():
    assert Savings(1, 25, 100).saved_share == 0.75
    assert Savings(0, 0, 0).saved_share == 0.0


def test_a_report_of_an_earlier_version_is_reckoned_by_characters(store):
    """What was kept before the reckoning was: four characters a token, as it was then."""
    session, messages = (
        new_session("anthropic", store=store),
        messages_of("anthropic", 1),
    )
    messages[-1]["content"][0]["content"] = "a long line of a log\n" * 2_000
    view = fit(session, "anthropic", messages)
    view.observe(Usage(fresh_tokens=9_000, output_tokens=9))
    stored = conversation(store, "")
    key = stored.transcript.decision_key(stored.outline.length)
    (report,) = stored.ledger.at(key).observed.values()
    assert report.raw_tokens > 9_000
    earlier, _ = stored.ledger.with_observed(
        key, replace(report, raw_tokens=-1)
    )
    stored = replace(stored, ledger=earlier)
    savings = savings_of(stored, from_outline(stored).trace)
    assert savings.raw_tokens == pytest.approx(report.raw_tokens, rel=0.5)
