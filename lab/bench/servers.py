"""PostgreSQL beside SQLite: `make bench-stores`.

A server is started here, on the loopback, with its defaults: a commit is on its disk. Times are
milliseconds by the clock, the median and the least of single calls, made of one store after the
other, so that all meet the same load. A turn is that of a whole session: `fit`, then `observe`;
what PostgreSQL adds to one is the median of the differences. On a busy machine every answer of a
server waits for a core; its owner can have the bench run ahead of all else, with the servers on its
own core:

    chrt --rr 1 taskset -c 0 python -m lab.bench.servers
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median

import psycopg
from rich.console import Console
from rich.table import Table

from lab.bench.stores import made_up_outputs
from tests.stores.postgres.server import Server
from ullage import Session
from ullage.core.values.effects import Output, Record
from ullage.stores import MemoryStore, PostgresStore, SqliteStore, Store

TURNS = 150
ROWS = (1_000, 1_000_000)
MODEL = "gpt-4.1"


def main() -> None:
    """Measure and print."""
    server = Server(fsync="on", autovacuum="on", shared_buffers="128MB")
    try:
        with tempfile.TemporaryDirectory() as folder:
            stores: dict[str, Store] = {
                "memory": MemoryStore(),
                "SQLite": SqliteStore(Path(folder) / "bench.db"),
                "PostgreSQL": PostgresStore(server.url),
            }
            _show("one call", _calls(stores))
            turns = _turns(stores)
            _show(f"a turn of a session, of {TURNS}", turns)
            _show_added(turns["fit and observe"])
            for store in stores.values():
                store.close()
        filled = {f"{rows:,} rows": _filled(server, rows) for rows in ROWS}
        _show("PostgreSQL beside rows of other conversations", _calls(filled))
        _show("a turn of a session beside them", _turns(filled))
        for store in filled.values():
            store.close()
    finally:
        server.stop()


Times = dict[str, dict[str, list[float]]]
"""Milliseconds, by what was done and by store."""


def _calls(stores: Mapping[str, Store]) -> Times:
    """What is asked of a store, one call at a time, of one store after the other."""
    rng = random.Random(1)
    keys = [rng.randbytes(16) for _ in range(5_000)]
    held, *outputs = made_up_outputs(121)
    for store in stores.values():
        store.commit(
            "t", [held], [Record(key, "batch", 0, bytes(300)) for key in keys]
        )
    works: dict[str, tuple[int, Callable[[Store, int], object]]] = {
        "find 4 keys": (
            400,
            lambda store, n: store.find("t", keys[n : n + 4]),
        ),
        "find 64 keys": (
            100,
            lambda store, n: store.find("t", keys[n : n + 64]),
        ),
        "find 5,000 keys": (7, lambda store, _: store.find("t", keys)),
        "append what was observed": (
            400,
            lambda store, n: store.append("t", [_seen(n)]),
        ),
        "commit a batch": (
            120,
            lambda store, n: store.commit("t", [], _batch(n, b"a")),
        ),
        "commit a batch and 50 KB": (
            120,
            lambda store, n: store.commit("t", [outputs[n]], _batch(n, b"b")),
        ),
        "look and chunk": (200, lambda store, _: _read(store, held)),
    }
    found: Times = {}
    for what, (times, work) in works.items():
        took = found[what] = {name: [] for name in stores}
        for n in range(times):
            for name, store in stores.items():
                took[name].append(_timed(partial(work, store, n)))
    return found


def _turns(stores: Mapping[str, Store]) -> Times:
    """An agent's turns: a result of 5,000 characters, a view, a reply with its usage."""
    texts = [output.text[:5_000] for output in made_up_outputs(TURNS)]
    sessions = {
        name: Session(MODEL, store=store) for name, store in stores.items()
    }
    messages = [{"role": "user", "content": "Mend the failing tests."}]
    kinds = ("fit", "observe", "fit and observe")
    found: Times = {kind: {name: [] for name in stores} for kind in kinds}
    for n, text in enumerate(texts):
        reply = _reply(n, len(json.dumps(messages)) // 4)
        for name, session in sessions.items():
            request = {"model": MODEL, "messages": messages}
            fit = _timed(partial(session.fit, request))
            observe = _timed(partial(session.observe, reply))
            for kind, took in zip(
                kinds, (fit, observe, fit + observe), strict=True
            ):
                found[kind][name].append(took)
        result = {"role": "tool", "tool_call_id": f"c{n}", "content": text}
        messages = [*messages, reply["choices"][0]["message"], result]
    return found


def _show_added(took: dict[str, list[float]]) -> None:
    """What PostgreSQL adds to a turn: each beside the same turn of another store."""
    for name in ("memory", "SQLite"):
        pairs = zip(took["PostgreSQL"], took[name], strict=True)
        added = sorted(ours - theirs for ours, theirs in pairs)
        least, middle = added[len(added) // 10], median(added)
        print(
            f"PostgreSQL adds {middle:.2f} ms to a turn with {name}; in a tenth {least:.2f} or less"
        )


def _reply(n: int, prompt: int) -> dict:
    function = {
        "name": "run",
        "arguments": json.dumps({"command": f"test {n}"}),
    }
    call = {"id": f"c{n}", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": 20,
        "total_tokens": prompt + 20,
    }
    return {
        "id": f"r{n}",
        "choices": [{"message": message}],
        "usage": usage,
        "model": MODEL,
    }


def _filled(server: Server, rows: int) -> PostgresStore:
    """A database of its own with so many rows in each table, of other conversations."""
    with server.connect() as db:
        db.execute(f"CREATE DATABASE with_{rows}")
    url = server.url.replace("/postgres", f"/with_{rows}")
    store = PostgresStore(url)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(_OTHERS.format(rows=rows))
        for others in (_OUTPUTS, _CHUNKS, _NAMES):
            db.execute(others.format(rows=rows))
        db.execute("VACUUM ANALYZE")
        db.execute("CHECKPOINT")
    return store


def _read(store: Store, output: Output) -> None:
    store.stat("t", output.ref)
    store.chunk("t", output.ref, 0)


_OTHERS = """
INSERT INTO ullage.records (tenant, key, kind, n, name, data, used_s)
SELECT int4send(i % 997), decode(md5(i::text), 'hex'), 'batch', 0, '', int4send(i),
    extract(epoch FROM now())::bigint - i % 100000
FROM generate_series(1, {rows}) AS i
"""
_OUTPUTS = """
INSERT INTO ullage.outputs
    (tenant, ref, digest, kind, size_bytes, stored_bytes, chunks, used_s)
SELECT int4send(i % 997), substr(md5(i::text), 1, 16)::bytea, decode(md5(i::text), 'hex'), 'text',
    1, 1, 1, extract(epoch FROM now())::bigint - i % 100000
FROM generate_series(1, {rows}) AS i
"""
_CHUNKS = """
INSERT INTO ullage.chunks (tenant, ref, n, coding, size_bytes, chars, newlines, seal, body)
SELECT tenant, ref, 0, 'raw', 1, 1, 0, digest, 'x' FROM ullage.outputs
"""
_NAMES = """
INSERT INTO ullage.names (tenant, ref, key) SELECT tenant, ref, digest FROM ullage.outputs
"""


def _seen(n: int) -> Record:
    return Record(b"seen %d" % n, "observed", 0, bytes(20), MODEL)


def _batch(n: int, name: bytes) -> list[Record]:
    key = b"%b %d" % (name, n)
    return [Record(key, "batch", 0, bytes(300)), Record(key, "latest", 0, key)]


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def _show(title: str, found: Times) -> None:
    names = list(next(iter(found.values())))
    table = Table("ms: median (least)", *names, "last ÷ first", title=title)
    for what, times in found.items():
        shown = [
            f"{median(took):,.2f} ({min(took):,.2f})"
            for took in times.values()
        ]
        ratio = median(times[names[-1]]) / median(times[names[0]])
        table.add_row(what, *shown, f"{ratio:,.2f}" if len(names) == 2 else "")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
