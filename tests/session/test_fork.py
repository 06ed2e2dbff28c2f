"""A process that forks straight after its first session leaves children that work."""

import os
import subprocess
import sys

import pytest

FORKS = """
import os, signal, sys
import ullage
request = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hi " * 5_000}]}
session = ullage.Session("gpt-4.1")  # a thread begins to load the vocabulary
child = os.fork()
if not child:
    signal.alarm(30)
    session.fit(request)
    ullage.Session("gpt-4.1").fit(request)
    os._exit(0)
sys.exit(os.waitpid(child, 0)[1] and 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_while_a_vocabulary_loads_leaves_a_child_that_counts():
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr


MIDST = """
import copy, os, signal, sys, threading
from msgspec.structs import replace
import ullage
from tests.histories import CUTS_ALWAYS

message = {"role": "user", "content": "hi"}
request = {"model": "gpt-4.1", "messages": [message]}
works, may_go_on = threading.Event(), threading.Event()

def look(window, /):
    if threading.current_thread() is not threading.main_thread():
        works.set()
        may_go_on.wait(60)
    return ()

policy = replace(CUTS_ALWAYS, name="looks-1", under_pressure=(look,))
session = ullage.Session("gpt-4.1", policy=policy, store=STORE)
session.fit(request)
thread = threading.Thread(target=session.fit, args=({**request, "messages": [message] * 3},))
thread.start()
works.wait(60)
child = os.fork()
if not child:
    signal.alarm(30)
    size = session.window.size, session.window.tokens == copy.copy(session).window.tokens
    if size != (1, True) or ": 1 messages" not in repr(session):
        os._exit(4)
    if session.newest_request() != request:
        os._exit(5)
    view = session.fit({**request, "messages": [message] * 2})
    other = ullage.Session("gpt-4.1", store=STORE).fit(request)
    os._exit(0 if len(view["messages"]) == 2 else 3)
status = os.waitpid(child, 0)[1]
may_go_on.set()
thread.join()
view = session.fit({**request, "messages": [message] * 4})
sys.exit(status and 1 or len(view["messages"]) - 4)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("kept", ["memory", "file"])
def test_a_fork_while_another_thread_fits_leaves_a_child_that_fits(
    kept, tmp_path
):
    store = None if kept == "memory" else str(tmp_path / "kept.db")
    done = subprocess.run(
        [sys.executable, "-c", f"STORE = {store!r}\n{MIDST}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_an_event_loops_session_is_free_in_a_child(tmp_path):
    code = """if 1:
        import asyncio, os, signal, sys
        import ullage
        request = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hi"}]}
        session = ullage.AsyncSession("gpt-4.1")

        async def held():
            await session._lock.acquire()

        asyncio.run(held())
        child = os.fork()
        if not child:
            signal.alarm(30)
            asyncio.run(session.fit(request))
            os._exit(0)
        sys.exit(os.waitpid(child, 0)[1] and 1)
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
