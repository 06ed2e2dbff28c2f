"""``ullage`` in a process of its own, with a store of its own and a scripted provider."""

import os
import subprocess
import sys

AGENT = """
import anthropic

import os

name = os.environ.get("SESSION")
headers = {"X-Claude-Code-Session-Id": name} if name else {}
client = anthropic.Anthropic(api_key="none", default_headers=headers)
tools = [{"name": "bash", "description": "Run.", "input_schema": {"type": "object"}}]
messages = [{"role": "user", "content": "Count the files, please."}]
while True:
    reply = client.messages.create(
        model="claude-opus-4-8", max_tokens=99, messages=messages, tools=tools
    )
    content = [block.model_dump(exclude_none=True) for block in reply.content]
    messages.append({"role": "assistant", "content": content})
    calls = [block for block in reply.content if block.type == "tool_use"]
    if not calls:
        break
    listing = "\\n".join(f"line {number} of a long listing" for number in range(3_000))
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": listing}
        for call in calls
    ]
    messages.append({"role": "user", "content": results})
"""


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

    def run_agent(self, server, *options):
        """Run an agent of three requests behind ``ullage run``."""
        return self.ullage(
            "run",
            f"--upstream=anthropic={server.url}",
            *options,
            *("--", sys.executable, "-c", AGENT),
        )
