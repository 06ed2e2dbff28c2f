"""``ullage`` in a process of its own, with a store of its own and a scripted provider."""

import os
import subprocess
import sys

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
    """A home folder, and the commands that are typed there."""

    def __init__(self, home):
        self.home = home
        data = home / "data"
        self.environment = {
            **{
                k: v
                for k, v in os.environ.items()
                if not k.startswith("ULLAGE_")
            },
            "PYTHONPATH": os.pathsep.join(sys.path),
            "HOME": str(home),
            "XDG_DATA_HOME": str(data),
            "TMPDIR": str(home),
            "COLUMNS": "120",
        }
        self.environment.pop("DISPLAY", None)
        self.environment.pop("WAYLAND_DISPLAY", None)

    def ullage(self, *words, **environment):
        """Run ``ullage WORDS…`` to its end."""
        return subprocess.run(
            [sys.executable, "-m", "ullage", *map(str, words)],
            capture_output=True,
            text=True,
            env={**self.environment, **environment},
            timeout=60,
        )

    def run_agent(self, server, *options, agent=AGENT):
        """Run an agent, of three requests if no other is named, behind ``ullage run``."""
        return self.ullage(
            "run",
            f"--upstream=anthropic={server.url}",
            *options,
            *("--", sys.executable, "-c", agent),
        )
