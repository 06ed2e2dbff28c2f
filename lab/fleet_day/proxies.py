"""The proxies of a fleet: processes that are started, stopped, killed, and started anew."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from lab.bench.proxy.subjects import children
from lab.fleet_day.tally import (
    PROXIES,
    TEAMS,
    WINDOW,
    WORKERS,
    key_of,
    team_of,
)
from tests.ports import free_port


class Fleet:
    """Proxies on one store, each with workers of its own."""

    def __init__(self, upstream: str, store: str, config: Path) -> None:
        self.urls = [f"http://127.0.0.1:{free_port()}" for _ in range(PROXIES)]
        self._words = [
            *(sys.executable, "-m", "ullage", "proxy", f"--config={config}"),
            *(f"--store={store}", f"--workers={WORKERS}"),
            f"--upstream=anthropic={upstream}",
        ]
        self._processes: list[subprocess.Popen[str] | None] = [None] * PROXIES

    def start(self, number: int) -> None:
        """Start a proxy, and wait until it answers."""
        listen = self.urls[number].removeprefix("http://")
        process = subprocess.Popen(
            [*self._words, f"--listen={listen}"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        for line in process.stderr:  # what is sent at once may be told first
            if line.startswith("ullage proxy on"):
                break
        assert process.poll() is None, "the proxy does not start"
        self._processes[number] = process

    def stop(self, number: int) -> int:
        """Stop a proxy as an upgrade does: replies under way end. Its exit code."""
        process = self._processes[number]
        assert process is not None
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
        assert process.stderr is not None
        process.stderr.close()
        self._processes[number] = None
        return code

    def kill(self, number: int, rng: random.Random) -> None:
        """Kill one worker of a proxy."""
        process = self._processes[number]
        workers = () if process is None else children(process.pid)
        if workers:
            with suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)

    def crash(self, number: int) -> None:
        """Kill a whole proxy, and start it anew."""
        process = self._processes[number]
        assert process is not None
        workers = children(process.pid)
        for pid in (process.pid, *workers):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
        self.start(number)


def settings_of(users: int, tight_tokens: int) -> str:
    """The proxies' file of settings: teams by their keys, and their budgets."""
    lines = [f"window_tokens = {WINDOW}", "joins = true", "[tenants]"]
    for team in TEAMS:
        digests = [
            hashlib.sha256(key_of(user).encode()).hexdigest()
            for user in range(users)
            if team_of(user) == team
        ]
        lines.append(f"{team} = {json.dumps(digests)}")
    budgets: list[dict[str, Any]] = [
        {"name": "tight", "tenants": ["tight"], "tokens": tight_tokens},
        {
            "name": "warned",
            "tenants": ["warned"],
            "tokens": 1_000,
            "on_exceeded": "warn",
        },
        {"name": "fleet", "shared": True, "usd": 10_000.0},
    ]
    for budget in budgets:
        lines.append("[[budgets]]")
        lines += [f"{name} = {json.dumps(v)}" for name, v in budget.items()]
    return "\n".join(lines)
