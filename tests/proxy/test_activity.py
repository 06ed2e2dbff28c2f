"""What the live page shows: bounded, and one whoever served it."""

import pytest
from msgspec.structs import replace

from tests.proxy.told import FITTED, broke, of, passed, relayed
from ullage.core.values.events import Event
from ullage.doors.proxy import activity
from ullage.doors.proxy.activity import Activity, Totals, joined, totalled


def seen_of(*told):
    found = Activity()
    for each in told:
        found.take(each)
    return found


def test_a_conversation_has_its_turns_sums_and_decisions():
    found = seen_of(relayed(), relayed(), passed())
    (shown,) = found.conversations
    assert [
        (turn.raw_tokens, turn.sent_tokens, turn.cached_tokens)
        for turn in shown.turns
    ] == [(4_000, 1_000, 900)] * 2
    assert [each.kind for each in shown.decisions] == ["pruned", "pruned"]
    assert shown.totals.requests == 2
    assert (found.totals.requests, found.totals.passed) == (3, 1)
    assert 0 < shown.totals.cost_usd < 1
    assert shown.tenant == "tenant-of-somebody"


def test_what_was_held_out_is_marked_and_in_no_saving_of_tokens():
    found = seen_of(of("a", 1.0), of("b", 2.0, is_held_out=True))
    out, fitted = found.conversations
    assert (out.is_held_out, fitted.is_held_out) == (True, False)
    assert found.totals.held_out == 1
    assert (found.totals.raw_tokens, found.totals.sent_tokens) == (
        4_000,
        1_000,
    )
    assert (
        out.turns[0].sent_tokens == 1_000
    )  # its window is drawn all the same


def test_dollars_saved_are_of_all_requests():
    cost = totalled(relayed()).cost_usd
    fitted = relayed(replace(FITTED, raw_usd=3 * cost))
    found = seen_of(fitted, of("b", 2.0, is_held_out=True, raw_usd=cost))
    totals = found.totals
    assert totals.raw_usd - totals.cost_usd == pytest.approx(2 * cost)
    # nothing was reckoned for it: it cost the same
    assert totalled(relayed()).raw_usd == cost


def test_what_two_workers_served_is_one_conversation():
    one, other = (
        seen_of(of("a", 1.0), of("a", 3.0)),
        seen_of(of("a", 2.0), of("b", 9.0)),
    )
    b, a = joined([one.conversations, other.conversations])
    assert (b.key, a.key) == ("b", "a")
    assert [turn.at_s for turn in a.turns] == [1.0, 2.0, 3.0]
    assert a.totals.requests == 3


def test_only_the_newest_are_kept(monkeypatch):
    monkeypatch.setattr(activity, "_CONVERSATIONS", 2)
    monkeypatch.setattr(activity, "_TURNS", 3)
    found = seen_of(*(of(key, at) for at, key in enumerate("aaaaabca")))
    assert [shown.key for shown in found.conversations] == ["a", "c"]
    found = seen_of(*(of("a", at) for at in range(9)))
    assert [turn.at_s for turn in found.conversations[0].turns] == [
        6.0,
        7.0,
        8.0,
    ]
    assert found.conversations[0].totals.requests == 9


def test_sums_add_up():
    assert Totals(requests=1) + Totals(requests=2, cost_usd=0.5) == Totals(
        requests=3, cost_usd=0.5
    )
    assert totalled(passed()) == Totals(requests=1, passed=1)


def test_the_words_of_a_decision_have_a_bound():
    named = "a tool with a name of " + "x" * 1_000_000
    (shown,) = seen_of(
        of("a", 1.0, events=(Event(kind="cut", where=named, why=named),))
    ).conversations
    assert (len(shown.decisions[0].place), len(shown.decisions[0].reason)) == (
        300,
        300,
    )


def test_a_broken_cache_is_a_line_of_its_conversation_and_in_the_sums():
    found = seen_of(relayed(), broke(), broke())
    (shown,) = found.conversations
    assert (shown.totals.breaks, shown.totals.rebilled_tokens) == (2, 1_800)
    assert found.totals.rebilled_usd == 0.5
    note = shown.decisions[-1]
    assert (note.kind, note.place) == ("cache_broken", "tools (`x` added)")
    assert "900 tokens were billed again" in note.reason


def test_what_nobody_bills_costs_nothing_and_is_counted():
    local = of("a", 1.0, wire="ollama", model="gpt-oss:20b")
    cloud = of("a", 2.0, wire="ollama", model="gpt-oss:120b-cloud")
    totals = seen_of(local, local, cloud).totals
    assert (totals.unbilled, totals.requests) == (2, 3)
    assert totalled(local).cost_usd == 0
