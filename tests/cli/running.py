"""``ullage run`` in a process of its own, with a store of its own and a scripted provider."""

import os
import subprocess
import sys

from tests.cli.terminal import ullage

AGENT = """
import json
import os
from urllib.request import Request, urlopen

url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
headers = {"content-type": "application/json", "x-api-key": "none"}
if name := os.environ.get("SESSION"):
    headers["X-Claude-Code-Session-Id"] = name
tools = [{"name": "bash", "description": "Run.", "input_schema": {"type": "object"}}]
messages = [{"role": "user", "content": "Count the files, please."}]
request = {"model": "claude-opus-4-8", "max_tokens": 99, "messages": messages, "tools": tools}
listing = "\\n".join(f"line {number} of a long listing" for number in range(3_000))
while True:
    with urlopen(Request(url, json.dumps(request).encode(), headers)) as reply:
        content = json.load(reply)["content"]
    messages.append({"role": "assistant", "content": content})
    calls = [block for block in content if block["type"] == "tool_use"]
    if not calls:
        break
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": listing}
        for call in calls
    ]
    messages.append({"role": "user", "content": results})
"""
"""An agent that asks three times, without an SDK: to import one takes longer than all the rest."""

SDK_AGENT = """
import anthropic

client = anthropic.Anthropic(api_key="none")
message = {"role": "user", "content": "Count the files, please."}
client.messages.create(model="claude-opus-4-8", max_tokens=99, messages=[message])
"""
"""An agent on the vendor's own client, for what its headers say."""


class Machine:
    """A home folder, and the commands that are typed there.

    Attributes:
        home: the folder.
        environment: the variables of its commands that are not those of the tests; None for one
            that it does not have.
    """

    def __init__(self, home):
        self.home = home
        ours = [name for name in os.environ if name.startswith("ULLAGE_")]
        self.environment = {
            **dict.fromkeys((*ours, "DISPLAY", "WAYLAND_DISPLAY")),
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "TMPDIR": str(home),
            "COLUMNS": "120",
        }

    def ullage(self, *words, **environment):
        """Run ``ullage WORDS…`` to its end, within the process of the tests."""
        return ullage(*words, env={**self.environment, **environment})

    def run_agent(self, server, *options, agent=AGENT):
        """Run an agent, of three requests if no other is named, behind ``ullage run``.

        Both have a process of their own, which has ended before this returns.
        """
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            **self.environment,
        }
        words = [
            "run",
            f"--upstream=anthropic={server.url}",
            *map(str, options),
            *("--", sys.executable, "-c", agent),
        ]
        return subprocess.run(
            [sys.executable, "-m", "ullage", *words],
            capture_output=True,
            text=True,
            env={
                name: value
                for name, value in environment.items()
                if value is not None
            },
            timeout=60,
        )
