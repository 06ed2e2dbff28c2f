"""A server on the official SDK behind a URL."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest


def free_port():
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def wait_for(port):
    """Until somebody listens there."""
    for _ in range(2_000):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


@pytest.fixture(scope="session")
def typed():
    """The URL of ``typed.py``."""
    port = free_port()
    script = Path(__file__).with_name("typed.py")
    process = subprocess.Popen([sys.executable, str(script), str(port)], stderr=subprocess.DEVNULL)
    wait_for(port)
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()
