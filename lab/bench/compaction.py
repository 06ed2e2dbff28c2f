"""What a compaction costs: ``python -m lab.bench.compaction``, part of ``make bench``.

One history of 478 messages (5 MB, about 1.4 M tokens) and one of 5,000 (8 MB). Nobody is asked:
the summaries are the deterministic ones, and what a model takes comes on top.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from rich.console import Console

from lab.bench.figures import Figure, of_times, table, timed_ms
from lab.bench.material import MODELS, Format, Material, request
from ullage import Limits, Session
from ullage.policy.stages.account import flatten
from ullage.policy.stages.summary import summary

GROUP = "Compaction (bench.compaction)"
SIZES = ((478, 5.0), (5_000, 8.0))
VAST = 50_000_000
ROOM_CHARS = 40_000
REPEATS = 5
cpu_ms = partial(timed_ms, clock=time.thread_time)


def measure(material: Material) -> Iterator[Figure]:
    """Every figure; processor time, some ten seconds."""
    for messages, megabytes in SIZES:
        for format in MODELS:
            yield from _of(material, format, messages, megabytes)


def _of(
    material: Material, format: Format, messages: int, megabytes: float
) -> Iterator[Figure]:
    whole = request(format, material.history(format, messages, megabytes))
    name = f"{format}, {messages:,} messages, {megabytes:g} MB"
    session = _session(format)
    session.fit(whole)
    tokens = session.window.tokens
    transcript = session.window.transcript
    for what, work in (
        (
            "deterministic summary",
            lambda: summary(transcript, 1, messages, ROOM_CHARS),
        ),
        ("flattened for a model", lambda: flatten(transcript, 1, messages)),
    ):
        times = [cpu_ms(work) for _ in range(REPEATS)]
        least = min(times)
        yield Figure(
            GROUP,
            f"{name}: {what}",
            megabytes / least * 1e3,
            unit="MB/s",
            calls=REPEATS,
        )
    times = []
    for _ in range(REPEATS):
        session = _session(format)
        session.fit(whole)
        _ = session.window.tokens
        times.append(cpu_ms(lambda s=session: s.compact(whole)))
    yield of_times(
        GROUP, f"{name}: a fit that compacts {tokens:,} tokens", times
    )


def _session(format: Format) -> Session:
    limits = Limits(window_tokens=VAST)
    return Session(MODELS[format], limits=limits, format=format, recall=True)


def main() -> None:
    """Measure and print."""
    Console().print(table(GROUP, list(measure(Material()))))


if __name__ == "__main__":
    main()
