import os
import signal
import sqlite3
import sys
import threading
from contextlib import closing

import pytest

from tests.stores.contract import output
from ullage.core.errors import StoreError
from ullage.stores import SqliteStore
from ullage.stores._schema import APPLICATION_ID, MIGRATIONS

if sys.version_info >= (3, 14):
    pass
else:
    pass


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


def raw(path):
    return closing(sqlite3.connect(path, isolation_level=None))


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
            assert [place.name for place in files] == [
                "a.db",
                "a.db-shm",
                "a.db-wal",
            ]
            assert [self.mode(place) for place in files] == [0o600] * 3
        assert [self.mode(place) for place in path.parents[:2]] == [0o700] * 2

    def test_a_folder_the_user_named_keeps_its_mode(self, tmp_path):
        tmp_path.chmod(0o755)
        SqliteStore(tmp_path / "a.db").close()
        assert self.mode(tmp_path) == 0o755

    def test_our_own_folder_is_tightened(self, tmp_path, monkeypatch):
        ours = tmp_path / "ours"
        ours.mkdir(0o777)
        monkeypatch.setattr(
            "platformdirs.user_data_dir", lambda *_, **__: str(ours)
        )
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


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 99;",
            "version 99",
        ),
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


def test_a_migration_that_fails_half_way_leaves_the_old_version(
    path, monkeypatch
):
    SqliteStore(path).close()
    broken = (*MIGRATIONS, ("CREATE TABLE half (x)", "no such statement"))
    monkeypatch.setattr("ullage.stores._file.MIGRATIONS", broken)
    with pytest.raises(StoreError):
        SqliteStore(path)
    monkeypatch.undo()
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("x")], [])
    with raw(path) as db:
        assert db.execute(
            "SELECT count(*) FROM sqlite_master WHERE name = 'half'"
        ).fetchone() == (0,)


def test_a_link_put_there_while_it_opens_is_noticed(
    tmp_path, path, monkeypatch
):
    target = tmp_path / "target"
    target.write_bytes(b"")
    connect = sqlite3.connect

    def exchanged(place, **options):
        path.unlink()
        path.symlink_to(target)
        return connect(place, **options)

    monkeypatch.setattr("ullage.stores._file.sqlite3.connect", exchanged)
    with pytest.raises(StoreError, match="exchanged"):
        SqliteStore(path)
    assert target.read_bytes() == b""


# Forks


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
                    self.in_child(
                        lambda n=n: store.commit(
                            "t", [output(f"child {n}")], []
                        )
                    )
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
                for n in range(4):
                    own = output(f"child {n}")
                    assert self.well(
                        self.in_child(
                            lambda own=own: store.commit("t", [own], [])
                        )
                    )
                    assert store.get("t", own.ref) == own
            finally:
                stop.set()
                writer.join()

    def test_a_fork_past_python_never_uses_the_connection(self, path):
        with closing(SqliteStore(path)) as store:
            inherited = store._file._connection
            store._file._pid -= (
                1  # what a child finds when no hook ran before its fork
            )
            store.commit("t", [output("x")], [])
            assert store._file._connection is not inherited
            assert inherited.execute("SELECT 1").fetchone() == (1,)
            inherited.close()
