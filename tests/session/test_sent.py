"""What is kept of requests: another worker judges by it, and nonsense in a store ends nothing."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from tests.session.provider import CLAUDE, SYSTEM, Agent, Provider, tool
from ullage import AsyncSession, Limits, Record, Session, SqliteStore
from ullage.session.prompt_cache.sent import (
    HEAD,
    MOST_RECENT,
    SENT,
    RecentRequest,
    SentRequest,
    sent_of,
    with_recent,
)

VAST = Limits(window_tokens=500_000)


@pytest.fixture
def provider(monkeypatch):
    return Provider().watch(monkeypatch)


def worker(path):
    return Session(CLAUDE, limits=VAST, store=path)


def kept(path):
    with closing(SqliteStore(path)) as store:
        return [
            record
            for kind in (SENT, HEAD)
            for record, _ in store.newest("", kind, 99)
        ]


def test_a_worker_that_comes_later_names_the_cause_too(provider, tmp_path):
    path = tmp_path / "kept.db"
    agent = Agent(worker(path), provider)
    for _ in range(3):
        agent.turn()
    agent.session = worker(path)
    assert agent.turn().sent.broken is None
    agent.session = worker(path)
    broken = agent.turn(system=SYSTEM[:700] + "!" + SYSTEM[701:]).sent.broken
    assert broken.cause == "system"
    assert broken.place == "between characters 513 and 1,024"
    agent.session = worker(path)
    broken = agent.turn(tools=[tool("x")]).sent.broken
    assert broken.place == "(`x` added, `read` removed)"


def test_two_workers_in_turn_each_know_what_the_other_sent(provider, tmp_path):
    path = tmp_path / "kept.db"
    one, two = worker(path), worker(path)
    agent = Agent(one, provider)
    for number in range(6):
        agent.session = (one, two)[number % 2]
        assert agent.turn().sent.broken is None
    agent.session = one
    assert agent.turn(tools=[tool("x")]).sent.broken.cause == "tools"
    agent.session = two
    assert agent.turn().sent.broken is None, "it had come with the other's"


def test_one_small_record_a_turn_and_one_for_each_head(provider, tmp_path):
    path = tmp_path / "kept.db"
    agent = Agent(worker(path), provider)
    for number in range(8):
        agent.turn(tools=[tool("read" if number < 4 else "x")])
    records = kept(path)
    sent = [record for record in records if record.kind == SENT]
    assert len(sent) == 8
    assert max(len(record.data) for record in sent) < 200
    assert len(records) - len(sent) == 2
    (broken,) = [sent_of(one).broken for one in sent if sent_of(one).broken]
    assert broken.cause == "tools"
    assert broken.is_measured


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"\x91\xa1x", b"\xc0"])
def test_a_record_that_cannot_be_read_is_passed_over(data, provider, tmp_path):
    assert sent_of(Record(b"k" * 16, SENT, 0, data)) is None
    path = tmp_path / "kept.db"
    agent = Agent(worker(path), provider)
    for _ in range(3):
        agent.turn()
    with closing(SqliteStore(path)) as store:
        for record in kept(path):
            row = (record.key, record.kind, 0, data, record.name)
            store.commit("", (), (Record(*row),))
    agent.session = worker(path)
    assert agent.turn(tools=[tool("x")]).sent.broken is None
    assert agent.turn(tools=[tool("y")]).sent.broken.cause == "tools"


def test_a_record_of_a_later_version_is_read_as_far_as_it_is_known():
    import msgspec

    sent = SentRequest(1, 2, b"c" * 16, "m", (1, 2, 3, 0, 4))
    longer = [*msgspec.msgpack.decode(msgspec.msgpack.encode(sent)), "later"]
    record = Record(b"k" * 16, SENT, 0, msgspec.msgpack.encode(longer))
    assert sent_of(record) == sent
    assert sent_of(Record(b"k" * 16, "batch", 0, record.data)) is None


def test_what_was_cached_is_what_was_read_and_written():
    claude = SentRequest(0, 1, b"", "claude-opus-4-8", (50, 100, 20, 0, 9))
    gpt = SentRequest(0, 1, b"", "gpt-4.1", (50, 100, 0, 0, 9))
    assert (claude.held_tokens, gpt.held_tokens) == (120, 150)
    assert (
        claude.lives_s < SentRequest(0, 1, b"", "m", (0, 1, 2, 2, 0)).lives_s
    )


def test_of_many_conversations_the_newest_few_are_at_hand():
    recent = ()
    for number in range(9):
        begins = bytes([number % 6])
        sent = SentRequest(number, 1, b"", "m")
        recent = with_recent(recent, RecentRequest(begins, b"k", sent))
    assert [one.sent.at_s for one in recent] == [8, 7, 6, 5][:MOST_RECENT]


def test_on_an_event_loop_it_is_the_same(provider):
    asyncio.run(goes_on(provider))


async def goes_on(provider):
    session = AsyncSession(CLAUDE, limits=VAST)
    agent = Agent(session, provider)
    for number in range(3):
        view = await session.fit(
            agent.request(tools=[tool("x" if number == 2 else "read")])
        )
        await view.observe(provider.answer(view))
        agent.messages += [
            {"role": "assistant", "content": "On."},
            {"role": "user", "content": "Go on."},
        ]
    assert view.sent.broken.cause == "tools"


HAIKU = "claude-haiku-4-5"


def title(agent, titles):
    """A request by the way, to another model, without tools: a title of the conversation."""
    request = {**agent.request(), "model": HAIKU, "system": "Title it."}
    del request["tools"]
    view = agent.session.fit(request)
    view.observe(titles.answer(view))
    return view.sent.broken


@pytest.mark.parametrize("is_new", [False, True])
def test_a_request_to_another_model_by_the_way_breaks_no_cache_of_this_one(
    is_new, provider, tmp_path
):
    path = tmp_path / "kept.db"
    agent = Agent(worker(path), provider)
    titles = Provider()
    for _ in range(4):
        agent.turn()
        assert title(agent, titles) is None or agent.number == 1
        if is_new:
            agent.session = worker(path)
        before = agent.session.fit(agent.request()).sent
        assert before.broken is None
        assert before.change is None
    assert agent.turn(tools=[tool("x")]).sent.broken.cause == "tools"


def test_a_conversation_that_began_under_an_older_version_goes_on(
    provider, tmp_path
):
    """It kept nothing of what was sent: the next request begins the comparison."""
    path = tmp_path / "kept.db"
    agent = Agent(worker(path), provider)
    for _ in range(3):
        agent.turn()
    agent.session.store.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM records WHERE kind IN ('sent', 'head')")
        db.commit()
    agent.session = worker(path)
    assert agent.turn(tools=[tool("x")]).sent.broken is None
    assert agent.turn(tools=[tool("y")]).sent.broken.cause == "tools"
