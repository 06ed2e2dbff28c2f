"""A type checker knows the reply: mypy reads `calls` beside this, with the vendors' own types."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is not installed")
HERE = Path(__file__).parent


@pytest.mark.timeout(300)
def test_the_type_of_a_reply_is_known():
    cache = HERE.parents[1] / ".mypy_cache" / "typing"  # half a minute cold, three seconds warm
    given = ["--config-file=", "--strict", f"--cache-dir={cache}", str(HERE / "calls.py")]
    done = subprocess.run([sys.executable, "-m", "mypy", *given], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
