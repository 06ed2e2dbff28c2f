"""``ullage proxy`` as a process of its own."""

import os
import subprocess
import sys
from contextlib import contextmanager

from msgspec import Struct


class Started(Struct):
    """A proxy that answers: its address and its process."""

    url: str
    process: subprocess.Popen


@contextmanager
def started(there, *options, within=(), **environment):
    """A proxy before an upstream, until the block is over; by a command that runs others."""
    words = [
        f"--upstream={name}={there.url}"
        for name in ("anthropic", "openai", "gemini")
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        **environment,
    }
    process = subprocess.Popen(
        [
            *within,
            sys.executable,
            "-m",
            "ullage",
            "proxy",
            "--listen=127.0.0.1:0",
            *words,
            *options,
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        line = process.stderr.readline()
        assert line.startswith("ullage proxy on http://"), (
            line + process.stderr.read()
        )
        yield Started(line.split()[3], process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()
