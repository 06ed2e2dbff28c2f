"""A server on the official SDK behind a URL."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import started


@pytest.fixture(scope="session")
def typed():
    """The URL of ``typed.py``."""
    words = [sys.executable, str(Path(__file__).with_name("typed.py"))]
    process, port = started(
        lambda port: [*words, str(port)], stderr=subprocess.DEVNULL
    )
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()
