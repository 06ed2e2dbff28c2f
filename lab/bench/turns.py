"""What a turn costs: ``python -m lab.bench.turns``, ``--json`` for machines, ``--cpu`` when busy.

Histories of 478 messages (5 MB, about 1.4 M tokens) and 5,000 messages (8 MB), in all four
formats, are put through a session the ways an agent would: again and again with
nothing to decide, a little longer each time, changed in place, rewound, cold. Times are whole
calls of `Session.fit` with the garbage collector as a user has it; the vocabulary is loaded
unless the row says otherwise. Targets stand beside the figures; nothing fails on them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from rich.console import Console

from lab.bench import compaction, conversations, presets, replay, stores
from lab.bench.figures import Figure, of_times, table
from lab.bench.figures import timed_ms as wall_ms
from lab.bench.material import (
    FORMATS,
    KEYS,
    MODELS,
    Format,
    Material,
    Message,
    grown,
    request,
    said_by_user,
)
from ullage import (
    AsyncSession,
    Limits,
    MemoryStore,
    Policy,
    Session,
    SqliteStore,
    Store,
)
from ullage.core.history import canon
from ullage.core.history.remembered import REMEMBERED
from ullage.core.tokens.models import counter_for
from ullage.policy.stages.emergency import emergency
from ullage.wires import FORMATS as WIRES

VAST = 50_000_000
"""A window so large that the bound of a history decides and nothing is counted."""
NARROW = 128_000
REPEATS = 400
GROWN = 25
ROUNDS = 4
COLD = 3
SIZES = ((478, 5.0), (5_000, 8.0))
WARM_TARGET_MS: dict[int, dict[Format, float]] = {
    478: dict.fromkeys(FORMATS, 0.3),
    5_000: {
        "openai-chat": 4.0,
        "openai-responses": 4.0,
        "anthropic": 6.0,
        "gemini": 6.0,
    },
}


def measure() -> Iterator[Figure]:
    """Every figure, group by group; a quarter of an hour on a slow machine."""
    material = Material()
    yield from new_work(material)
    for format in FORMATS:
        counter_for(MODELS[format]).count("load the vocabulary")
        for messages, megabytes in SIZES:
            history = material.history(format, messages, megabytes)
            yield from beside_a_json_library(format, history)
            yield from nothing_decided(material, format, history)
            yield from changed_by_the_caller(format, history)
            yield from cold(format, history)
            yield from repairing(format, history)
        yield from independent_of_bytes(material, format)
        yield from edited(material, format)
    yield from new_process()
    yield from deciding(material)
    yield from drivers(material)
    yield from memory(material)
    yield from presets.measure(material)
    yield from compaction.measure(material)
    yield from conversations.measure()
    yield from replay.measure(material, _Clock.now)
    for what, value, unit in stores.measure():
        yield Figure("Stores (bench.stores)", what, value, unit=unit)


class _Clock:
    """What calls are timed by: the clock on the wall, or with ``--cpu`` the processor's."""

    now = time.perf_counter


def timed_ms(work: Callable[[], object]) -> float:
    """Milliseconds that ``work`` takes."""
    return wall_ms(work, _Clock.now)


def session_for(format: Format, window_tokens: int, **more: Any) -> Session:
    """A session with its own window and a memory store."""
    return Session(
        MODELS[format],
        limits=Limits(window_tokens=window_tokens),
        format=format,
        recall=True,
        **more,
    )


def cold_session(format: Format, window_tokens: int, **more: Any) -> Session:
    """The same, as a new process has it: with nothing remembered."""
    REMEMBERED.clear()
    return session_for(format, window_tokens, **more)


def name_of(format: Format, history: Sequence[Message]) -> str:
    return f"{format}, {len(history):,} messages"


def fit_times(
    session: Session,
    requests: Sequence[dict[str, Any]],
    *,
    counted: bool = False,
) -> list[float]:
    """Times of `Session.fit`; ``counted``: with the exact count that `observe` would ask for."""

    def work(one: dict[str, Any]) -> None:
        session.fit(one)
        if counted:
            _ = session.window.tokens

    return [timed_ms(lambda r=r: work(r)) for r in requests]


# ── work in proportion to what is new ────────────────────────────────────────────────────


def new_work(material: Material) -> Iterator[Figure]:
    """What is new is paid for, and nothing else, beside what only reading the bytes costs."""
    for format in ("openai-chat", "anthropic"):
        counter_for(MODELS[format]).count("load the vocabulary")
        yield from _told_anew(format, material.history(format, 100, 2.0))
        history = material.history(format, 478, 5.0)
        yield from _least(format, history)
        yield from _cold_all_the_way(format, history)
        yield from _one_turn_more(material, format, history)


_NEW_WORK = "Work in proportion to what is new"


def _told_anew(format: Format, history: list[Message]) -> Iterator[Figure]:
    """100 messages of 2 MB in a window of 128,000: another last message; a new process."""
    name, store = name_of(format, history), MemoryStore()
    session = cold_session(format, NARROW, store=store)
    requests = [
        request(
            format, [*history, said_by_user(format, f"turn {number}: go on")]
        )
        for number in range(22)
    ]
    fit_times(session, requests[:2])
    times = fit_times(session, requests[2:])
    yield of_times(_NEW_WORK, f"{name}, 2 MB: another last message", times, 5)
    times = []
    for one in requests[:COLD]:
        times += fit_times(cold_session(format, NARROW, store=store), [one])
    yield of_times(
        _NEW_WORK, f"{name}, 2 MB: a new process, with a ledger", times, 20
    )


def _least(format: Format, history: list[Message]) -> Iterator[Figure]:
    """What any library pays that looks at all of a history once."""
    name, sent = (
        name_of(format, history),
        msgspec.json.encode(request(format, history)),
    )
    texts, count = (
        list(map(str, _texts(history))),
        counter_for(MODELS[format]).count,
    )
    for what, work in (
        ("to read its JSON", lambda: msgspec.json.decode(sent)),
        ("to hash it", lambda: [canon.content_digest(text) for text in texts]),
        ("to count its tokens", lambda: list(map(count, texts))),
    ):
        yield of_times(
            _NEW_WORK,
            f"{name}, 5 MB: {what}",
            [timed_ms(work) for _ in range(5)],
        )


def _texts(value: Any) -> Iterator[str]:
    """Every text within a JSON value."""
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if not isinstance(value, str):
            yield from _texts(item)


def _cold_all_the_way(
    format: Format, history: list[Message]
) -> Iterator[Figure]:
    name = name_of(format, history)
    for what, policy, target in (
        ("without stages", Policy(name="no stages"), None),
        ("cut, counted, old results made digests", "default", 250),
    ):
        times = []
        for _ in range(COLD):
            window = NARROW if policy == "default" else VAST
            session = cold_session(format, window, policy=policy)
            times += fit_times(
                session, [request(format, history)], counted=True
            )
        yield of_times(
            _NEW_WORK, f"{name}, 5 MB, a new process: {what}", times, target
        )


def _one_turn_more(
    material: Material, format: Format, history: list[Message]
) -> Iterator[Figure]:
    name, whole = name_of(format, history), request(format, history)
    session = cold_session(format, NARROW)
    fit_times(session, [whole] * 2)
    yield of_times(
        _NEW_WORK,
        f"{name}: the same again",
        fit_times(session, [whole] * REPEATS),
        0.2,
    )
    session, page, times = (
        cold_session(format, VAST),
        material.source[:22_000],
        list[float](),
    )
    fit_times(session, [whole])
    for number in range(2 * GROWN):
        history = grown(format, history, number, f"{number} {page}")
        times += fit_times(session, [request(format, history)])
    yield of_times(_NEW_WORK, f"{name}: a new result of 22 KB", times, 0.25)


# ── warm ─────────────────────────────────────────────────────────────────────────────────


def nothing_decided(
    material: Material, format: Format, history: list[Message]
) -> Iterator[Figure]:
    """Calls that have nothing to decide: the same again, and a little more each time."""
    group, name = "A call that decides nothing", name_of(format, history)
    target = WARM_TARGET_MS[478 if len(history) < 1_000 else 5_000][format]
    whole = request(format, history)
    session = session_for(format, VAST)
    session.fit(whole)
    yield of_times(
        group,
        f"{name}: repeated",
        fit_times(session, [whole] * REPEATS),
        target,
    )
    page = material.source[:22_000]
    for what, output, counted in (
        ("two new small messages", "ok", False),
        ("one new result of 22 KB, not counted", page, False),
        ("one new result of 22 KB, counted", page, True),
    ):
        times: list[float] = []
        for _ in range(ROUNDS):
            session, longer, requests = session_for(format, VAST), history, []
            fit_times(session, [whole], counted=counted)
            for number in range(GROWN):
                longer = grown(format, longer, number, f"{number} {output}")
                requests.append(request(format, longer))
            times += fit_times(session, requests, counted=counted)
        yield of_times(
            group, f"{name}: {what}", times, None if counted else target
        )


def independent_of_bytes(
    material: Material, format: Format
) -> Iterator[Figure]:
    """The same number of messages with more and more in them, all of it shown."""
    group, target = (
        "Nothing decided does not depend on bytes",
        WARM_TARGET_MS[478][format],
    )
    for megabytes in (0.5, 5, 20):
        history = material.history(format, 500, megabytes)
        whole = request(format, history)
        session = session_for(format, VAST, policy=Policy(name="no stages"))
        session.fit(whole)
        times = fit_times(session, [whole] * REPEATS)
        yield of_times(
            group,
            f"{name_of(format, history)}, {megabytes:g} MB",
            times,
            target,
        )


def edited(material: Material, format: Format) -> Iterator[Figure]:
    """Nothing new to decide, but a view that holds some 240 edits."""
    group = "Nothing decided, with edits in the view"
    history = material.history(format, 478, 5.0, tool="bash")
    whole = request(format, history)
    for window in (VAST, NARROW):
        session = session_for(format, window)
        session.fit(whole)
        edits = sum(
            len(changes) for changes in session.window.changed.values()
        )
        what = f"{name_of(format, history)}: {edits} edits, window {window:,}"
        yield of_times(group, what, fit_times(session, [whole] * REPEATS), 0.3)


def changed_by_the_caller(
    format: Format, history: list[Message]
) -> Iterator[Figure]:
    """What is no longer as it was: a message changed in place, a rewind, two branches."""
    group, name = "The caller changed something", name_of(format, history)
    whole = request(format, history)
    session = session_for(format, VAST)
    session.fit(whole)
    middle, times = whole[KEYS[format]][len(history) // 2 // 2 * 2 + 2], []
    original = dict(middle)
    for number in range(30 if len(history) < 1_000 else 5):
        middle.clear()
        middle.update(said_by_user(format, f"changed in place, {number}"))
        times.append(timed_ms(lambda: session.fit(whole)))
    middle.clear()
    middle.update(original)
    yield of_times(
        group, f"{name}: one in mid-history changed in place", times
    )
    here = request(format, history)
    other = request(
        format, grown(format, history[: len(history) // 2], 0, "another way")
    )
    session = session_for(format, VAST)
    fit_times(session, [here, other])
    times = fit_times(session, [here, other] * 20)
    yield of_times(group, f"{name}: two branches in turn", times)


# ── cold ─────────────────────────────────────────────────────────────────────────────────


def cold(format: Format, history: list[Message]) -> Iterator[Figure]:
    """The first call of a session on a history it has never seen."""
    group, name = "Cold: the first call of a session", name_of(format, history)
    small = len(history) < 1_000
    for what, window, counted, target in (
        ("not counted, the bound decides", VAST, False, 20 if small else None),
        ("counted, nothing decided", VAST, True, 120 if small else None),
        (
            f"window {NARROW:,}, cut and pruned",
            NARROW,
            True,
            120 if small else None,
        ),
    ):
        times = []
        for _ in range(COLD):
            session, whole = (
                cold_session(format, window),
                request(format, history),
            )
            times += fit_times(session, [whole], counted=counted)
        yield of_times(group, f"{name}: {what}", times, target)


def beside_a_json_library(
    format: Format, history: list[Message]
) -> Iterator[Figure]:
    """What a history costs to take in, as a multiple of reading its own bytes as JSON."""
    group, name = "Cold parse beside a JSON library", name_of(format, history)
    sent = msgspec.json.encode(request(format, history))
    decode = msgspec.json.Decoder().decode
    reads = [timed_ms(lambda: decode(sent)) for _ in range(3 * COLD)]
    wire, parses, fits = WIRES[format], [], []
    for _ in range(COLD):
        whole, session = decode(sent), cold_session(format, VAST)
        raws = wire.history(whole)
        parses.append(
            timed_ms(lambda r=raws: [wire.parse(raw, "message") for raw in r])
        )
        fits += fit_times(session, [whole])
    size = f"{len(sent) / 1e6:.1f} MB"
    yield of_times(group, f"{name}: msgspec.json reads {size}", reads)
    for what, times in (
        ("every message parsed", parses),
        ("the whole first fit", fits),
    ):
        yield of_times(group, f"{name}: {what}", times)
        multiple = median(times) / median(reads)
        yield Figure(group, f"{name}: {what}, of reading", multiple, unit="×")


def repairing(format: Format, history: list[Message]) -> Iterator[Figure]:
    """The same as nothing decided, with ``repair=True`` and an interrupted call."""
    group, name = (
        "A call that decides nothing, with repair",
        name_of(format, history),
    )
    broken = [*history[: len(history) // 2], *history[len(history) // 2 + 1 :]]
    session = cold_session(format, VAST, repair=True)
    first = fit_times(session, [request(format, broken)])
    yield of_times(group, f"{name}: the first call", first)
    times = []
    for number in range(GROWN):
        broken = grown(format, broken, number, f"{number} ok")
        times += fit_times(session, [request(format, broken)])
    yield of_times(group, f"{name}: two new small messages", times)


def new_process() -> Iterator[Figure]:
    """A new Python: what importing ullage adds, and a first turn that counts."""
    group = "A new process"
    bare, imported, first = "pass", "import ullage", _FIRST
    spans = {
        code: sorted(
            wall_ms(
                lambda code=code: subprocess.run(
                    [sys.executable, "-c", code], check=True
                )
            )
            for _ in range(5)
        )
        for code in (bare, imported, first)
    }
    middle = {code: times[2] for code, times in spans.items()}
    yield Figure(group, "bare Python", middle[bare], calls=5)
    over = middle[imported] - middle[bare]
    yield Figure(
        group, "import ullage, over bare Python", over, calls=5, target=100
    )
    turn = middle[first] - middle[imported]
    yield Figure(
        group,
        "first Session and fit, vocabulary loaded and used",
        turn,
        calls=5,
    )


_FIRST = """
import ullage
session = ullage.Session("gpt-4.1", limits=ullage.Limits(window_tokens=2_000))
session.fit({"messages": [{"role": "user", "content": "word " * 1_200}]})
"""


# ── decisions ────────────────────────────────────────────────────────────────────────────


def deciding(material: Material) -> Iterator[Figure]:
    """Turns that set something aside, by the store that keeps it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("memory", "sqlite"):
            for what, work in (
                ("cut", _cuts),
                ("prune", _prunes),
                ("emergency", _emergencies),
            ):
                path = Path(folder) / f"{what}.db"
                store: Store = (
                    MemoryStore() if name == "memory" else SqliteStore(path)
                )
                yield work(material, name, store)
                store.close()


_DECIDING = "Turns that decide (OpenAI Chat, 478 messages, 5 MB)"


def _cuts(material: Material, name: str, store: Store) -> Figure:
    history = material.history("openai-chat", 478, 5.0)
    session = session_for("openai-chat", VAST, store=store)
    session.fit(request("openai-chat", history))
    times = []
    for number in range(60):
        output = f"{number}\n{material.logs[number * 1_000 :][:50_000]}"
        history = grown("openai-chat", history, number, output, tool="bash")
        times += fit_times(session, [request("openai-chat", history)])
    return of_times(
        _DECIDING, f"a result of 50 KB cut at first sight, {name}", times, 10
    )


def _prunes(material: Material, name: str, store: Store) -> Figure:
    """The last two messages tip the history over the high-water mark."""
    history = material.history("openai-chat", 478, 5.0)
    tokens = _tokens(history)
    times, edits = [], 0
    for number in range(6):
        session = cold_session(
            "openai-chat",
            int(tokens / 0.75) + 16_000,
            store=store,
            tenant=str(number),
        )
        session.fit(request("openai-chat", history))
        longer = grown(
            "openai-chat", history, number, material.source[:39_000]
        )
        longer = grown(
            "openai-chat", longer, number + 100, material.source[9_000:48_000]
        )
        times += fit_times(session, [request("openai-chat", longer)])
        edits = sum(event.kind == "pruned" for event in session.events)
    return of_times(
        _DECIDING, f"a prune batch of {edits} edits, {name}", times, 40
    )


def _emergencies(material: Material, name: str, store: Store) -> Figure:
    """A policy of the guard alone: everything stays until the limit is near."""
    history = material.history("openai-chat", 478, 5.0)
    guard = Policy(name="guard", guard=partial(emergency))
    limit = int(_tokens(history) * 1.08 / 0.97) + 8_100
    times, kept = [], 0
    for number in range(6):
        session = cold_session(
            "openai-chat", limit, store=store, policy=guard, tenant=str(number)
        )
        session.fit(request("openai-chat", history))
        longer = grown(
            "openai-chat", history, number, material.source[:39_000]
        )
        times += fit_times(session, [request("openai-chat", longer)])
        kept = len(longer) - (
            session.window.summaries[-1].stop
            if session.window.summaries
            else 0
        )
    what = f"emergency: all but the last {kept} messages condensed, {name}"
    return of_times(_DECIDING, what, times)


def _tokens(history: list[Message]) -> int:
    session = session_for("openai-chat", VAST)
    session.fit(request("openai-chat", history))
    return session.window.tokens


# ── drivers and memory ───────────────────────────────────────────────────────────────────


def drivers(material: Material) -> Iterator[Figure]:
    """The same calls through the sync and the async driver."""
    group, history = (
        "Drivers (OpenAI Chat, 478 messages)",
        material.history("openai-chat", 478, 5.0),
    )
    whole, session = (
        request("openai-chat", history),
        session_for("openai-chat", VAST),
    )
    session.fit(whole)
    sync = fit_times(session, [whole] * REPEATS)
    yield of_times(group, "Session.fit, nothing decided", sync)
    yield of_times(
        group, "await AsyncSession.fit, the same", asyncio.run(_awaited(whole))
    )


async def _awaited(whole: dict[str, Any]) -> list[float]:
    limits = Limits(window_tokens=VAST)
    session = AsyncSession(
        MODELS["openai-chat"], limits=limits, format="openai-chat", recall=True
    )
    await session.fit(whole)
    times = []
    for _ in range(REPEATS):
        began = asyncio.get_running_loop().time()
        await session.fit(whole)
        times.append((asyncio.get_running_loop().time() - began) * 1e3)
    return times


def memory(material: Material) -> Iterator[Figure]:
    """What a session holds beyond the caller's own history, by tracemalloc."""
    group = "Memory beyond the caller's own history"
    for format in FORMATS:
        for messages, megabytes in SIZES:
            for foreign in (False, True):
                history = material.history(
                    format, messages, megabytes, foreign=foreign
                )
                name = f"{name_of(format, history)}{', not ASCII' if foreign else ''}"
                held, peak = _held(format, history)
                yield Figure(
                    group, f"{name}, {megabytes:g} MB: held", held, unit="MB"
                )
                yield Figure(
                    group,
                    f"{name}, {megabytes:g} MB: peak of the call",
                    peak,
                    unit="MB",
                )


def _held(format: Format, history: list[Message]) -> tuple[float, float]:
    """Megabytes held after a counted first call, and at its peak."""
    whole = request(format, history)
    tracemalloc.start()
    try:
        session = session_for(format, VAST)
        fit_times(session, [whole], counted=True)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return held / 1e6, peak / 1e6


def _load() -> str:
    """How busy the machine was meanwhile: with more than its cores, times are too high."""
    return (
        f"{os.getloadavg()[0]:.1f} processes wanted them"
        if hasattr(os, "getloadavg")
        else ""
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="lab.bench.turns", description=__doc__
    )
    parser.add_argument(
        "--json", action="store_true", help="print the figures as JSON"
    )
    parser.add_argument(
        "--new", action="store_true", help="only the first table, in a minute"
    )
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="count processor time of calls: for a busy machine",
    )
    asked = parser.parse_args()
    if asked.cpu:
        _Clock.now = time.thread_time
    with redirect_stderr(
        StringIO()
    ):  # a document wants its batches told there
        figures = list(
            new_work(Material()) if asked.new else measure()
        )  # no spinner: its thread would hold up the calls measured
    if asked.json:
        print(msgspec.json.format(msgspec.json.encode(figures)).decode())
        return
    console = Console(width=max(Console().width, 110))
    console.print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {_load()}\n"
    )
    for group in dict.fromkeys(figure.group for figure in figures):
        console.print(
            table(
                group, [figure for figure in figures if figure.group == group]
            )
        )


if __name__ == "__main__":
    main()
