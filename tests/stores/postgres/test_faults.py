"""What a server, a network and other workers may do at any moment."""

import asyncio
import os
import signal
import subprocess
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from random import Random

import psycopg
import pytest

from tests.stores.contract import batch, decided, output, replaced
from tests.stores.postgres.cable import Cable
from tests.stores.postgres.server import Server
from ullage.core.errors import StoreError, StoreFull
from ullage.core.values.effects import Record
from ullage.stores import (
    AsyncPostgresStore,
    Bounds,
    PostgresStore,
    every_ref,
    refs_in,
)
from ullage.stores.postgres.connecting import may_try_again

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture
def cable(server, url):
    cable = Cable(server.port)
    cable.url = url.replace(f":{server.port}/", f":{cable.port}/")
    yield cable
    cable.close()


def deadlocks(server):
    with server.connect() as db:
        return db.execute(
            "SELECT sum(deadlocks) FROM pg_stat_database"
        ).fetchone()[0]


def together(works):
    """What threads raised that do these things at once."""
    errors = []

    def one(work):
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            errors.append(error)

    threads = [threading.Thread(target=one, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return errors


def wait_for(semaphore, count):
    """Until so many more were released."""
    while semaphore.acquire(blocking=False):
        pass
    for _ in range(count):
        assert semaphore.acquire(timeout=50), "nothing comes any more"


def check_whole(store, tenant="t"):
    """Whatever is kept can be read, and whatever a record names is there."""
    refs = set(every_ref(store, tenant))
    for ref in refs:
        store.get(tenant, ref)
    return refs


CUTS = [
    (what, number) for what in ("asked", "answered") for number in range(3)
]


@pytest.mark.parametrize(("what", "number"), CUTS)
def test_a_cable_that_is_cut_anywhere_in_a_commit_loses_and_doubles_nothing(
    cable, what, number
):
    one, named = output("one"), output("two")
    records = [
        decided(b"k", replaced(named.ref)),
        Record(b"k", "latest", 0, b"k"),
    ]
    with closing(PostgresStore(cable.url)) as store:
        store.commit("t", [], [batch(b"before", 0, b"d")])
        cable.cut(what, number)
        assert store.commit("t", [one, named], records) == ()
        assert cable.cuts == 1
        assert store.find("t", [b"k"]) == tuple(records)
        assert check_whole(store) == {one.ref, named.ref}


@pytest.mark.parametrize(("what", "number"), CUTS)
def test_nor_does_it_for_an_event_loop(cable, what, number):
    async def scene():
        store = AsyncPostgresStore(cable.url)
        await store.commit("t", [], [batch(b"before", 0, b"d")])
        cable.cut(what, number)
        assert (
            await store.commit("t", [output("one")], [batch(b"k", 0, b"d")])
            == ()
        )
        assert await store.find("t", [b"k"]) == (batch(b"k", 0, b"d"),)
        assert await store.get("t", output("one").ref) == output("one")
        await store.close()

    asyncio.run(scene())
    assert cable.cuts == 1


@pytest.fixture
def interrupt():
    """A function that interrupts the thread of the tests, as Ctrl-C does."""

    def interrupted(*_):
        raise KeyboardInterrupt

    before, me = (
        signal.signal(signal.SIGUSR1, interrupted),
        threading.get_ident(),
    )
    yield lambda: signal.pthread_kill(me, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def test_a_commit_that_is_interrupted_is_whole_or_nothing_and_its_connection_is_good(
    cable, interrupt
):
    with closing(
        PostgresStore(cable.url, timeout_s=3, most_connections=1)
    ) as store:
        store.commit("t", [], [batch(b"before", 0, b"d")])
        for what, number in CUTS:
            one = output(f"{what} {number}")
            record = decided(one.text.encode(), replaced(one.ref))
            cable.cut(what, number, instead=interrupt)
            with pytest.raises(KeyboardInterrupt):
                store.commit("t", [one], [record])
            assert store.find("t", [record.key]) in ((), (record,))
            assert store.find(
                "t", [record.key]
            ) == () or one.ref in check_whole(store)
            assert store.commit("t", [one], [record]) == (), (
                "as after a turn that is asked again"
            )
            assert store.find("t", [record.key]) == (record,)
    assert cable.cuts == len(CUTS)


def test_so_is_one_that_is_cancelled_on_an_event_loop(cable):
    async def cancelled(store, loop, what, number):
        one, record = (
            output(f"{what} {number}"),
            batch(f"{what} {number}".encode(), 0, b"d"),
        )
        task = loop.create_task(store.commit("t", [one], [record]))
        cable.cut(
            what,
            number,
            instead=lambda: loop.call_soon_threadsafe(task.cancel),
        )
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await store.find("t", [record.key]) in ((), (record,))
        assert await store.commit("t", [one], [record]) == ()
        assert await store.get("t", one.ref) == one

    async def scene():
        store = AsyncPostgresStore(cable.url, timeout_s=3, most_connections=1)
        await store.commit("t", [], [batch(b"before", 0, b"d")])
        for what, number in CUTS:
            await cancelled(store, asyncio.get_running_loop(), what, number)
        await store.close()

    asyncio.run(scene())
    assert cable.cuts == len(CUTS)


def test_a_slow_cable_is_slow_and_nothing_else(cable):
    cable.delay_s = 0.01
    with closing(PostgresStore(cable.url)) as store:
        store.commit("t", [output("x")], [batch(b"k", 0, b"d")])
        assert store.commit("t", [], [batch(b"k", 0, b"e")]) == (
            batch(b"k", 0, b"d"),
        )
        assert store.get("t", output("x").ref) == output("x")


def test_nobody_waits_for_ever_where_nothing_comes_back(cable, monkeypatch):
    monkeypatch.setattr("ullage.stores.postgres.outage.AWAY_S", 0.0)
    with closing(PostgresStore(cable.url, timeout_s=0.3)) as store:
        store.find("t", [b"k"])
        cable.is_held = True
        with pytest.raises(StoreError, match="cannot be reached"):
            store.commit("t", [], [batch(b"k", 0, b"d")])
        cable.is_held = False
        store.commit("t", [], [batch(b"k", 0, b"d")])
        assert len(store.find("t", [b"k"])) == 1


def test_nor_on_an_event_loop(cable):
    async def scene():
        store = AsyncPostgresStore(cable.url, timeout_s=0.3)
        await store.find("t", [b"k"])
        cable.is_held = True
        with pytest.raises(StoreError, match="cannot be reached"):
            await store.commit("t", [], [batch(b"k", 0, b"d")])
        cable.is_held = False
        await store.close()

    asyncio.run(scene())


def test_nobody_waits_for_ever_for_a_worker_that_holds_a_row(server, url):
    holds = (
        "INSERT INTO ullage.records VALUES ('t', 'k', 'batch', 0, '', 'd', 0)"
    )
    with (
        closing(PostgresStore(url, timeout_s=0.3)) as store,
        server.connect() as frozen,
    ):
        frozen.execute("BEGIN")
        frozen.execute(holds)
        with pytest.raises(StoreError):
            store.commit("t", [], [batch(b"k", 0, b"mine")])
        frozen.execute("ROLLBACK")
        assert store.commit("t", [], [batch(b"k", 0, b"mine")]) == ()


def test_a_killed_server_keeps_what_it_acknowledged_and_nothing_half(
    server, url
):
    acknowledged, more, stop = [], threading.Semaphore(0), threading.Event()
    store = PostgresStore(url, timeout_s=30)

    def work(me):
        for n in range(10_000):
            if stop.is_set():
                return
            text = output(f"{me} {n} " * 400)
            record = decided(b"%d %d" % (me, n), replaced(text.ref))
            store.commit("t", [text], [record])
            acknowledged.append((text, record))
            more.release()

    def crash():
        """While one commit has just come back, the others are somewhere within theirs."""
        try:
            for _ in range(2):
                wait_for(more, 10)
                server.kill()
                server.start()
            wait_for(more, 10)
        finally:
            stop.set()

    assert (
        together([crash, *(lambda me=me: work(me) for me in range(3))]) == []
    )
    assert len(acknowledged) > 20
    refs = check_whole(store)
    for text, record in acknowledged:
        assert store.find("t", [record.key]) == (record,)
        assert text.ref in refs
    with server.connect() as db:
        for (data,) in db.execute("SELECT data FROM ullage.records"):
            assert refs_in(data.decode("latin-1")) & refs, (
                "a record names what is not there"
            )
    store.close()


def test_where_a_standby_takes_over_nothing_acknowledged_is_lost():
    main = Server()
    standby = Server(of=main)
    both = f"postgresql://ullage@127.0.0.1:{main.port},127.0.0.1:{standby.port}/postgres"
    kept, more, done = [], threading.Semaphore(0), threading.Event()
    try:
        with (
            main.connect() as db
        ):  # a commit is acknowledged once the standby has it
            db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            db.execute("SELECT pg_reload_conf()")
        store = PostgresStore(
            f"{both}?target_session_attrs=read-write", timeout_s=60
        )

        def work():
            for n in range(10_000):
                if done.is_set():
                    return
                text = output(f"{n} " * 300)
                store.commit(
                    "t", [text], [decided(b"%d" % n, replaced(text.ref))]
                )
                kept.append(text)
                more.release()

        def take_over():
            try:
                wait_for(more, 10)
                main.kill()
                with standby.connect() as db:
                    db.execute("SELECT pg_promote()")
                wait_for(more, 20)
            finally:
                done.set()

        assert together([work, take_over]) == []
        assert len(kept) > 20
        assert {text.ref for text in kept} <= check_whole(store)
        found = store.find("t", [b"%d" % n for n in range(len(kept))])
        assert found == tuple(
            decided(b"%d" % n, replaced(t.ref)) for n, t in enumerate(kept)
        )
        store.close()
    finally:
        standby.stop()
        main.stop()


def test_writers_readers_and_clean_up_never_lock_each_other_out(server, url):
    clock = [1_800_000_000.0]
    store = PostgresStore(url, clock=lambda: clock[0])
    outputs = [output(f"{n} " * 200) for n in range(12)]
    many = [Record(b"%d" % n, "observed", 0, b"x") for n in range(12)]
    before = deadlocks(server)

    def write(me):
        rng = Random(me)
        for n in range(25):
            some = rng.sample(outputs, 6)
            edits = [replaced(out.ref) for out in some]
            store.commit(
                "t",
                some,
                [decided(b"%d %d" % (me, n), *edits), *rng.sample(many, 6)],
            )

    def read(me):
        rng = Random(me)
        for _ in range(40):
            clock[0] += 86_400  # each mark is due
            store.find("t", [one.key for one in rng.sample(many, 6)])

    def clean():
        for _ in range(12):
            cursor = store.collect(
                "t", Bounds(older_than_s=86_400 * 3, limit=5)
            ).cursor
            while cursor is not None:
                cursor = store.collect(
                    "t", Bounds(older_than_s=86_400 * 3, limit=5), cursor
                ).cursor

    works = [
        *(lambda me=me: write(me) for me in range(4)),
        lambda: read(9),
        clean,
        clean,
    ]
    assert together(works) == []
    assert deadlocks(server) == before
    refs = check_whole(store)
    with server.connect() as db:
        for (data,) in db.execute(
            "SELECT data FROM ullage.records WHERE kind = 'batch'"
        ):
            wanted = refs_in(data.decode("latin-1")) & {
                out.ref for out in outputs
            }
            assert wanted <= refs, "a clean-up took what a live record names"
    store.close()


@pytest.fixture
def small_disk():
    """A folder on a disk of 100 MB."""
    if os.geteuid() != 0:
        pytest.skip("a small disk is mounted by root")
    folder = Path(tempfile.mkdtemp(prefix="ullage-small-"))
    mounted = ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(folder)]
    try:
        if (
            subprocess.run(
                mounted, capture_output=True, check=False
            ).returncode
            != 0
        ):
            pytest.skip("no disk can be mounted here")
        folder.chmod(0o755)
        yield folder
        subprocess.run(["umount", "-l", str(folder)], check=True)
    finally:
        folder.rmdir()


def test_a_full_disk_is_told_and_what_was_kept_stays(small_disk):
    server, kept = Server(small_disk), []
    store = PostgresStore(server.url, timeout_s=2)

    def fill():
        for n in range(100):
            text = output(Random(n).randbytes(2_000_000).hex())
            store.commit("t", [text], [batch(b"%d" % n, 0, b"d")])
            kept.append(text.ref)

    try:
        with pytest.raises(StoreFull, match="disk is full"):
            fill()
        assert len(kept) > 3
        assert set(every_ref(store, "t")) == set(kept)
        assert len(store.find("t", [b"%d" % n for n in range(100)])) == len(
            kept
        )
        store.close()
    finally:
        server.stop()


def test_a_server_that_ends_idle_connections_costs_no_turn(server, url):
    """``idle_session_timeout`` (57P05): what is asked next is asked on a new connection."""
    idle = f"{url}{'&' if '?' in url else '?'}options=-c%20idle_session_timeout%3D50ms"
    with server.connect() as db:
        others = _connections(db)  # of tests before, on the same server
    with closing(PostgresStore(idle)) as store, server.connect() as db:
        store.commit("t", [output("one")], [])
        for _ in range(3):
            while _connections(db) - others:
                pass
            assert store.get("t", output("one").ref) == output("one")

    async def asked():
        store = AsyncPostgresStore(idle)
        async with asyncio.timeout(60):
            await store.commit("t", [output("two")], [])
            for _ in range(3):
                while await asyncio.to_thread(_looked, server) - others:
                    pass
                assert await store.get("t", output("two").ref) == output("two")
        await store.close()

    asyncio.run(asked())


def _looked(server):
    with server.connect() as db:
        return _connections(db)


def _connections(db):
    """The connections of ours, each by its process and when it began."""
    query = "SELECT pid, backend_start FROM pg_stat_activity WHERE application_name = 'ullage'"
    return {tuple(row) for row in db.execute(query).fetchall()}


PASSING, LASTING = (
    ("57P05", "57P01", "25P04", "08006", "08P01"),
    ("57014", "42501", "53100", "22021"),
)


@pytest.mark.parametrize("state", [*PASSING, *LASTING])
def test_a_state_that_passes_is_asked_again_and_no_other(state):
    error = psycopg.errors.lookup(state)("what the server says")
    assert may_try_again(error) is (state in PASSING)
