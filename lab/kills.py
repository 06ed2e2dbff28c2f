"""Processes killed in the middle of their work: what was there before is there after.

    python -m lab.kills --kills 2000        or: make kills KILLS=2000

A process is forked, told to work, and killed with SIGKILL: before each of its SQL statements in
turn, then at moments drawn by chance. Whoever opens the file next must find

    fit          the view of before byte for byte; a legal view now, from which all is read back
    clean-up     the same; and of what nobody needed each is whole or gone
    compaction   as fit
    migration    every message of a file of before, in the old tables or in the new ones

The moments are drawn from a seed, which is printed; the machine decides where they fall.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from random import Random
from secrets import randbits
from typing import Any, NamedTuple

import click

from lab.fuzz.tally import be_quiet
from lab.fuzz.trial import lost
from lab.guard import loop
from lab.returned import problems
from tests.stores.killed import dies
from ullage import Limits, Session, SqliteStore, Usage
from ullage.core.errors import RefNotFound
from ullage.core.history.canon import ref_of
from ullage.core.history.ledger import Ledger
from ullage.core.values.effects import Output
from ullage.documents.conversation import ConversationStore
from ullage.stores import DAY_S, Bounds, every_ref

_MODEL = "claude-sonnet-4-5"
_BEGAN_S, _LATER_S = 1_800_000_000.0, 1_800_000_000.0 + 40 * DAY_S
_OLD = Bounds(older_than_s=30 * DAY_S, limit=3)
_NEVER = 10**9
_MOMENTS = 12
"""So many kills by chance behind those at each statement."""


class Work(NamedTuple):
    """One kind of work.

    Attributes:
        name: what it is called.
        prepare: makes the files before it; what it returns is given to the others.
        act: does it, in the folder of these files.
        check: what is wrong with the files after it.
    """

    name: str
    prepare: Callable[[Path, Random], Any]
    act: Callable[[Path, Any], object]
    check: Callable[[Path, Any], Iterator[str]]


# ── sessions ─────────────────────────────────────────────────────────────────────────────


class _Talk(NamedTuple):
    """A conversation: its messages, the window, and the newest view of before as text."""

    messages: list[dict[str, Any]]
    window_tokens: int
    before: str
    litter: list[str]


def _session(
    folder: Path, window_tokens: int, now_s: float = _BEGAN_S
) -> Session:
    store = SqliteStore(folder / "u.db", clock=lambda: now_s)
    limits = Limits(window_tokens=window_tokens)
    return Session(
        _MODEL, limits=limits, format="anthropic", recall=True, store=store
    )


def _asked(messages: list[dict[str, Any]], back: int = 0) -> dict[str, Any]:
    """The request, or one of ``back`` turns before."""
    return {
        "model": _MODEL,
        "max_tokens": 1_000,
        "messages": messages[: len(messages) - 2 * back],
    }


def _talk(folder: Path, random: Random) -> _Talk:
    """All of a conversation but its last turn, in which edits are made; and litter."""
    messages, window_tokens = (
        loop(24, thought=False),
        random.choice((6, 8, 10)) * 1_000,
    )
    busy = _busy(messages, window_tokens)
    messages = messages[: random.choice(busy)]
    session = _session(folder, window_tokens)
    for back in range(len(messages) // 2, 0, -1):
        view = session.fit(_asked(messages, back))
        view.observe(
            Usage(fresh_tokens=session.window.tokens, output_tokens=20)
        )
    litter = [
        f"litter {number} " * random.randint(1, 900) for number in range(8)
    ]
    session.store.put("", [Output(ref_of(text), text) for text in litter])
    session.close()
    return _Talk(messages, window_tokens, json.dumps(view), litter)


def _busy(messages: list[dict[str, Any]], window_tokens: int) -> list[int]:
    """The lengths at which something is set aside."""
    found, limits = list[int](), Limits(window_tokens=window_tokens)
    session = Session(_MODEL, limits=limits, format="anthropic", recall=True)
    for back in range(len(messages) // 2, -1, -1):
        told = len(session.events)
        view = session.fit(_asked(messages, back))
        is_busy = any(event.ref for event in session.events[told:])
        view.observe(
            Usage(fresh_tokens=session.window.tokens, output_tokens=20)
        )
        found += [len(messages) - 2 * back] if is_busy else []
    return found


def _used_later(folder: Path, random: Random) -> _Talk:
    """The same, gone on with after a long time: its ledger is live, and the litter is old."""
    talk = _talk(folder, random)
    session = _session(folder, talk.window_tokens, _LATER_S)
    session.fit(_asked(talk.messages, 1))
    session.close()
    return talk


def _fit(folder: Path, talk: _Talk) -> None:
    _session(folder, talk.window_tokens).fit(_asked(talk.messages))


def _compact(folder: Path, talk: _Talk) -> None:
    _session(folder, talk.window_tokens).compact(_asked(talk.messages))


def _collect(folder: Path, talk: _Talk) -> None:
    store, cursor = _session(folder, talk.window_tokens, _LATER_S).store, None
    while True:
        step = store.collect(None, _OLD, cursor)
        cursor = None if step is None else step.cursor
        if cursor is None:
            return


def _check_store(folder: Path) -> Iterator[str]:
    """What the ledger names is there, without the history."""
    with closing(sqlite3.connect(folder / "u.db")) as db:
        keys = [
            key for (key,) in db.execute("SELECT DISTINCT key FROM records")
        ]
    with closing(SqliteStore(folder / "u.db")) as store:
        entries = Ledger().merged(store.find("", keys))[0].entries.values()
        named = {
            getattr(e, "ref", None)
            for each in entries
            for b in each.batches
            for e in b.edits
        }
        missing = named - {None, *every_ref(store, "")}
    yield from (f"{ref}, which the ledger names, is lost" for ref in missing)


def _check_talk(folder: Path, talk: _Talk) -> Iterator[str]:
    yield from _check_store(folder)
    session = _session(folder, talk.window_tokens, _LATER_S)
    if json.dumps(session.fit(_asked(talk.messages, 1))) != talk.before:
        yield "the view of before is another"
    view = session.fit(_asked(talk.messages))
    yield from (
        f"{problem.rule} is broken" for problem in problems("anthropic", view)
    )
    yield from (
        f"{len(text)} characters are lost"
        for text in lost(session, talk.messages, view["messages"])
    )
    held = set(every_ref(session.store, ""))
    for text in talk.litter:
        with suppress(RefNotFound):
            if session.store.get("", ref_of(text)).text != text:
                yield "what nobody needed is there in part"
            held.discard(ref_of(text))
    session.close()


def _check_litter(folder: Path, talk: _Talk) -> Iterator[str]:
    """As `_check_talk`; but for a clean-up all litter is there."""
    with closing(SqliteStore(folder / "u.db")) as store:
        gone = {ref_of(text) for text in talk.litter} - set(
            every_ref(store, "")
        )
    yield from (f"{ref} is gone" for ref in gone)
    yield from _check_talk(folder, talk)


# ── migrations ───────────────────────────────────────────────────────────────────────────

_SERVICE = """
CREATE TABLE Messages (
    Id TEXT PRIMARY KEY, SessionId TEXT NOT NULL, Role TEXT NOT NULL, Content TEXT NOT NULL,
    ToolCallsJson TEXT, ToolCallId TEXT, CreatedAt TEXT NOT NULL
);
CREATE TABLE Sessions (Id TEXT PRIMARY KEY, Title TEXT);
"""
"""The tables of a chat service that knows nothing of compaction."""


def _service(folder: Path, random: Random) -> list[str]:
    texts = [
        f"message {number} " * random.randint(1, 300)
        for number in range(random.randint(2, 9))
    ]
    with closing(sqlite3.connect(folder / "chat.db")) as db:
        db.executescript(_SERVICE)
        for number, text in enumerate(texts):
            role = "assistant" if number % 2 else "user"
            row = (
                f"{number:03}",
                "s",
                role,
                text,
                f"2026-01-01T00:00:{number:02}",
            )
            db.execute(
                "INSERT INTO Messages (Id, SessionId, Role, Content, CreatedAt) "
                "VALUES (?, ?, ?, ?, ?)",
                row,
            )
        db.commit()
    return texts


def _migrate(folder: Path, texts: list[str]) -> None:
    ConversationStore(folder / "chat.db")


def _check_service(folder: Path, texts: list[str]) -> Iterator[str]:
    with closing(sqlite3.connect(folder / "chat.db")) as db:
        rows = db.execute(
            "SELECT Content FROM Messages ORDER BY Id"
        ).fetchall()
    if [text for (text,) in rows] != texts:
        yield "the service reads other messages"
    loaded = ConversationStore(folder / "chat.db").load("s")
    if [one.message["content"] for one in loaded] != texts:
        yield "other messages are loaded"


WORKS = (
    Work("fit", _talk, _fit, _check_litter),
    Work("clean-up", _used_later, _collect, _check_talk),
    Work("compaction", _talk, _compact, _check_litter),
    Work("migration", _service, _migrate, _check_service),
)


# ── killing ──────────────────────────────────────────────────────────────────────────────


def survived(
    work: Work, seed: int, *, every: int = 1, moments: int = _MOMENTS
) -> tuple[int, list[str]]:
    """Kill one work before every so many of its statements, and at so many moments.

    Returns:
        How often it was killed, and what was wrong after that.
    """
    random, wrong = Random(f"{seed}/{work.name}"), list[str]()
    with tempfile.TemporaryDirectory() as place:
        before, folder = Path(place) / "before", Path(place) / "killed"
        before.mkdir()
        made = work.prepare(before, random)
        act = partial(work.act, folder, made)

        def killed(by: Callable[[], bool]) -> bool:
            shutil.copytree(before, folder)
            was_killed = by()
            wrong.extend(
                f"seed {seed}, {work.name}: {what}"
                for what in work.check(folder, made)
            )
            shutil.rmtree(folder)
            return was_killed

        kills = 0
        while killed(partial(dies, act, kills * every)):
            kills += 1
        start = time.perf_counter()
        killed(partial(dies, act, _NEVER))
        takes_s = time.perf_counter() - start
        for _ in range(moments):
            kills += killed(partial(_dies_in, act, random.random() * takes_s))
    return kills, wrong


def _dies_in(work: Callable[[], object], delay_s: float) -> bool:
    """Run ``work`` in a child that is killed after a while; whether it had not ended before."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    time.sleep(delay_s)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@click.command()
@click.option(
    "--kills", default=2_000, show_default=True, help="Stop after so many."
)
@click.option(
    "--seed",
    type=int,
    help="Of the conversations; without it one that nobody chose.",
)
def main(kills: int, seed: int | None) -> None:
    """Kill processes in the middle of their work; the status is 1 if anything was wrong."""
    be_quiet()
    seed = randbits(32) if seed is None else seed
    counts, wrong = Counter[str](), list[str]()
    for number in range(seed, seed + kills):
        if counts.total() >= kills or wrong:
            break
        for work in WORKS:
            count, found = survived(work, number)
            counts[work.name] += count
            wrong += found
    for name, count in counts.items():
        click.echo(f"{count:>7,}  killed in a {name}")
    click.echo(
        f"{counts.total():>7,}  kills from seed {seed} on, {len(wrong)} wrong"
    )
    for what in wrong[:20]:
        click.echo(what)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
