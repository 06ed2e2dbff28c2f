"""Where the work of a replay is done: here, in processes of this machine, or on a Ray cluster.

An engine maps a function over units and yields what comes of them as it comes. The units are
drawn only as there is room for them, so that few are in memory; a worker that dies is replaced
and its unit given to another. Nothing else of a replay knows where it runs.

    with open_engine("processes", 8) as engine:
        for tag, result in engine.map(function, ((tag, unit) for ...)):
            ...
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from ullage.tools.replay.engines._engine import (
    TRIES,
    Engine,
    LocalEngine,
    WorkerDied,
)
from ullage.tools.replay.engines._processes import processes

__all__ = [
    "NAMES",
    "TRIES",
    "Engine",
    "LocalEngine",
    "WorkerDied",
    "open_engine",
]

NAMES = ("processes", "ray")
"""The engines there are. One process is this one."""


def open_engine(
    name: str, workers: int | None = None
) -> AbstractContextManager[Engine]:
    """The engine of a name, until the context ends. An exception in it ends its workers at once.

    Args:
        name: one of `NAMES`.
        workers: how many units are under way at once; None: one for each core there is.

    Raises:
        ConfigError: what the engine needs is not installed, or no cluster is there.
    """
    if name == "ray":
        from ullage.tools.replay.engines._ray import ray_cluster

        return ray_cluster(workers)
    return processes(workers)
