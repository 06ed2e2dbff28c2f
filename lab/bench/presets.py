"""What the presets cost: ``python -m lab.bench.presets``; a part of ``make bench``.

Each policy is put through the session of 1.4 million tokens (478 messages, 5 MB): cold, with
every decision there is to make; the same again with nothing to decide; and one turn longer.
Truncation is measured apart, by kind of content, on texts of a megabyte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

from rich.console import Console

from lab.bench.figures import Figure, of_times, table, timed_ms
from lab.bench.material import MODELS, Material, grown, request
from ullage import Limits, Policy, Session, Usage
from ullage.core.values.notices import Words
from ullage.documents import NAMES, preset
from ullage.policy.stages.truncate import Source, by_kind

WINDOW = 128_000
REPEATS = 200
GROWN = 20
COLD = 3
ROUNDS = 7


def measure(material: Material) -> Iterator[Figure]:
    """Every figure; about half a minute."""
    for name in NAMES:
        yield from fits(material, name)
    for name in NAMES:
        yield from truncation(material, name)


def fits(material: Material, name: str) -> Iterator[Figure]:
    """`Session.fit` of one policy on the long session."""
    group, format = (
        f"Policies, 1.4 M tokens in a window of {WINDOW:,}",
        "anthropic",
    )
    history = material.history("anthropic", 478, 5.0)
    whole = request("anthropic", history)
    cold, session = [], _session(name)
    for _ in range(COLD):
        session = _session(name)
        cold.append(timed_ms(lambda s=session: s.fit(whole)))
    yield of_times(group, f"{name}: cold, every decision", cold)
    session.observe(Usage(fresh_tokens=session.window.tokens))
    again = [timed_ms(lambda: session.fit(whole)) for _ in range(REPEATS)]
    yield of_times(group, f"{name}: nothing to decide", again)
    times, longer = [], history
    for number in range(GROWN):
        longer = grown("anthropic", longer, number, material.source[:60_000])
        one = request("anthropic", longer)
        times.append(timed_ms(lambda one=one: session.fit(one)))
        session.observe(Usage(fresh_tokens=session.window.tokens))
    yield of_times(group, f"{name}: one turn longer, 60 KB to cut", times)
    assert session.state.format == format


def truncation(material: Material, name: str) -> Iterator[Figure]:
    """Megabytes a second that a policy's first-sight shape takes in."""
    for stage in preset(name).on_arrival:
        shape = getattr(stage, "keywords", {}).get("shape", by_kind)
        for kind, text in _texts(material):
            source = Source(text, "bash", "call_1")
            times = [
                timed_ms(lambda s=source, cut=shape: cut(s, Words()))
                for _ in range(ROUNDS)
            ]
            speed = len(text.encode()) / 1e3 / sorted(times)[len(times) // 2]
            yield Figure(
                "Truncation by content", f"{name}: {kind}", speed, unit="MB/s"
            )


def _texts(material: Material) -> Iterator[tuple[str, str]]:
    rows: list[Any] = [
        {"row": number, "text": line}
        for number, line in enumerate(_lines(material))
    ]
    yield "source", material.source[:1_000_000]
    yield "logs", material.logs[:1_000_000]
    yield "one line", material.source[:1_000_000].replace("\n", " ")
    yield "a JSON list", json.dumps(rows)
    yield (
        "a JSON dict",
        json.dumps({str(number): row for number, row in enumerate(rows)}),
    )
    yield "not ASCII", "名前は「猫」である。\n" * 90_000


def _lines(material: Material) -> list[str]:
    return material.rows[:900_000].splitlines()


def _session(name: str) -> Session:
    policy: Policy = preset(name)
    limits = Limits(window_tokens=WINDOW)
    return Session(
        MODELS["anthropic"], policy=policy, limits=limits, format="anthropic"
    )


if __name__ == "__main__":
    with redirect_stderr(
        StringIO()
    ):  # a document wants its batches told there
        found = list(measure(Material()))
    for group in dict.fromkeys(figure.group for figure in found):
        Console().print(
            table(group, [figure for figure in found if figure.group == group])
        )
