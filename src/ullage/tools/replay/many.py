"""Many runs, by any engine, with few in memory; what is finished can be kept.

A kept replay is one line of JSON: the key of what was done, and what came out. The key holds
the run's content, so that a file that has changed, or another one of the same name, is done
again; and the version of ullage, so that figures of two versions are never mixed.
"""

from __future__ import annotations

import hashlib
import logging
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ullage import __version__
from ullage.core.errors import FormatError
from ullage.tools.replay.calls import OWN_WINDOW, Room, window_of
from ullage.tools.replay.cost.prices import ProfileChoice as WantedProfile
from ullage.tools.replay.cost.prices import profiles_for
from ullage.tools.replay.engines import Engine, WorkerDied
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.policies import key_of
from ullage.tools.replay.readers import Damage, Run
from ullage.tools.replay.report import DrawnReplay, packed
from ullage.tools.replay.run import (
    Replayed,
    WatchOf,
    replay_run,
    watch_session,
)
from ullage.tools.replay.tracer import Tracer

RunSource: TypeAlias = Iterator[tuple[str, Run, int]]
"""Each run with the name of its file, and how many bytes were read by then."""
Outcome: TypeAlias = Replayed | DrawnReplay | Damage
Outcomes: TypeAlias = Iterator[tuple[str, Outcome, int]]
"""What came out of each, with the name of its file, and how far in the files its run was."""
Try: TypeAlias = tuple[str, Room]
"""A policy, and the room it is tried in."""


class Job(Struct, frozen=True):
    """The settings that all runs of a replay share.

    Attributes:
        profiles: whose caches and prices to reckon with; the first is the one asked for.
        common: values that are no evidence, sorted (`ullage.tools.replay.evidence.common`).
        draws: whether the turns are wanted too; what was kept before comes without them.
        user_tools: the runs' own tools by which the user answers.
    """

    profiles: tuple[WantedProfile, ...]
    common: tuple[str, ...] = ()
    draws: bool = False
    user_tools: tuple[str, ...] = ()


Replay: TypeAlias = Callable[
    [Run, int, Job, str], tuple[Replayed, Tracer | None]
]
"""Replays a run in a window of so many tokens under a policy; its turns too, if they are wanted."""


def replay_session(
    run: Run,
    window_tokens: int,
    job: Job,
    policy: str,
    watch_of: WatchOf = watch_session,
) -> tuple[Replayed, Tracer | None]:
    """The run as a session under a preset would have kept it; its views watched by this."""
    tracer = Tracer(Judge().text) if job.draws else None
    replayed = replay_run(
        run,
        window_tokens,
        profiles=profiles_for(job.profiles, run),
        policy=policy,
        common=frozenset(job.common),
        watch_of=watch_of,
        user_tools=job.user_tools,
        on_view=tracer,
    )
    return replayed, tracer


class Replayer(Struct, frozen=True):
    """How a run is replayed, and the type its outcome is stored as.

    Attributes:
        replay: a function of a module, since other processes get it by its name.
        outcome: the type of its outcome.
        name: part of the key of what is kept.
    """

    replay: Replay = replay_session
    outcome: type[Replayed] = Replayed
    name: str = "session"


SESSIONS = Replayer()
"""Sessions under presets: what a user replays."""


class _Line(Struct, frozen=True):
    key: str
    replayed: msgspec.Raw


class ResultFile:
    """The replays that are done, in a file of JSON Lines; without a path none is stored.

    A line cut short by a crash counts as not done.
    """

    def __init__(
        self, path: Path | None, outcome: type[Replayed] = Replayed
    ) -> None:
        self._path = path
        self._done = dict[str, Replayed]()
        content = b""
        if path is not None:
            path.touch()
            content = path.read_bytes()
        for line in content.splitlines():
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                entry = msgspec.json.decode(line, type=_Line)
                self._done[entry.key] = msgspec.json.decode(
                    entry.replayed, type=outcome
                )
        if path is not None and content and not content.endswith(b"\n"):
            _append(path, b"\n")

    def get(self, key: str) -> Replayed | None:
        """The stored replay of a key, or None."""
        return self._done.get(key)

    def add(self, key: str, replayed: Replayed) -> None:
        """Store a replay under its key; it is on disk when this returns."""
        if self._path is not None:
            line = _Line(key, msgspec.Raw(msgspec.json.encode(replayed)))
            _append(self._path, msgspec.json.encode(line) + b"\n")


def _append(path: Path, line: bytes) -> None:
    with path.open("ab") as file:
        file.write(line)


class _Unit(Struct, frozen=True):
    """A run to be replayed in one room under one policy."""

    file: str
    run: Run
    policy: str
    room: Room
    digest: str


class _Tag(Struct, frozen=True):
    """The key of a unit in the result file, and where its run was read."""

    key: str
    file: str
    line: int
    read_so_far: int


def replay_all(
    runs: RunSource,
    tries: tuple[Try, ...],
    job: Job,
    engine: Engine,
    results: ResultFile,
    replayer: Replayer = SESSIONS,
) -> Outcomes:
    """Replay every run with every policy in every room, in any order.

    A run that cannot be replayed is a `Damage` with the line it begins at.
    """
    finished = deque[tuple[str, Outcome, int]]()

    def units() -> Iterator[tuple[_Tag, _Unit]]:
        for name, run, read_bytes in runs:
            digest = _digest((run.id, run.format, run.request, run.messages))
            run_key = _digest(
                (__version__, replayer.name, digest, replace(job, draws=False))
            )
            for policy, room in tries:
                key = f"{run_key} {key_of(policy)} {room}"
                if (earlier := results.get(key)) is not None:
                    finished.append((name, earlier, read_bytes))
                else:
                    tag = _Tag(key, name, run.line, read_bytes)
                    yield tag, _Unit(name, run, policy, room, digest)

    for tag, outcome in engine.map(partial(_outcome, replayer, job), units()):
        while finished:
            yield finished.popleft()
        yield tag.file, _store_result(tag, outcome, results), tag.read_so_far
    yield from finished


def _store_result(
    tag: _Tag, outcome: Outcome | WorkerDied, results: ResultFile
) -> Outcome:
    """What came out, kept if it is a replay."""
    if isinstance(outcome, WorkerDied):
        problem = f"a run that cannot be replayed: its worker died, {outcome.tries} times (memory?)"
        return Damage(tag.file, tag.line, problem)
    if not isinstance(outcome, Damage):
        results.add(
            tag.key,
            outcome.replayed if isinstance(outcome, DrawnReplay) else outcome,
        )
    return outcome


@contextmanager
def _quiet_log() -> Iterator[None]:
    """Keep what sessions log out of the terminal: the tables tell of it, and a bar is drawn.

    Only while this lasts: the process may be another program's, which has a log of its own.
    """
    log = logging.getLogger("ullage")
    silence = logging.NullHandler()
    log.addHandler(silence)
    try:
        yield
    finally:
        log.removeHandler(silence)


def _outcome(replayer: Replayer, job: Job, unit: _Unit) -> Outcome:
    name = unit.file
    run = unit.run
    policy = unit.policy
    room = unit.room
    try:
        with _quiet_log():
            replayed, tracer = replayer.replay(
                run, window_of(run, room), job, policy
            )
    except FormatError as error:
        return Damage(
            name,
            run.line,
            f"a run that cannot be replayed: {error.where}: {error.rule}",
        )
    except (AttributeError, KeyError, TypeError) as error:
        reason = f"a message is not in the shape of {run.format} ({type(error).__name__})"
        return Damage(
            name, run.line, f"a run that cannot be replayed: {reason}"
        )
    except Exception as error:  # noqa: BLE001 - a defect of ours must not cost the other runs
        place = traceback.extract_tb(error.__traceback__)[-1]
        location = (
            f"{type(error).__name__} in {place.name}, line {place.lineno}"
        )
        return Damage(
            name,
            run.line,
            f"ullage failed on a run under {policy}: {location}",
        )
    share = room if isinstance(room, float) else None
    is_own = room == OWN_WINDOW
    replayed = replace(
        replayed, share=share, is_own=is_own, digest=unit.digest
    )
    if tracer is None:
        return replayed
    story = packed(tracer.story(run))
    trace = packed(tracer.trace(policy, share))
    return DrawnReplay(
        replayed=replayed, line=run.line, story=story, trace=trace
    )


def _digest(value: object) -> str:
    """What distinguishes a value from others."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate: still a digest of its own
        encoded = msgspec.msgpack.encode(
            repr(value).encode("utf-8", "surrogatepass")
        )
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()
