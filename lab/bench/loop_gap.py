"""How free an event loop stays: ``python -m lab.bench.loop_gap``.

A history of 478 messages, 5 MB, is fitted cold by an `AsyncSession`, while a task on the same loop
sleeps 1 ms again and again. Its largest lateness is the gap that everybody else on that loop
would have felt: work on the loop's own thread, or waiting for the interpreter lock while another
thread holds it. Three figures of each run:

    wall    the largest lateness by the clock; other processes of the machine are in it
    cpu     the most CPU time that the loop's own thread used between two ticks: what we do on it
    idle    the largest lateness of the same task while nothing is fitted: the machine's own part

The least of several runs stands for what is due to us, the most for what others felt. A switch
between threads may take ``sys.getswitchinterval()`` (5 ms) for each thread that wants the lock, and
is not ours to set.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from lab.bench.material import FORMATS, KEYS, MODELS, Format, Material, request
from ullage import AsyncSession, Limits
from ullage.core.history.remembered import REMEMBERED
from ullage.core.tokens.models import make_ready

TICK_S = 0.001
MESSAGES = 478
MEGABYTES = 5.0


async def _gaps_ms(
    work: Callable[[], Awaitable[object]],
) -> tuple[float, float]:
    """The largest lateness of a ticking task while some work goes on, and the most CPU, in ms."""
    late_s, busy_s, is_over = 0.0, 0.0, False

    async def tick() -> None:
        nonlocal late_s, busy_s
        while not is_over:
            began_s, cpu_s = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK_S)
            late_s = max(late_s, time.perf_counter() - began_s - TICK_S)
            busy_s = max(busy_s, time.thread_time() - cpu_s)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(10 * TICK_S)
    await work()
    is_over = True
    await ticking
    return late_s * 1_000, busy_s * 1_000


def measure(
    material: Material, format: Format, window_tokens: int
) -> dict[str, float]:
    """The figures of one cold fit in ms: ``wall``, ``cpu``, ``idle``, and ``took`` for all."""
    asked: dict[str, Any] = request(
        format, material.history(format, MESSAGES, MEGABYTES)
    )
    limits = Limits(window_tokens=window_tokens)

    async def run() -> dict[str, float]:
        REMEMBERED.clear()
        session = AsyncSession(
            MODELS[format], format=format, limits=limits, recall=True
        )
        idle, _ = await _gaps_ms(lambda: asyncio.sleep(0.2))
        began_s = time.perf_counter()
        wall, cpu = await _gaps_ms(lambda: session.fit(asked))
        took = (time.perf_counter() - began_s) * 1_000
        assert len((await session.fit(asked))[KEYS[format]]) > 0
        return {"wall": wall, "cpu": cpu, "idle": idle, "took": took}

    return asyncio.run(run())


def main() -> None:
    """Print the least and the most of several runs for each format, and the switch interval."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0] if __doc__ else None
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--window", type=int, default=128_000, help="tokens")
    options = parser.parse_args()
    material = Material()
    for format in FORMATS:
        make_ready(MODELS[format])
        runs = [
            measure(material, format, options.window)
            for _ in range(options.runs)
        ]
        least = {name: min(run[name] for run in runs) for name in runs[0]}
        shown = ", ".join(
            f"{name} {value:6.1f}" for name, value in least.items()
        )
        most = max(run["wall"] for run in runs)
        print(
            f"{format:17} least of {options.runs}, ms: {shown}; most: wall {most:.1f}"
        )
    print(f"switch interval: {sys.getswitchinterval() * 1_000:g} ms")


if __name__ == "__main__":
    main()
