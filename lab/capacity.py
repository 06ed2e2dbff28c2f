"""What a fleet needs: rows, bytes, reads, writes and cores a turn, and what ends first.

    python -m lab.capacity --live 1000 --live 100000 --live 10000000

Made-up agents work on a real SQLite file and on a real PostgreSQL server. Of a first traffic the
overhead of each row is taken; from it and from what the sessions of a second, other traffic hand
to any store (counted in memory), its bytes are predicted, and put beside what was then measured:
so far may the model be trusted. The rest is arithmetic: demand a turn times turns a second, beside
what one server gives. What one server gives, and prices, are options: put in your own.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import asdict, replace
from rich.console import Console
from rich.table import Table

from lab.fuzz.tally import be_quiet
from tests.stores.postgres.server import Server
from ullage import Limits, Usage
from ullage.session.sessions import Sessions
from ullage.stores import DAY_S, MemoryStore, PostgresStore, SqliteStore, Store
from ullage.stores.postgres.spending import CallRow

_MODEL = "claude-sonnet-4-5"
_CONNECTIONS = 8  # the most that a process opens


class Traffic(Struct, frozen=True):
    """What agents do.

    Attributes:
        turns: calls of a model in a conversation.
        lines: the longest result of a tool, in lines of some 40 bytes; the mean is half of it.
        window_tokens: their window.
    """

    turns: int = 40
    lines: int = 160
    window_tokens: int = 32_000


ONE, OTHER = Traffic(), Traffic(turns=60, lines=300, window_tokens=48_000)


class Asked(Struct, frozen=True):
    """What the sessions of a traffic ask of any store.

    Attributes:
        turns: how many turns it was.
        finds: reads of the ledger.
        writes: writes, each one transaction.
        synced: of them, those that must be on the disk when they are answered: what is only
            observed need not, for the next reply brings it again.
        records: rows of the ledger.
        data_bytes: what is in them.
        outputs: texts set aside.
        text_bytes: what is in them, before compression.
        cpu_s: processor time of the workers.
    """

    turns: int = 0
    finds: int = 0
    writes: int = 0
    synced: int = 0
    records: int = 0
    data_bytes: int = 0
    outputs: int = 0
    text_bytes: int = 0
    cpu_s: float = 0.0

    def each(self, name: str) -> float:
        """One of these, a turn."""
        return float(getattr(self, name)) / self.turns


class Counting(MemoryStore):
    """A store in memory that counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = Asked()
        self._rows, self._refs = set[tuple[object, ...]](), set[str]()

    def find(self, tenant: str, keys: Iterable[bytes]) -> Any:
        """See `MemoryStore`."""
        self._count(finds=1)
        return super().find(tenant, keys)

    def commit(
        self, tenant: str, outputs: Sequence[Any], records: Sequence[Any]
    ) -> Any:
        """See `MemoryStore`."""
        self._count(
            writes=1,
            synced=bool(outputs) or any(each.is_once for each in records),
        )
        self._keep(records)
        for output in outputs:
            if output.ref not in self._refs:
                self._refs.add(output.ref)
                self._count(outputs=1, text_bytes=len(output.text.encode()))
        return super().commit(tenant, outputs, records)

    def _keep(self, records: Sequence[Any]) -> None:
        for record in records:
            place = (record.key, record.kind, record.n, record.name)
            if place not in self._rows:
                self._rows.add(place)
                self._count(records=1, data_bytes=len(record.data))

    def _count(self, **more: float) -> None:
        so_far = asdict(self.asked)
        self.asked = replace(
            self.asked, **{name: so_far[name] + n for name, n in more.items()}
        )


class Held(Struct, frozen=True):
    """What a store holds after a traffic, and what that cost its server.

    Attributes:
        rows: rows of all its tables.
        stored_bytes: bodies of texts, compressed.
        disk_bytes: tables and indexes on the disk.
        wal_bytes: what its log of writes took; 0 where it is not known.
        cpu_s: processor time of the server; 0 where it has none.
    """

    rows: int
    stored_bytes: int
    disk_bytes: int
    wal_bytes: float = 0.0
    cpu_s: float = 0.0


def messages_of(conversation: int, traffic: Traffic) -> list[dict[str, Any]]:
    """A conversation: a task, then a call and its result for each turn."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Task {conversation}: mend it."}
    ]
    for n in range(traffic.turns):
        random = Random(f"{conversation}/{n}")
        call = {
            "type": "tool_use",
            "id": f"c{n}",
            "name": "read",
            "input": {"path": f"{n}.py"},
        }
        text = "".join(
            f"line {at} of {conversation}.{n}: {random.getrandbits(40)}\n"
            for at in range(random.randrange(4, traffic.lines))
        )
        result = {
            "type": "tool_result",
            "tool_use_id": f"c{n}",
            "content": text,
        }
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    return messages


def worked(store: Store, traffic: Traffic, conversations: int) -> float:
    """Have a worker take all turns of these conversations; the processor time of its session, s."""
    limits, cpu_s = Limits(window_tokens=traffic.window_tokens), 0.0
    sessions = Sessions(
        _MODEL, store=store, limits=limits, format="anthropic", recall=True
    )
    for conversation in range(conversations):
        messages, session = (
            messages_of(conversation, traffic),
            sessions.of(str(conversation)),
        )
        for turn in range(traffic.turns):
            began = time.thread_time()
            request = {
                "model": _MODEL,
                "max_tokens": 1_000,
                "messages": messages[: 1 + 2 * turn],
            }
            view = session.fit(request)
            tokens = int(session.window.tokens * 1.1)
            view.observe(Usage(fresh_tokens=tokens, output_tokens=20))
            cpu_s += time.thread_time() - began
    return cpu_s


def asked_by(traffic: Traffic, conversations: int) -> Asked:
    """What this traffic asks of any store."""
    store = Counting()
    cpu_s = worked(store, traffic, conversations)
    return replace(
        store.asked, turns=conversations * traffic.turns, cpu_s=cpu_s
    )


def in_sqlite(traffic: Traffic, conversations: int) -> Held:
    """What an SQLite file holds after it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kept.db"
        store = SqliteStore(path)
        worked(store, traffic, conversations)
        store.close()
        db = sqlite3.connect(path)
        tables = ("blobs", "chunks", "grants", "records", "names")
        rows = sum(
            db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in tables
        )
        (stored,) = db.execute(
            "SELECT coalesce(sum(length(body)), 0) FROM chunks"
        ).fetchone()
        db.close()
        return Held(rows, stored, path.stat().st_size)


def in_postgres(server: Server, traffic: Traffic, conversations: int) -> Held:
    """What a PostgreSQL server holds after it."""
    with server.connect() as db:
        db.execute("DROP SCHEMA IF EXISTS ullage CASCADE")
        store = PostgresStore(server.url)
        store.find("t", [b"-" * 16])
        (began,) = db.execute("SELECT pg_current_wal_lsn()").fetchone()
        cpu_s = _cpu_s(server.pid)
        worked(store, traffic, conversations)
        store.close()
        cpu_s = _cpu_s(server.pid) - cpu_s
        wal = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), %s)"
        (wal_bytes,) = db.execute(wal, (began,)).fetchone()
        tables = [
            f"ullage.{name}"
            for name in ("outputs", "chunks", "records", "names")
        ]
        rows = [
            db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in tables
        ]
        sizes = "SELECT sum(pg_total_relation_size(t::regclass)) FROM unnest(%s::text[]) t"
        (disk,) = db.execute(sizes, (tables,)).fetchone()
        (stored,) = db.execute(
            "SELECT coalesce(sum(stored_bytes), 0) FROM ullage.outputs"
        ).fetchone()
        return Held(sum(rows), int(stored), int(disk), float(wal_bytes), cpu_s)


def _cpu_s(postmaster: int) -> float:
    """Processor time of a server and of all its processes, those that ended too, in seconds."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == postmaster:
            ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == postmaster:
            ticks += sum(map(int, fields[11:13]))
    return ticks / 100


def predicted(first: Asked, held: Held, second: Asked) -> tuple[int, int]:
    """Rows and bytes of a second traffic, from what a store held after a first.

    A text is a row of four tables, and a record of one; what is on the disk is what is in them,
    texts as small as those of the first became, and for each row an overhead.
    """
    in_texts = (held.rows - first.records) / first.outputs
    overhead = (
        held.disk_bytes - held.stored_bytes - first.data_bytes
    ) / held.rows
    rows = second.records + in_texts * second.outputs
    stored = second.text_bytes * held.stored_bytes / first.text_bytes
    return round(rows), round(rows * overhead + second.data_bytes + stored)


class Machine(Struct, frozen=True, kw_only=True):
    """What one database server gives, and what things cost; options, not measurements.

    Attributes:
        cores: of the server.
        disk_bytes_s: how much its disk writes.
        disk_bytes: how much it holds.
        connections: how many it takes.
        core_hour_usd: of workers and server.
        gb_month_usd: of its disk.
    """

    cores: int = 32
    disk_bytes_s: float = 500e6
    disk_bytes: float = 16e12
    connections: int = 2_000
    core_hour_usd: float = 0.04
    gb_month_usd: float = 0.10


class Needs(Struct, frozen=True, kw_only=True):
    """What so many live conversations need.

    Attributes:
        live: conversations that go on at once.
        turns_s: turns a second.
        worker_cores: of all workers.
        shares: of what one server gives, by what it is: over 1 it does not.
        disk_bytes: what is held within the retention.
        usd_million: what a million conversations cost: workers, server, disk.
    """

    live: int
    turns_s: float
    worker_cores: float
    shares: dict[str, float]
    disk_bytes: float
    usd_million: float

    @property
    def ends(self) -> list[tuple[str, float]]:
        """What ends first, and then, with how much of it is used."""
        return sorted(self.shares.items(), key=lambda share: -share[1])


def needs_of(
    live: int,
    asked: Asked,
    held: Held,
    *,
    gap_s: float,
    keep_s: float,
    bookings_s: float,
    machine: Machine,
) -> Needs:
    """What so many conversations need, with a turn each ``gap_s`` and kept for ``keep_s``."""
    turns_s = live / gap_s
    worker_cores = turns_s * asked.each("cpu_s")
    server_cores = turns_s * held.cpu_s / asked.turns
    disk_bytes = turns_s * keep_s * held.disk_bytes / asked.turns
    shares = {
        "a budget of all, one row": turns_s / bookings_s,
        "the server's processors": server_cores / machine.cores,
        "its disk's writes": 2
        * turns_s
        * held.wal_bytes
        / asked.turns
        / machine.disk_bytes_s,
        "its disk's room": disk_bytes / machine.disk_bytes,
        "its connections": _CONNECTIONS * worker_cores / machine.connections,
    }
    conversation_s = (asked.cpu_s + held.cpu_s) / asked.turns * ONE.turns
    gb_months = (
        held.disk_bytes / asked.turns * ONE.turns / 1e9 * keep_s / (30 * DAY_S)
    )
    usd = (
        conversation_s / 3600 * machine.core_hour_usd
        + gb_months * machine.gb_month_usd
    )
    return Needs(
        live=live,
        turns_s=turns_s,
        worker_cores=worker_cores,
        shares=shares,
        disk_bytes=disk_bytes,
        usd_million=usd * 1e6,
    )


def bookings_s(server: Server, threads: int = 4, each: int = 150) -> float:
    """How many calls a second can be booked on one budget, by several workers at once."""
    store = PostgresStore(server.url)

    def book(worker: int) -> None:
        for n in range(each):
            call = CallRow(
                f"{worker}/{n}".encode(),
                "agent",
                _MODEL,
                1,
                0,
                0,
                1,
                0,
                1,
                0.0,
                0,
            )
            store.book("all", [call])

    book(-1)  # the connections are there
    with ThreadPoolExecutor(threads) as pool:
        began = time.monotonic()
        list(pool.map(book, range(threads)))
        took_s = time.monotonic() - began
    store.close()
    return threads * each / took_s


def checks(
    conversations: int, server: Server
) -> Iterator[tuple[str, Asked, Held, Asked, Held]]:
    """Each store after the first traffic and after the second."""
    first, second = (
        asked_by(ONE, conversations),
        asked_by(OTHER, conversations),
    )
    stores: dict[str, Callable[[Traffic, int], Held]] = {
        "SQLite": in_sqlite,
        "PostgreSQL": lambda traffic, count: in_postgres(
            server, traffic, count
        ),
    }
    for name, measure in stores.items():
        yield (
            name,
            first,
            measure(ONE, conversations),
            second,
            measure(OTHER, conversations),
        )


@click.command()
@click.option(
    "--live",
    multiple=True,
    default=(1_000, 100_000, 10_000_000),
    show_default=True,
)
@click.option(
    "--conversations",
    default=50,
    show_default=True,
    help="How many are simulated.",
)
@click.option(
    "--gap",
    "gap_s",
    default=30.0,
    show_default=True,
    help="Seconds between turns.",
)
@click.option(
    "--keep",
    "days",
    default=30.0,
    show_default=True,
    help="Days that all is kept.",
)
@click.option(
    "--cores",
    default=Machine().cores,
    show_default=True,
    help="Of the server.",
)
@click.option(
    "--disk-tb", default=16.0, show_default=True, help="Of the server."
)
def main(
    live: tuple[int, ...],
    conversations: int,
    gap_s: float,
    days: float,
    cores: int,
    disk_tb: float,
) -> None:
    """Simulate, check the model, and print what is needed."""
    be_quiet()
    console, server = (
        Console(width=140, highlight=False),
        Server(autovacuum="on"),
    )
    try:
        found = list(checks(conversations, server))
        booked_s = bookings_s(server)
    finally:
        server.stop()
    console.print(_demand_table(found))
    console.print(_check_table(found))
    _, asked, held, *_ = found[-1]
    machine = Machine(cores=cores, disk_bytes=disk_tb * 1e12)
    needs = [
        needs_of(
            number,
            asked,
            held,
            gap_s=gap_s,
            keep_s=days * DAY_S,
            bookings_s=booked_s,
            machine=machine,
        )
        for number in live
    ]
    console.print(_needs_table(needs))
    console.print(f"A budget takes {booked_s:,.0f} bookings a second here.")


def _demand_table(
    found: Sequence[tuple[str, Asked, Held, Asked, Held]],
) -> Table:
    table = Table(
        title=f"a turn, of {ONE.turns} in a window of {ONE.window_tokens:,} tokens"
    )
    for heading in (
        "",
        "rows",
        "disk",
        "reads",
        "writes",
        "synced",
        "worker",
        "server",
        "log",
    ):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, asked, held, *_ in found:
        table.add_row(
            name,
            f"{held.rows / asked.turns:.2f}",
            f"{held.disk_bytes / asked.turns:,.0f} B",
            f"{asked.each('finds'):.2f}",
            f"{asked.each('writes'):.2f}",
            f"{asked.each('synced'):.2f}",
            f"{asked.each('cpu_s') * 1e3:.2f} ms",
            f"{held.cpu_s / asked.turns * 1e3:.2f} ms" if held.cpu_s else "",
            f"{held.wal_bytes / asked.turns:,.0f} B" if held.wal_bytes else "",
        )
    return table


def _check_table(
    found: Sequence[tuple[str, Asked, Held, Asked, Held]],
) -> Table:
    table = Table(
        title=f"another traffic: {OTHER.turns} turns, twice the results, a larger window"
    )
    for heading in (
        "",
        "rows, model",
        "measured",
        "bytes, model",
        "measured",
        "off by",
    ):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, first, held, second, measured in found:
        rows, disk = predicted(first, held, second)
        off = disk / measured.disk_bytes - 1
        table.add_row(
            name,
            f"{rows:,}",
            f"{measured.rows:,}",
            f"{disk:,}",
            f"{measured.disk_bytes:,}",
            f"{off:+.0%}",
        )
    return table


def _needs_table(needs: Sequence[Needs]) -> Table:
    table = Table(title="live conversations on one PostgreSQL server")
    for heading in (
        "live",
        "turns/s",
        "worker cores",
        "disk",
        "$ a million",
        "ends first",
        "then",
    ):
        table.add_column(
            heading,
            justify="left" if heading in ("ends first", "then") else "right",
        )
    for each in needs:
        first, then = (f"{what} {share:,.0%}" for what, share in each.ends[:2])
        table.add_row(
            f"{each.live:,}",
            f"{each.turns_s:,.0f}",
            f"{each.worker_cores:,.1f}",
            f"{each.disk_bytes / 1e12:,.1f} TB",
            f"{each.usd_million:,.2f}",
            first,
            then,
        )
    return table


if __name__ == "__main__":
    main()
