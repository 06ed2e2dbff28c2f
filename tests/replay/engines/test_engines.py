"""Engines on one machine, whose workers really die."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.replay.engines import workers
from ullage.tools.replay.engines import (
    TRIES,
    LocalEngine,
    WorkerDied,
    open_engine,
)


def tagged(units):
    return ((f"tag {n}", unit) for n, unit in enumerate(units))


def mapped(function, units, jobs=2):
    with open_engine("processes", jobs) as engine:
        return dict(engine.map(function, tagged(units)))


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_unit_comes_back_with_its_tag(jobs):
    assert mapped(workers.square, range(9), jobs) == {
        f"tag {n}": n * n for n in range(9)
    }


def test_one_process_is_this_one():
    with open_engine("processes", 1) as engine:
        assert isinstance(engine, LocalEngine)
        assert dict(engine.map(lambda _: os.getpid(), tagged([0]))) == {
            "tag 0": os.getpid()
        }


def test_units_are_drawn_as_there_is_room():
    drawn = []

    def units():
        for number in range(50):
            drawn.append(number)
            yield number, number

    with open_engine("processes", 2) as engine:
        for count, _ in enumerate(engine.map(workers.square, units()), 1):
            assert len(drawn) <= count + 2


def test_the_unit_of_a_worker_that_died_is_given_to_another(tmp_path):
    units = [(number, str(tmp_path)) for number in range(7)]
    assert mapped(workers.fatal_once, units) == {
        f"tag {n}": n for n in range(7)
    }
    assert {mark.name for mark in tmp_path.iterdir()} == {"0", "3", "6"}, (
        "they did die"
    )


def test_a_unit_that_ends_every_worker_is_given_up_and_costs_no_other():
    expected = {f"tag {n}": n for n in range(7)} | {"tag 3": WorkerDied(TRIES)}
    assert mapped(workers.fatal, range(7)) == expected


def test_a_worker_that_dies_between_two_maps_is_replaced():
    with open_engine("processes", 2) as engine:
        before = multiprocessing.active_children()
        assert dict(engine.map(workers.square, tagged([1, 2, 3])))
        for worker in set(multiprocessing.active_children()) - set(before):
            worker.kill()
            worker.join()
        assert dict(engine.map(workers.square, tagged([4]))) == {"tag 0": 16}


def test_an_exception_of_the_function_ends_the_map_and_the_workers():
    before = set(multiprocessing.active_children())
    with (
        pytest.raises(ValueError, match="5"),
        open_engine("processes", 2) as engine,
    ):
        list(engine.map(workers.refused, tagged([5, 5])))
    for worker in set(multiprocessing.active_children()) - before:
        assert multiprocessing.connection.wait(
            [worker.sentinel], 30
        )  # joined by another thread


_OWNER = """
import sys
from tests.replay.engines import workers
from ullage.tools.replay.engines import open_engine

if __name__ == "__main__":
    with open_engine("processes", 2) as engine:
        list(engine.map(workers.told, [(1, sys.argv[1]), (2, sys.argv[1])]))
"""


def test_workers_end_with_whom_they_work_for_whatever_ended_it(tmp_path):
    script, marks = tmp_path / "owner.py", tmp_path / "marks"
    script.write_text(_OWNER)
    marks.mkdir()
    paths = {
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(Path.cwd()), *sys.path])
        )
    }
    owner = subprocess.Popen(
        [sys.executable, script, marks], env={**os.environ, **paths}
    )
    try:
        until = time.monotonic() + 60
        while len(pids := [int(mark.name) for mark in marks.iterdir()]) < 2:
            assert time.monotonic() < until
            time.sleep(0.02)
        owner.kill()
        owner.wait(30)
        while any(map(is_alive, pids)):
            assert time.monotonic() < until, (
                "workers outlive a process that was killed"
            )
            time.sleep(0.02)
    finally:
        owner.kill()


def is_alive(pid):
    """Whether it runs; one that is only waited for does not."""
    with suppress(OSError):
        os.kill(pid, 0)
        state = (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        )
        return state != "Z"
    return False


def test_no_signal_of_a_terminal_reaches_the_workers():
    with open_engine("processes", 2) as engine:
        ((_, handler),) = engine.map(signal.getsignal, [("", signal.SIGINT)])
    assert handler == signal.SIG_IGN
