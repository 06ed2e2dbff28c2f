"""Several processes on one socket: who dies is replaced, and all end together."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.proxy.started import started
from tests.proxy.upstream import ask, upstream
from ullage.doors.proxy import workers

if not hasattr(os, "fork"):
    pytest.skip("this system cannot fork", allow_module_level=True)


def children(pid):
    """The processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    if not found.exists():
        pytest.skip("this system does not list a process's children")
    return [int(word) for word in found.read_text().split()]


def test_who_is_killed_is_replaced_and_nobody_waits_in_vain(tmp_path):
    with (
        upstream() as there,
        started(there, "--workers=2", f"--store={tmp_path}/kept.db") as proxy,
    ):
        first = children(proxy.process.pid)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        for number in range(20):
            assert (
                ask(proxy.url, "POST", "/v1/x", b"%d" % number)[2]
                == b"%d" % number
            )
        while len(now := {*children(proxy.process.pid)} - {first[0]}) < 2:
            time.sleep(
                0.01
            )  # the one that was killed is listed until its parent has asked
        proxy.process.send_signal(signal.SIGTERM)
        assert proxy.process.wait(20) == 0
        assert not any(map(_lives, now))


def test_workers_do_not_outlive_their_parent(tmp_path):
    with (
        upstream() as there,
        started(there, "--workers=2", f"--store={tmp_path}/kept.db") as proxy,
    ):
        orphans = children(proxy.process.pid)
        proxy.process.kill()
        proxy.process.wait()
        while any(map(_lives, orphans)):
            time.sleep(0.01)
    assert workers.serve_with_workers


def _lives(pid):
    """Whether a process runs; one that has ended and was not asked about does not."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            != "Z"
        )
    except FileNotFoundError:
        return False
