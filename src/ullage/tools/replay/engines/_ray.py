"""Units done by a Ray cluster: the one this process is connected to, else that of ``RAY_ADDRESS``,
else one that is started here for as long.

Ray gives the unit of a worker that died, or of a machine that went, to another. The nodes need
the same version of ullage; one that has another says so, for its figures would be others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from ullage import __version__
from ullage.core.errors import ConfigError
from ullage.core.installing import install_remedy
from ullage.core.tokens.exact import is_installed
from ullage.tools.replay.engines._engine import TRIES, Engine, WorkerDied

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


@contextmanager
def ray_cluster(workers: int | None) -> Iterator[Engine]:
    """The cluster, with so many units under way at once; None: as many as it has cores.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers at ``RAY_ADDRESS``.
    """
    # Ray reports its use to its makers unless this is set.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "--engine ray", "Ray is not installed", f"{install_remedy('ray')}."
        ) from None
    is_connected = ray.is_initialized()
    if not is_connected:
        _connect(ray, workers)
    try:
        cores = int(ray.cluster_resources().get("CPU", 1))
        yield _Ray(ray, workers or max(cores, 1))
    finally:
        if not is_connected:
            ray.shutdown()


def _connect(ray: Any, workers: int | None) -> None:
    is_own = not os.environ.get("RAY_ADDRESS")
    options = (
        {"num_cpus": workers, "include_dashboard": False} if is_own else {}
    )
    try:
        ray.init(log_to_driver=False, configure_logging=False, **options)
    except ConnectionError:
        reason = "no Ray cluster answers at the address in RAY_ADDRESS"
        raise ConfigError(
            "--engine ray", reason, "Start one, or unset it to use one here."
        ) from None


class _Ray:
    """See `Engine`."""

    def __init__(self, ray: Any, workers: int) -> None:
        self._ray = ray
        # Each worker has one unit under way and the next one waiting.
        self._most = 2 * workers

    def map(
        self, function: Callable[[U], R], units: Iterable[tuple[T, U]]
    ) -> Iterator[tuple[T, R | WorkerDied]]:
        """See `Engine.map`."""
        here = partial(_checked_call, function, _figures_of())
        remote = self._ray.remote(max_retries=TRIES - 1, num_cpus=1)(
            _named(here)
        )
        units = iter(units)
        running: dict[Any, T] = {}
        while True:
            for tag, unit in islice(units, self._most - len(running)):
                running[remote.remote(unit)] = tag
            if not running:
                return
            (ready,), _ = self._ray.wait(list(running), num_returns=1)
            yield running.pop(ready), self._result(ready)

    def _result(self, ready: Any) -> Any:
        failures = self._ray.exceptions
        try:
            return self._ray.get(ready)
        except failures.RayTaskError as error:  # the function raised it
            raise error.cause from None
        except (
            failures.WorkerCrashedError,
            failures.NodeDiedError,
            failures.OutOfMemoryError,
            failures.ObjectLostError,
        ):
            return WorkerDied(TRIES)


def _named(call: Callable[[U], R]) -> Callable[[U], R]:
    """A function, which is what Ray takes."""

    def replay(unit: U) -> R:
        return call(unit)

    return replay


def _checked_call(function: Callable[[U], R], figures_of: str, unit: U) -> R:
    if _figures_of() != figures_of:
        reason = f"a node has {_figures_of()}, and this machine {figures_of}"
        raise ConfigError(
            "--engine ray", reason, "Install the same on all of them."
        )
    return function(unit)


def _figures_of() -> str:
    """What the figures of a replay depend on, beside its input."""
    exact = "" if is_installed() else "out"
    return f"ullage {__version__} with{exact} exact token counts"
