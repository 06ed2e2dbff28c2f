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
        [sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
