"""Receipts on a server: from an event loop, and from many processes at once."""

import asyncio
import threading
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.docs import blocks_of
from ullage.stores.postgres import AsyncPostgresStore, PostgresStore, receipts
from ullage.testing._samples import receipt

pytestmark = pytest.mark.xdist_group("postgres")


def test_a_store_on_an_event_loop_keeps_and_gives_the_same(server):
    kept = receipt("loop", 3, tenant="on a loop")

    async def run():
        store = AsyncPostgresStore(server.url)
        await store.keep_receipts([kept])
        found = await store.receipts("2026-11-27", "2026-11-27")
        await store.close()
        return found

    assert kept in asyncio.run(run())
    with closing(PostgresStore(server.url)) as store:
        assert kept in store.receipts()


def test_many_processes_write_side_by_side(server):
    writers = [f"side {number}" for number in range(4)]

    def write(writer):
        with closing(PostgresStore(server.url)) as store:
            for requests in range(1, 9):
                rows = [
                    receipt(writer, requests, tenant=tenant)
                    for tenant in ("y", "x", "z")
                ]
                store.keep_receipts(rows)

    threads = [
        threading.Thread(target=write, args=(writer,)) for writer in writers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with closing(PostgresStore(server.url)) as store:
        found = [one for one in store.receipts() if one.writer in writers]
    assert len(found) == 4 * 3
    assert {one.sums.requests for one in found} == {8}


def test_nothing_is_asked_for_nothing():
    assert list(receipts.keep(())) == []


def test_a_row_is_written_with_what_it_says(server):
    kept = replace(receipt("row", 2), is_open=True)
    with closing(PostgresStore(server.url)) as store, server.connect() as db:
        store.keep_receipts([kept])
        query = "SELECT sent_usd, is_open FROM ullage.receipts WHERE writer = 'row'"
        assert db.execute(query).fetchall() == [(0.5, 1)]


def test_the_query_of_the_documentation_leaves_out_what_was_held_out(server):
    page = Path(__file__).parents[3] / "docs" / "report.md"
    (query,) = (
        block.text
        for block in blocks_of(page.read_text(encoding="utf-8"))
        if block.kind == "sql" and "convert_from" in block.text
    )
    fitted = receipt("asked in words", 4, tenant="the team of the page")
    out = replace(
        fitted,
        writer="held out",
        key=replace(fitted.key, is_held_out=True),
    )
    with closing(PostgresStore(server.url)) as store, server.connect() as db:
        store.keep_receipts([fitted, out])
        rows = db.execute(query).fetchall()
    assert (fitted.key.day, "the team of the page", 1.0, 2.0) in rows
