"""Work in a process that dies in the middle of it: before any one of its statements."""

import os
import signal
import sqlite3

import pytest

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
silent = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def dies(work, after, *, prepare=tuple, file=""):
    """Run ``work`` in a child that is killed before its statement number ``after``.

    Args:
        work: what is done.
        after: how many statements it may still make.
        prepare: makes the arguments of ``work``, in the child; its statements do not count.
        file: a part of the name of the file whose statements count.

    Returns whether it was killed: it may have had fewer statements.
    """
    child = os.fork()
    if not child:
        left, counting, connecting = after, False, sqlite3.connect

        def step(statement):
            nonlocal left
            left -= counting
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def connect(path, *given, **more):
            db = connecting(path, *given, **more)
            if file in str(path):
                db.set_trace_callback(step)
            return db

        sqlite3.connect = connect
        try:
            subjects = prepare()
            counting = True
            work(*subjects)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL
