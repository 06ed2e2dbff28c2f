"""Many workers on one PostgreSQL, killed throughout: do they send what one worker sends?

    python -m lab.fleet --conversations 10000 --workers 8

Each turn of each conversation goes to any worker, while a worker is killed (SIGKILL) every so
often and another takes its place; a turn that was under way is asked for again, as a client
would. Of every view the digests of its messages are compared with those of one worker that
works alone, in memory. At the end of each conversation everything that was said is looked for:
in the view, or behind the refs that it shows. The workers' clean-up runs beside all of it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from random import Random
from typing import Any, NamedTuple, cast

import click
import msgspec

from lab.fuzz.tally import be_quiet
from lab.fuzz.trial import lost
from tests.stores.postgres.server import Server
from ullage import Limits, Session, Usage
from ullage.session.sessions import Sessions
from ullage.stores import (
    DAY_S,
    BoundedStore,
    Bounds,
    MemoryStore,
    PostgresStore,
    Store,
)

_MODEL, _WINDOW = "claude-sonnet-4-5", 6_000
_TURNS = 14
_BOUNDS = Bounds(older_than_s=30 * DAY_S, every_s=5, limit=50)


class Turn(NamedTuple):
    """A turn that is asked of a worker."""

    conversation: int
    number: int


class Sent(NamedTuple):
    """What a worker sent for it: a digest of each message, and how many texts were lost."""

    turn: Turn
    digests: tuple[bytes, ...]
    lost: int
    took_s: float


class Outcome(NamedTuple):
    """What came of a run.

    Attributes:
        turns: how many turns were answered.
        kills: how many workers were killed.
        differ: turns whose view was not that of one worker alone.
        breaks: turns whose view did not begin with the one before, and those of one worker.
        lost: texts that are neither in a last view nor behind its refs.
        deadlocks: as the server counts them.
        took_s: how long each turn took.
    """

    turns: int
    kills: int
    differ: int
    breaks: tuple[int, int]
    lost: int
    deadlocks: int
    took_s: list[float]


def messages_of(conversation: int, turns: int) -> list[dict[str, Any]]:
    """The beginning of a conversation: a user's task, then a call and its result for each turn."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Task {conversation}: mend it."}
    ]
    for n in range(turns):
        random = Random(f"{conversation}/{n}")
        call = {
            "type": "tool_use",
            "id": f"c{n}",
            "name": "read",
            "input": {"path": f"{n}.py"},
        }
        text = "".join(
            f"line {at} of {conversation}.{n}: {random.getrandbits(40)}\n"
            for at in range(random.randrange(4, 120))
        )
        result = {
            "type": "tool_result",
            "tool_use_id": f"c{n}",
            "content": text,
        }
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    return messages


def answer(session: Session, turn: Turn) -> Sent:
    """One turn of a worker: a view, and the report of its reply."""
    began, messages = (
        time.perf_counter(),
        messages_of(turn.conversation, turn.number),
    )
    view = session.fit(
        {"model": _MODEL, "max_tokens": 1_000, "messages": messages}
    )
    view.observe(
        Usage(fresh_tokens=int(session.window.tokens * 1.1), output_tokens=20)
    )
    took_s = time.perf_counter() - began
    digests = tuple(
        blake2b(msgspec.json.encode(message), digest_size=8).digest()
        for message in view["messages"]
    )
    missing = (
        lost(session, messages, view["messages"])
        if turn.number == _TURNS - 1
        else ()
    )
    return Sent(turn, digests, sum(1 for _ in missing), took_s)


def opened(store: Store, most: int) -> Sessions:
    """The sessions of one worker."""
    limits = Limits(window_tokens=_WINDOW)
    return Sessions(
        _MODEL,
        store=store,
        limits=limits,
        format="anthropic",
        recall=True,
        most=most,
    )


def work(url: str, asked: Connection) -> None:
    """A worker: answers turns until there are no more."""
    be_quiet()
    sessions = opened(
        BoundedStore(PostgresStore(url, timeout_s=30), _BOUNDS), most=50
    )
    while (turn := asked.recv()) is not None:
        asked.send(answer(sessions.of(str(turn.conversation)), turn))
    os._exit(0)


class Fleet:
    """Worker processes, each with at most one turn under way.

    Args:
        url: the server's.
        workers: how many.
    """

    def __init__(self, url: str, workers: int) -> None:
        self._url, self._context = (
            url,
            multiprocessing.get_context("forkserver"),
        )
        self._context.set_forkserver_preload(
            ["lab.fuzz.trial", "ullage.stores.postgres.store"]
        )
        self.under_way: dict[Connection, Turn | None] = {}
        self._processes: dict[Connection, Any] = {}
        for _ in range(workers):
            self._start()

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=work, args=(self._url, theirs), daemon=True
        )
        process.start()
        theirs.close()
        self._processes[ours], self.under_way[ours] = process, None

    def give(self, turns: list[Turn], random: Random) -> None:
        """Give turns to workers that have none, any to any."""
        idle = [
            asked for asked, turn in self.under_way.items() if turn is None
        ]
        while idle and turns:
            asked = idle.pop(random.randrange(len(idle)))
            self.under_way[asked] = turn = turns.pop(
                random.randrange(len(turns))
            )
            with suppress(OSError):  # it is dead: `answers` will see
                asked.send(turn)

    def kill(self, random: Random) -> None:
        """Kill a worker, one that has a turn under way if there is any."""
        busy = [
            asked for asked, turn in self.under_way.items() if turn is not None
        ]
        killed = random.choice(busy or list(self.under_way))
        os.kill(self._processes[killed].pid, signal.SIGKILL)

    def answers(self, turns: list[Turn]) -> list[Sent]:
        """What came meanwhile; the turns of workers that died are given back."""
        found: list[Sent] = []
        for one in wait(list(self.under_way), timeout=0.05):
            asked = cast("Connection[Any, Any]", one)
            turn = self.under_way[asked]
            try:
                found.append(asked.recv())
                self.under_way[asked] = None
            except (EOFError, OSError):
                self._processes.pop(asked).join()
                del self.under_way[asked]
                turns += [turn] if turn is not None else []
                self._start()
        return found

    def end(self) -> None:
        """Let the workers go."""
        for asked, process in self._processes.items():
            with suppress(OSError):
                asked.send(None)
            process.join()


def run(
    conversations: int, workers: int, kill_every: float, seed: int
) -> Outcome:
    """All turns of so many conversations, by a fleet and by one worker alone."""
    server = Server()
    try:
        PostgresStore(server.url).close()
        views, kills = _answered(
            server.url, conversations, workers, kill_every, Random(seed)
        )
        with server.connect() as db:
            (deadlocks,) = db.execute(
                "SELECT sum(deadlocks) FROM pg_stat_database"
            ).fetchone()
    finally:
        server.stop()
    return _judged(views, conversations, kills, int(deadlocks))


def _answered(
    url: str,
    conversations: int,
    workers: int,
    kill_every: float,
    random: Random,
) -> tuple[dict[Turn, Sent], int]:
    """What the fleet sent, and how many of it were killed."""
    fleet, kills, views = Fleet(url, workers), 0, dict[Turn, Sent]()
    turns = [Turn(n, 0) for n in range(conversations)]
    while len(views) < conversations * _TURNS:
        fleet.give(turns, random)
        for sent in fleet.answers(turns):
            views[sent.turn] = sent
            if sent.turn.number + 1 < _TURNS:
                turns.append(
                    Turn(sent.turn.conversation, sent.turn.number + 1)
                )
        if len(views) >= (kills + 1) * kill_every:
            fleet.kill(random)
            kills += 1
    fleet.end()
    return views, kills


def _judged(
    views: dict[Turn, Sent], conversations: int, kills: int, deadlocks: int
) -> Outcome:
    count = Counter[str]()
    for conversation in range(conversations):
        sessions = opened(MemoryStore(), most=1)
        turns = [Turn(conversation, number) for number in range(_TURNS)]
        alone = [answer(sessions.of("one"), turn).digests for turn in turns]
        fleet = [views[turn].digests for turn in turns]
        count["differ"] += sum(
            ours != theirs for ours, theirs in zip(alone, fleet, strict=True)
        )
        count["alone"] += breaks(alone)
        count["fleet"] += breaks(fleet)
        count["lost"] += views[turns[-1]].lost
    both = (count["fleet"], count["alone"])
    took_s = [sent.took_s for sent in views.values()]
    return Outcome(
        len(views),
        kills,
        count["differ"],
        both,
        count["lost"],
        deadlocks,
        took_s,
    )


def breaks(views: Sequence[tuple[bytes, ...]]) -> int:
    """Views that do not begin with the one before."""
    return sum(new[: len(old)] != old for old, new in pairwise(views))


@click.command()
@click.option("--conversations", default=10_000, show_default=True)
@click.option("--workers", default=8, show_default=True)
@click.option(
    "--kill-every",
    default=40,
    show_default=True,
    help="Kill one every so many turns.",
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    help="Which worker gets what, and dies.",
)
def main(
    conversations: int, workers: int, kill_every: float, seed: int
) -> None:
    """Run it; the status is 1 if anything was wrong."""
    be_quiet()
    began = time.monotonic()
    came = run(conversations, workers, kill_every, seed)
    took = sorted(came.took_s)
    click.echo(
        f"{conversations:,} conversations, {came.turns:,} turns, {workers} workers, "
        f"{came.kills:,} killed, {time.monotonic() - began:,.0f} s\n"
        f"{came.differ:>8,}  views differ from one worker's\n"
        f"{came.breaks[0]:>8,}  prefix breaks, {came.breaks[1]:,} of one worker\n"
        f"{came.lost:>8,}  texts neither shown nor opened by a ref\n"
        f"{came.deadlocks:>8,}  deadlocks\n"
        f"{took[len(took) // 2] * 1e3:>8,.1f}  ms a turn, the median; the longest "
        f"{took[-1] * 1e3:,.0f}"
    )
    raise SystemExit(bool(came.differ or came.lost or came.deadlocks))


if __name__ == "__main__":
    main()
