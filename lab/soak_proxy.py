"""The proxy under load for minutes: ``python -m lab.soak_proxy 30``.

Conversations grow at the same time through two workers on one store, against a provider that says
back what is particular to each. Some clients go away in the middle, and a worker is killed now and
then. Every minute a line; at the end the exit code says whether nothing was lost or mixed up, and
whether memory stayed flat after its first third.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import aiohttp
import click
from aiohttp import web
from msgspec import Struct

from lab.bench.material import Material, grown, request, said_by_user
from lab.bench.proxy.subjects import children

_CLIENTS, _TURNS = 32, 40
_GROWS = 1.25
"""How much more memory the last third may hold than the first."""


class Tally(Struct):
    """What happened so far."""

    answered: int = 0
    left: int = 0
    killed: int = 0
    failed: int = 0
    mixed: int = 0
    broken_prefix: int = 0


async def _provider(
    seen: dict[str, list[bytes]], tally: Tally
) -> web.ServerRunner:
    """Says back the name in the first message, and looks whether each prefix stays."""

    async def answer(asked: web.BaseRequest) -> web.StreamResponse:
        data = await asked.read()
        body = json.loads(data)
        messages = body["messages"]
        name = messages[0]["content"].split()[-1]
        before, now = (
            seen.get(name),
            [json.dumps(each).encode() for each in messages],
        )
        seen[name] = now
        if (
            before is not None
            and now[: len(before)] != before
            and len(now) > len(before)
        ):
            tally.broken_prefix += (
                1  # a batch is one of them: they are few, and are told
            )
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream"}
        )
        await response.prepare(asked)
        for event in events(name, len(data) // 4):
            await response.write(
                f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            )
        await response.write_eof()
        return response

    def roomy(*given: object) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return web.BaseRequest(*given, loop, client_max_size=1 << 30)  # type: ignore[arg-type]

    runner = web.ServerRunner(
        web.Server(answer, request_factory=roomy, access_log=None)
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner


def events(name: str, tokens: int) -> list[dict[str, object]]:
    usage = {"input_tokens": tokens, "output_tokens": 5}
    opened = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
    }
    text = {"type": "text_delta", "text": f"I am {name}."}
    return [
        {
            "type": "message_start",
            "message": {**opened, "stop_reason": None, "usage": usage},
        },
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": text},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]


async def _client(
    url: str, material: Material, number: int, until: float, tally: Tally
) -> None:
    """One conversation after another, each growing by a call and its result."""
    rng, round_number = random.Random(number), 0
    async with aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=60)
    ) as http:
        while time.monotonic() < until:
            name, round_number = f"c{number}-{round_number}", round_number + 1
            history = [said_by_user("anthropic", f"Find the fault of {name}")]
            for turn in range(_TURNS):
                if time.monotonic() > until:
                    return
                output = material.text(rng, rng.choice((400, 4_000, 30_000)))
                history = grown("anthropic", history, turn, output)
                await _ask(
                    http,
                    url,
                    {**request("anthropic", history), "stream": True},
                    name,
                    tally,
                    rng,
                )


async def _ask(
    http: aiohttp.ClientSession, url: str, body: dict[str, object], name: str, tally: Tally,
    rng: random.Random,
) -> None:  # fmt: skip
    """One request; where a worker was killed under it, it is asked again, as SDKs do."""
    for _ in range(4):
        try:
            async with http.post(f"{url}/v1/messages", json=body) as reply:
                if rng.random() < 0.02:
                    tally.left += 1
                    return  # in the middle of it
                said = await reply.text()
                if reply.status == 200 and "message_stop" in said:
                    tally.answered += 1
                    tally.mixed += f"I am {name}." not in said
                    return
        except (aiohttp.ClientError, TimeoutError):
            pass
        await asyncio.sleep(0.05)
    tally.failed += 1


def resident_mb(pid: int) -> float:
    total = 0
    for each in (pid, *children(pid)):
        try:
            total += int(
                Path(f"/proc/{each}/statm")
                .read_text(encoding="ascii")
                .split()[1]
            )
        except OSError:
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / 1e6


async def drained(lines: IO[str]) -> None:
    """Read what the proxy logs, so that it never waits for somebody to."""
    while await asyncio.to_thread(lines.readline):
        pass


async def _soak(minutes: float, folder: Path) -> bool:
    tally, seen = Tally(), dict[str, list[bytes]]()
    provider = await _provider(seen, tally)
    url = f"http://127.0.0.1:{provider.addresses[0][1]}"
    store = f"--store={folder / 'kept.db'}"
    command = [
        sys.executable,
        "-m",
        "ullage",
        "proxy",
        "--listen=127.0.0.1:0",
        "--workers=2",
    ]
    proxy = subprocess.Popen(  # noqa: ASYNC220 - before anything else runs
        [*command, store, "--tenant=soak", f"--upstream=anthropic={url}"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert proxy.stderr is not None
    line = await asyncio.to_thread(proxy.stderr.readline)
    address, until = line.split()[-1], time.monotonic() + 60 * minutes
    material, sizes = Material(), list[float]()
    lines = asyncio.create_task(drained(proxy.stderr))
    clients = [
        asyncio.create_task(_client(address, material, number, until, tally))
        for number in range(_CLIENTS)
    ]
    step_s = min(60.0, 60 * minutes / 9)
    while time.monotonic() < until:
        await asyncio.sleep(step_s)
        sizes.append(resident_mb(proxy.pid))
        print(f"{tally} {sizes[-1]:.0f} MB", flush=True)
        workers = children(proxy.pid)
        if workers and len(sizes) % 3 == 2:
            os.kill(workers[0], signal.SIGKILL)
            tally.killed += 1
    await asyncio.gather(*clients)
    proxy.terminate()
    status = await asyncio.to_thread(proxy.wait)
    await lines
    proxy.stderr.close()
    await provider.cleanup()
    third = max(len(sizes) // 3, 1)
    grows = max(sizes[-third:]) / max(sizes[: 2 * third])
    print(
        f"{tally}; memory of the last third over that before: {grows:.2f}; status {status}"
    )
    return not (tally.failed or tally.mixed or status or grows > _GROWS)


@click.command()
@click.argument("minutes", type=float)
def main(minutes: float) -> None:
    """Load a proxy for so many MINUTES."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        sys.exit(not asyncio.run(_soak(minutes, Path(folder))))


if __name__ == "__main__":
    main()
