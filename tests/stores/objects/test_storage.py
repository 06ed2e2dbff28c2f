"""What is in the bucket, and what becomes of it when things fail, go, or are in the way."""

import logging
import os
import threading
from contextlib import closing

import pytest

import ullage
from tests.stores.contract import batch, decided, output, replaced
from ullage.core.errors import ConfigError, StoreError
from ullage.core.values.owners import owner_of
from ullage.stores import (
    DAY_S,
    BoundedStore,
    Bounds,
    SqliteStore,
    forget,
    open_store,
)
from ullage.stores._packing import NewBlob
from ullage.stores.objects import ObjectStorage
from ullage.testing import Clock

pytestmark = pytest.mark.xdist_group("postgres")

AGED = Bounds(older_than_s=30 * DAY_S)


@pytest.fixture
def place(bucket, request):
    """The address of a prefix that no other test uses."""
    return bucket.url(
        prefix=request.node.name.translate({ord("["): "-", ord("]"): ""})
    )


def long(name):
    return output("".join(f"{name} {n * n} " for n in range(3_000)))


def objects(place):
    return [
        one.name for one in ObjectStorage(place).bucket.page("", "", 1_000)
    ]


def collected(store, tenant, bounds):
    done = store.collect(tenant, bounds)
    while done and done.cursor:
        done = done.then(store.collect(tenant, bounds, done.cursor))
    return done


def test_larger_bodies_are_in_the_bucket_and_nothing_else(tmp_path, place):
    with closing(open_store(tmp_path / "kept.db", blobs=place)) as store:
        store.commit(
            "alice", [long("one"), output("short")], [batch(b"k", 0, b"d")]
        )
        (name,) = objects(place)
        assert "alice" not in name
        assert long("one").ref not in name
        assert store.stat("alice", long("one").ref).chars == len(
            long("one").text
        )
        assert store.get("alice", output("short").ref) == output("short")
    kept = (tmp_path / "kept.db").stat().st_size
    assert kept < 200_000


def test_a_session_goes_on_with_a_bucket_on_another_worker(tmp_path, place):
    store, text = tmp_path / "kept.db", long("one").text * 4
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "run", "arguments": "{}"},
    }
    messages = [
        {"role": "user", "content": "Run it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": text},
    ]
    request = {"model": "gpt-4.1", "messages": messages}
    with ullage.Session(
        "gpt-4.1", store=store, blobs=place, recall=True
    ) as session:
        view = session.fit(request)
        (ref,) = session.store.refs("")
    assert len(objects(place)) == 1
    with ullage.Sessions(
        "gpt-4.1", store=store, blobs=place, recall=True
    ) as sessions:
        again = sessions.of("a", tenant="")
        assert dict(again.fit(request)) == dict(view)
        assert again.store.get("", ref).text == text


def test_it_is_put_once_and_two_who_put_it_at_once_lose_nothing(
    tmp_path, place
):
    store = open_store(tmp_path / "kept.db", blobs=place)
    for _ in range(3):
        store.commit("t", [long("one")], [])
    assert len(objects(place)) == 1
    threads = [
        threading.Thread(target=store.put, args=("t", [long("two")]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get("t", long("two").ref) == long("two")
    assert (
        2 <= len(objects(place)) <= 5
    )  # who lost left one behind, for the next clean-up
    store.close()


@pytest.mark.parametrize("what", ["asked", "answered"])
def test_a_cable_that_is_cut_loses_nothing(tmp_path, bucket, cable, what):
    through = bucket.url(cable.port, prefix=f"cut-{what}")
    with closing(open_store(tmp_path / "kept.db", blobs=through)) as store:
        cable.cut(what, 0)
        store.commit("t", [long("one")], [batch(b"k", 0, b"d")])
        cable.cut(what, 0)
        assert store.get("t", long("one").ref) == long("one")
        assert cable.cuts == 2


def test_a_slow_bucket_is_slow_and_nothing_else(tmp_path, bucket, cable):
    cable.delay_s = 0.05
    with closing(
        open_store(tmp_path / "kept.db", blobs=bucket.url(cable.port, "slow"))
    ) as store:
        store.commit("t", [long("one"), long("two")], [])
        assert store.get("t", long("two").ref) == long("two")


def test_a_bucket_that_hangs_fails_no_turn_and_is_waited_for_once(
    tmp_path, bucket, cable, caplog
):
    storage = ObjectStorage(bucket.url(cable.port, "hangs"), timeout_s=0.5)
    with closing(SqliteStore(tmp_path / "kept.db", objects=storage)) as store:
        store.commit("t", [long("before")], [])
        cable.is_held = True
        with caplog.at_level(logging.WARNING, "ullage.stores"):
            store.commit("t", [long("one")], [batch(b"k", 0, b"d")])
            store.commit("t", [long("two")], [])
        assert len(caplog.records) == 1
        assert "cannot be reached" in caplog.text
        assert "127.0.0.1" not in caplog.text
        assert store.get("t", long("two").ref) == long("two")  # in its row
        with pytest.raises(StoreError, match="cannot be reached") as caught:
            store.get("t", long("before").ref)
        assert "127.0.0.1" not in str(caught.value)
        cable.is_held = False
        assert store.get("t", long("before").ref) == long("before")


def test_a_bucket_that_dies_and_comes_back_empty_loses_what_was_there_and_says_so(
    tmp_path, own_bucket
):
    with closing(
        open_store(tmp_path / "kept.db", blobs=own_bucket.url())
    ) as store:
        store.commit("t", [long("one")], [])
        own_bucket.kill()
        own_bucket.start()
        with pytest.raises(StoreError, match="damaged"):
            store.get("t", long("one").ref)
        store.commit("t", [long("two")], [])
        assert store.get("t", long("two").ref) == long("two")


def test_an_object_that_was_changed_is_noticed(tmp_path, place):
    with closing(open_store(tmp_path / "kept.db", blobs=place)) as store:
        store.commit("t", [long("one"), long("two")], [])
        one, two = objects(place)
        bucket = ObjectStorage(place).bucket
        bucket.put(one, bucket.get(two, 1 << 20))
        bucket.put(two, b"")
        for text in (long("one"), long("two")):
            with pytest.raises(StoreError, match="damaged"):
                store.get("t", text.ref)


def test_a_clean_up_takes_what_no_row_names_but_nothing_that_is_being_written(
    tmp_path, place, monkeypatch
):
    clock = Clock()
    storage = ObjectStorage(place)
    store = SqliteStore(tmp_path / "kept.db", objects=storage, clock=clock)
    store.commit("t", [long("old"), long("named")], [])
    clock.days_pass(40)
    store.commit(
        "t", [long("new")], [decided(b"k", replaced(long("named").ref))]
    )
    storage.bucket.put("another's/file", b"x")
    written = objects(place)
    assert len(written) == 4
    assert [gone.ref for gone in collected(store, "t", AGED).removed] == [
        long("old").ref
    ]
    assert objects(place) == written, (
        "what is written today may be about to be named"
    )
    monkeypatch.setattr("ullage.stores.objects.storage.DAY_S", -60)
    collected(store, None, AGED)
    assert len(objects(place)) == 3
    for text in (long("new"), long("named")):
        assert store.get("t", text.ref) == text
    store.close()


def test_what_a_tenant_is_forgotten_by_leaves_the_bucket_at_once(
    tmp_path, place
):
    with closing(open_store(tmp_path / "kept.db", blobs=place)) as store:
        for tenant in ("alice", "bob"):
            store.commit(
                tenant, [long("one"), long("two")], [batch(b"k", 0, b"d")]
            )
        store._objects.moved(
            b"alice", [NewBlob.of(long("of no row"), b"alice")]
        )
        assert len(objects(place)) == 5
        forget(store, "alice")
        assert len(objects(place)) == 2
        assert store.get("bob", long("one").ref) == long("one")
        forget(store, "bob")
        assert objects(place) == []


def test_the_objects_of_a_tenant_s_conversations_leave_the_bucket_with_it(
    tmp_path, place
):
    with closing(open_store(tmp_path / "kept.db", blobs=place)) as store:
        for owner in ("alice", owner_of("alice", "one"), "alice b"):
            store.commit(owner, [long(f"of {owner}")], [])
        talk = owner_of("alice", "one").encode()
        store._objects.moved(talk, [NewBlob.of(long("of no row"), talk)])
        assert len(objects(place)) == 4
        forget(store, "alice")
        assert len(objects(place)) == 1
        kept = long("of alice b")
        assert store.get("alice b", kept.ref) == kept


def test_stores_in_one_prefix_leave_each_others_objects(tmp_path, place):
    stores = [
        open_store(tmp_path / name, blobs=place)
        for name in ("one.db", "two.db")
    ]
    for store in stores:
        store.commit("t", [long("one")], [])
    forget(stores[0], "t")
    assert stores[1].get("t", long("one").ref) == long("one")
    for store in stores:
        store.close()


def test_a_store_that_is_opened_without_its_bucket_says_so(tmp_path, place):
    path = tmp_path / "kept.db"
    with closing(open_store(path, blobs=place)) as store:
        store.commit("t", [long("one")], [batch(b"k", 0, b"d")])
    with closing(SqliteStore(path)) as store:
        assert store.find("t", [b"k"]) == (batch(b"k", 0, b"d"),)
        with pytest.raises(StoreError, match="with blobs"):
            store.get("t", long("one").ref)
        with pytest.raises(StoreError, match="with blobs"):
            forget(store, "t")


def test_a_bounded_store_cleans_the_bucket_step_by_step(
    tmp_path, place, monkeypatch
):
    monkeypatch.setattr("ullage.stores.objects.storage.DAY_S", -60)
    clock, bounds = Clock(), Bounds(older_than_s=DAY_S, limit=2)
    kept = SqliteStore(
        tmp_path / "kept.db", objects=ObjectStorage(place), clock=clock
    )
    store = BoundedStore(kept, bounds, clock=clock)
    for n in range(6):
        store.commit("t", [long(f"{n}")], [])
    clock.days_pass(3)
    for n in range(12):
        store.commit("t", [], [batch(b"%d" % n, 0, b"d")])
    assert (store.failure, objects(place)) == (None, [])
    store.close()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("s3:///prefix", "no bucket|not one of a bucket"),
        ("gs://bucket", "not one of a bucket"),
        ("s3://key:hunter2@bucket", "credentials are of the environment"),
        (
            "s3://bucket?secret_access_key=hunter2",
            "credentials are of the environment",
        ),
    ],
)
def test_an_address_that_cannot_be_meant_says_why_and_no_secret(
    tmp_path, url, why
):
    with pytest.raises(ConfigError, match=why) as caught:
        open_store(tmp_path / "kept.db", blobs=url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_says_that_it_cannot_read_there_and_keeps_what_is_new(
    tmp_path, place
):
    store = open_store(tmp_path / "kept.db", blobs=place)
    store.commit("t", [long("one")], [])
    child = os.fork()
    if not child:
        try:
            store.commit("t", [long("two")], [])
            with pytest.raises(StoreError, match="with spawn"):
                store.get("t", long("one").ref)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    for text in (long("one"), long("two")):
        assert store.get("t", text.ref) == text
    store.close()


def test_a_bucket_that_is_not_there_is_told_when_it_is_opened(
    tmp_path, bucket
):
    gone = bucket.url().replace(bucket.name, "no-such-bucket")
    with pytest.raises(StoreError, match="no such bucket"):
        open_store(tmp_path / "kept.db", blobs=gone)


@pytest.mark.parametrize(
    "store", [None, "memory", ullage.stores.MemoryStore()]
)
def test_a_store_that_is_not_named_takes_no_bucket(store):
    with pytest.raises(ConfigError, match="neither a file nor a server"):
        ullage.Session("gpt-4.1", store=store, blobs="s3://bucket")
