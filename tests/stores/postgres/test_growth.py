"""What a turn costs does not grow with what is there, whatever the server believes is there."""

import time
from contextlib import closing

import pytest

from tests.stores.contract import decided, output, replaced
from ullage.core.errors import StoreError
from ullage.core.values.effects import Record
from ullage.stores import DAY_S, Bounds, PostgresStore
from ullage.stores.postgres import cleaning

pytestmark = pytest.mark.xdist_group("postgres")

MANY = 5_000
OTHERS = f"""
INSERT INTO ullage.records SELECT int4send(i), 'key', 'batch', 0, '', '', 0
FROM generate_series(1, {MANY}) AS i;
INSERT INTO ullage.outputs SELECT int4send(i), 'ref', '', 'text', 1, 1, 1, 0
FROM generate_series(1, {MANY}) AS i
"""
GROWN = f"""
INSERT INTO ullage.records SELECT 't', int4send(i), 'batch', 0, '', '', 0
FROM generate_series(1, {MANY}) AS i;
INSERT INTO ullage.outputs SELECT 't', int4send(i), '', 'text', 1, 1, 1, 0
FROM generate_series(1, {MANY}) AS i
"""
READ = """
SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables
WHERE schemaname = 'ullage'
"""


def rows_read(server, url):
    """How many rows of our tables were read, once all who read have told."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'growth'"
    until = time.monotonic() + 10
    with server.connect() as db:
        while db.execute(asked).fetchone()[0] and time.monotonic() < until:
            time.sleep(0.02)
        return db.execute(READ).fetchone()[0]


def test_a_tenant_that_grew_since_the_server_last_looked_costs_no_more(
    server, url
):
    url += "?application_name=growth"
    PostgresStore(url).close()
    with server.connect() as db:
        db.execute(OTHERS)
        db.execute("VACUUM ANALYZE")  # it knows of tenants with a row each
        db.execute(GROWN)
    before, now_s = rows_read(server, url), [time.time()]
    with closing(PostgresStore(url, clock=lambda: now_s[0])) as store:
        named = [output(f"{n}") for n in range(4)]
        record = decided(b"k", *(replaced(out.ref) for out in named))
        store.commit("t", named, [record, Record(b"l", "latest", 0, b"k")])
        now_s[0] += 2 * DAY_S  # marks are due
        assert store.find("t", [b"k", b"l", b"m", b"n"]) == (
            record,
            Record(b"l", "latest", 0, b"k"),
        )
        store.put("t", named)
        assert store.get("t", named[0].ref) == named[0]
    assert rows_read(server, url) - before < 200


def test_a_clean_up_of_everybody_waits_for_the_sum_of_all_and_a_turn_does_not(
    url, monkeypatch
):
    monkeypatch.setattr(cleaning, "_SIZE", "SELECT 7 FROM pg_sleep(0.5)")
    with closing(
        PostgresStore(url, timeout_s=0.2, most_connections=1)
    ) as store:
        assert store.collect(None, Bounds()).left_bytes == 7
        with pytest.raises(StoreError, match="cannot be reached"):
            store.collect("t", Bounds())
