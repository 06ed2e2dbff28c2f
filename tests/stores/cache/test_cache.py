"""What a cache may do to a store at any moment, and what the store makes of it."""

import threading
import time
from contextlib import closing

import pytest

import ullage
from tests.stores.contract import FileContract, output
from tests.stores.postgres.cable import Cable
from ullage.core.errors import ConfigError, StoreError
from ullage.stores import SqliteStore, forget, open_store
from ullage.stores.cache import Cache, Leased, _seal
from ullage.stores.leases import Lease
from ullage.stores.objects import ObjectStorage

pytestmark = pytest.mark.xdist_group("postgres")


def long(name):
    return output("".join(f"{name} {n * n} " for n in range(3_000)))


class Counted:
    """The bucket of a storage, its reads counted."""

    def __init__(self, bucket):
        self._bucket, self.reads = bucket, 0

    def __getattr__(self, name):
        return getattr(self._bucket, name)

    def get(self, name, most_bytes):
        self.reads += 1
        return self._bucket.get(name, most_bytes)


@pytest.fixture
def opened(tmp_path, bucket, request):
    """Opens a store of a bucket and a cache; its bucket counts its reads."""

    def opened(url, **settings):
        place = bucket.url(
            prefix=request.node.name.translate({ord("["): "-", ord("]"): ""})
        )
        storage = ObjectStorage(place, cache=Cache(url, **settings))
        storage.bucket = opened.bucket = Counted(storage.bucket)
        return SqliteStore(tmp_path / "kept.db", objects=storage)

    return opened


def test_what_was_read_once_is_not_asked_of_the_bucket_again(opened, near):
    with closing(opened(near)) as store, closing(opened(near)) as another:
        store.commit("t", [long("one")], [])
        assert store.get("t", long("one").ref) == long("one")
        assert another.get("t", long("one").ref) == long("one")
        assert (
            opened.bucket.reads == 0
        )  # of the other one, which was opened last


def test_a_copy_that_was_changed_is_read_from_the_bucket(opened, near, server):
    with closing(opened(near)) as store:
        store.commit("t", [long("one"), long("two")], [])
        for text in (long("one"), long("two")):
            store.get("t", text.ref)
        one, two = server.keys()
        swapped = server.get(one)
        server.set(one, server.get(two))
        server.set(two, swapped[:-1])
        for text in (long("one"), long("two")):
            assert store.get("t", text.ref) == text
        assert opened.bucket.reads == 4


def test_a_copy_that_the_cache_itself_would_take_is_read_from_the_bucket(
    opened, near, server
):
    """Who can write in the cache can seal as it does; the store's own seal has a key that is not
    there."""
    text = long("one")
    with closing(opened(near)) as store:
        store.commit("t", [text], [])
        assert store.get("t", text.ref) == text
        (key,) = server.keys()
        name = key.decode().rpartition(":")[2]
        copy = server.get(key)[16:]
        lies = [
            b"a lie",
            copy[:-8] + b"EVILEVIL",
            copy[:32] + b"a lie",
            b"",
            b"x" * 1_000_000,
        ]
        for lie in lies:
            server.set(key, _seal(name, lie))
            assert store.get("t", text.ref) == text
            assert server.get(key)[16:] == copy  # it is put right, too


@pytest.mark.parametrize("what", ["asked", "answered"])
def test_a_cache_that_is_lost_at_any_moment_changes_nothing(
    opened, server, near, what
):
    cable = Cable(server.port)
    with closing(
        opened(near.replace(f":{server.port}", f":{cable.port}"))
    ) as store:
        store.commit("t", [long("one")], [])
        for number in range(4):
            cable.cut(what, number)
            for _ in range(3):
                assert store.get("t", long("one").ref) == long("one")
        server.emptied()
        assert store.get("t", long("one").ref) == long("one")
    cable.close()


def test_a_cache_that_hangs_is_waited_for_once(
    opened, server, near, monkeypatch
):
    monkeypatch.setattr("ullage.stores.cache._AWAY_S", 600.0)
    cable = Cable(server.port)
    url = near.replace(f":{server.port}", f":{cable.port}")
    with closing(opened(url, timeout_s=0.1)) as store:
        store.commit("t", [long("one")], [])
        cable.is_held = True
        for _ in range(20):
            assert store.get("t", long("one").ref) == long("one")
        assert 0 < cable.connections <= 2, (
            "once, and once more on a new connection"
        )
        cable.is_held = False
    cable.close()


def test_a_cache_that_was_never_there_costs_no_turn(tmp_path, bucket):
    place = bucket.url(prefix="never-there")
    store = open_store(
        tmp_path / "kept.db", blobs=place, cache="valkey://127.0.0.1:1"
    )
    with closing(store):
        store.commit("t", [long("one")], [])
        assert store.get("t", long("one").ref) == long("one")
        with pytest.raises(StoreError, match="does not answer"):
            store.claim("t", b"k", b"me", 5)


def test_what_is_forgotten_is_in_no_copy(opened, near, server):
    with closing(opened(near)) as store:
        store.commit("t", [long("one")], [])
        store.get("t", long("one").ref)
        assert len(server.keys()) == 1
        forget(store, "t")
        assert server.keys() == []


def test_a_lease_is_given_once_and_its_reply_to_all(near):
    with closing(Cache(near)) as cache, closing(Cache(near)) as other:
        assert cache.claim("t", b"k", b"me", 60) == Lease(is_mine=True)
        assert cache.claim("t", b"k", b"me", 60) == Lease(is_mine=True), (
            "asked again"
        )
        assert other.claim("t", b"k", b"you", 60) == Lease(is_mine=False)
        assert other.claim("u", b"k", b"you", 60) == Lease(is_mine=True), (
            "another tenant"
        )
        other.fulfil("t", b"k", b"you", b"not mine", 60)
        cache.fulfil("t", b"k", b"me", b"said", 60)
        assert other.claim("t", b"k", b"you", 60) == Lease(
            is_mine=False, reply=b"said"
        )


def test_a_lease_ends_by_itself_and_can_be_given_back(near):
    with closing(Cache(near)) as cache:
        cache.claim("t", b"died", b"me", 0.01)
        cache.claim("t", b"failed", b"me", 60)
        cache.fulfil("t", b"failed", b"me", None, 60)
        time.sleep(0.05)
        for key in (b"died", b"failed"):
            assert cache.claim("t", key, b"you", 60).is_mine


def test_two_workers_on_one_file_pay_for_one_summary(tmp_path, near):
    asked = []

    def summariser(request):
        asked.append(repr(request))
        time.sleep(0.2)
        return "They met at the harbour."

    messages = [
        {
            "role": ("user", "assistant")[n % 2],
            "content": f"{n} " + "word " * (900 * (n % 2)),
        }
        for n in range(31)
    ]
    limits = ullage.Limits(window_tokens=16_000)
    views = []

    def work():
        session = ullage.Session(
            "gpt-4.1",
            policy="default",
            limits=limits,
            store=tmp_path / "kept.db",
            cache=near,
            summariser=summariser,
        )
        whole = {"model": "gpt-4.1", "messages": messages}
        session.compact(whole)
        views.append(dict(session.fit(whole)))
        session.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert views[0] == views[1]
    assert asked
    assert len(asked) == len(set(asked))


def test_a_server_that_is_killed_takes_no_turn_with_it(opened, another):
    with closing(opened(another.url)) as store:
        store.commit("t", [long("one")], [])
        store.get("t", long("one").ref)
        another.kill()
        assert store.get("t", long("one").ref) == long("one")


class TestLeased(FileContract):
    """A store with its leases elsewhere keeps every promise of a store."""

    @pytest.fixture(autouse=True)
    def _near(self, near):
        self.url = near

    def open(self):
        return Leased(
            SqliteStore(self.place(), clock=self.clock), Cache(self.url)
        )


@pytest.mark.parametrize(
    "url", ["memcached://host", "valkey://host:port", "redis"]
)
def test_an_address_that_cannot_be_meant_is_refused(url):
    with pytest.raises(ConfigError, match="valkey://host"):
        Cache(url)
