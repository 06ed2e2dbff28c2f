"""What is in a window, told and decided by its store alone."""

import pytest
from msgspec.structs import replace

from tests import histories
from tests.session.test_deciding import (
    TURNS,
    WIRES,
    fit,
    gone,
    messages_of,
    new_session,
    shown,
)
from ullage import ConfigError, MemoryStore, SqliteStore, TargetNotFound, Usage
from ullage.session.stored.conversation import (
    conversation,
    conversations,
    decide,
    decision_of,
)
from ullage.session.stored.estimate import estimate_of
from ullage.wires import FORMATS


@pytest.fixture
def store(tmp_path):
    with_file = SqliteStore(tmp_path / "store.db")
    yield with_file
    with_file.close()


def talked(wire, store, turns=12, **more):
    """A session that observed every reply, and its history."""
    session, messages = (
        new_session(wire, store=store, **more),
        messages_of(wire, turns),
    )
    for length in range(1, len(messages) + 1):
        if FORMATS[wire].parse(messages[length - 1], "").role != "assistant":
            view = fit(session, wire, messages[:length])
            view.observe(
                Usage(fresh_tokens=session._newest.tokens, output_tokens=9)
            )
    return session, messages


@pytest.mark.parametrize("wire", WIRES)
def test_it_tells_what_is_whole_and_what_is_not(wire, store):
    session, _ = talked(wire, store)
    stored = conversation(store, "")
    assert stored.transcript.chain == session._newest.transcript.chain
    window = session.window
    for leaf in stored.leaves():
        if leaf.kind == "result":
            shown_whole = not window.hidden(leaf.message) and not window.shown(
                leaf.message
            )
            assert (leaf.state == "whole") is shown_whole
            assert (leaf.batch != "") is (leaf.state == "set aside")
    assert {leaf.state for leaf in stored.leaves()} >= {"whole", "set aside"}


def test_what_is_cut_at_first_sight_is_in_short(store):
    session, messages = (
        new_session("anthropic", store=store),
        messages_of("anthropic", 1),
    )
    messages[-1]["content"][0]["content"] = "a long line of a log\n" * 2_000
    view = fit(session, "anthropic", messages)
    view.observe(Usage(fresh_tokens=9_000, output_tokens=9))
    states = [leaf.state for leaf in conversation(store, "").leaves()]
    assert states == ["whole", "whole", "in short"]


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_decided_there_is_in_the_next_view(wire, store):
    session, messages = talked(wire, store)
    name = gone(session)[0]
    stored = conversation(store, "")
    decide(
        store,
        stored,
        decision_of(stored, "pin", name, reason="the rules", author="ann"),
    )
    decide(
        store, stored, decision_of(stored, "note", text="Never touch main.")
    )
    view = fit(session, wire, messages)
    assert "Never touch main." in shown(view)
    assert name not in gone(session)
    again = conversation(store, "")
    assert [one.decision.verb for one in again.hand.decisions] == [
        "pin",
        "note",
    ]
    leaf = next(
        leaf for leaf in again.leaves() if leaf.name.startswith(f"{name}.")
    )
    assert (leaf.state, leaf.is_pinned) == ("whole", True)
    for _ in range(2):
        stored = conversation(store, "")
        decide(store, stored, decision_of(stored, "undo"))
    view = fit(session, wire, messages)
    assert "Never touch main." not in shown(view)
    assert session.decisions == conversation(store, "").hand.decisions


def test_a_ref_means_what_a_batch_set_aside(store):
    talked("anthropic", store)
    stored = conversation(store, "")
    leaf = next(leaf for leaf in stored.leaves() if leaf.ref)
    assert decision_of(stored, "undo", leaf.ref).undoes is not None
    with pytest.raises(TargetNotFound, match="m12 for message 12"):
        decision_of(stored, "pin", "m999")
    with pytest.raises(ConfigError, match="no lines of one text"):
        decision_of(stored, "pin", "m3", lines=(4, 2))
    with pytest.raises(ConfigError, match="the note is empty"):
        decision_of(stored, "note", text=" ")


def test_conversations_are_listed_newest_first_and_apart_by_tenant(store):
    talked("anthropic", store, 2)
    other = new_session("anthropic", store=store, tenant="other")
    view = fit(other, "anthropic", messages_of("anthropic", 1))
    view.observe(Usage(fresh_tokens=9, output_tokens=9))
    (mine,) = conversations(store, "")
    (theirs,) = conversations(store, "other")
    assert mine.outline.name != theirs.outline.name
    assert mine.outline.length == len(messages_of("anthropic", 2))
    with pytest.raises(ConfigError, match="no such conversation"):
        conversation(store, "", theirs.outline.name)
    with pytest.raises(ConfigError, match="no conversation is kept"):
        conversation(store, "nobody")


def test_an_outline_can_be_left_out(store):
    talked("anthropic", store, 2, outline=False)
    assert conversations(store, "") == []


def test_nothing_is_outlined_in_memory():
    store = MemoryStore()
    talked("anthropic", store, 2)
    assert conversations(store, "") == []


def test_no_secret_is_in_an_outline(store):
    session = new_session(
        "anthropic",
        store=store,
        redact=lambda text: text.replace("a.py", "***"),
    )
    messages = histories.wire("anthropic", TURNS[:1])
    view = fit(session, "anthropic", messages)
    view.observe(Usage(fresh_tokens=9, output_tokens=9))
    heads = [leaf.head for leaf in conversation(store, "").leaves()]
    assert any("***" in head for head in heads)
    assert not any("a.py" in head for head in heads)


def test_what_a_decision_comes_to_is_reckoned_by_characters(store):
    session, messages = talked("anthropic", store)
    stored = conversation(store, "")

    def tokens(*words, **fields):
        return estimate_of(stored, decision_of(stored, *words, **fields))[:2]

    name = gone(session)[0]
    more, anew = tokens("pin", name)
    assert anew > more > 500
    last = f"m{len(messages)}"
    more, anew = tokens("drop", last)
    assert more < -500
    assert tokens("pin", last) == (0, 0)
    assert tokens("note", text="x" * 40) == (10, 0)
    assert tokens("undo")[0] > 0
    assert tokens("restore", name, when="end")[1] == 0


def test_it_has_a_price_in_dollars_where_the_model_is_known(store):
    session, messages = talked("anthropic", store)
    stored = conversation(store, "")
    pinned = estimate_of(stored, decision_of(stored, "pin", gone(session)[0]))
    assert pinned.cost_now_usd > pinned.cost_per_call_usd > 0
    dropped = decision_of(stored, "drop", f"m{len(messages)}")
    assert estimate_of(stored, dropped).cost_per_call_usd < 0
    outline = replace(stored.outline, model="a model of nobody's")
    unknown = estimate_of(replace(stored, outline=outline), dropped)
    assert unknown[2:] == (None, None)
    assert unknown[:2] == estimate_of(stored, dropped)[:2]
