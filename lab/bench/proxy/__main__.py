"""What a proxy costs, beside nothing, the least it can cost, and others: ``make bench-proxy``.

All of them run at once, in one run, and take turns; each is asked the same. Times are those of the
client, CPU that of the proxy's processes. On a machine that others use, CPU is the one to trust.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from statistics import median

import click
from msgspec import Struct

from lab.bench.material import Format, Material
from lab.bench.peers.process import Trouble
from lab.bench.proxy.load import bodies_of, times_of
from lab.bench.proxy.subjects import (
    SUBJECTS,
    Running,
    add_checkout,
    started,
)

KINDS, SIZES = ("grow", "tail"), (0.2, 2.0)
_REQUESTS = {(1, 0.2): 12, (1, 2.0): 5, (16, 0.2): 12, (16, 2.0): 4}
"""Of each conversation in a round, by connections and megabytes."""


class Cell(Struct):
    """What one subject took for one load."""

    times_ms: list[float] = []
    whole_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def p50_ms(self) -> float:
        """The median."""
        return median(self.times_ms) if self.times_ms else float("nan")

    @property
    def per_s(self) -> float:
        """Requests a second."""
        return len(self.times_ms) / self.whole_s if self.whole_s else 0.0

    @property
    def cpu_ms(self) -> float:
        """CPU a request."""
        return (
            self.cpu_s * 1_000 / len(self.times_ms) if self.times_ms else 0.0
        )


@click.command()
@click.option(
    "--subject", "names", multiple=True, type=click.Choice(list(SUBJECTS))
)
@click.option(
    "--wire",
    type=click.Choice(["openai-chat", "anthropic"]),
    default="anthropic",
)
@click.option(
    "--beside",
    "checkouts",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Another checkout of ullage, whose proxy is asked the same.",
)
@click.option("--rounds", default=3, show_default=True)
@click.option(
    "--root",
    default=".peers",
    show_default=True,
    type=click.Path(path_type=Path),
)
@click.option(
    "--memory/--no-memory",
    default=True,
    help="500 requests in 50 conversations too.",
)
def main(
    names: tuple[str, ...],
    wire: Format,
    checkouts: tuple[Path, ...],
    rounds: int,
    root: Path,
    memory: bool,
) -> None:
    """Print a table of times, and one of memory."""
    material = Material()
    chosen = [*(names or SUBJECTS), *map(add_checkout, checkouts)]
    with ExitStack() as stack:
        upstream = stack.enter_context(_upstream())
        running = dict(_running(stack, chosen, upstream, root.absolute()))
        cells = _measured(running, material, wire, rounds)
        starts = {name: each.start_s for name, each in running.items()}
        _print_times(cells, starts, wire)
    if memory:
        print(
            "\n| 500 requests of 200 KB in 50 conversations | RSS, MB | CPU a request, ms |"
        )
        print("|---|--:|--:|")
        for name in running:
            if name != "direct":
                megabytes, cpu_ms = _memory(
                    name, material, wire, root.absolute()
                )
                print(f"| {name} | {megabytes:.0f} | {cpu_ms:.1f} |")


def _running(
    stack: ExitStack, names: list[str], upstream: str, root: Path
) -> Iterator[tuple[str, Running]]:
    for name in names:
        try:
            yield name, stack.enter_context(started(name, upstream, root))
        except (Trouble, TimeoutError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)


def _measured(
    running: dict[str, Running], material: Material, wire: Format, rounds: int
) -> dict[tuple[str, str, int, float], Cell]:
    """A cell for each subject, kind, number of connections and size."""
    cells: dict[tuple[str, str, int, float], Cell] = {}
    for megabytes in SIZES:
        for kind in KINDS:
            for connections in (1, 16):
                count = _REQUESTS[connections, megabytes]
                sources = [
                    bodies_of(material, wire, kind, megabytes, number)
                    for number in range(connections)
                ]
                first = [[next(each)] for each in sources]
                for name, each in list(running.items()):
                    try:
                        times_of(
                            each.url, wire, first
                        )  # the first is another thing
                    except RuntimeError as error:
                        print(f"{name} is left out: {error}", file=sys.stderr)
                        del running[name]
                for _ in range(rounds):
                    bodies = [list(islice(each, count)) for each in sources]
                    for name, each in running.items():
                        cell = cells.setdefault(
                            (name, kind, connections, megabytes), Cell()
                        )
                        before = _cpu_s(each.pids)
                        times, whole_s = times_of(each.url, wire, bodies)
                        cell.times_ms += times
                        cell.whole_s += whole_s
                        cell.cpu_s += _cpu_s(each.pids) - before
    return cells


def _print_times(
    cells: dict[tuple[str, str, int, float], Cell],
    starts: dict[str, float],
    wire: str,
) -> None:
    print(f"p50 in ms (added over direct; CPU of the proxy), {wire}\n")
    columns = [(kind, size) for size in SIZES for kind in KINDS]
    heads = [
        f"{'0.2' if size < 1 else '2'} MB {kind}" for kind, size in columns
    ]
    print(f"| 1 connection | {' | '.join(heads)} | start s |")
    print(f"|---|{'--:|' * (len(heads) + 1)}")
    for name, start_s in starts.items():
        found = [cells[name, kind, 1, size] for kind, size in columns]
        base = [
            cells["direct", kind, 1, size] if "direct" in starts else None
            for kind, size in columns
        ]
        texts = [
            _told(cell, over) for cell, over in zip(found, base, strict=True)
        ]
        print(f"| {name} | {' | '.join(texts)} | {start_s:.2f} |")
    print(
        f"\n| 16 connections | {' | '.join(heads)} |\n|---|{'--:|' * len(heads)}"
    )
    for name in starts:
        found = [cells[name, kind, 16, size] for kind, size in columns]
        texts = [
            f"{cell.p50_ms:.0f}, {cell.per_s:.0f}/s ({cell.cpu_ms:.1f})"
            for cell in found
        ]
        print(f"| {name} | {' | '.join(texts)} |")


def _told(cell: Cell, base: Cell | None) -> str:
    added = (
        f"+{cell.p50_ms - base.p50_ms:.1f}; "
        if base is not None and base is not cell
        else ""
    )
    return f"{cell.p50_ms:.1f} ({added}{cell.cpu_ms:.1f})"


# ── memory ───────────────────────────────────────────────────────────────────────────────


def _memory(
    name: str, material: Material, wire: Format, root: Path
) -> tuple[float, float]:
    """Megabytes that a subject's processes hold after 500 requests, and the CPU of each request.

    The first of each conversation is sent from a fresh start, and not counted as CPU.
    """
    with _upstream() as upstream, started(name, upstream, root) as running:
        sources = [
            bodies_of(material, wire, "grow", 0.2, number)
            for number in range(50)
        ]
        began_s = 0.0
        for turn in range(10):
            began_s = _cpu_s(running.pids) if turn == 1 else began_s
            for at in range(0, 50, 5):
                bodies = [[next(each)] for each in sources[at : at + 5]]
                times_of(running.url, wire, bodies)
        cpu_s = _cpu_s(running.pids) - began_s
        return sum(map(_rss_mb, running.pids)), cpu_s * 1_000 / (9 * 50)


def _rss_mb(pid: int) -> float:
    pages = int(
        Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    )
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _cpu_s(pids: tuple[int, ...]) -> float:
    """CPU that processes have used."""
    ticks = 0
    for pid in pids:
        fields = (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="ascii")
            .rsplit(")", 1)[1]
            .split()
        )
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def _upstream() -> Iterator[str]:
    """The URL of a provider that answers at once."""
    with subprocess.Popen(
        [sys.executable, "-m", "lab.bench.proxy.upstream"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
