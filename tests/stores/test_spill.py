import os
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.stores.contract import ODD, Clock, FileContract, output
from ullage.core.errors import RefNotFound, SpillNotFound, StoreError
from ullage.core.history.canon import ref_of
from ullage.core.values.effects import Output
from ullage.stores import Bounds, MemoryStore, SpillStore, SqliteStore
from ullage.stores._clean import DAY_S

HUGE = "naïve 😀\ud83d\r\n" * 300_000
AGED = Bounds(older_than_s=30 * DAY_S)


class TestSpill(FileContract):
    def open(self):
        inner = MemoryStore(clock=self.clock)
        return SpillStore(inner, self.place(), clock=self.clock)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data" / "spill"


def names(folder):
    return sorted(place.name for place in folder.iterdir())


@pytest.mark.parametrize(
    "text", [*ODD, HUGE], ids=[*map(str, range(len(ODD))), "huge"]
)
@pytest.mark.parametrize("kind", ["text", "block"])
def test_the_file_is_the_output_byte_for_byte(folder, text, kind):
    store = SpillStore(MemoryStore(), folder)
    out = output(text, kind)
    store.commit("t", [out], [])
    path = store.path_of(out.ref)
    assert path == folder / f"{out.ref}.txt"
    assert path.read_bytes() == text.encode("utf-8", "surrogatepass")
    assert store.retrieve(path) == store.retrieve(path.name) == text
    assert names(folder) == [path.name]


def test_what_is_written_is_counted_once(folder):
    store = SpillStore(MemoryStore(), folder)
    store.commit("t", [output("é"), output("ab")], [])
    store.commit("u", [output("é")], [])
    SpillStore(MemoryStore(), folder).commit("t", [output("é")], [])
    assert (store.files_created, store.bytes_written) == (2, 4)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_files_and_folders_are_private_whatever_the_umask(folder):
    before = os.umask(0)
    try:
        SpillStore(MemoryStore(), folder).commit("t", [output("x")], [])
    finally:
        os.umask(before)
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert [
        place.stat().st_mode & 0o777 for place in (folder, folder.parent)
    ] == [0o700] * 2


def test_a_link_is_never_written_through_nor_read_through(folder, tmp_path):
    target = tmp_path / "precious"
    target.write_text("x")
    store = SpillStore(MemoryStore(), folder)
    path = store.path_of(output("x").ref)
    path.symlink_to(target)
    with pytest.raises(StoreError):
        store.retrieve(path)
    store.commit("t", [output("x")], [])
    assert not path.is_symlink()
    assert target.read_text() == "x"
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(StoreError, match="a link"):
        SpillStore(MemoryStore(), tmp_path / "link")


@pytest.mark.parametrize(
    "name",
    [
        "0123456789abcdef.txt",
        "",
        "..",
        "../../etc/passwd",
        "a\x00b.txt",
        "x" * 300,
        "Ａ.txt",
        "c:\\x",
    ],
)
def test_a_file_that_is_not_there_is_a_typed_error_without_a_path(
    folder, tmp_path, name
):
    store = SpillStore(MemoryStore(), folder)
    with pytest.raises(
        SpillNotFound, match=r"^Spill file not found: "
    ) as caught:
        store.retrieve(folder / name if "\x00" not in name else name)
    assert isinstance(caught.value, RefNotFound)
    assert str(tmp_path) not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.skipif(
    os.name != "posix", reason="pipes and sparse files are POSIX"
)
@pytest.mark.parametrize("planted", ["pipe", "three gigabytes", "folder"])
def test_what_was_planted_at_a_files_place_is_refused_unread(folder, planted):
    store = SpillStore(MemoryStore(), folder)
    path = store.path_of(output("x").ref)
    if planted == "pipe":
        os.mkfifo(path)
    elif planted == "folder":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 3 << 30)
    tracemalloc.start()
    with pytest.raises(StoreError) as caught:
        store.retrieve(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert str(folder) not in str(caught.value)


def test_a_file_somebody_changed_is_noticed_and_mended_when_it_is_set_aside_again(
    folder,
):
    store = SpillStore(MemoryStore(), folder)
    out = output("as it was")
    store.commit("t", [out], [])
    for changed in (b"changed", b"\xff" * 9):
        store.path_of(out.ref).write_bytes(changed)
        with pytest.raises(
            StoreError, match="does not hold what was written"
        ) as caught:
            store.retrieve(f"{out.ref}.txt")
        assert not isinstance(caught.value, RefNotFound)
    store.path_of(out.ref).write_bytes(b"shorter")
    store.commit("t", [out], [])
    assert store.retrieve(f"{out.ref}.txt") == out.text
    assert store.get("t", out.ref) == out


def test_a_file_that_cannot_be_written_keeps_nothing(folder, monkeypatch):
    store = SpillStore(MemoryStore(), folder)
    replace = Path.replace

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        store.commit("t", [output("x")], [])
    assert str(folder) not in str(caught.value)
    assert store.refs("t") == ()
    assert names(folder) == []
    monkeypatch.setattr(Path, "replace", replace)
    store.commit("t", [output("x")], [])
    assert store.files_created == 1


def test_a_ref_that_is_not_of_its_content_gets_no_file(folder):
    store = SpillStore(MemoryStore(), folder)
    for ref in ("../escape", ref_of("other"), "r"):
        store.commit("t", [Output(ref, "text")], [])
    assert names(folder) == []
    assert store.get("t", "r").text == "text"


# Clean-up


def test_a_file_goes_when_no_tenant_holds_its_output_any_more(
    tmp_path, folder
):
    clock = Clock()
    inner = SqliteStore(tmp_path / "a.db", clock=clock)
    store = SpillStore(inner, folder, clock=clock)
    shared, own, new = output("shared"), output("own"), output("new")
    store.commit("a", [shared, own], [])
    store.commit("b", [shared], [])
    clock.days_pass(31)
    store.commit("a", [new], [])
    assert len(store.collect("a", replace(AGED, dry_run=True)).removed) == 2
    assert len(names(folder)) == 3
    store.collect("a", AGED)
    assert names(folder) == sorted(f"{out.ref}.txt" for out in (shared, new))
    store.collect("b", AGED)
    assert names(folder) == [f"{new.ref}.txt"]
    store.close()


def test_files_of_earlier_processes_go_by_age_and_size(folder):
    clock = Clock()
    for text in ("first", "second", "third"):
        SpillStore(MemoryStore(clock=clock), folder, clock=clock).commit(
            "t", [output(text)], []
        )
        clock.days_pass(20)
    store = SpillStore(MemoryStore(clock=clock), folder, clock=clock)
    store.commit("t", [output("own")], [])
    clock.days_pass(1)
    (folder / "notes.md").write_text("somebody else's")
    store.collect(None, Bounds(older_than_s=50 * DAY_S))
    assert f"{output('first').ref}.txt" not in names(folder)
    assert len(names(folder)) == 4
    store.collect(None, Bounds(max_bytes=1_000))
    assert len(names(folder)) == 4
    keep = frozenset({output("own").ref})
    store.collect(None, Bounds(max_bytes=len("third") + len("own"), keep=keep))
    assert names(folder) == sorted(
        ["notes.md", f"{output('third').ref}.txt", f"{output('own').ref}.txt"]
    )


def test_what_a_killed_process_left_unfinished_goes(folder):
    clock = Clock()
    store = SpillStore(MemoryStore(), folder, clock=clock)
    left = folder / ".0123456789abcdef.0123456789abcdef.part"
    for age_s, there in ((60, True), (7_200, False)):
        left.write_text("half")
        os.utime(left, (clock.now_s - age_s, clock.now_s - age_s))
        store.collect(None, Bounds())
        assert left.exists() == there


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX")
def test_the_mark_of_the_daily_sweep_follows_no_link(folder, tmp_path):
    clock, target = Clock(), tmp_path / "precious"
    target.write_text("x")
    os.utime(target, (1, 1))
    folder.mkdir(parents=True)
    (folder / ".swept").symlink_to(target)
    store = SpillStore(
        MemoryStore(), folder, files_kept_s=30 * DAY_S, clock=clock
    )
    store.commit("t", [output("old")], [])
    assert (target.read_text(), target.stat().st_mtime) == ("x", 1)
    assert not (folder / ".swept").is_symlink()
    clock.days_pass(31)
    store.commit("t", [output("new")], [])
    assert names(folder) == sorted([".swept", f"{output('new').ref}.txt"])


def test_a_clock_that_was_ahead_once_does_not_end_the_daily_sweep(folder):
    clock = Clock()
    store = SpillStore(
        MemoryStore(), folder, files_kept_s=30 * DAY_S, clock=clock
    )
    store.commit("t", [output("old")], [])
    clock.days_pass(20)
    (folder / ".swept").touch()
    os.utime(folder / ".swept", (clock.now_s + 9_999 * DAY_S,) * 2)
    clock.days_pass(11)
    store.commit("t", [output("new")], [])
    assert names(folder) == sorted([".swept", f"{output('new').ref}.txt"])


def test_the_store_underneath_is_as_it_would_be_without(tmp_path, folder):
    with closing(SpillStore(SqliteStore(tmp_path / "a.db"), folder)) as store:
        store.commit("t", [output("x")], [])
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        assert db.execute("SELECT count(*) FROM blobs").fetchone() == (1,)
    assert len(names(folder)) == 1
