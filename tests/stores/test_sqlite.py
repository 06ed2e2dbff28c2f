import errno
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.contract import FileContract, batch, output
from ullage.core.errors import RefNotFound, StoreError
from ullage.core.values.effects import CHUNK_CHARS, Record
from ullage.stores import SqliteStore
from ullage.stores._packing import zstd

LOG = "2026-01-01 12:00:00 INFO the same words again\n" * 500


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


def raw(path):
    return closing(sqlite3.connect(path, isolation_level=None))


class TestSqlite(FileContract):
    def open(self):
        return SqliteStore(self.place(), clock=self.clock)


# What is in the file


def test_it_is_all_there_after_reopening(path):
    texts = [LOG, "", "\ud83d\x00", "naïve"]
    with closing(SqliteStore(path)) as store:
        store.commit(
            "t", [output(text) for text in texts], [batch(b"k", 0, b"d")]
        )
    with closing(SqliteStore(path)) as store:
        assert {store.get("t", ref).text for ref in store.refs("t")} == set(
            texts
        )
        assert store.find("t", [b"k"]) == (batch(b"k", 0, b"d"),)


def test_content_is_kept_once_for_each_tenant_and_compressed_if_smaller(path):
    noise = random.Random(0).randbytes(3_000).hex()[:16]
    with closing(SqliteStore(path)) as store:
        for tenant in ("a", "b", "c"):
            store.commit(tenant, [output(LOG), output(noise)], [])
    with raw(path) as db:
        rows = db.execute(
            "SELECT coding, size_bytes, length(body) FROM chunks"
        ).fetchall()
    assert sorted(row[0] for row in rows) == ["raw"] * 3 + ["zstd"] * 3
    rows = sorted(set(rows), reverse=True)
    assert rows[0][1] == len(LOG) > 20 * rows[0][2]
    assert rows[1][1] == rows[1][2] == len(noise)


def test_what_is_there_is_not_compressed_again(path, monkeypatch):
    with closing(SqliteStore(path)) as store:
        store.commit("a", [output(LOG)], [])
        monkeypatch.setattr("ullage.stores._packing.zstd", None)
        store.commit("a", [output(LOG)], [])
        assert store.refs("a") == (output(LOG).ref,)


def test_a_blob_cleaned_up_before_the_transaction_is_written_again(path):
    store = SqliteStore(path)
    store.commit("a", [output(LOG)], [])
    blobs = store._new_blobs

    def cleaned_up_meanwhile(outputs, tenant):
        ready = blobs(outputs, tenant)
        with raw(path) as db:
            for table in ("grants", "blobs", "chunks"):
                db.execute(f"DELETE FROM {table}")
        return ready

    store._new_blobs = cleaned_up_meanwhile
    store.commit("a", [output(LOG)], [])
    assert store.get("a", output(LOG).ref).text == LOG
    store.close()


@pytest.mark.parametrize(
    "tampering",
    [
        "body = zeroblob(length(body))",
        "body = substr(body, 1, length(body) - 1)",
        "body = x''",
        "body = 'text'",
        "body = zeroblob(900000), coding = 'raw'",
        "coding = 'raw'",
        "size_bytes = 3",
        "size_bytes = -1",
        "size_bytes = 'many'",
    ],
)
@pytest.mark.parametrize("how", ["get", "chunk"])
def test_damage_is_noticed_and_names_the_ref(path, tampering, how):
    ref = output(LOG).ref
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output(LOG)], [])
        with raw(path) as db:
            db.execute(f"UPDATE chunks SET {tampering}")
        with pytest.raises(StoreError, match="damaged") as caught:
            store.get("t", ref) if how == "get" else store.chunk("t", ref, 0)
        assert caught.value.key == ref
        assert not isinstance(caught.value, RefNotFound)


SWAPPED = """UPDATE chunks SET (coding, body, size_bytes, chars, newlines, seal) =
    (SELECT coding, body, size_bytes, chars, newlines, seal FROM chunks WHERE n = 0) WHERE n = 1"""


@pytest.mark.parametrize(
    ("how", "tampering"),
    [
        ("get", "UPDATE blobs SET kind = 'block'"),
        ("get", "UPDATE blobs SET kind = 7"),
        ("get", "UPDATE blobs SET digest = zeroblob(32)"),
        ("get", "DELETE FROM blobs"),
        ("get", "DELETE FROM chunks"),
        ("stat", "DELETE FROM blobs"),
        ("stat", "DELETE FROM chunks WHERE n = 1"),
        ("stat", "UPDATE blobs SET size_bytes = 3"),
        ("stat", "UPDATE chunks SET size_bytes = 'many' WHERE n = 0"),
        ("chunk", "DELETE FROM chunks WHERE n = 1"),
        ("chunk", "UPDATE chunks SET newlines = 7"),
        ("chunk", "UPDATE chunks SET chars = 7"),
        ("chunk", SWAPPED),
        ("chunk", "UPDATE chunks SET seal = zeroblob(32)"),
    ],
)
def test_damage_to_what_is_known_of_a_content_is_noticed(path, how, tampering):
    big = output("0123456789\n" * (5 * CHUNK_CHARS // 22))
    with closing(SqliteStore(path)) as store:
        store.commit("t", [big], [])
        with raw(path) as db:
            db.execute(tampering)
        with pytest.raises(StoreError, match="damaged") as caught:
            store.chunk("t", big.ref, 1) if how == "chunk" else getattr(
                store, how
            )("t", big.ref)
        assert caught.value.key == big.ref


def test_damage_in_one_chunk_leaves_the_others_readable(path):
    text = "".join(f"{n}\n" for n in range(600_000))
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output(text)], [])
        with raw(path) as db:
            db.execute("UPDATE chunks SET body = zeroblob(9) WHERE n = 1")
        ref = output(text).ref
        shape = store.stat("t", ref)
        assert [extent.chars for extent in shape.chunks[:-1]] == [
            CHUNK_CHARS
        ] * 3
        assert store.chunk("t", ref, 0) == text[:CHUNK_CHARS]
        assert store.chunk("t", ref, 3) == text[3 * CHUNK_CHARS :]
        for broken in (
            lambda: store.chunk("t", ref, 1),
            lambda: store.get("t", ref),
        ):
            with pytest.raises(StoreError, match="damaged"):
                broken()


BOMB_BYTES = 2**26


@pytest.mark.parametrize("claimed", [2**31, BOMB_BYTES, 2**62, -1])
def test_a_row_that_claims_gigabytes_is_refused_before_they_are_there(
    path, claimed
):
    """A frame of nothing but zeros is small; what it becomes is not."""
    bomb = zstd.compress(bytes(BOMB_BYTES), 3)
    assert len(bomb) < 100_000
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("x")], [])
        with raw(path) as db:
            db.execute("UPDATE chunks SET coding = 'zstd', body = ?", (bomb,))
            db.execute("UPDATE chunks SET size_bytes = ?", (claimed,))
            db.execute("UPDATE blobs SET size_bytes = ?", (claimed,))
        tracemalloc.start()
        for read in (
            store.stat,
            store.get,
            lambda *place: store.chunk(*place, 0),
        ):
            with pytest.raises(StoreError, match="damaged"):
                read("t", output("x").ref)
        with raw(path) as db:
            db.execute(
                "UPDATE chunks SET coding = 'raw', body = zeroblob(?)",
                (BOMB_BYTES,),
            )
        with pytest.raises(StoreError, match="damaged"):
            store.chunk("t", output("x").ref, 0)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
        tracemalloc.stop()


def test_a_content_that_claims_more_chunks_than_it_has_is_refused(path):
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("x")], [])
        with raw(path) as db:
            db.execute("UPDATE blobs SET chunks = ?", (2**60,))
        with pytest.raises(StoreError, match="damaged"):
            store.stat("t", output("x").ref)


def test_a_swapped_body_is_noticed(path):
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("one"), output("two")], [])
        with raw(path) as db:
            db.execute(
                "UPDATE chunks SET body = CAST('eno' AS BLOB) WHERE body = x'6f6e65'"
            )
        assert store.get("t", output("two").ref).text == "two"
        with pytest.raises(StoreError, match="damaged"):
            store.get("t", output("one").ref)


# Failures


def test_a_full_disk_keeps_nothing_and_the_store_goes_on(path):
    big = random.Random(0).randbytes(400_000).hex()
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("before")], [])
        store._file._connection.execute("PRAGMA max_page_count = 40")
        with pytest.raises(StoreError, match="full") as caught:
            store.commit(
                "t", [output("small"), output(big)], [batch(b"k", 0, b"d")]
            )
        assert caught.value.operation == "commit"
        assert big[:20] not in str(caught.value)
        assert str(path.parent) not in str(caught.value)
        assert store.refs("t") == (output("before").ref,)
        store._file._connection.execute("PRAGMA max_page_count = 100000")
        store.commit("t", [output(big)], [])
        assert store.get("t", output(big).ref).text == big


def test_a_file_that_may_only_be_read(path):
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("x")], [])
        store._file._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="may only be read"):
            store.commit("t", [output("y")], [])
        assert store.get("t", output("x").ref).text == "x"


def test_a_file_held_by_another_is_waited_for_and_then_reported(path):
    with (
        closing(SqliteStore(path, busy_timeout_s=0.05)) as store,
        raw(path) as db,
    ):
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="held the file") as caught:
            store.commit("t", [output("x")], [])
        assert str(path) not in str(caught.value)
        assert store.refs("t") == ()
        db.execute("COMMIT")
        store.commit("t", [output("x")], [])


def test_a_folder_that_cannot_be_made_is_reported_without_its_path(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=os.strerror(errno.ENOTDIR)) as caught:
        SqliteStore(tmp_path / "file" / "below" / "a.db")
    assert str(tmp_path) not in str(caught.value)


def test_a_file_taken_away_is_made_again(path):
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("x")], [])
        for place in path.parent.iterdir():
            place.unlink()
        store.commit("t", [output("y")], [])
        with closing(SqliteStore(path)) as other:
            assert other.refs("t") == (output("y").ref,)


# Processes


def test_connections_that_open_and_write_at_once_wait_for_each_other(tmp_path):
    """As processes do, without their start: SQLite locks between connections all the same."""
    crowd, rounds, failures = 6, 8, []
    together = threading.Barrier(crowd)

    def work(me):
        for turn in range(rounds):
            together.wait(10)
            try:
                with closing(SqliteStore(tmp_path / f"{turn}.db")) as store:
                    for n in range(5):
                        store.commit(
                            "t", [], [batch(b"%d" % n, 0, b"%d" % me)]
                        )
                        store.commit(
                            "t", [], [batch(b"own", 10 * me + n, b"x")]
                        )
            except StoreError as error:
                failures.append(repr(error))

    threads = [
        threading.Thread(target=work, args=(me,)) for me in range(crowd)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with closing(SqliteStore(tmp_path / "0.db")) as store:
        assert len(store.find("t", [b"own"])) == 5 * crowd


def test_a_side_file_that_comes_and_goes_while_a_file_is_opened_is_no_reason_to_refuse(
    path,
):
    """As when another process begins to write, or closes."""
    journal, stop = path.with_name(path.name + "-journal"), threading.Event()

    def comes_and_goes():
        while not stop.is_set():
            journal.touch()
            journal.unlink(missing_ok=True)

    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("x")], [])
    other = threading.Thread(target=comes_and_goes)
    other.start()
    try:
        for _ in range(300):
            with closing(SqliteStore(path)) as store:
                assert store.refs("t") == (output("x").ref,)
    finally:
        stop.set()
        other.join()


def hammer(path, me, failures):
    try:
        with closing(SqliteStore(path)) as store:
            for n in range(25):
                own = output(f"{me} wrote {n}")
                key = b"%d" % n
                lost = store.commit(
                    "t", [own, output("shared")], [batch(key, 0, b"%d" % me)]
                )
                assert store.get("t", own.ref) == own
                (standing,) = store.find("t", [key])
                assert lost in ((), (standing,))
                assert (standing.data == b"%d" % me) == (lost == ())
    except (AssertionError, StoreError) as error:
        failures.put(repr(error))


def test_several_processes_create_and_share_one_file(path):
    spawn = multiprocessing.get_context("spawn")
    failures = spawn.SimpleQueue()
    crowd = [
        spawn.Process(target=hammer, args=(path, me, failures))
        for me in range(3)
    ]
    for process in crowd:
        process.start()
    for process in crowd:
        process.join(60)
    assert failures.empty(), failures.get()
    assert [process.exitcode for process in crowd] == [0] * 3
    with closing(SqliteStore(path)) as store:
        assert len(store.refs("t")) == 3 * 25 + 1
        assert len(store.find("t", [b"%d" % n for n in range(25)])) == 25


VICTIM = """
import sys
from tests.stores.contract import batch, output
from ullage.stores import SqliteStore
from ullage.core.values.effects import CHUNK_CHARS, Record
from ullage.stores._packing import zstd
store = SqliteStore(sys.argv[1])
for n in range(100_000):
    pair = [output(f"{n} {side} " * 3_000) for side in ("left", "right")]
    store.commit("t", pair, [batch(b"%d" % n, 0, b"x"), batch(b"%d" % n, 1, b"y")])
    print(n, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
@pytest.mark.parametrize("after", [1, 12, 40])
def test_killed_in_the_middle_nothing_returned_is_lost_and_nothing_is_half_there(
    path, after
):
    command = [sys.executable, "-c", VICTIM, str(path)]
    root = Path(__file__).parents[2]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])
    }
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=env
    ) as victim:
        for line in victim.stdout:
            if int(line) >= after:
                victim.send_signal(signal.SIGKILL)
                break
        rest = victim.stdout.read().split()
    returned = int(rest[-1]) if rest else int(line)
    with closing(SqliteStore(path)) as store:
        refs = store.refs("t")
        commits = len(refs) // 2
        assert len(refs) == 2 * commits
        assert commits in (
            returned + 1,
            returned + 2,
        )  # the one under way may have made it
        assert len({store.get("t", ref).text for ref in refs}) == 2 * commits
        assert (
            len(store.find("t", [b"%d" % n for n in range(commits + 3)]))
            == 2 * commits
        )


def test_what_is_kept_of_a_reply_is_written_in_one_statement(path):
    """A proxy writes at every reply: it needs no transaction, and nothing is read for it."""
    statements = []
    records = [
        Record(b"k", "observed", 0, b"usage", "gpt-4.1"),
        Record(b"k", "shown", 0, b"marks"),
        Record(b"k", "outline", 0, b"heads"),
    ]
    with closing(SqliteStore(path)) as store:
        store.commit("t", [], records[:1])
        store._file._connection.set_trace_callback(statements.append)
        store.commit("t", [], records)
        assert len(statements) == 1
        assert {*store.find("t", [b"k"])} == {*records}
