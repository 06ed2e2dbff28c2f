"""Stores that fail, and calls cut off: no view without its originals, and the next fit works."""

import asyncio

import pytest

from tests.sessions import SMALL, long_history, new_session, recall, request
from tests.world import FORMAT_NAMES, MODEL
from ullage import AsyncSession, MemoryStore, StoreError
from ullage.stores.threaded import Threaded


class Failing(MemoryStore):
    """Fails in the named operation as often as it is told to."""

    def __init__(self, operation, times=1):
        super().__init__()
        self.operation, self.left = operation, times

    def _fail(self, operation):
        if operation == self.operation and self.left:
            self.left -= 1
            raise StoreError("failing", operation, "the disk is full")

    def commit(self, tenant, outputs, records):
        self._fail("commit")
        return super().commit(tenant, outputs, records)

    def find(self, tenant, keys):
        self._fail("find")
        return super().find(tenant, keys)

    def stat(self, tenant, ref):
        self._fail("stat")
        return super().stat(tenant, ref)


@pytest.mark.parametrize("format", FORMAT_NAMES)
@pytest.mark.parametrize("operation", ["commit", "find"])
def test_a_store_that_fails_leaves_no_view_and_the_next_fit_works(
    format, operation
):
    """F91, F94: nothing is shown whose original is not kept."""
    session, whole = (
        new_session(format, store=Failing(operation)),
        long_history(format),
    )
    with pytest.raises(StoreError):
        session.fit(request(format, whole))
    assert session.state.ledger.entries == {}
    assert session.events == ()
    view = session.fit(request(format, whole))
    assert view == new_session(format).fit(request(format, whole))
    kept = set(session.store.refs(""))
    assert {
        event.ref for event in session.events if event.kind == "pruned"
    } <= kept


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_store_that_fails_in_recall_is_told_to_the_caller_and_the_next_call_works(
    format,
):
    session = new_session(format, store=Failing("stat"))
    session.fit(request(format, long_history(format)))
    asked = {"tool_call_id": "0123456789abcdef"}
    with pytest.raises(StoreError):
        recall(session, "get_continuation", asked)
    assert "nothing is kept" in recall(session, "get_continuation", asked)


def test_a_store_that_fails_half_way_through_a_session_costs_one_turn():
    store = Failing("commit", 0)
    session, whole = (
        new_session("openai-chat", store=store),
        long_history("openai-chat"),
    )
    expected = new_session("openai-chat", store=MemoryStore())
    lengths = [
        at for at, m in enumerate(whole) if at and m["role"] == "assistant"
    ]
    for length in lengths:
        store.left = 1
        part = request("openai-chat", whole[:length])
        try:
            view = session.fit(part)
        except StoreError:
            view = session.fit(part)
        assert view == expected.fit(part)


class Slow(Threaded):
    """A commit that waits to be let go."""

    def __init__(self, store):
        super().__init__(store)
        self.entered, self.go = asyncio.Event(), asyncio.Event()

    async def commit(self, tenant, outputs, records):
        self.entered.set()
        await self.go.wait()
        return await super().commit(tenant, outputs, records)


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_fit_cancelled_in_its_commit_leaves_the_session_usable(format):
    whole = request(format, long_history(format))

    async def story():
        store = Slow(MemoryStore())
        session = AsyncSession(
            MODEL[format],
            limits=SMALL,
            format=format,
            recall=True,
            store=store,
        )
        task = asyncio.create_task(session.fit(whole))
        await store.entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert session.state.ledger.entries == {}
        store.go.set()
        return await session.fit(whole)

    assert asyncio.run(story()) == new_session(format).fit(whole)
