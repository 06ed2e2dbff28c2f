"""Receipts as rows, and a file that older versions go on opening."""

import sqlite3
from contextlib import closing
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.docs import blocks_of
from ullage.core.values.receipts import (
    Receipt,
    ReceiptKey,
    ReceiptTotals,
    TokenCounts,
)
from ullage.stores import MemoryStore, SqliteStore
from ullage.stores._receipts import COLUMNS, LATER_COLUMNS, receipt_of, row_of
from ullage.stores._schema import MIGRATIONS
from ullage.stores._schema import RECEIPTS as TABLE_OF_BEFORE
from ullage.testing._samples import receipt

COUNTS = st.integers(-(2**62), 2**62)
TOKENS = st.builds(
    TokenCounts, fresh=COUNTS, read=COUNTS, written=COUNTS, output=COUNTS
)
USD = st.floats(allow_nan=False, allow_infinity=False)
SUMS = st.builds(
    ReceiptTotals,
    requests=COUNTS,
    sent=TOKENS,
    raw=TOKENS,
    recalls=COUNTS,
    counted=COUNTS,
    counted_tokens=COUNTS,
    sent_usd=USD,
    raw_usd=USD,
)
PLACES = st.builds(
    ReceiptKey,
    st.text(),
    st.text(st.characters(), max_size=9),
    st.text(),
    st.text(),
)
RECEIPTS = st.builds(
    Receipt, key=PLACES, writer=st.text(), sums=SUMS, is_open=st.booleans()
)


@given(RECEIPTS)
def test_a_row_comes_back_as_the_receipt_it_was(kept):
    row = row_of(kept)
    assert len(row) == len(COLUMNS)
    assert receipt_of(row) == kept


def test_a_file_of_before_has_none_and_is_of_the_same_version_afterwards(
    tmp_path,
):
    path = tmp_path / "kept.db"
    with closing(SqliteStore(path)) as store:
        assert store.receipts() == ()
        store.keep_receipts([receipt("a", 1)])
        assert len(store.receipts()) == 1
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (
            len(MIGRATIONS),
        )


def test_two_processes_of_one_file_add_up(tmp_path):
    with closing(SqliteStore(tmp_path / "kept.db")) as one:
        with closing(SqliteStore(tmp_path / "kept.db")) as other:
            one.keep_receipts([receipt("a", 1)])
            other.keep_receipts([receipt("b", 2)])
        assert [kept.writer for kept in one.receipts()] == ["a", "b"]


def test_a_copy_of_a_store_in_memory_holds_them():
    store = MemoryStore()
    store.keep_receipts([receipt("a", 1)])
    make, given = store.__reduce__()
    assert make(*given).receipts() == store.receipts()


def test_a_table_that_an_older_version_made_is_read_and_written(tmp_path):
    """It has no column of what providers counted; its rows count none."""
    path = tmp_path / "kept.db"
    SqliteStore(path).close()
    names = [name for name in COLUMNS if name not in LATER_COLUMNS]
    row = dict(zip(COLUMNS, row_of(receipt("a", 1)), strict=True))
    older = [row[name] for name in names]
    with closing(sqlite3.connect(path)) as db:
        db.execute(TABLE_OF_BEFORE)
        marks = ", ".join("?" * len(names))
        db.execute(
            f"INSERT INTO receipts ({', '.join(names)}) VALUES ({marks})",
            older,
        )
        db.commit()
    with closing(SqliteStore(path)) as store:
        (kept,) = store.receipts()
        assert (kept.sums.requests, kept.sums.counted) == (1, 0)
        store.keep_receipts([receipt("b", 2)])
        assert [one.sums.counted for one in store.receipts()] == [0, 2]
    with closing(sqlite3.connect(path)) as db:  # and the older one goes on
        marks = ", ".join("?" * len(names))
        older[names.index("writer")] = "c"
        db.execute(
            f"INSERT INTO receipts ({', '.join(names)}) VALUES ({marks})",
            older,
        )


def test_the_query_of_the_documentation_gives_a_file_s_sums(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "report.md"
    (query,) = (
        block.text
        for block in blocks_of(page.read_text(encoding="utf-8"))
        if block.kind == "sql" and "convert_from" not in block.text
    )
    path = tmp_path / "kept.db"
    with closing(SqliteStore(path)) as store:
        # the writer named b holds out
        store.keep_receipts([receipt("a", 4, tenant="team"), receipt("b", 4)])
    with closing(sqlite3.connect(path)) as db:
        assert db.execute(query).fetchall() == [
            ("2026-11-27", "team", 1.0, 2.0)
        ]
