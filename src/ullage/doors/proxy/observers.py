"""Observers of requests that are over: counters, the live page, logs and spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ullage.doors.proxy.activity import Activity
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.logs import RefusalLines, lines_to
from ullage.doors.proxy.metrics import Metrics
from ullage.doors.proxy.relayed import Relayed
from ullage.doors.proxy.spans import spans


class Observers:
    """The observers of one worker. An error of theirs never reaches a request.

    Args:
        more: functions that are told as well.
        refusals: takes the status and the reason of requests that are refused; None: nothing does.

    Attributes:
        metrics: what is counted.
        activity: what the page shows.
        mistakes: how often one of them failed.
    """

    def __init__(
        self,
        more: Iterable[Callable[[Relayed], None]] = (),
        refusals: Callable[[int, str], None] | None = None,
    ) -> None:
        self.metrics = Metrics()
        self.activity = Activity()
        self.mistakes = 0
        self._refusals = refusals
        self._told = (self.metrics.take, self.activity.take, *more)

    def __call__(self, relayed: Relayed) -> None:
        """Take in a request that is over."""
        for tell in self._told:
            try:
                tell(relayed)
            except Exception:  # noqa: BLE001 - the request is over, and all is well with it
                self.mistakes += 1

    def refuse(self, status: int, problem: str) -> None:
        """Take in that a request was refused.

        Args:
            status: of the answer.
            problem: why, in words of ours alone.
        """
        if self._refusals is not None:
            self._refusals(status, problem)


def observers_of(
    config: Config, *more: Callable[[Relayed], None]
) -> Observers:
    """The observers that the configuration names, and more."""
    logs = lines_to() if config.log else None
    tracing = spans()
    return Observers(
        [
            *(
                observer
                for observer in (logs, tracing)
                if observer is not None
            ),
            *more,
        ],
        RefusalLines() if config.log else None,
    )
