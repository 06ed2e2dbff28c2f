"""What a request sets aside stays only where its upstream took the credential."""

import json
import sqlite3
import threading
from contextlib import closing

import pytest
from aiohttp import web

from tests.cli.terminal import ullage
from tests.proxy.upstream import ask, proxy, upstream
from ullage import MemoryStore, SqliteStore
from ullage.core.errors import RefNotFound, StoreError
from ullage.core.history.canon import ref_of
from ullage.core.values.effects import Output, Record
from ullage.doors.proxy.acceptance import Acceptance, HoldingStore
from ullage.stores import owner_of
from ullage.testing import BlobsContract, RecordsContract, StoreContract

TOOLS = [{"name": "bash", "input_schema": {"type": "object"}}]


def big(word):
    return "".join(
        f"{word} {n}: something to be set aside\n" for n in range(2_000)
    )


def body(*outputs):
    messages = [{"role": "user", "content": "go"}]
    for number, output in enumerate(outputs):
        use = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "bash",
            "input": {},
        }
        gave = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": output,
        }
        messages.append({"role": "assistant", "content": [use]})
        messages.append({"role": "user", "content": [gave]})
    whole = {
        "model": "claude-opus-4-8",
        "max_tokens": 9,
        "tools": TOOLS,
        "messages": messages,
    }
    return json.dumps(whole).encode()


def post(url, key, *outputs):
    headers = {"x-api-key": key, "Content-Type": "application/json"}
    return ask(url, "POST", "/anthropic/v1/messages", body(*outputs), headers)


SAID = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-8",
    "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 1},
}  # fmt: skip


@pytest.fixture
def statuses():
    """The status that the upstream answers a key with; 200 where nothing is said."""
    return {}


@pytest.fixture
def before(statuses, tmp_path):
    """The URL of a proxy, and where it keeps what was set aside."""

    async def answer(request):
        status = statuses.get(request.headers.get("x-api-key"), 200)
        return web.json_response(
            SAID if status == 200 else {"error": {}}, status=status
        )

    store = tmp_path / "kept.db"
    with (
        upstream(answer) as there,
        proxy(there, tenant=None, store=str(store)) as url,
    ):
        yield url, store


def kept(store):
    """The refs of whatever is kept, for whomever."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        return sorted(
            ref.decode() for (ref,) in db.execute("SELECT ref FROM grants")
        )


def decided(store):
    """How many records are kept, for whomever."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        return db.execute("SELECT COUNT(*) FROM records").fetchone()[0]


@pytest.mark.parametrize("status", [401, 403])
def test_nothing_stays_of_a_request_that_is_refused(before, statuses, status):
    url, store = before
    statuses["forged"] = status
    for number in range(20):
        assert post(url, "forged", big(f"private {number}"))[0] == status
    assert (kept(store), decided(store)) == ([], 0)


def test_what_is_taken_is_kept_before_its_answer_is_given(before):
    url, store = before
    output = big("word")
    assert post(url, "real", output)[0] == 200
    assert kept(store) == [ref_of(output)]


def test_a_key_that_is_taken_later_has_all_that_its_view_names(
    before, statuses
):
    """What a session remembered of the refused request is forgotten with it."""
    url, store = before
    first, second = big("first"), big("second")
    statuses["late"] = 401
    post(url, "late", first)
    statuses["late"] = 200
    assert post(url, "late", first, second)[0] == 200
    assert kept(store) == sorted([ref_of(first), ref_of(second)])


@pytest.mark.parametrize("status", [400, 429, 500, 529])
def test_where_nobody_said_yes_or_no_it_waits_in_memory(
    before, statuses, status
):
    url, store = before
    first, second = big("first"), big("second")
    statuses["slow"] = status
    post(url, "slow", first)
    assert kept(store) == []
    statuses["slow"] = 200
    post(url, "slow", first, second)
    assert kept(store) == sorted([ref_of(first), ref_of(second)])


def test_what_was_kept_stays_when_the_key_is_withdrawn_and_no_more_comes(
    before, statuses
):
    url, store = before
    post(url, "old", big("first"))
    statuses["old"] = 401
    for number in range(3):
        post(url, "old", big("first"), big(f"later {number}"))
    # the first of them went before the upstream said so
    assert set(kept(store)) - {ref_of(big("first"))} <= {
        ref_of(big("later 0"))
    }


def test_a_neighbour_is_not_touched_by_who_is_refused(before, statuses):
    url, store = before
    statuses["forged"] = 401
    outputs = [big(f"turn {number}") for number in range(4)]
    for turn in range(1, 5):
        post(url, "forged", *outputs[:turn])
        assert post(url, "real", *outputs[:turn])[0] == 200
    assert kept(store) == sorted(map(ref_of, outputs))


# ── the store by itself ──────────────────────────────────────────────────────────────────


class TestTheContract(BlobsContract, RecordsContract):
    """What sessions ask of a store is the same while all is held in memory."""

    def open(self):
        return HoldingStore(MemoryStore(clock=self.clock), Acceptance())


class TestTheContractOnceTaken(StoreContract):
    def open(self):
        store = HoldingStore(MemoryStore(clock=self.clock), Acceptance())
        commit = store.commit

        def and_take(tenant, outputs, records):
            first = commit(tenant, outputs, records)
            store.accept(tenant)
            return first

        store.commit = and_take
        return store


KEY = b"k" * 16


def record(data, kind="batch"):
    return Record(KEY, kind, 0, data)


def test_another_worker_was_first_while_it_was_on_trial():
    """What stands in the store is given; what was decided in between is found out at the end."""
    under, acceptance = MemoryStore(), Acceptance()
    store = HoldingStore(under, acceptance)
    under.commit("t", (), [record(b"theirs")])
    assert store.commit("t", (), [record(b"ours")]) == (record(b"theirs"),)
    assert store.commit("u", (), [record(b"ours")]) == ()
    under.commit("u", (), [record(b"theirs")])
    assert store.find("u", [KEY]) == (record(b"theirs"),)
    assert store.accept("u") is False
    assert under.find("u", [KEY]) == (record(b"theirs"),)


def test_a_store_that_fails_keeps_what_is_held_readable_and_is_tried_again():
    class Full(MemoryStore):
        is_full = True

        def commit(self, tenant, outputs, records):
            if self.is_full:
                raise StoreError("memory", "commit", "the disk is full")
            return super().commit(tenant, outputs, records)

    under, acceptance = Full(), Acceptance()
    store, output = HoldingStore(under, acceptance), Output(ref_of("x"), "x")
    store.commit("t", [output], ())
    with pytest.raises(StoreError):
        store.accept("t")
    assert store.get("t", output.ref) == output
    with pytest.raises(StoreError):  # as if nothing had been held
        store.commit("t", [Output(ref_of("y"), "y")], ())
    under.is_full = False
    assert store.accept("t") is True
    assert under.get("t", output.ref) == output


def test_what_comes_while_it_is_committed_is_committed_behind_it():
    began, go_on = threading.Event(), threading.Event()

    class Slow(MemoryStore):
        def commit(self, tenant, outputs, records):
            began.set()
            go_on.wait()
            return super().commit(tenant, outputs, records)

    under, acceptance = Slow(), Acceptance()
    store, quick = (
        HoldingStore(under, acceptance),
        HoldingStore(under, acceptance, waits=False),
    )
    texts = [Output(ref_of(text), text) for text in "xy"]
    store.commit("t", texts[:1], ())
    taking = threading.Thread(target=store.accept, args=("t",))
    taking.start()
    began.wait()
    with pytest.raises(StoreError):  # the loop asks here, and does not wait
        quick.commit("t", texts[1:], ())
    later = threading.Thread(target=store.commit, args=("t", texts[1:], ()))
    later.start()
    go_on.set()
    taking.join()
    later.join()
    assert [under.get("t", each.ref) for each in texts] == texts


def test_what_is_held_for_many_strangers_is_bounded():
    acceptance, over = Acceptance(), []
    store = HoldingStore(MemoryStore(), acceptance)
    text = "x" * 1_000_000
    for number in range(100):
        said = f"{number}{text}"
        with acceptance.request(f"t{number}", over):
            store.commit(f"t{number}", [Output(ref_of(said), said)], ())
    assert len(over) >= 100 - 67
    assert over == [f"t{number}" for number in range(len(over))]  # the oldest
    with pytest.raises(RefNotFound):
        store.get("t0", ref_of(f"0{text}"))
    assert store.get("t99", ref_of(f"99{text}")).text == f"99{text}"


def test_a_tenant_is_forgotten_with_what_its_batches_set_aside(tmp_path):
    """In a batch nobody answers a recall call, so its conversations are owners of their own."""
    store = tmp_path / "kept.db"
    one = {"custom_id": "one", "params": json.loads(body(big("one")))}
    asked = json.dumps({"requests": [one]}).encode()
    headers = {"x-api-key": "mine", "Content-Type": "application/json"}
    with (
        upstream() as there,
        proxy(
            there, policy="continuation", tenant="anna", store=str(store)
        ) as url,
    ):
        path = "/anthropic/v1/messages/batches"
        assert ask(url, "POST", path, asked, headers)[0] == 200
    with closing(SqliteStore(store)) as there:
        assert there.refs(owner_of("anna", "unattended"))
        assert not there.refs("anna")
    ran = ullage("forget", store, "--tenant", "anna")
    assert ran.status == 0, ran.err
    assert (kept(store), decided(store)) == ([], 0)
