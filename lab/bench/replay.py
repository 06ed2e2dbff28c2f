"""What a replay costs: ``python -m lab.bench.replay [--cpu]``, part of ``make bench``.

Seconds for a million tokens of recorded history (the judge's count), in one process: under the
default policy, under a policy of the frame, at full service, and for the pass that makes the stop
list. The run is made up (`bench.material`); half of its calls name a value from a result up to
thirty calls back, so that there is evidence to look for.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Callable, Iterator

from rich.console import Console

from lab.bench.figures import Figure, of_times, table, timed_ms
from lab.bench.material import Material, Message, request
from lab.replay.framed import replay_frame
from lab.replay.served import full_service
from ullage.core.history.remembered import REMEMBERED
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.evidence.common import common_in
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Run
from ullage.tools.replay.run import replay_run

MESSAGES, MEGABYTES = 300, 1.0
WINDOW = 32_000
TIMES = 3
BACK = 30
_NAME = re.compile(r"\b[a-z]+_[a-z_]+\b")


def recorded_run(material: Material) -> Run:
    """A run of 150 calls, as a reader would give it."""
    body = request(
        "openai-chat",
        _asking(material.history("openai-chat", MESSAGES, MEGABYTES)),
    )
    messages = body.pop("messages")
    return Run("made up", "openai-chat", body, messages)


def _asking(history: list[Message]) -> list[Message]:
    """The history, every other call asking for a name that one of the last results told."""
    draw, told, found = random.Random(0), list[str](), list[Message]()
    for message in history:
        if message["role"] == "tool":
            told.append(message["content"])
        elif message["role"] == "assistant" and len(told) % 2:
            names = _NAME.findall(draw.choice(told[-BACK:]))
            message = (
                _naming(message, draw.choice(names)) if names else message
            )
        found.append(message)
    return found


def _naming(message: Message, name: str) -> Message:
    (call,) = message["tool_calls"]
    function = {**call["function"], "arguments": json.dumps({"path": name})}
    return {**message, "tool_calls": [{**call, "function": function}]}


def measure(
    material: Material, clock: Callable[[], float] = time.perf_counter
) -> Iterator[Figure]:
    """Every figure; about a minute."""
    run, profiles = recorded_run(material), list(PROFILES.values())
    millions = Judge().tokens(run.messages) / 1e6
    group = f"Replay of {millions * 1e3:,.0f} thousand tokens in a window of {WINDOW:,}"
    works: dict[str, Callable[[], object]] = {
        "default": lambda: replay_run(run, WINDOW, profiles=profiles),
        "recency": lambda: replay_frame(
            run, WINDOW, profiles=profiles, policy="recency"
        ),
        "default, at full service": lambda: full_service(
            run, WINDOW, profiles=profiles, policy="default"
        ),
        "the stop list": lambda: common_in([run]),
    }
    for what, work in works.items():
        seconds = []
        for _ in range(TIMES):
            REMEMBERED.clear()  # as for a new process
            seconds.append(timed_ms(work, clock) / 1e3 / millions)
        figure = of_times(group, f"{what}, for a million tokens", seconds)
        yield Figure(
            group,
            figure.what,
            figure.median,
            figure.least,
            unit="s",
            calls=TIMES,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="lab.bench.replay", description=__doc__
    )
    parser.add_argument(
        "--cpu", action="store_true", help="count processor time"
    )
    clock = time.thread_time if parser.parse_args().cpu else time.perf_counter
    figures = list(measure(Material(), clock))
    Console(width=110).print(table(figures[0].group, figures))


if __name__ == "__main__":
    main()
