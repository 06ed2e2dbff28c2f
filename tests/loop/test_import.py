"""The loop is there when asked for, and costs nothing when it is not."""

import subprocess
import sys

CODE = """
import sys, ullage
assert not {"asyncio", "ullage.doors.loop", "mcp"} & set(sys.modules)
assert ullage.loop.run_turn
assert "mcp" not in sys.modules
"""


def test_the_loop_is_loaded_when_it_is_first_asked_for():
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=60)
