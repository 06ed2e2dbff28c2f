"""A client that writes frames by hand, in front of ``ullage mcp`` or of a server itself."""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTED = [sys.executable, str(HERE / "scripted.py")]
ULLAGE = [sys.executable, "-c", "from ullage.tools.cli import main; main()"]
MCP = [*ULLAGE, "mcp"]


class Wired:
    """One session over pipes."""

    def __init__(self, process):
        self.process = process
        self.seen = []
        self._id = 0

    def send(self, **message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def write(self, frame):
        self.process.stdin.write(frame)
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, **params):
        """The answer to a request; what came before it is in ``seen``."""
        self._id += 1
        self.send(id=self._id, method=method, params=params)
        while (message := self.read()).get("id") != self._id:
            self.seen.append(message)
        return message

    def call(self, tool, /, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def text(self, tool, /, **arguments):
        return self.call(tool, **arguments)["content"][0]["text"]

    def list(self):
        return self.ask("tools/list")["result"]["tools"]

    def begin(self):
        about = {"name": "wired", "version": "1"}
        self.ask(
            "initialize",
            protocolVersion="2025-11-25",
            capabilities={},
            clientInfo=about,
        )
        self.send(method="notifications/initialized")
        return self.list()


@contextmanager
def wired(*words, **settings):
    """A session with a command."""
    settings = {"stderr": subprocess.PIPE, **settings}
    process = subprocess.Popen(
        [*map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        **settings,
    )
    try:
        yield Wired(process)
        if not process.stdin.closed:
            process.stdin.close()
        process.wait(100)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def told(process):
    """What it has said on stderr by its end."""
    return process.stderr.read().decode()
