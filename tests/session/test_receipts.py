"""The ledger of receipts: what was sent, what would have been, and what recall took of it."""

import asyncio
import os
from copy import copy

import pytest
from msgspec.structs import replace

from tests.replay.evidence.conversation import errand
from ullage import (
    AsyncSession,
    Budget,
    Limits,
    MemoryStore,
    Session,
    Sessions,
)
from ullage.core.errors import StoreError
from ullage.core.values.receipts import ReceiptKey, ReceiptTotals, summed
from ullage.core.values.usage import Usage
from ullage.documents import preset
from ullage.session.receipts import writer
from ullage.session.receipts.timer import aclose
from ullage.session.receipts.writer import close
from ullage.stores import SqliteStore, forget, receipts_of
from ullage.tools.replay.calls import (
    answer_of,
    boundaries,
    request_of,
    session_for,
)
from ullage.tools.replay.cost.money import CostMeter
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.cost.prices import OWN, profiles_for
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.run import _tools_of
from ullage.wires import FORMATS

TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "parameters": {"type": "object", "properties": {}},
    },
}


def total(store):
    """What the ledger of a store sums up to, once what was noted is written."""
    close(store)
    return summed(receipts_of(store).receipts()).get((), ReceiptTotals())


def asked(*said):
    roles = ("user", "assistant")
    return {
        "model": "gpt-4.1",
        "messages": [
            {"role": roles[n % 2], "content": text}
            for n, text in enumerate(said)
        ],
    }


@pytest.mark.parametrize("window", [8_000, 200_000])
@pytest.mark.parametrize(
    ("format", "model"),
    [
        ("openai-chat", "gpt-4.1"),
        ("openai-responses", "gpt-5.4"),
        ("gemini", "gemini-2.5-pro"),
    ],
)
def test_the_sums_agree_with_those_of_a_replay_to_the_cent(
    format, model, window
):
    run = errand(1, turns=60, format=format)
    run = replace(run, request={**run.request, "model": model})
    wire, judge, lengths = FORMATS[format], Judge(), boundaries(run)
    head, tools = head_of(run.request), _tools_of(preset("default").toolset)
    clocks = {"warm": [0.0] * len(lengths)}
    meter = CostMeter(
        profiles_for((OWN,), run), (head, head + tools), clocks, judge.text
    )
    session = session_for(run, preset("default"), window)()
    for number, length in enumerate(lengths):
        view = session.fit(request_of(run, run.messages[:length]))
        output_tokens = judge.tokens(answer_of(run, length))
        meter.take(
            number, run.messages[:length], wire.history(view), output_tokens
        )
        call = meter.newest.call
        usage = Usage(
            fresh_tokens=call.fresh_tokens,
            cache_read_tokens=call.cached_tokens,
            cache_write_tokens=call.written_tokens,
            output_tokens=output_tokens,
        )
        view.observe(usage)
    (bill,), sums = meter.bills(), total(session.store)
    assert sums.requests == len(lengths)
    assert sums.sent_usd == pytest.approx(bill.shown.cost_usd, abs=1e-6)
    assert sums.raw_usd == pytest.approx(bill.raw.cost_usd, abs=0.01)
    assert sums.raw_usd > 1.2 * sums.sent_usd
    assert session.saved == sums, "one session is all there is in the store"
    words = f"{sums.requests} requests: {sums.sent.prompt:,} prompt tokens, "
    assert str(session.saved).startswith(words)


def test_where_nothing_is_cut_both_sides_are_the_same_to_the_token():
    session = Session("gpt-4.1")
    usage = Usage(
        fresh_tokens=7,
        cache_read_tokens=100,
        cache_write_tokens=3,
        output_tokens=11,
    )
    session.fit(asked("Go."))
    session.observe(usage)
    sums = total(session.store)
    assert sums.sent == sums.raw
    assert sums.sent_usd == sums.raw_usd > 0
    assert (sums.requests, sums.conversations, sums.recall_usd) == (1, 1, 0)


def test_the_recall_tool_is_no_part_of_what_would_have_been_sent():
    session = Session("gpt-4.1")
    view = session.fit({**asked("Go."), "tools": [TOOL]})
    assert len(view["tools"]) == 2
    view.observe(Usage(fresh_tokens=view.sent.tokens))
    sums = total(session.store)
    assert sums.raw.prompt < sums.sent.prompt
    assert sums.raw_usd < sums.sent_usd


def recalling():
    """A session whose model opened what was set aside, and its requests."""
    text = "".join(f"line {n} of a long output\n" for n in range(4_000))
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "read", "arguments": "{}"},
    }
    history = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
    ]
    session = Session("gpt-4.1")
    request = {"model": "gpt-4.1", "tools": [TOOL], "messages": history}
    opening = session.fit({**request, "messages": history[:1]})
    opening.observe(Usage(fresh_tokens=opening.sent.estimate, output_tokens=5))
    view = session.fit(request)
    view.observe(Usage(fresh_tokens=view.sent.estimate, output_tokens=40))
    ref = view["messages"][-1]["content"].split('tool_call_id="')[1][:16]
    ours = {
        "id": "r1",
        "type": "function",
        "function": {
            "name": "get_continuation",
            "arguments": f'{{"tool_call_id": "{ref}"}}',
        },
    }
    page = session.recall(ours)
    history += [
        {"role": "assistant", "content": None, "tool_calls": [ours]},
        page,
    ]
    return session, request, history


def test_a_request_that_only_reads_on_is_what_recall_cost():
    session, request, history = recalling()
    before = total(session.store)
    view = session.fit(request)
    view.observe(Usage(fresh_tokens=view.sent.estimate, output_tokens=60))
    after = total(session.store)
    added = after - before
    assert (added.requests, added.recalls) == (1, 1)
    assert added.raw.prompt == 0
    assert 0 < added.raw.output < 60, (
        "its answer would have come all the same, without the call"
    )
    assert added.recall_tokens == added.sent.prompt > 0
    assert added.recall_usd == pytest.approx(added.sent_usd - 60 * 8e-6)
    history += [
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]
    view = session.fit(request)
    view.observe(Usage(fresh_tokens=view.sent.estimate, output_tokens=9))
    later = total(session.store) - after
    assert 0 < later.recall_tokens < later.sent.prompt, (
        "the page is carried along"
    )
    assert later.raw.prompt > later.sent.prompt, (
        "the whole output would have been"
    )


def test_a_reply_that_is_reported_twice_counts_once_and_the_fuller_report():
    session = Session("gpt-4.1")
    view = session.fit(asked("Go."))
    view.observe(Usage(fresh_tokens=10))
    view.observe(Usage(fresh_tokens=10))
    view.observe(Usage(fresh_tokens=10, output_tokens=90))
    sums = total(session.store)
    assert (sums.requests, sums.sent.fresh, sums.sent.output) == (1, 10, 90)
    assert session.saved == sums
    assert copy(session).saved == ReceiptTotals(), "a copy begins anew"


def test_what_nobody_reports_is_estimated_and_says_so():
    session = Session("gpt-4.1")
    view = session.fit(asked("Go."))
    view.observe({"id": "r", "choices": [], "usage": {"prompt_tokens": -5}})
    sums = total(session.store)
    assert (sums.requests, sums.unreported) == (1, 1)
    assert sums.sent.fresh == view.sent.estimate
    view.observe(Usage(fresh_tokens=9))
    assert total(session.store).sent.fresh == 9, (
        "the report takes the place of the estimate"
    )


def test_a_model_without_a_price_is_in_no_sum_of_dollars():
    session = Session(
        "a-model-of-mine",
        limits=Limits(window_tokens=8_000),
        format="openai-chat",
    )
    session.fit({**asked("Go."), "model": "a-model-of-mine"})
    session.observe(Usage(fresh_tokens=9))
    sums = total(session.store)
    assert (sums.requests, sums.unpriced, sums.sent_usd, sums.raw_usd) == (
        1,
        1,
        0,
        0,
    )


@pytest.mark.parametrize(
    ("model", "unbilled", "unpriced"),
    [("qwen3:8b", 1, 0), ("gpt-oss:20b", 1, 0), ("qwen3:480b-cloud", 0, 1)],
)
def test_nobody_bills_a_model_on_a_machine_of_ones_own(
    model, unbilled, unpriced
):
    """Neither a price of nought nor an unknown one: Ollama's cloud is billed by a plan."""
    budget = Budget(usd=1.0) if unbilled else None
    session = Session(model, format="ollama", budget=budget)
    request = {**asked("Go."), "model": model}
    session.fit(request)
    session.observe(Usage(fresh_tokens=9, output_tokens=1))
    refused = StoreError("memory", "commit", "full")
    session.pass_on(request, refused).observe(
        {"prompt_eval_count": 5, "eval_count": 2, "done": True}
    )
    sums = total(session.store)
    assert (sums.requests, sums.unbilled) == (2, 2 * unbilled)
    assert (sums.unpriced, sums.sent_usd, sums.raw_usd) == (2 * unpriced, 0, 0)
    assert [call.is_billed for call in session.budget.calls] == [
        not unbilled
    ] * 2
    assert session.cost_usd == (0.0 if unbilled else None)


def test_what_goes_as_it_came_is_the_same_on_both_sides():
    session = Session("gpt-4.1")
    request = {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": "Go."}],
    }
    unfitted = session.pass_on(request, StoreError("memory", "commit", "full"))
    unfitted.observe(
        {
            "usage": {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "total_tokens": 7,
            }
        }
    )
    sums = total(session.store)
    assert sums.sent == sums.raw
    assert sums.sent.prompt == 5


# ── who and when ─────────────────────────────────────────────────────────────────────────


def test_receipts_are_by_tenant_model_and_client(tmp_path):
    path = tmp_path / "kept.db"
    for tenant, agent in (
        ("a", "lead"),
        ("a\x1fbranch", "scout"),
        ("b", "lead\x1b[2J"),
    ):
        with Session(
            "gpt-4.1", store=path, tenant=tenant, agent=agent
        ) as session:
            session.fit(asked("Go."))
            session.observe(Usage(fresh_tokens=3))
    store = SqliteStore(path)
    found = summed(store.receipts(), ("tenant", "client"))
    assert set(found) == {("a", "lead"), ("a", "scout"), ("b", "lead?[2J")}


def test_they_are_kept_when_the_conversations_are_forgotten(tmp_path):
    with Session("gpt-4.1", store=tmp_path / "kept.db", tenant="a") as session:
        session.fit(asked("Go."))
        session.observe(Usage(fresh_tokens=3))
        forget(session.store, "a")
        assert total(session.store).requests == 1


def test_a_process_that_says_nothing_leaves_its_rows_open():
    store, sessions = MemoryStore(), []
    for number in range(3):
        sessions.append(Session("gpt-4.1", store=store))
        sessions[-1].fit(asked(f"Go {number}."))
        sessions[-1].observe(Usage(fresh_tokens=3))
    (early,) = store.receipts()
    assert (early.sums.requests, early.is_open) == (1, True), (
        "the others wait for the next write"
    )
    close(store)
    (late,) = store.receipts()
    assert (late.sums.requests, late.is_open, late.writer) == (
        3,
        False,
        early.writer,
    )


class Failing(MemoryStore):
    """Fails so many times to keep receipts; the last of them after it kept them."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    def keep_receipts(self, receipts):
        self.times -= 1
        if self.times <= 0:
            super().keep_receipts(receipts)
        if self.times >= 0:
            raise StoreError("failing", "keep_receipts", "not now")


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_write_that_fails_is_done_again_and_counts_once(times):
    store = Failing(times)
    session = Session("gpt-4.1", store=store)
    for number in range(3):
        session.fit(asked(f"Go {number}."))
        session.observe(Usage(fresh_tokens=3))
        close(store)
    assert total(store).requests == 3


class Plain:
    """A store of before, which keeps no receipts."""

    def __init__(self):
        self._kept = MemoryStore()
        self.name = "plain"

    def __getattr__(self, name):
        if name in ("keep_receipts", "receipts", "_kept"):
            raise AttributeError(name)
        return getattr(self._kept, name)


def test_a_store_that_keeps_none_works_as_before():
    store = Plain()
    assert receipts_of(store) is None
    with Session("gpt-4.1", store=store) as session:
        session.fit(asked("Go."))
        session.observe(Usage(fresh_tokens=3))


def test_too_many_names_share_a_row(monkeypatch):
    monkeypatch.setattr(writer, "_MOST_PLACES", 3)
    store = MemoryStore()
    for number in range(9):
        session = Session("gpt-4.1", store=store, agent=f"client {number}")
        session.fit(asked("Go."))
        session.observe(Usage(fresh_tokens=3))
    assert total(store).requests == 9
    found = {
        receipt.key.client: receipt.sums.requests
        for receipt in store.receipts()
    }
    assert found == {
        "client 0": 1,
        "client 1": 1,
        "client 2": 1,
        "(others)": 6,
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_is_a_process_of_its_own(tmp_path):
    session = Session("gpt-4.1", store=tmp_path / "kept.db")
    session.fit(asked("Go."))
    session.observe(Usage(fresh_tokens=3))
    child = os.fork()
    if not child:
        try:
            session.fit(asked("Go."))
            session.observe(Usage(fresh_tokens=4))
            close(session.store)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    sums = total(session.store)
    assert (sums.requests, sums.sent.fresh) == (2, 7)
    assert len({receipt.writer for receipt in session.store.receipts()}) == 2


def test_many_conversations_of_one_service_have_one_row(tmp_path):
    with Sessions(
        "gpt-4.1", store=tmp_path / "kept.db", tenant="team"
    ) as sessions:
        for number in range(4):
            session = sessions.of(f"conversation {number}", tenant="team")
            session.fit(asked(f"Go {number}."))
            session.observe(Usage(fresh_tokens=3))
    (receipt,) = SqliteStore(tmp_path / "kept.db").receipts()
    assert (receipt.key.tenant, receipt.sums.requests) == ("team", 4)
    assert not receipt.is_open


class Awaited:
    """An asynchronous store over one in memory."""

    name = "awaited"

    def __init__(self):
        self.kept = MemoryStore()

    async def commit(self, tenant, outputs, records):
        return self.kept.commit(tenant, outputs, records)

    async def find(self, tenant, keys):
        return self.kept.find(tenant, keys)

    async def keep_receipts(self, receipts):
        self.kept.keep_receipts(receipts)

    async def close(self):
        """Kept open, to be read."""


@pytest.mark.parametrize("kind", [MemoryStore, Awaited])
def test_a_session_on_an_event_loop_writes_the_same(kind):
    store = kind()

    async def run():
        session = AsyncSession("gpt-4.1", store=store)
        for number in range(3):
            await session.fit(asked(f"Go {number}."))
            await session.observe(Usage(fresh_tokens=3))
        await aclose(session.store)

    asyncio.run(run())
    (receipt,) = getattr(store, "kept", store).receipts()
    assert (receipt.sums.requests, receipt.is_open) == (3, False)


def test_of_many_replies_at_once_one_has_the_receipts_written(monkeypatch):
    """The others that end before it has begun would each wake a thread for nothing."""
    monkeypatch.setattr(writer, "MOST_NOTED", 8)
    monkeypatch.setattr(writer, "EVERY_S", 3_600.0)
    ledger = writer.ReceiptLedger()
    keeper = receipts_of(MemoryStore())
    note = writer.ReceiptNote(ReceiptKey("2026-11-27"), None)
    ledger.write(keeper)
    due = [ledger.note(note) for _ in range(15)]
    assert due == [number == 7 for number in range(15)]
    # whoever was to write was cancelled before it began: the next one is told as late again
    assert ledger.note(note)
    ledger.write(keeper)
    assert summed(keeper.receipts()).get((), ReceiptTotals()).requests == 16
    assert [ledger.note(note) for _ in range(8)].count(True) == 1


# ── counted by the provider ──────────────────────────────────────────────────────────────


def test_what_a_provider_counts_itself_stands_beside_what_is_reckoned():
    session, request, _ = recalling()
    shorter = {**request, "messages": request["messages"][:3]}
    view = session.fit(shorter)
    assert not view.counted(30_000), "its reply is to come before"
    view.observe(Usage(fresh_tokens=view.sent.estimate, output_tokens=60))
    assert view.counted(30_000)
    before = total(session.store)
    assert (before.counted, before.counted_tokens) == (1, 30_000)
    assert 10_000 < before.counted_raw_tokens < 100_000
    for nonsense in (0, -5, 7, 10**9):
        assert not view.counted(nonsense)
    assert total(session.store) == before


def test_where_nothing_is_cut_what_is_reckoned_is_what_was_sent():
    session = Session("gpt-4.1")
    view = session.fit(asked("Go."))
    view.observe(Usage(fresh_tokens=1_000))
    assert view.counted(990)
    assert total(session.store).counted_raw_tokens == 1_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_writes_nothing_of_what_its_parent_noted(tmp_path):
    session = Session("gpt-4.1", store=tmp_path / "kept.db")
    for number in range(2):
        session.fit(asked(f"Go {number}."))
        session.observe(Usage(fresh_tokens=3))
    child = os.fork()
    if not child:
        try:
            close(session.store)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    (receipt,) = session.store.receipts()
    assert (receipt.sums.requests, receipt.is_open) == (1, True)


@pytest.mark.parametrize("most", [1, 9], ids=["let go", "held"])
def test_many_sessions_have_the_sums_of_all_those_let_go_among_them(most):
    sessions = Sessions("gpt-4.1", store=MemoryStore(), most=most)
    long = "The tide came in, and went out again. " * 3_000
    for key in ("a", "b", "c"):
        messages = [{"role": "user", "content": key + long}]
        for _ in range(2):
            view = sessions.of(key).fit({"messages": messages})
            view.observe(Usage(fresh_tokens=9_000, output_tokens=10))
            messages = [
                *messages,
                {"role": "assistant", "content": "Yes."},
                {"role": "user", "content": "And now?"},
            ]
    saved = sessions.saved
    assert (saved.requests, saved.conversations) == (6, 3)
    assert saved.sent.prompt == 54_000
    assert saved == total(sessions.store)
    assert str(saved).startswith("6 requests: 54,000 prompt tokens")
    sessions.close()
