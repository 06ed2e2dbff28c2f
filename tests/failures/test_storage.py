"""F92 to F100: what was lost between two processes, two threads, or two versions."""

import asyncio
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.conversations import opened
from tests.failures.scenes import (
    WIRES,
    Writer,
    new_session,
    requests,
    run,
    steps,
    tagged,
)
from ullage import AsyncSession, Limits, MemoryStore, Record, StoreError
from ullage.documents.conversation import ConversationStore
from ullage.policy import DEFAULT

CHAT = "openai-chat"
wires = pytest.mark.parametrize("format", WIRES)


def whole(turns, format=CHAT):
    return list(requests(format, turns))[-1]


def test_f92_what_is_appended_during_a_compaction_is_there_afterwards(
    tmp_path,
):
    """A message that came while a model was writing the summary was lost."""
    late = {"role": "user", "content": "Stop, wait."}
    kept = ConversationStore(tmp_path / "chat.db", format=CHAT)

    def slow(asked):
        kept.append("s", [late])
        return tagged("It went on.")

    kept.append("s", whole(steps(60))["messages"])
    opened(tmp_path, CHAT, slow).fit({"model": "gpt-4.1"})
    assert kept.newest_compaction("s")
    assert late in [stored.message for stored in kept.history("s")]
    assert late in [stored.message for stored in kept.load("s")]


class Arrivals:
    """A lock that writes down, in order, what threads come to."""

    def __init__(self, lock):
        self.lock, self.names = lock, []
        self.threads, self.changed = set(), threading.Condition()

    def note(self, name):
        with self.changed:
            self.names.append(name)
            self.changed.notify_all()

    def wait(self, is_enough):
        with self.changed:
            assert self.changed.wait_for(is_enough, 60)

    def __enter__(self):
        if threading.get_ident() not in self.threads:
            self.threads.add(threading.get_ident())
            self.note("locked")
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


def test_f93_of_eight_compactions_at_once_one_takes_effect():
    """Two compactions ran at once, and the summary was there twice."""
    model, request = Writer(tagged("It went on.")), whole(steps(9))

    def all_at_the_lock_or_one_past_it():
        count = arrivals.names.count
        return count("locked") == 8 or count("asked") + count("ended") > 1

    def summariser(question):
        arrivals.note("asked")
        arrivals.wait(all_at_the_lock_or_one_past_it)
        return model(question)

    def compact():
        session.compact(request)
        arrivals.note("ended")

    session = new_session(CHAT, 100_000, summariser=summariser)
    arrivals = session._lock = Arrivals(session._lock)
    threads = [threading.Thread(target=compact) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(arrivals.names[:9]) == ["asked"] + 8 * ["locked"]
    assert len(model.asked) == 1
    assert len(session.window.summaries) == 1


class Failing(MemoryStore):
    """A store that fails at its commit number ``left``."""

    def __init__(self, left):
        super().__init__()
        self.left = left

    def commit(self, tenant, outputs, records):
        self.left -= 1
        if self.left == 0:
            raise StoreError("memory", "commit", "it was killed")
        return super().commit(tenant, outputs, records)


@pytest.mark.parametrize("left", range(1, 9))
def test_f94_a_write_that_fails_leaves_the_old_view_or_the_new_one(left):
    """Killed in the middle: half a boundary, 166 messages rolled back."""
    store, request = Failing(left), whole(steps(20))
    session, sent = new_session(CHAT, store=store), []
    for part in requests(CHAT, steps(20)):
        try:
            sent.append((part, session.fit(part)))
        except StoreError:
            break
    store.left = 0
    # what was decided stands for one that would decide nothing itself
    still = replace(DEFAULT, name="still", under_pressure=(), guard=None)
    for part, view in sent[-1:]:
        idle = new_session(CHAT, store=store, policy=still)
        assert idle.fit(part) == view
    again = new_session(CHAT, store=store)
    expected = new_session(CHAT)
    assert list(run(again, CHAT, steps(20))) == list(
        run(expected, CHAT, steps(20))
    )
    assert again.fit(request) == expected.fit(request)


def test_f95_a_compaction_that_was_given_up_is_not_running_for_ever():
    """ "Compaction running" stood in the database, and nobody ever cleared it."""
    begun = asyncio.Event()

    async def hangs(asked):
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return tagged("It went on.")

    async def cancelled():
        session = AsyncSession(
            "gpt-4.1", limits=Limits(window_tokens=100_000), summariser=hangs
        )
        task = asyncio.create_task(session.compact(whole(steps(9))))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        await session.compact(whole(steps(9)))
        return await session.fit(whole(steps(9)))

    assert "> It went on." in str(asyncio.run(cancelled()))


@wires
def test_f96_a_rewind_behind_a_compaction_shows_what_was_there(format):
    """A rewind after a compaction lost what had been compacted."""
    session, every = new_session(format), list(requests(format, steps(30)))
    views = [json.dumps(session.fit(request)) for request in every]
    session.compact(every[-1])
    for number in (3, 12, 20):
        assert json.dumps(session.fit(every[number])) == views[number]


@wires
def test_f97_the_callers_history_is_never_changed(format):
    """The view was written back as the history."""
    request = whole(steps(30), format)
    before = json.dumps(request)
    session = new_session(format)
    session.compact(request)
    session.fit(request)
    assert json.dumps(request) == before


def test_f98_a_record_of_a_later_version_is_passed_over():
    """After an upgrade and back, a boundary could not be read, and the session was over."""
    store, request = MemoryStore(), whole(steps(20))
    session = new_session(CHAT, store=store)
    session.fit(request)
    keys = list(session.state.ledger.entries)
    later = [
        Record(key, kind, 7, b"{")
        for key in keys
        for kind in ("of-2031", "opened", "batch")
    ]
    store.commit("", (), later)
    assert new_session(CHAT, store=store).fit(request) == session.fit(request)


@given(data=st.data())
def test_f99_in_whatever_order_it_is_fitted_and_compacted_a_history_has_one_view(
    data,
):
    """A partial message was appended again behind the boundary."""
    store, every = MemoryStore(), list(requests(CHAT, steps(8)))
    session = new_session(CHAT, 6_000, store=store)
    for number in data.draw(
        st.lists(st.integers(0, len(every) - 1), max_size=5)
    ):
        session.fit(every[number])
    view = session.fit(every[-1])
    assert session.fit(every[-1]) == view
    assert new_session(CHAT, 6_000, store=store).fit(every[-1]) == view


def test_f100_what_is_prepared_beside_the_turns_is_shown_when_it_is_there_and_not_before():
    """A compaction that had been accepted was taken for one that was done."""

    async def turns():
        free = asyncio.Event()

        async def slow(asked):
            await free.wait()
            return tagged("It went on.")

        limits = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
        session = AsyncSession(
            "gpt-4.1", limits=limits, format=CHAT, summariser=slow
        )
        talk = [
            replace(one, said="I think about it. " * 40)
            for one in steps(100, lines=0)
        ]
        every = iter(requests(CHAT, talk))
        for request in every:
            view = await session.fit(request)
            if session.preparing is not None:
                break
        assert "It went on." not in str(view)
        free.set()
        await session.preparing
        return await session.fit(next(every))

    assert "> It went on." in str(asyncio.run(turns()))
