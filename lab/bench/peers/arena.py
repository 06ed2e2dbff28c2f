"""All contestants over some runs, a run at a time, each peer in one process throughout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from lab.bench.peers.contestants import (
    Contestant,
    Everything,
    Own,
    Peer,
    Recency,
)
from lab.bench.peers.judging import Case, Make, Score, case_of, score
from lab.bench.peers.keeping import Keep, keep
from lab.bench.peers.process import PeerProcess
from ullage.tools.replay.cost.prices import Profile
from ullage.tools.replay.readers import Run

OURS = ("everything", "recency", "ullage")


class Entry(Struct, frozen=True):
    """A policy of a peer that is installed.

    Attributes:
        peer: the peer.
        policy: as its adapter knows it.
        python: the interpreter of its environment.
        adapter: the script that speaks for it.
    """

    peer: str
    policy: str
    python: Path
    adapter: Path

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"{self.peer} {self.policy}"


class Arena:
    """Scores runs. A context manager: the processes end with it.

    Attributes:
        versions: of what each peer told when it began, by distribution.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        profiles: Sequence[Profile],
        *,
        seconds: float,
        run_seconds: float,
        hash_seed: str = "0",
    ) -> None:
        """Open the arena.

        Args:
            entries: the peers' policies.
            profiles: whose caches and prices to reckon with.
            seconds: how long an answer of a peer may take.
            run_seconds: how long its library may take for all calls of a run.
            hash_seed: PYTHONHASHSEED of the peers' processes.
        """
        self.entries, self.profiles, self.hash_seed = (
            entries,
            profiles,
            hash_seed,
        )
        self.seconds, self.run_seconds = seconds, run_seconds
        self.versions: dict[str, str] = {}
        self._open = ExitStack()
        self._processes: dict[Path, PeerProcess] = {}

    def __enter__(self) -> Arena:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def scores(
        self, run: Run, windows: Sequence[int], common: Set[str]
    ) -> Iterator[tuple[int, str, Score]]:
        """What every contestant makes of a run, window by window."""
        case = case_of(run, common)
        for window in windows:
            for name in OURS:
                made = score(case, window, name, _OWN[name], self.profiles)
                yield window, name, made
            for entry in self.entries:
                yield window, entry.name, self._of_peer(case, window, entry)

    def keeps(
        self, run: Run, windows: Sequence[int], common: Set[str]
    ) -> Iterator[tuple[int, str, Keep]]:
        """What every contestant keeps whole of a run, and whether it does so twice."""
        case = case_of(run, common)
        for window in windows:
            for name in OURS:
                yield window, name, keep(case, window, _OWN[name])
            for entry in self.entries:
                yield (
                    window,
                    entry.name,
                    keep(case, window, self._maker(entry, is_fresh=True)),
                )

    def _of_peer(self, case: Case, window: int, entry: Entry) -> Score:
        made = score(
            case, window, entry.name, self._maker(entry), self.profiles
        )
        if made.trouble:
            self._drop(entry)
        return made

    def _maker(self, entry: Entry, *, is_fresh: bool = False) -> Make:
        def make(case: Case, window_tokens: int) -> Contestant:
            if is_fresh:
                self._drop(entry)
            process = self._process(entry)
            tools = case.request.get("tools", [])
            budget = case.budget_tokens(window_tokens)
            peer = Peer(
                process,
                entry.policy,
                budget,
                tools,
                run_seconds=self.run_seconds,
            )
            self.versions |= peer.versions
            return peer

        return make

    def _process(self, entry: Entry) -> PeerProcess:
        if entry.adapter not in self._processes:
            process = PeerProcess(
                entry.python,
                entry.adapter,
                seconds=self.seconds,
                hash_seed=self.hash_seed,
            )
            self._processes[entry.adapter] = self._open.enter_context(process)
        return self._processes[entry.adapter]

    def _drop(self, entry: Entry) -> None:
        """Begin with a new process next time: this one is in nobody knows which state."""
        process = self._processes.pop(entry.adapter, None)
        if process is not None:
            process.end()


def _own(case: Case, window_tokens: int) -> Contestant:
    return Own(case.run, window_tokens, case.judge)


_OWN: dict[str, Make] = {
    "everything": lambda case, window_tokens: Everything(),
    "recency": lambda case, window_tokens: Recency(),
    "ullage": _own,
}
