"""What teams spend, as rows: in memory, in a file, on a server, and beside a bucket."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ullage.core.values.spending import SpendingKey
from ullage.stores import (
    MemoryStore,
    PostgresStore,
    SpendingRow,
    SpendingSum,
    SqliteStore,
    open_lasting,
    spending_of,
    spending_totals,
)
from ullage.stores._schema import MIGRATIONS
from ullage.stores._spending import (
    SPENDING_COLUMNS,
    row_of_spending,
    spending_row,
)
from ullage.testing._samples import Clock

TODAY = SpendingKey("research", "anna", "2026-11-27")
COUNTS = st.integers(0, 2**53)
USD = st.floats(0, allow_infinity=False)
ROWS = st.builds(
    SpendingRow,
    key=st.builds(SpendingKey, st.text(), st.text(st.characters()), st.text()),
    writer=st.text(),
    **dict.fromkeys(("version", "tokens", "calls", "lapse_s"), COUNTS),
    **dict.fromkeys(("usd", "reserved_usd", "limit_usd"), USD),
)


def row(writer, version=1, key=TODAY, **sums):
    given = {"lapse_s": 600, "resets_s": 1_900_000_000, **sums}
    return SpendingRow(key=key, writer=writer, version=version, **given)


@pytest.fixture(params=["memory", "file", "file and bucket", "server"])
def opened(request, tmp_path):
    """A function that opens the same place once more, and the clock of what it opens."""
    clock = Clock()
    if request.param == "memory":
        store = MemoryStore(clock=clock)
        yield (lambda: store), clock
    elif request.param == "server":
        url = request.getfixturevalue("url")
        stores = []

        def another():
            stores.append(PostgresStore(url, clock=clock))
            return stores[-1]

        yield another, clock
        for store in stores:
            store.close()
    else:
        path, stores = tmp_path / "kept.db", []

        def another_file():
            if request.param == "file":
                stores.append(SqliteStore(path, clock=clock))
            else:
                address = request.getfixturevalue("bucket").url(
                    prefix="spending"
                )
                stores.append(open_lasting(str(path), address, None))
            return stores[-1]

        yield another_file, clock
        for store in stores:
            store.close()


@given(ROWS)
def test_a_row_comes_back_as_it_was(kept):
    values = spending_row(kept, 7)
    assert len(values) == len(SPENDING_COLUMNS)
    assert row_of_spending(values) == replace(kept, written_s=7)


@pytest.mark.xdist_group("postgres")
def test_each_process_hears_what_the_others_spent_and_reserved(opened):
    another, _ = opened
    one, two = spending_of(another()), spending_of(another())
    first = row("a", tokens=100, usd=1.5, reserved_tokens=40, reserved_usd=0.5)
    assert one.book_spending([first]) == (SpendingSum(),)
    assert two.book_spending([row("b", tokens=7, usd=0.25)]) == (
        SpendingSum(100, 1.5, 40, 0.5),
    )
    elsewhere = [
        row("a", key=replace(TODAY, budget="ops")),
        row("a", key=replace(TODAY, period="2026-11-28")),
        row("a", key=replace(TODAY, tenant="\ud800\x00")),
    ]
    assert one.book_spending(elsewhere) == (SpendingSum(),) * 3
    assert one.book_spending([]) == ()


@pytest.mark.xdist_group("postgres")
def test_what_is_booked_twice_or_late_counts_once(opened):
    another, _ = opened
    store = spending_of(another())
    for version, tokens in ((1, 10), (3, 30), (3, 30), (2, 20)):
        store.book_spending([row("a", version, tokens=tokens)])
    (total,) = spending_totals(store.spending())
    assert total.tokens == 30


@pytest.mark.xdist_group("postgres")
def test_a_row_of_no_version_only_asks(opened):
    another, _ = opened
    store = spending_of(another())
    store.book_spending([row("a", tokens=10)])
    assert store.book_spending([row("b", version=0, tokens=5)]) == (
        SpendingSum(10),
    )
    assert [kept.writer for kept in store.spending()] == ["a"]


@pytest.mark.xdist_group("postgres")
def test_what_a_dead_process_reserved_lapses_and_what_it_spent_does_not(
    opened, request
):
    if "bucket" in request.node.name:
        pytest.skip("its store takes no clock")
    another, clock = opened
    one, two = spending_of(another()), spending_of(another())
    one.book_spending([row("a", tokens=100, reserved_tokens=40)])
    clock.now_s += 599
    (sums,) = two.book_spending([row("b")])
    assert (sums.tokens, sums.reserved_tokens) == (100, 40)
    clock.now_s += 2
    (sums,) = two.book_spending([row("b", 2)])
    assert (sums.tokens, sums.reserved_tokens) == (100, 0)


@pytest.mark.xdist_group("postgres")
def test_periods_that_are_over_are_told_apart(opened):
    another, _ = opened
    store = spending_of(another())
    november, december = (
        row("a", key=replace(TODAY, period=period), resets_s=end_s)
        for period, end_s in (("2026-11", 1_000), ("2026-12", 2_000))
    )
    store.book_spending([november, december])
    kept = store.spending(1_000)
    assert [one.key.period for one in kept] == ["2026-12"]
    assert len(store.spending()) == 2


def test_a_total_has_the_newest_allowance_and_everybodys_sums():
    rows = [
        row("a", tokens=10, limit_tokens=100, written_s=2),
        row("b", tokens=20, limit_tokens=50, written_s=1),
    ]
    (total,) = spending_totals(rows)
    assert (total.tokens, total.limit_tokens) == (30, 100)
    assert total.share == 0.3
    assert row("a", tokens=10, usd=4, limit_tokens=100, limit_usd=5).share == (
        0.8
    )
    assert row("a", tokens=10).share == 0


def test_a_file_of_before_has_none_and_is_of_the_same_version_afterwards(
    tmp_path,
):
    path = tmp_path / "kept.db"
    with closing(SqliteStore(path)) as store:
        assert store.spending() == ()
        store.book_spending([row("a", tokens=1)])
        assert len(store.spending()) == 1
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (
            len(MIGRATIONS),
        )


def test_a_copy_of_a_store_in_memory_holds_them():
    store = MemoryStore()
    store.book_spending([row("a", tokens=1)])
    make, given_values = store.__reduce__()
    (kept,) = make(*given_values).spending()
    assert (kept.key, kept.tokens) == (TODAY, 1)
