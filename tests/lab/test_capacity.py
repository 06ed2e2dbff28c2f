import pytest

from lab.capacity import (
    Asked,
    Held,
    Machine,
    Traffic,
    asked_by,
    in_postgres,
    in_sqlite,
    needs_of,
    predicted,
)
from tests.stores.postgres.server import Server, is_there
from ullage.stores import DAY_S

SMALL = Traffic(turns=24, lines=120, window_tokens=12_000)
LARGER = Traffic(turns=30, lines=200, window_tokens=16_000)


@pytest.fixture(scope="module")
def asked():
    return asked_by(SMALL, 12), asked_by(LARGER, 12)


def test_a_turn_is_one_read_one_write_and_one_row_and_a_decision_one_more(
    asked,
):
    small, _ = asked
    assert small.finds == small.turns == 12 * 24
    shown = (
        small.writes - small.synced - small.turns
    )  # what a history held, every eight replies
    assert 0 <= shown <= small.turns // 5, "the rest is what is observed"
    decisions = small.synced - 12  # and what a session is opened with
    assert small.outputs > decisions > 0
    assert small.records >= small.turns + decisions + 2 * 12


def test_the_model_says_what_a_file_holds(asked):
    small, larger = asked
    rows, disk = predicted(small, in_sqlite(SMALL, 12), larger)
    found = in_sqlite(LARGER, 12)
    assert rows == pytest.approx(found.rows, rel=0.06), (
        "a text shown by two decisions is named twice"
    )
    assert disk == pytest.approx(found.disk_bytes, rel=0.3)


@pytest.mark.xdist_group("postgres")
@pytest.mark.skipif(
    not is_there(), reason="PostgreSQL is not installed (Debian: postgresql)"
)
def test_the_model_says_what_a_server_holds(asked):
    small, larger = asked
    server = Server()
    try:
        rows, disk = predicted(small, in_postgres(server, SMALL, 12), larger)
        found = in_postgres(server, LARGER, 12)
    finally:
        server.stop()
    assert rows == pytest.approx(found.rows, rel=0.06), (
        "a text shown by two decisions is named twice"
    )
    assert disk == pytest.approx(found.disk_bytes, rel=0.3)
    assert found.wal_bytes > found.stored_bytes


def test_what_ends_first_is_what_is_used_most():
    asked = Asked(turns=100, cpu_s=0.1)
    held = Held(
        rows=300,
        stored_bytes=50_000,
        disk_bytes=200_000,
        wal_bytes=200_000,
        cpu_s=0.05,
    )
    given = {
        "gap_s": 30,
        "keep_s": 30 * DAY_S,
        "bookings_s": 1_000.0,
        "machine": Machine(),
    }
    few, many = (
        needs_of(live, asked, held, **given) for live in (1_000, 10_000_000)
    )
    assert many.turns_s == pytest.approx(333_333, rel=1e-3)
    assert many.worker_cores == pytest.approx(333, rel=1e-2)
    assert many.disk_bytes == pytest.approx(
        333_333 * 2_000 * 30 * DAY_S, rel=1e-3
    )
    assert few.ends[0] == (
        "a budget of all, one row",
        pytest.approx(0.0333, rel=1e-2),
    )
    assert many.shares["its disk's room"] == pytest.approx(
        1e4 * few.shares["its disk's room"]
    )
    assert many.usd_million == few.usd_million, (
        "a conversation costs what it costs"
    )
