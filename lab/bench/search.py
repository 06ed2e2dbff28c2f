"""What a search by words takes: ``python -m lab.bench.search``, part of `make bench-recall`.

A made-up conversation of 10 MB (source, logs, JSON) has left its view but for the newest turns.
Questions are lines drawn from it by lot, without one of their words. The first search makes the
index; every other one is measured by the clock and by processor time, which a loaded machine
changes less. Behind one more turn only the last block is indexed anew.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from statistics import median, quantiles
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

from lab.bench.material import MODELS, Format, Material, Message, grown
from ullage import Session
from ullage.session.session import Session as AnySession
from ullage.tools.replay.reading import SessionLibrary

MB = 10
MESSAGES = 10_000
SEARCHES = 60
_FORMAT: Format = "openai-chat"
_WORDS = 12

Taken: TypeAlias = tuple[float, float]
"""Milliseconds by the clock, and of processor time."""


def measure() -> list[tuple[str, list[Taken]]]:
    """Each figure, and what every search of it took."""
    material = Material()
    history = material.history(_FORMAT, MESSAGES, MB)
    session = Session(MODELS[_FORMAT], recall=True)
    fit(session, history)
    questions = list(asked(history, SEARCHES))
    library = SessionLibrary(session)
    first = [timed(lambda: library.find(questions[0]))]
    more = [
        timed(lambda text=text: library.find(text)) for text in questions[1:]
    ]
    page = [timed(lambda: library.find(questions[1], 2))]
    history = grown(_FORMAT, history, len(history), "a new line\n" * 50)
    fit(session, history)
    behind = [timed(lambda: library.find(questions[0]))]
    return [
        ("the first search, which makes the index", first),
        (f"another, of {len(more)}", more),
        ("its second page", page),
        ("the first behind another turn", behind),
    ]


def fit(session: AnySession, history: list[Message]) -> None:
    session.fit({"model": MODELS[_FORMAT], "messages": history})


def asked(history: list[Message], count: int) -> Iterator[str]:
    """Questions: words of lines of results, drawn by lot, one of them left out."""
    rng = random.Random(7)
    texts = [
        message["content"] for message in history if message["role"] == "tool"
    ]
    while count:
        lines = rng.choice(texts).splitlines()
        words = rng.choice(lines).split()[:_WORDS] if lines else []
        if len(words) < 3:
            continue
        words.pop(rng.randrange(len(words)))
        yield " ".join(words)
        count -= 1


def timed(search: Callable[[], object]) -> Taken:
    began, began_cpu = time.perf_counter(), time.process_time()
    search()
    return (
        (time.perf_counter() - began) * 1e3,
        (time.process_time() - began_cpu) * 1e3,
    )


def main() -> None:
    """Measure and print."""
    table = Table(title=f"A search by words in {MB} MB that left the view")
    for name in ("", "ms", "p95", "processor, ms", "p95"):
        table.add_column(name, justify="right" if name else "left")
    for name, taken in measure():
        cells = list[str]()
        for times in zip(*taken, strict=True):
            cells.append(f"{median(times):,.1f}")
            most = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
            cells.append(f"{most:,.1f}")
        table.add_row(name, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
