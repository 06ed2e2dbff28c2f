"""The vendors' own SDKs in JavaScript, streamed through a proxy, against a scripted provider.

They are looked for where the folder that ``ULLAGE_AGENTS`` names has its modules (``npm install
--prefix FOLDER @anthropic-ai/sdk openai @google/genai``, then ``FOLDER/node_modules/.bin``).
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.proxy.test_coding_agents import OURS, script
from tests.proxy.upstream import proxy
from tests.servers import Call

MODULES = Path(os.environ.get("ULLAGE_AGENTS") or "node_modules/.bin").parent
PATHS = {
    "anthropic": ("@anthropic-ai/sdk", "/anthropic"),
    "openai-chat": ("openai", "/openai/v1"),
    "openai-responses": ("openai", "/openai/v1"),
    "gemini": ("@google/genai", "/gemini"),
}


@pytest.mark.parametrize("wire", PATHS)
def test_an_agent_in_javascript_is_cut_reads_on_and_never_sees_it(wire, serve):
    package, path = PATHS[wire]
    node = shutil.which("node")
    if node is None or not (MODULES / package).is_dir():
        pytest.skip(
            f"no node with {package}: npm install it, and set ULLAGE_AGENTS"
        )
    server = serve(
        wire, script(lambda line: Call("bash", {"command": line})), strict=True
    )
    with proxy(server) as url:
        done = subprocess.run(
            [
                node,
                str(Path(__file__).with_name("agent.cjs")),
                wire,
                url + path,
            ],
            capture_output=True,
            text=True,
            timeout=60,
            env={
                "PATH": os.environ["PATH"],
                "NODE_PATH": str(MODULES.absolute()),
            },
        )
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 4
    assert "All is counted." in str(json.loads(done.stdout)[-1])
    assert not any(name in done.stdout for name in OURS)
