"""Development and held-out runs, told apart by a hash of the task.

All runs of a task are on one side, whoever replays them and wherever they are kept. Policies are
made on the one side and judged, once, on the other (`metrics` §0).
"""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias

from ullage.tools.replay.evidence.common import task_of
from ullage.tools.replay.readers import Run

Side: TypeAlias = Literal["all", "dev", "held-out"]
SIDES: tuple[Side, ...] = ("all", "dev", "held-out")


def is_on(side: Side, run: Run) -> bool:
    """Whether a run is on this side; about half of all tasks are on each."""
    if side == "all":
        return True
    task = task_of(run).encode("utf-8", "surrogatepass")
    is_dev = hashlib.blake2b(task, digest_size=1).digest()[0] < 128
    return is_dev == (side == "dev")
