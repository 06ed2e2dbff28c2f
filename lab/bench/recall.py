"""What it takes to read in a huge output: `python -m lab.bench.recall`.

A made-up log of 10 and of 100 MB is put into an SQLite store. Then, for each, a fresh process
opens the store and reads as a model would: pages from the beginning, the middle and the end, by
character and by line, and searches. Peak memory is that of the process (ru_maxrss) over what it
had after importing everything, so it holds SQLite's and zstd's memory too.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from lab.bench.stores import log_line
from ullage.core.history.canon import ref_of
from ullage.core.values.effects import Output, Steps
from ullage.core.values.notices import Words
from ullage.session.drivers import run
from ullage.session.recall.grep import search
from ullage.session.recall.read import characters, lines
from ullage.session.recall.source import OutputReader
from ullage.stores import MemoryStore, SqliteStore

MB = 1_000_000
SIZES_MB = (10, 100)
TIMES = 20
NEEDLE = "the only line of its kind"
WORDS = Words()

Figures = dict[str, float]


def put(path: Path, size_mb: int) -> Figures:
    """Put a log of so many megabytes, and read from it while it is at hand."""
    text = made_up_log(size_mb * MB)
    output = Output(ref_of(text), text)
    store = SqliteStore(path)
    began = time.perf_counter()
    store.commit("", [output], [])
    took_s = time.perf_counter() - began
    store.close()
    middle, count = len(text) // 2, text.count("\n")

    def at_hand(reader: Callable[..., Steps[str]], *where: int) -> float:
        return ms(
            lambda: run(
                reader(OutputReader(output), *where, WORDS), MemoryStore(), ""
            )
        )

    return {
        "put, s": took_s,
        "file, MB": path.stat().st_size / MB,
        "at hand: page by character, ms": at_hand(characters, middle),
        "at hand: page by line, ms": at_hand(lines, count // 2, 200),
    }


def measure(path: Path) -> Figures:
    """Read in the one output of a store: milliseconds, and peak memory in MB."""
    store = SqliteStore(path)
    (ref,) = store.refs("")
    before = peak_mb()

    def read(steps: Callable[[OutputReader], Steps[object]]) -> float:
        return ms(
            lambda: run(steps(OutputReader(store.stat("", ref))), store, "")
        )

    chars = store.stat("", ref).chars
    count = sum(extent.newlines for extent in store.stat("", ref).chunks)
    figures = {
        "first page by character, ms": read(lambda s: characters(s, 0, WORDS)),
        "page in the middle, ms": read(
            lambda s: characters(s, chars // 2, WORDS)
        ),
        "last page, ms": read(lambda s: characters(s, chars - 4_000, WORDS)),
        "page by line in the middle, ms": read(
            lambda s: lines(s, count // 2, 200, WORDS)
        ),
        "memory for pages, MB": peak_mb() - before,
        "grep, one line found, ms": read(lambda s: search(s, NEEDLE)),
        "grep, one line in a hundred, ms": read(
            lambda s: search(s, r"(?i)request \d+ refused")
        ),
        "grep, nothing found, ms": read(
            lambda s: search(s, r"^\w+Error: .*$")
        ),
        "memory for pages and grep, MB": peak_mb() - before,
    }
    began = time.perf_counter()
    text = store.get("", ref).text
    figures["whole, for comparison, ms"] = (time.perf_counter() - began) * 1e3
    figures["memory for the whole, MB"] = peak_mb() - before
    assert len(text) == chars
    store.close()
    return figures


def made_up_log(chars: int) -> str:
    """A log of so many characters; near its end stands one line of its kind."""
    rng = random.Random(1)
    block = "\n".join(log_line(rng) for _ in range(20_000)) + "\n"
    parts = [f"part {n}\n{block}" for n in range(chars // len(block) + 1)]
    text = "".join(parts)[:chars]
    at = text.rindex("\n", 0, chars - 10_000) + 1
    return f"{text[:at]}{NEEDLE}\n{text[at:]}"


def ms(work: Callable[[], object]) -> float:
    """The median milliseconds of a few calls."""
    times = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1e3)
    return median(times)


def peak_mb() -> float:
    """The most memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024 / MB


def in_a_fresh_process(what: str, path: Path, size_mb: int) -> Figures:
    command = [
        sys.executable,
        "-m",
        "lab.bench.recall",
        what,
        str(path),
        str(size_mb),
    ]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    found: Figures = json.loads(ran.stdout)
    return found


def main() -> None:
    """Measure and print, the sizes side by side."""
    if len(sys.argv) > 1:
        what, path, size = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
        print(json.dumps(put(path, size) if what == "put" else measure(path)))
        return
    columns: list[Figures] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES_MB:
            path = Path(folder) / f"{size}.db"
            columns.append(
                in_a_fresh_process("put", path, size)
                | in_a_fresh_process("read", path, size)
            )
    table = Table(title="Reading in one huge output, from an SQLite store")
    table.add_column("what")
    for size in SIZES_MB:
        table.add_column(f"{size} MB", justify="right")
    for what in columns[0]:
        table.add_row(what, *(f"{column[what]:,.1f}" for column in columns))
    Console().print(table)


if __name__ == "__main__":
    main()
