import errno
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.stores.contract import Contract, batch, output

from ullage.errors import ConfigError, RefNotFound, StoreError
from ullage.stores import SqliteStore
from ullage.stores._file import APPLICATION_ID, MIGRATIONS

LOG = "2026-01-01 12:00:00 INFO the same words again\n" * 500


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


def raw(path):
    return closing(sqlite3.connect(path, isolation_level=None))


class TestSqlite(Contract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path_factory):
        self.folder = tmp_path_factory.mktemp("stores")
        self.count = 0

    @contextmanager
    def opened(self):
        self.count += 1
        store = SqliteStore(self.folder / f"{self.count}.db", synchronous="NORMAL")
        yield store
        store.close()


# What is in the file


def test_it_is_all_there_after_reopening(path):
    texts = [LOG, "", "\ud83d\x00", "naïve"]
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output(text) for text in texts], [batch(b"k", 0, b"d")])
    with closing(SqliteStore(path)) as store:
        assert [store.get("t", ref).text for ref in store.refs("t")] == texts
        assert store.find("t", [b"k"]) == (batch(b"k", 0, b"d"),)


def test_content_is_kept_once_for_all_tenants_and_compressed_if_smaller(path):
    noise = random.Random(0).randbytes(3_000).hex()[:16]
    with closing(SqliteStore(path)) as store:
        for tenant in ("a", "b", "c"):
            store.commit(tenant, [output(LOG), output(noise)], [])
    with raw(path) as db:
        rows = db.execute("SELECT coding, size_bytes, length(body) FROM blobs").fetchall()
    assert [row[0] for row in rows] == ["zstd", "raw"]
    assert rows[0][1] == len(LOG) > 20 * rows[0][2]
    assert rows[1][1] == rows[1][2] == len(noise)


def test_what_is_there_is_not_compressed_again(path, monkeypatch):
    with closing(SqliteStore(path)) as store:
        store.commit("a", [output(LOG)], [])
        monkeypatch.setattr("ullage.stores.sqlite.zstd", None)
        store.commit("a", [output(LOG)], [])
        store.commit("b", [output(LOG)], [])
        assert store.refs("b") == store.refs("a")


def test_a_blob_cleaned_up_before_the_transaction_is_written_again(path):
    store = SqliteStore(path)
    store.commit("a", [output(LOG)], [])
    parcels = store._parcels

    def cleaned_up_meanwhile(outputs):
        ready = parcels(outputs)
        with raw(path) as db:
            db.execute("DELETE FROM grants")
            db.execute("DELETE FROM blobs")
        return ready

    store._parcels = cleaned_up_meanwhile
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
        "kind = 'block'",
        "kind = 7",
        "size_bytes = 3",
        "size_bytes = -1",
        "size_bytes = 'many'",
        "digest = zeroblob(32)",
    ],
)
def test_damage_is_noticed_and_names_the_ref(path, tampering):
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output(LOG)], [])
        with raw(path) as db:
            db.execute(f"UPDATE blobs SET {tampering}")
        with pytest.raises(StoreError, match="damaged") as caught:
            store.get("t", output(LOG).ref)
        assert caught.value.key == output(LOG).ref
        assert not isinstance(caught.value, RefNotFound)


def test_a_swapped_body_is_noticed(path):
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("one"), output("two")], [])
        with raw(path) as db:
            db.execute("UPDATE blobs SET body = CAST('eno' AS BLOB) WHERE body = x'6f6e65'")
        assert store.get("t", output("two").ref).text == "two"
        with pytest.raises(StoreError, match="damaged"):
            store.get("t", output("one").ref)


def test_a_lost_body_is_damage_not_absence(path):
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("one")], [])
        with raw(path) as db:
            db.execute("DELETE FROM blobs")
        with pytest.raises(StoreError, match="damaged"):
            store.get("t", output("one").ref)


# Who may read the file


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
class TestPrivacy:
    @pytest.fixture(autouse=True)
    def _open_umask(self):
        before = os.umask(0)
        yield
        os.umask(before)

    def mode(self, place):
        return place.stat().st_mode & 0o777

    def test_whatever_it_creates_is_private(self, tmp_path):
        path = tmp_path / "new" / "newer" / "a.db"
        with closing(SqliteStore(path)) as store:
            store.commit("t", [output("x")], [])
            files = sorted(path.parent.iterdir())
            assert [place.name for place in files] == ["a.db", "a.db-shm", "a.db-wal"]
            assert [self.mode(place) for place in files] == [0o600] * 3
        assert [self.mode(place) for place in path.parents[:2]] == [0o700] * 2

    def test_a_folder_the_user_named_keeps_its_mode(self, tmp_path):
        tmp_path.chmod(0o755)
        SqliteStore(tmp_path / "a.db").close()
        assert self.mode(tmp_path) == 0o755

    def test_our_own_folder_is_tightened(self, tmp_path, monkeypatch):
        ours = tmp_path / "ours"
        ours.mkdir(0o777)
        monkeypatch.setattr("platformdirs.user_data_dir", lambda *_, **__: str(ours))
        SqliteStore().close()
        assert self.mode(ours) == 0o700

    def test_a_file_others_can_read_is_tightened(self, path):
        SqliteStore(path).close()
        path.chmod(0o666)
        with closing(SqliteStore(path)):
            assert self.mode(path) == 0o600

    @pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
    @pytest.mark.parametrize("exists", [True, False])
    def test_a_link_is_not_followed(self, tmp_path, path, suffix, exists):
        target = tmp_path / "target"
        if exists:
            target.write_bytes(b"precious")
        path.with_name(path.name + suffix).symlink_to(target)
        with pytest.raises(StoreError, match="a link"):
            SqliteStore(path)
        assert target.exists() == exists
        assert not exists or target.read_bytes() == b"precious"

    def test_a_folder_in_its_place_is_refused(self, path):
        path.mkdir()
        with pytest.raises(StoreError, match="a folder"):
            SqliteStore(path)


# Versions


def test_a_file_of_version_1_opens(path):
    """Golden: these statements are version 1 for ever."""
    text = "kept by version 1"
    digest = "17499019e5ed9dd48849f5a511b0efecc0e98714da4830f28177121a94cd4afb"
    with raw(path) as db:
        db.executescript(f"""
            PRAGMA application_id = 1970039911;
            CREATE TABLE blobs (digest BLOB NOT NULL PRIMARY KEY,
                kind TEXT NOT NULL, coding TEXT NOT NULL, size_bytes INTEGER NOT NULL,
                body BLOB NOT NULL);
            CREATE TABLE grants (id INTEGER PRIMARY KEY, tenant BLOB NOT NULL, ref BLOB NOT NULL,
                digest BLOB NOT NULL, kept_s INTEGER NOT NULL, UNIQUE (tenant, ref));
            CREATE TABLE records (id INTEGER PRIMARY KEY, tenant BLOB NOT NULL, key BLOB NOT NULL,
                kind TEXT NOT NULL, n INTEGER NOT NULL, data BLOB NOT NULL,
                kept_s INTEGER NOT NULL, UNIQUE (tenant, key, kind, n));
            INSERT INTO blobs VALUES (x'{digest}', 'text', 'raw', 17, CAST('{text}' AS BLOB));
            INSERT INTO grants VALUES (1, CAST('t' AS BLOB), CAST('r' AS BLOB), x'{digest}',
                1790000000);
            INSERT INTO records VALUES (1, CAST('t' AS BLOB), x'6b', 'batch', 0, x'64', 1790000000);
            PRAGMA user_version = 1;
        """)
    with closing(SqliteStore(path)) as store:
        assert store.get("t", "r").text == text
        assert store.find("t", [b"k"]) == (batch(b"k", 0, b"d"),)
        store.commit("t", [output("more")], [batch(b"k", 1, b"e")])
        assert store.refs("t") == ("r", output("more").ref)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 99;", "version 99"),
        ("CREATE TABLE theirs (x);", "another application"),
        ("PRAGMA user_version = 1;", "another application"),
    ],
)
def test_what_it_does_not_understand_it_leaves_alone(path, script, reason):
    with raw(path) as db:
        db.executescript(script)
    path.chmod(0o640)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=reason):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_file_that_is_no_database_is_left_alone(path):
    path.write_text("dear diary\n" * 100)
    with pytest.raises(StoreError, match="not an SQLite database"):
        SqliteStore(path)
    assert path.read_text() == "dear diary\n" * 100


def test_a_migration_that_fails_half_way_leaves_the_old_version(path, monkeypatch):
    SqliteStore(path).close()
    broken = (*MIGRATIONS, ("CREATE TABLE half (x)", "no such statement"))
    monkeypatch.setattr("ullage.stores._file.MIGRATIONS", broken)
    with pytest.raises(StoreError):
        SqliteStore(path)
    monkeypatch.undo()
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("x")], [])
    with raw(path) as db:
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (
            0,
        )


# Failures


def test_a_full_disk_keeps_nothing_and_the_store_goes_on(path):
    big = random.Random(0).randbytes(400_000).hex()
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("before")], [])
        store._file._connection.execute("PRAGMA max_page_count = 40")
        with pytest.raises(StoreError, match="full") as caught:
            store.commit("t", [output("small"), output(big)], [batch(b"k", 0, b"d")])
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
    with closing(SqliteStore(path, busy_timeout_s=0.05)) as store, raw(path) as db:
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


@pytest.mark.parametrize("setting", ["OFF", "full; DROP TABLE blobs"])
def test_a_setting_that_risks_the_file_is_refused(path, setting):
    with pytest.raises(ConfigError, match="synchronous"):
        SqliteStore(path, synchronous=setting)
    assert not path.exists()


# Processes


def hammer(path, me, failures):
    try:
        with closing(SqliteStore(path)) as store:
            for n in range(25):
                own = output(f"{me} wrote {n}")
                key = b"%d" % n
                lost = store.commit("t", [own, output("shared")], [batch(key, 0, b"%d" % me)])
                assert store.get("t", own.ref) == own
                (standing,) = store.find("t", [key])
                assert lost in ((), (standing,))
                assert (standing.data == b"%d" % me) == (lost == ())
    except (AssertionError, StoreError) as error:
        failures.put(repr(error))


def test_several_processes_create_and_share_one_file(path):
    spawn = multiprocessing.get_context("spawn")
    failures = spawn.SimpleQueue()
    crowd = [spawn.Process(target=hammer, args=(path, me, failures)) for me in range(3)]
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
store = SqliteStore(sys.argv[1])
for n in range(100_000):
    pair = [output(f"{n} {side} " * 3_000) for side in ("left", "right")]
    store.commit("t", pair, [batch(b"%d" % n, 0, b"x"), batch(b"%d" % n, 1, b"y")])
    print(n, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
@pytest.mark.parametrize("after", [1, 12, 40])
def test_killed_in_the_middle_nothing_returned_is_lost_and_nothing_is_half_there(path, after):
    command = [sys.executable, "-c", VICTIM, str(path)]
    root = Path(__file__).parents[2]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as victim:
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
        assert commits in (returned + 1, returned + 2)  # the one under way may have made it
        assert len({store.get("t", ref).text for ref in refs}) == 2 * commits
        assert len(store.find("t", [b"%d" % n for n in range(commits + 3)])) == 2 * commits


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
class TestForks:
    def in_child(self, work):
        """Run ``work`` in a forked child; what it says is its exit code, 0 for well."""
        child = os.fork()
        if child:
            return child
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)

    def well(self, child):
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def test_a_child_keeps_what_it_commits_after_the_parent_closed(self, path):
        store = SqliteStore(path)
        store.commit("t", [output("parent")], [])
        ready, go_on = os.pipe(), os.pipe()

        def work():
            store.commit("t", [output("child, before")], [])
            os.write(ready[1], b".")
            os.read(go_on[0], 1)
            store.commit("t", [output("child, after")], [])
            os.kill(os.getpid(), signal.SIGKILL)

        child = self.in_child(work)
        os.read(ready[0], 1)
        store.get("t", output("parent").ref)
        store.close()
        os.write(go_on[1], b".")
        assert not self.well(child)
        with closing(SqliteStore(path)) as again:
            assert len(again.refs("t")) == 3

    def test_parent_and_child_go_on_with_the_same_store(self, path):
        with closing(SqliteStore(path)) as store:
            children = []
            for n in range(3):
                store.commit("t", [output(f"parent {n}")], [])
                children.append(
                    self.in_child(lambda n=n: store.commit("t", [output(f"child {n}")], []))
                )
            results = [self.well(child) for child in children]
            assert all(results)
            assert len(store.refs("t")) == 6

    def test_a_fork_waits_for_the_commit_of_another_thread(self, path):
        with closing(SqliteStore(path)) as store:
            stop = threading.Event()

            def write():
                n = 0
                while not stop.is_set():
                    store.commit("t", [output(f"thread {n}")], [])
                    n += 1

            writer = threading.Thread(target=write)
            writer.start()
            try:
                for n in range(10):
                    own = output(f"child {n}")
                    assert self.well(self.in_child(lambda own=own: store.commit("t", [own], [])))
                    assert store.get("t", own.ref) == own
            finally:
                stop.set()
                writer.join()

    def test_a_fork_past_python_never_uses_the_connection(self, path):
        with closing(SqliteStore(path)) as store:
            inherited = store._file._connection
            store._file._pid -= 1  # what a child finds when no hook ran before its fork
            store.commit("t", [output("x")], [])
            assert store._file._connection is not inherited
            assert inherited.execute("SELECT 1").fetchone() == (1,)
            inherited.close()
