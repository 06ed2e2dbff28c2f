"""One connection for all stores of a process on one file: syncs, interrupts, descriptors."""

import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.contract import batch, output
from ullage.core.errors import ConfigError, StoreError
from ullage.core.values.effects import Record
from ullage.stores import DAY_S, Bounds, MemoryStore, SqliteStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


def test_a_commit_reaches_the_disk_unless_it_can_be_observed_again(path):
    """What SQLite syncs is its setting at the time of the commit; the last one is asked."""
    normal, full = 1, 2
    seen = Record(b"k", "observed", 0, b"1")
    with closing(SqliteStore(path)) as store:
        for outputs, records, wanted in (
            ([output("x")], [], full),
            ([], [seen], normal),
            ([], [seen, Record(b"k", "latest", 0, b"1")], normal),
            ([], [batch(b"k", 0, b"d"), seen], full),
            ([], [seen], normal),
            ([output("y")], [seen], full),
            ([], [Record(b"k", "opened", 0, b"1")], full),
        ):
            store.commit("t", outputs, records)
            db = store._file._connection
            assert db.execute("PRAGMA synchronous").fetchone() == (wanted,)


def test_what_is_not_synced_is_seen_by_everybody_at_once(path):
    with (
        closing(SqliteStore(path)) as one,
        closing(SqliteStore(path, busy_timeout_s=3)) as two,
    ):
        assert one._file is not two._file
        for data in (b"1", b"2"):
            one.append("t", [Record(b"k", "observed", 0, data)])
            assert two.find("t", [b"k"]) == (
                Record(b"k", "observed", 0, data),
            )


def interrupted(work, at):
    """Whether ``work`` was interrupted at its moment number ``at`` within the store.

    Python looks for signals where a function begins, and when a call has returned.
    """
    moments = 0

    def profile(frame, event, _):
        nonlocal moments
        ours = f"ullage{os.sep}stores{os.sep}" in frame.f_code.co_filename
        if ours and event in ("call", "c_return"):
            moments += 1
            if moments == at:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.parametrize("what", ["commit", "observe", "find", "collect"])
def test_interrupted_at_any_moment_the_store_is_as_before_or_as_after(
    path, what
):
    seen = Record(b"b", "observed", 0, b"1")
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("before")], [batch(b"b", 0, b"d"), seen])
        at = 0
        while True:
            at += 1
            pair, key = (
                [output(f"{at} left"), output(f"{at} right")],
                b"%d" % at,
            )
            records = [batch(key, 0, b"x"), batch(key, 1, b"y")]
            went_on = interrupted(
                {
                    "commit": lambda pair=pair, records=records: store.commit(
                        "t", pair, records
                    ),
                    "observe": lambda: store.append("t", [seen]),
                    "find": lambda: store.find("t", [b"b", b"c"]),
                    "collect": lambda: store.collect(
                        "t", Bounds(older_than_s=DAY_S)
                    ),
                }[what],
                at,
            )
            kept = (
                len(store.existing_refs([out.ref for out in pair])),
                len(store.find("t", [key])),
            )
            assert kept in ((0, 0), (2, 2))
            assert store.find("t", [b"b"]) == (batch(b"b", 0, b"d"), seen)
            assert store.get("t", output("before").ref) == output("before")
            if not went_on:
                break
        assert at > 15


def test_a_call_from_within_a_call_is_refused_and_disturbs_nothing(path):
    """As of a signal handler, or of a finaliser."""
    with closing(SqliteStore(path)) as store:
        with store._file.transaction(store, "commit", writes=True) as db:
            db.execute("INSERT INTO cleanings VALUES (x'00', 7)")
            with pytest.raises(
                StoreError, match="in use by what this call interrupts"
            ):
                store.find("t", [b"k"])
        with store._file.connection(store, "stat") as db:
            assert db.execute("SELECT * FROM cleanings").fetchall() == [
                (b"\0", 7)
            ]


@pytest.mark.skipif(
    not Path("/proc/self/fd").exists(),
    reason="descriptors are counted on Linux",
)
def test_a_thousand_stores_on_one_path_share_their_descriptors(path):
    def descriptors():
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    before = descriptors()
    stores = [SqliteStore(path) for _ in range(1_000)]
    for n in range(0, 1_000, 50):
        stores[n].commit("t", [output(str(n))], [])
    assert descriptors() - before <= 4
    for store in stores[1:]:
        store.close()
    assert len(stores[0].refs("t")) == 20
    stores[0].close()
    assert descriptors() == before


def test_of_stores_that_share_a_file_the_one_that_is_closed_is_closed(path):
    one, two = SqliteStore(path), SqliteStore(path)
    one.commit("t", [output("x")], [])
    one.close()
    with pytest.raises(StoreError, match="closed"):
        one.refs("t")
    assert two.refs("t") == (output("x").ref,)
    two.close()
    with closing(SqliteStore(path)) as three:
        assert three.refs("t") == (output("x").ref,)
        with pytest.raises(StoreError, match="closed"):
            two.refs("t")


# Steps of a clean-up


@pytest.mark.parametrize("kind", [MemoryStore, SqliteStore])
def test_a_step_looks_at_no_more_than_it_is_told_to(path, kind):
    now_s = [1_800_000_000]
    where = (path,) if kind is SqliteStore else ()
    with closing(kind(*where, clock=lambda: now_s[0])) as store:
        outputs = [output(f"number {n}") for n in range(40)]
        keys = [b"%d" % n for n in range(30)]
        store.commit("t", outputs, [batch(key, 0, b"d") for key in keys])
        now_s[0] += 40 * DAY_S
        store.find("t", keys[:10])
        steps, cursor = [], None
        while not steps or cursor:
            done = store.collect(
                None, Bounds(older_than_s=30 * DAY_S, limit=7), cursor
            )
            cursor = done.cursor
            steps.append((done.records, len(done.removed)))
            assert sum(steps[-1]) <= 7
        assert tuple(map(sum, zip(*steps, strict=True))) == (20, 40)
        assert len(steps) >= 70 / 7


@pytest.mark.parametrize(
    "cursor", ["", "{}", "nonsense", '{"phase":"all","left_bytes":0}']
)
def test_a_cursor_of_somebody_else_is_refused(path, cursor):
    for store in (SqliteStore(path), MemoryStore()):
        with closing(store), pytest.raises(ConfigError, match="cursor"):
            store.collect("t", Bounds(), cursor)


def test_no_step_sorts_or_scans_what_it_does_not_look_at(path):
    """The plans of the statements that look at outputs and records, as SQLite makes them."""
    asked = []
    with closing(SqliteStore(path)) as store:
        store.commit("t", [output("x")], [batch(b"k", 0, b"d")])
        db = store._file._connection
        db.set_trace_callback(asked.append)
        for tenant in ("t", None):
            store.collect(tenant, Bounds(older_than_s=10**6, max_bytes=0))
        db.set_trace_callback(None)
        pages = [
            page for page in asked if " LIMIT " in page and ") > (" in page
        ]
        assert len(pages) == 4
        for page in pages:
            plan = " ".join(
                row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {page}")
            )
            assert "TEMP B-TREE" not in plan
            assert "SCAN" not in plan
