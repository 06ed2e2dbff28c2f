"""Copies and pickles: a session of the same state on the same store, or what to carry instead."""

import asyncio
import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import ullage
from tests.histories import CUTS_ALWAYS
from tests.loop.replies import FORMAT_NAMES, reply
from tests.loop.test_turn import Scripted, new_session, read_log
from ullage import AsyncSession, Budget, MemoryStore, Session, SqliteStore
from ullage.core.errors import NotCarried
from ullage.documents.conversation import ConversationStore
from ullage.doors.loop import run_turn
from ullage.session.copies import CopyMixin
from ullage.session.sessions import AsyncSessions, Sessions
from ullage.stores import BoundedStore, SpillStore
from ullage.stores.threaded import Threaded

ROOT = Path(__file__).parents[2]
formats = pytest.mark.parametrize("format", FORMAT_NAMES)
SETTINGS = {
    "policy": CUTS_ALWAYS,
    "limits": ullage.Limits(window_tokens=16_000),
}
WAYS = {
    "copied": copy.copy,
    "deep-copied": copy.deepcopy,
    "pickled": lambda value: pickle.loads(pickle.dumps(value)),
}
ways = pytest.mark.parametrize("way", WAYS)


def requests_of(format, count=4):
    """The requests of a run whose results are large."""
    from tests.loop.replies import asking, request

    calls = [
        [("read_log", {"path": f"{n}", "lines": 900})] for n in range(count)
    ]
    script = [reply(format, "", each, n) for n, each in enumerate(calls)]
    history, seen = asking(format), []

    class Seeing(Scripted):
        def __call__(self, **view):
            seen.append(list(history))
            return super().__call__(**view)

    client = Seeing(format, *script, reply(format, "Done."))
    run_turn(
        client,
        new_session(format, **SETTINGS),
        request(format, history),
        tools=[read_log],
    )
    return [request(format, messages) for messages in seen]


def plain(view):
    return json.dumps(view)


@formats
@ways
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_copy_goes_on_as_its_original_does(format, way, store, tmp_path):
    *before, after = requests_of(format)
    kept = tmp_path / "ullage.db" if store == "sqlite" else None
    session = new_session(format, store=kept, **SETTINGS)
    for each in before:
        view = session.fit(each)
        view.observe(reply(format, "So.", number=len(each)))
    other = WAYS[way](session)
    assert type(other) is Session
    assert isinstance(other, CopyMixin)
    assert other.state == session.state
    assert (other.usage, other.events) == (session.usage, session.events)
    shown = session.fit(after)
    assert plain(other.fit(after)) == plain(shown)
    tenant = session.settings.tenant
    refs = session.store.refs(tenant)
    assert refs
    assert [other.store.get(tenant, ref) for ref in refs] == [
        session.store.get(tenant, ref) for ref in refs
    ]


@ways
def test_a_copy_is_closed_by_itself_and_shares_the_account(way):
    session = new_session("openai-chat", budget=Budget(tokens=1_000_000))
    first, *_ = requests_of("openai-chat")
    session.fit(first)
    other = WAYS[way](session)
    assert (other.budget is session.budget) == (way != "pickled")
    other.close()
    session.fit(first)


def test_a_copy_in_the_midst_of_a_turn_answers_its_recall_calls():
    format = "anthropic"
    *_, last = requests_of(format)
    session = new_session(format, **SETTINGS)
    session.fit(last)
    ref = session.store.refs("")[0]
    call = {
        "type": "tool_use",
        "id": "t",
        "name": "get_continuation",
        "input": {"tool_call_id": ref},
    }
    other = copy.deepcopy(session)
    assert other.owns(call)
    assert other.recall(call) == session.recall(call)


@ways
def test_a_session_for_an_event_loop_as_well(way, tmp_path):
    *before, after = requests_of("openai-chat")

    async def main():
        session = new_session(
            "openai-chat", AsyncSession, store=tmp_path / "a.db", **SETTINGS
        )
        for each in before:
            await session.fit(each)
        other = WAYS[way](session)
        shown = await session.fit(after), await other.fit(after)
        await other.close()
        if way != "pickled":
            await session.fit(after)
        return map(plain, shown)

    ours, theirs = asyncio.run(main())
    assert ours == theirs


def test_another_process_goes_on_from_a_pickle(tmp_path):
    *before, after = requests_of("openai-chat")
    session = new_session("openai-chat", store=tmp_path / "a.db", **SETTINGS)
    for each in before:
        session.fit(each)
    (tmp_path / "session").write_bytes(pickle.dumps((session, after)))
    code = (
        "import pickle, sys\n"
        "session, after = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "sys.stdout.buffer.write(pickle.dumps(dict(session.fit(after))))"
    )
    run = [sys.executable, "-c", code, str(tmp_path / "session")]
    shown = subprocess.run(run, capture_output=True, check=False, cwd=ROOT)
    assert not shown.stderr.decode()
    assert pickle.loads(shown.stdout) == dict(session.fit(after))


# ── what hangs on it ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["copied", "deep-copied"])
@pytest.mark.parametrize(
    "make", [MemoryStore, lambda: Budget(tokens=7), Sessions]
)
def test_what_lives_in_a_process_is_its_own_copy(way, make):
    value = make()
    assert WAYS[way](value) is value
    assert WAYS[way]([value])[0] is value


def test_a_budget_goes_on_from_what_was_spent():
    budget = Budget(
        tokens=1_000, usd=3.0, warn_at=0.5, on_exceeded="stop", wait_s=7
    )
    budget.charge(
        ullage.Usage(fresh_tokens=600, output_tokens=10),
        "gpt-4.1",
        agent="lead",
    )
    other = pickle.loads(pickle.dumps(budget))
    assert (other.allowance, other.wait_s, other.spent) == (
        budget.allowance,
        7,
        budget.spent,
    )
    other.charge(ullage.Usage(fresh_tokens=5), "gpt-4.1")
    assert budget.spent.calls == 1


def test_sessions_that_share_a_budget_share_it_where_they_arrive():
    budget = Budget(tokens=1_000_000)
    pair = [new_session("openai-chat", budget=budget) for _ in range(2)]
    one, other = pickle.loads(pickle.dumps(pair))
    assert one.budget is other.budget


def test_stores_on_disk_are_opened_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = SpillStore(BoundedStore(SqliteStore("a.db")), "files")
    kept = pickle.dumps(
        [
            store,
            Threaded(store),
            ConversationStore("chat.db", format="anthropic"),
        ]
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again, threaded, chat = pickle.loads(kept)
    assert again.store.store.path == tmp_path / "a.db"
    assert again.folder == tmp_path / "files"
    assert threaded.store is again
    assert chat.wire.name == "anthropic"
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("kind", [Sessions, AsyncSessions])
def test_collections_of_sessions_are_made_anew_with_what_lasts(kind):
    sessions = kind("gpt-4.1", policy="output_cache", most=7)
    again = pickle.loads(pickle.dumps(sessions))
    assert type(again) is kind
    assert (
        again.of("a").settings.policy_fingerprint
        == sessions.of("a").settings.policy_fingerprint
    )


def test_what_is_held_in_memory_goes_along():
    sessions, (first, *_, last) = (
        Sessions("gpt-4.1", **SETTINGS),
        requests_of("openai-chat"),
    )
    sessions.of("a").fit(first)
    shown = sessions.of("a").fit(last)
    again = pickle.loads(pickle.dumps(sessions))
    assert plain(again.of("a").fit(last)) == plain(shown)
    assert again.store.refs("a") == sessions.store.refs("a")


@formats
def test_a_view_is_copied_with_its_handle_and_pickled_as_the_request(format):
    first, *_ = requests_of(format)
    session = new_session(format)
    view = session.fit(first)
    for other in (copy.copy(view), copy.deepcopy(view)):
        assert (type(other), dict(other)) == (type(view), dict(view))
        assert other.sent is view.sent
    copy.deepcopy(view).observe(reply(format, "So."))
    assert session.budget.spent.calls == 1
    carried = pickle.loads(pickle.dumps(view))
    assert type(carried) is dict
    assert carried == dict(view)


# ── what cannot go along ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name",
    ["on_event", "redact", "summariser"],
    ids=["an observer", "a redaction", "a model"],
)
def test_a_function_without_a_name_is_refused_with_what_to_carry(name):
    session = Session("gpt-4.1", **{name: lambda given: given})
    with pytest.raises(NotCarried, match=rf"{name}: .*session\.state"):
        pickle.dumps(session)
    assert copy.deepcopy(session).state == session.state


def test_every_library_that_expects_a_type_error_gets_one():
    assert issubclass(NotCarried, TypeError)


@pytest.mark.parametrize(
    "url",
    [
        "valkey://:hunter2@cache:6379/0",
        "redis://ada:hunter2@cache:6379/0",
    ],
)
def test_no_password_goes_into_a_pickle_unasked(url):
    from ullage.stores.cache import Cache

    with pytest.raises(NotCarried, match="password") as raised:
        pickle.dumps(Cache(url))
    assert "hunter2" not in str(raised.value)
    assert pickle.loads(pickle.dumps(Cache("valkey://cache:6379/0")))
