"""A live session shown again from its store and its history."""

import pytest

from tests.replay.test_run import small_run
from ullage import ConfigError, Limits, Session
from ullage.stores import MemoryStore
from ullage.tools.replay.calls import boundaries, model_of
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.stored import from_store

WINDOW = 16_000
PROFILE = [PROFILES["anthropic-5m"]]


def live(run, store, policy="default"):
    """Run a session over the history as an agent would; every view it sent, in tokens."""
    session = Session(
        model_of(run),
        policy=policy,
        store=store,
        format=run.format,
        limits=Limits(window_tokens=WINDOW),
        recall=True,
    )
    key = "contents" if run.format == "gemini" else "messages"
    judge, views = Judge(), []
    for length in boundaries(run):
        request = {
            **run.request,
            "model": model_of(run),
            key: run.messages[:length],
        }
        views.append(judge.tokens(session.fit(request)[key]))
    return session, views


@pytest.mark.parametrize("policy", ["default", "three_layer", "token_budget"])
@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
def test_every_view_that_was_sent_is_shown_again(format, policy):
    run, store = small_run(format), MemoryStore()
    run.request.pop("model", None)
    session, views = live(run, store, policy)
    found = from_store(run, store, profiles=PROFILE, window_tokens=WINDOW)
    assert found.policy == session.settings.policy.name
    assert found.unfit == 0
    shown = [sum(sizes) - sizes[0] for sizes in found.trace.sizes]
    assert shown == pytest.approx(views, rel=0.05, abs=40)
    told = {event.ref for event in session.events if event.ref}
    assert {mark.ref for mark in found.trace.marks} == told


def test_nothing_is_decided_anew_and_the_ledger_is_only_read():
    run, store = small_run("openai-chat"), MemoryStore()
    live(run, store)
    before = store.refs("")
    roomy = from_store(run, store, profiles=PROFILE, window_tokens=WINDOW)
    small = from_store(run, store, profiles=PROFILE, window_tokens=WINDOW // 2)
    assert store.refs("") == before
    assert {mark.ref for mark in small.trace.marks} <= {
        mark.ref for mark in roomy.trace.marks
    }
    assert small.unfit > 0, (
        "turns that do not fit the smaller window are told, and not cut"
    )
    assert len(small.trace.lengths) == len(boundaries(run)) - small.unfit


def test_a_history_the_ledger_does_not_know_is_told():
    run, other = small_run("openai-chat"), small_run("openai-chat", 2)
    store = MemoryStore()
    live(run, store)
    other.messages[0] = {"role": "user", "content": "something else"}
    with pytest.raises(ConfigError, match="no session with this history"):
        from_store(other, store, profiles=PROFILE)
    with pytest.raises(ConfigError, match="no session with this history"):
        from_store(run, store, profiles=PROFILE, tenant="somebody else")
