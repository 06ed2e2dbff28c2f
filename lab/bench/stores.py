"""What the stores cost: `python -m lab.bench.stores`.

A thousand made-up outputs of about 50 KB (logs, code, JSON and prose in turn), put one by one
as a session would, read back, and searched with a pattern that few lines match. Times are
milliseconds, p50 and p99 over single calls; a sync to disk is part of every put. What every
turn costs is told as the least of many calls, in CPU time and by the clock: a loaded machine
changes neither much.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import quantiles

from rich.console import Console
from rich.table import Table

from ullage.core.history.canon import ref_of
from ullage.core.values.effects import Output, Record
from ullage.session.drivers import run
from ullage.session.recall.grep import search
from ullage.session.recall.source import OutputReader
from ullage.stores import MemoryStore, SqliteStore, Store

OUTPUTS = 1_000
CHARS = 50_000
KEYS = 5_000
PATTERN = r"(?i)request \d+ (refused|denied)"

Figure = tuple[str, float, str]
"""What was measured, the value, its unit."""


def measure() -> list[Figure]:
    """Every figure of this bench, both stores; about five seconds."""
    outputs = made_up_outputs(OUTPUTS)
    figures = [*measure_store("memory", MemoryStore(), outputs)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        store = SqliteStore(path)
        figures += measure_store("sqlite", store, outputs)
        figures += measure_turn(store)
        figures += measure_contention(store, path)
        store.close()
        size_mb = path.stat().st_size / 1e6
    text_mb = sum(len(output.text) for output in outputs) / 1e6
    one = outputs[0]
    return [
        *figures,
        (f"sqlite file for {text_mb:.0f} MB of text", size_mb, "MB"),
        *spread(
            "grep, one output", [timed(lambda: grep(one)) for _ in range(200)]
        ),
    ]


def measure_store(
    name: str, store: Store, outputs: Sequence[Output]
) -> list[Figure]:
    """Put, get, grep, a batch of ten, and find."""
    single, ten = outputs[:-100], outputs[-100:]
    put = [timed(lambda o=o: store.commit("t", [o], [])) for o in single]
    again = [
        timed(lambda o=o: store.commit("t", [o], [])) for o in single[:200]
    ]
    get = [timed(lambda o=o: store.get("t", o.ref)) for o in single]
    tens = [ten[at : at + 10] for at in range(0, len(ten), 10)]
    in_one = [
        timed(lambda some=some: store.commit("t", some, [])) for some in tens
    ]
    keys = [random.Random(n).randbytes(16) for n in range(KEYS)]
    store.commit(
        "t", [], [Record(key, "batch", 0, bytes(200)) for key in keys[::10]]
    )
    find = [timed(lambda: store.find("t", keys)) for _ in range(20)]
    store.commit(
        "t", [], [Record(key, "batch", 0, bytes(200)) for key in keys]
    )
    find_all = [timed(lambda: store.find("t", keys)) for _ in range(20)]
    searched = timed(lambda: [grep(store.get("t", o.ref)) for o in outputs])
    return [
        *spread(f"{name}: put", put),
        *spread(f"{name}: put what is there", again),
        *spread(f"{name}: get", get),
        *spread(f"{name}: put ten in one commit", in_one),
        *spread(f"{name}: find {KEYS:,} keys, one in ten kept", find),
        *spread(f"{name}: find {KEYS:,} keys, all kept", find_all),
        (f"{name}: get and grep {len(outputs):,}", searched, "ms"),
    ]


def grep(output: Output) -> object:
    """Search an output at hand."""
    return run(search(OutputReader(output), PATTERN), MemoryStore(), "")


def measure_turn(store: Store) -> list[Figure]:
    """What every turn asks of a store: the newest decisions, and to keep a report of usage."""
    keys = [random.Random(n).randbytes(16) for n in range(4_000)]
    store.append(
        "turns", [Record(key, "batch", 0, bytes(300)) for key in keys[:2_000]]
    )

    def observe(n: int) -> None:
        report = Record(keys[n] + b"x", "observed", 0, bytes(20), "a model")
        store.append("turns", [report])

    return [
        *least(
            "sqlite: find 4 keys, all kept",
            lambda n: store.find("turns", keys[n : n + 4]),
        ),
        *least(
            "sqlite: find 4 keys, none kept",
            lambda n: store.find("turns", keys[-4:]),
        ),
        *least("sqlite: append what was observed", observe),
    ]


def least(what: str, work: Callable[[int], object]) -> list[Figure]:
    """The least of a thousand calls, each with its number."""
    cpu, wall = [], []
    for n in range(1_000):
        began = time.thread_time(), time.perf_counter()
        work(n)
        cpu.append(time.thread_time() - began[0])
        wall.append(time.perf_counter() - began[1])
    return [
        (f"{what}, CPU", min(cpu) * 1e3, "ms"),
        (f"{what}, clock", min(wall) * 1e3, "ms"),
    ]


def measure_contention(store: SqliteStore, path: Path) -> list[Figure]:
    """Reads while another thread writes: by the store's one connection, and by one of their own."""
    refs = store.refs("t")[:100]
    text = made_up_outputs(1)[0].text
    stop = threading.Event()

    def write() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            fresh = f"{n} {text}"
            store.commit("t", [Output(ref_of(fresh), fresh)], [])

    own = SqliteStore(
        path, busy_timeout_s=11.0
    )  # other settings: a connection of its own
    writer = threading.Thread(target=write)
    writer.start()
    try:
        shared = [timed(lambda ref=ref: store.get("t", ref)) for ref in refs]
        apart = [timed(lambda ref=ref: own.get("t", ref)) for ref in refs]
    finally:
        stop.set()
        writer.join()
        own.close()
    return [
        *spread("sqlite: get while a thread writes, same connection", shared),
        *spread("sqlite: get while a thread writes, own connection", apart),
    ]


def made_up_outputs(count: int) -> list[Output]:
    """Texts of about `CHARS` characters that compress about as tool outputs do."""
    kinds = (log_line, code_line, json_line, prose_line)
    outputs = []
    for number in range(count):
        rng = random.Random(number)
        line = kinds[number % len(kinds)]
        lines: list[str] = []
        while sum(map(len, lines)) < CHARS:
            lines += [line(rng) for _ in range(100)]
        text = "\n".join(lines)[:CHARS]
        outputs.append(Output(ref_of(text), text))
    return outputs


def log_line(rng: random.Random) -> str:
    said = rng.choice(
        ["served", "served", "queued", "cached", "retried"] * 20 + ["refused"]
    )
    stamp = f"2026-01-{rng.randint(1, 28):02} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    return f"{stamp} INFO api.{rng.randint(0, 9)} request {rng.getrandbits(20)} {said}"


def code_line(rng: random.Random) -> str:
    return f"    {word(rng)}_{word(rng)} = self.{word(rng)}({word(rng)}, {rng.randint(0, 99)})"


def json_line(rng: random.Random) -> str:
    row = {
        "id": rng.getrandbits(32),
        "name": word(rng),
        "tags": [word(rng), word(rng)],
    }
    return json.dumps(row) + ","


def prose_line(rng: random.Random) -> str:
    return " ".join(word(rng) for _ in range(14)).capitalize() + "."


def word(rng: random.Random) -> str:
    """One of two thousand words, the early ones much more often."""
    rank = int(2_000 ** rng.random())
    return "".join(
        "bcdfglmnprst"[rank // 12**at % 12] + "aeiou"[rank % 5]
        for at in range(3)
    )


def timed(work: Callable[[], object]) -> float:
    """Milliseconds that ``work`` takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def spread(what: str, times_ms: Sequence[float]) -> list[Figure]:
    """The median and the 99th percentile."""
    cuts = quantiles(times_ms, n=100, method="inclusive")
    return [(f"{what}, p50", cuts[49], "ms"), (f"{what}, p99", cuts[98], "ms")]


def main() -> None:
    """Measure and print."""
    table = Table(
        title=f"Stores: {OUTPUTS:,} outputs of {CHARS:,} characters",
        caption=f"SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores",
    )
    table.add_column("what")
    table.add_column("value", justify="right")
    table.add_column("unit")
    for what, value, unit in measure():
        table.add_row(what, f"{value:,.4f}", unit)
    Console().print(table)


if __name__ == "__main__":
    main()
