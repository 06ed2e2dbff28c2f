"""What `ullage mcp` adds to an MCP server: ``python -m lab.bench.mcp [--peers PYTHON]``.

One server, one client that writes frames, and between them nothing, a pipe that copies bytes,
`ullage mcp`, and with ``--peers`` (a Python that has them) FastMCP's proxy with its response
limiter, and ctxtual. Rounds alternate, so that a busy machine is busy for all of them.

start     from starting the command to its first list of tools, seconds
CPU       what of it the command itself worked, without the server: what a quiet machine waits for
50 KB     one call whose result is a text of 50 KB, ms: the median, and what it is over the pipe's
rows      the same of a structured result under a schema
RSS       the command's memory after the calls of 50 KB, and after those of rows
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

SERVER = """
import json, sys
TEXT = "".join(f"line {n} of a log: all is well here\\n" for n in range(1_400))
ROWS = {"rows": [{"id": n, "name": f"name {n} of a row"} for n in range(1_250)]}
SCHEMA = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}, "required": ["id"]}}}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "bench", "version": "1"}}
    elif asked["method"] == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("say", "rows")]
        tools[1]["outputSchema"] = SCHEMA
        result = {"tools": tools}
    elif asked["params"]["name"] == "say":
        n = asked["params"]["arguments"].get("n", 0)
        result = {"content": [{"type": "text", "text": f"{n}\\n{TEXT}"}]}
    else:
        result = {"content": [{"type": "text", "text": "rows"}], "structuredContent": ROWS}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
PIPE = """
import os, subprocess, sys, threading
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
def copy(source, target):
    while data := os.read(source, 65536):
        os.write(target, data)
def ask():
    copy(0, child.stdin.fileno())
    child.stdin.close()
threading.Thread(target=ask, daemon=True).start()
copy(child.stdout.fileno(), 1)
"""
FASTMCP = """
import sys
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
from fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware
proxy = create_proxy(StdioTransport(sys.argv[1], sys.argv[2:]))
proxy.add_middleware(ResponseLimitingMiddleware(max_size=8_000))
proxy.run(show_banner=False)
"""


class Session:
    """A client of one command."""

    def __init__(self, command: list[str]) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self._id = 0
        about = {
            "clientInfo": {"name": "bench", "version": "1"},
            "capabilities": {},
        }
        self.ask("initialize", protocolVersion="2025-11-25", **about)
        self.send(method="notifications/initialized")
        self.ask("tools/list")
        self.start_s = time.perf_counter() - began
        ticks = (
            Path(f"/proc/{self.process.pid}/stat")
            .read_text()
            .rpartition(") ")[2]
            .split()
        )
        self.cpu_s = (int(ticks[11]) + int(ticks[12])) / os.sysconf(
            "SC_CLK_TCK"
        )

    def send(self, **message: object) -> None:
        """Write a message."""
        self._stdin.write(
            json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        )
        self._stdin.flush()

    def ask(self, method: str, **params: object) -> bytes:
        """The frame that answers a request."""
        self._id += 1
        self.send(id=self._id, method=method, params=params)
        mark = b'"id":%d' % self._id
        while mark not in (line := self._stdout.readline()).replace(b" ", b""):
            if not line:
                raise SystemExit(f"{self.process.args!r} ended")
        return line

    def call_ms(self, tool: str, n: int = 0) -> float:
        """How long a call takes."""
        began = time.perf_counter()
        self.ask("tools/call", name=tool, arguments={"n": n})
        return (time.perf_counter() - began) * 1e3

    def rss_mb(self) -> float:
        """Of the command itself, without the server it started."""
        rows = (
            Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        )
        return (
            next(
                int(row.split()[1]) for row in rows if row.startswith("VmRSS")
            )
            / 1024
        )

    def close(self) -> None:
        """End it, by force if need be."""
        self._stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._stdout.close()


def commands(peers: str | None) -> dict[str, list[str]]:
    server = [sys.executable, "-c", SERVER]
    found = {
        "the server": server,
        "a bare pipe": [sys.executable, "-c", PIPE, *server],
        "ullage mcp": [
            str(Path(sys.executable).with_name("ullage")),
            "mcp",
            "--",
            *server,
        ],
    }
    if peers:
        found["FastMCP's limiter"] = [peers, "-c", FASTMCP, *server]
        if ctxtual := shutil.which("ctxtual", path=str(Path(peers).parent)):
            found["ctxtual"] = [ctxtual, "wrap", "--", *server]
    return found


def calls_ms(
    found: dict[str, list[str]], tool: str, rounds: int
) -> dict[str, list[float]]:
    """The times of each: a few calls of each in turn."""
    open_now = {name: Session(command) for name, command in found.items()}
    times: dict[str, list[float]] = {name: [] for name in found}
    for number in range(rounds + 3):
        for name, session in open_now.items():
            measured = [
                session.call_ms(tool, 10 * number + n) for n in range(10)
            ]
            times[name] += measured if number >= 3 else []
    for name, session in open_now.items():
        RSS[name, tool] = session.rss_mb()
        session.close()
    return times


RSS: dict[tuple[str, str], float] = {}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument(
        "--peers", metavar="PYTHON", help="one that has fastmcp and ctxtual"
    )
    options.add_argument("--rounds", type=int, default=30)
    options.add_argument("--calls", type=int, default=10_000)
    given = options.parse_args()
    found = commands(given.peers)
    starts: dict[str, list[float]] = {name: [] for name in found}
    works: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(7):
        for name, command in found.items():
            session = Session(command)
            starts[name].append(session.start_s)
            works[name].append(session.cpu_s)
            session.close()
    texts, rows = (
        calls_ms(found, tool, given.rounds) for tool in ("say", "rows")
    )
    session, first = Session(found["ullage mcp"]), 0.0
    for n in range(given.calls):
        session.call_ms("say", n)
        first = session.rss_mb() if n == given.calls // 10 else first
    after = session.rss_mb()
    session.close()
    table = Table(title="added by what stands before a server: medians")
    for heading in (
        "",
        "start",
        "CPU",
        "50 KB",
        "over",
        "rows",
        "over",
        "RSS",
        "rows",
    ):
        table.add_column(
            heading, justify="right" if heading else "left", no_wrap=True
        )
    least = [statistics.median(each["a bare pipe"]) for each in (texts, rows)]
    for name in found:
        cells = [
            f"{statistics.median(each[name]):.2f} s"
            for each in (starts, works)
        ]
        for base, each in zip(least, (texts, rows), strict=True):
            middle = statistics.median(each[name])
            cells += [f"{middle:.2f} ms", f"{middle - base:+.2f}"]
        cells += [f"{RSS[name, tool]:.1f} MB" for tool in ("say", "rows")]
        table.add_row(name, *cells)
    Console(width=100).print(table)
    print(
        f"ullage mcp after {given.calls // 10:,} and {given.calls:,} calls "
        f"with a result of its own each: {first:.1f} and {after:.1f} MB"
    )


if __name__ == "__main__":
    main()
