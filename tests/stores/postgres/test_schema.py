import threading

import pytest

from tests.stores.contract import batch, output
from ullage.core.errors import StoreError
from ullage.stores import PostgresStore
from ullage.stores.postgres import schema

pytestmark = pytest.mark.xdist_group("postgres")

NOW = list(range(1, len(schema.MIGRATIONS) + 1))

ADDING = schema.Step(
    oldest=1,
    statements=(
        "ALTER TABLE ullage.records ADD COLUMN written_by text NOT NULL DEFAULT ''",
        "ALTER TABLE ullage.outputs ADD COLUMN place text",
        "CREATE TABLE ullage.later (id integer)",
    ),
)


def upgraded(monkeypatch, *steps):
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, *steps))


def versions(server):
    with server.connect() as db:
        return [
            row[0]
            for row in db.execute(
                "SELECT version FROM ullage.versions ORDER BY 1"
            )
        ]


def test_a_worker_of_before_goes_on_where_a_later_version_only_added(
    server, url, monkeypatch
):
    old = PostgresStore(url)
    old.commit("t", [output("before")], [batch(b"k", 0, b"1")])
    upgraded(monkeypatch, ADDING)
    new = PostgresStore(url)
    assert versions(server) == [*NOW, NOW[-1] + 1]
    old.commit("t", [output("old")], [batch(b"k", 1, b"2")])
    new.commit("t", [output("new")], [batch(b"k", 2, b"3")])
    for store in (old, new):
        assert [one.data for one in store.find("t", [b"k"])] == [
            b"1",
            b"2",
            b"3",
        ]
        assert {store.get("t", ref).text for ref in store.refs("t")} == {
            "before",
            "old",
            "new",
        }
    new.close()
    old.close()
    monkeypatch.undo()
    PostgresStore(url).close()  # and another one may still join


@pytest.mark.parametrize("version", NOW[:-1])
def test_tables_of_any_earlier_version_are_upgraded_beneath_a_worker(
    server, url, monkeypatch, version
):
    monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:version])
    old = PostgresStore(url)
    old.commit("t", [output("before")], [batch(b"k", 0, b"1")])
    assert versions(server) == NOW[:version]
    monkeypatch.undo()
    new = PostgresStore(url)
    assert versions(server) == NOW
    assert new.claim(
        "t", b"summary", b"me", 60.0
    ).is_mine  # what only a later version has
    new.commit("t", [output("new")], [batch(b"k", 1, b"2")])
    old.commit("t", [output("old")], [batch(b"k", 2, b"3")])
    for store in (old, new):
        assert [one.data for one in store.find("t", [b"k"])] == [
            b"1",
            b"2",
            b"3",
        ]
        assert {store.get("t", ref).text for ref in store.refs("t")} == {
            "before",
            "old",
            "new",
        }
        store.close()


def test_a_worker_that_is_too_old_is_told_so_when_it_opens(url, monkeypatch):
    upgraded(monkeypatch, ADDING._replace(oldest=NOW[-1] + 1))
    PostgresStore(url).close()
    monkeypatch.undo()
    told = rf"version {NOW[-1] + 1}, .* knows {NOW[-1]}, .* Upgrade ullage"
    with pytest.raises(StoreError, match=told):
        PostgresStore(url)


def test_of_many_that_open_at_once_one_makes_the_tables(server, url):
    errors = []

    def opened():
        try:
            PostgresStore(url).close()
        except StoreError as error:
            errors.append(error)

    threads = [threading.Thread(target=opened) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert versions(server) == NOW


def test_who_may_not_create_tables_can_use_those_that_are_there(server, url):
    with server.connect() as db:
        db.execute("DROP ROLE IF EXISTS worker")
        db.execute("CREATE ROLE worker LOGIN")
    theirs = url.replace("ullage@", "worker@")
    with pytest.raises(StoreError, match="may not do that"):
        PostgresStore(theirs)
    PostgresStore(url).close()
    with server.connect() as db:
        db.execute("GRANT USAGE ON SCHEMA ullage TO worker")
        db.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ullage TO worker"
        )
    store = PostgresStore(theirs)
    store.commit("t", [output("x")], [batch(b"k", 0, b"d")])
    assert store.get("t", output("x").ref) == output("x")
    store.close()
    with server.connect() as db:
        db.execute("DROP SCHEMA ullage CASCADE")
        db.execute("DROP OWNED BY worker")
        db.execute("DROP ROLE worker")


def test_a_server_that_only_lets_us_read_can_be_read(server, url):
    store = PostgresStore(url, clock=lambda: 1_800_000_000)
    store.commit("t", [output("x")], [batch(b"k", 0, b"d")])
    store.close()
    reader = PostgresStore(
        f"{url}?options=-c%20default_transaction_read_only%3Don", timeout_s=0.5
    )
    assert reader.get("t", output("x").ref) == output(
        "x"
    )  # the mark that is due is left out
    assert reader.stat("t", output("x").ref).chars == 1
    assert reader.find("t", [b"k"]) == (batch(b"k", 0, b"d"),)
    with pytest.raises(StoreError, match="takes no writes"):
        reader.commit("t", [output("y")], [])
    reader.close()
