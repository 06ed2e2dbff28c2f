"""The proxy among hostile clients for minutes: ``python -m lab.soak_hostile 15``.

Good clients grow conversations through two workers, each with a key and some thought between two
requests. Among them others do what a stranger on the same network can do. At the end the exit code
says whether a good request was lost, mixed up, or late by more than a second, whether memory stayed
flat, and whether anything of a forged key was kept.

How late a request is, is what it took beyond the slowest request of a control in the same second:
one that asks the provider directly, and waits as long where the whole machine does.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import aiohttp
import click
from aiohttp import web
from msgspec import Struct, field

from lab.bench.material import Material, grown, request, said_by_user
from lab.soak_proxy import drained, events, resident_mb
from ullage.stores import SqliteStore, ref_of

_CLIENTS, _TURNS, _THINKS_S = 8, 40, 0.4
_LATE_S = 1.0
_GROWS = 1.5
"""How much more memory the last third may hold than the first two."""

_HEAD = "POST /v1/messages HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
_HELD_S = 20
_CONNECTIONS = 300


class Tally(Struct):
    """What happened so far."""

    answered: int = 0
    lost: int = 0
    mixed: int = 0
    late: int = 0
    worst_s: float = 0.0
    worst_late_s: float = 0.0
    hostile: dict[str, int] = field(default_factory=dict)


class Control:
    """How long the machine itself lets a request wait, second by second."""

    def __init__(self) -> None:
        self._slowest: dict[int, float] = {}

    def note(self, began_s: float, took_s: float) -> None:
        """A request of the control took so long."""
        for second in range(int(began_s), int(began_s + took_s) + 1):
            self._slowest[second] = max(self._slowest.get(second, 0.0), took_s)

    def during(self, began_s: float, took_s: float) -> float:
        """The slowest of the control while another request was under way."""
        seconds = range(int(began_s), int(began_s + took_s) + 1)
        return max(
            (self._slowest.get(second, 0.0) for second in seconds), default=0.0
        )


async def _provider() -> web.ServerRunner:
    """Says back the name in the first message; to a forged key, that it is none."""

    async def answer(asked: web.BaseRequest) -> web.StreamResponse:
        data = await asked.read()
        if not asked.headers.get("x-api-key", "").startswith("good"):
            return web.json_response(
                {"type": "error", "error": {}}, status=401
            )
        name = json.loads(data)["messages"][0]["content"].split()[-1]
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream"}
        )
        with suppress(ConnectionError):  # whoever asked has gone away
            await response.prepare(asked)
            for event in events(name, len(data) // 4):
                line = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                await response.write(line.encode())
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


# ── good clients ─────────────────────────────────────────────────────────────────────────


async def _client(
    url: str,
    material: Material,
    number: int,
    until: float,
    tally: Tally,
    control: Control,
) -> None:
    """One conversation after another, each growing by a call and its result."""
    rng, round_number = random.Random(number), 0
    headers = {"x-api-key": f"good-{number}"}
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as http:
        while time.monotonic() < until:
            name, round_number = f"c{number}-{round_number}", round_number + 1
            history = [said_by_user("anthropic", f"Find the fault of {name}")]
            for turn in range(_TURNS):
                if time.monotonic() > until:
                    return
                output = material.text(rng, rng.choice((400, 4_000, 30_000)))
                history = grown("anthropic", history, turn, output)
                body = {**request("anthropic", history), "stream": True}
                await _ask(http, url, body, name, tally, control)
                await asyncio.sleep(_THINKS_S * rng.uniform(0.5, 1.5))


async def _ask(
    http: aiohttp.ClientSession, url: str, body: dict[str, object], name: str, tally: Tally,
    control: Control,
) -> None:  # fmt: skip
    """One request, sent once."""
    began = time.monotonic()
    try:
        async with http.post(f"{url}/v1/messages", json=body) as reply:
            said = await reply.text()
            is_whole = reply.status == 200 and "message_stop" in said
    except (aiohttp.ClientError, TimeoutError):
        said, is_whole = "", False
    took = time.monotonic() - began
    if not is_whole:
        tally.lost += 1
        print(f"lost: {name}, {said[:200]!r}", flush=True)
        return
    tally.answered += 1
    tally.mixed += f"I am {name}." not in said
    late = took - control.during(began, took)
    tally.late += late > _LATE_S
    tally.worst_s, tally.worst_late_s = (
        max(tally.worst_s, took),
        max(tally.worst_late_s, late),
    )


async def _controlled(provider: str, until: float, control: Control) -> None:
    """Ask the provider directly, again and again."""
    messages = [said_by_user("anthropic", "Find the fault of control")]
    body = {**request("anthropic", messages), "stream": True}
    async with aiohttp.ClientSession(
        headers={"x-api-key": "good-control"}
    ) as http:
        while time.monotonic() < until:
            began = time.monotonic()
            async with http.post(
                f"{provider}/v1/messages", json=body
            ) as reply:
                await reply.read()
            control.note(began, time.monotonic() - began)
            await asyncio.sleep(0.05)


# ── hostile clients ──────────────────────────────────────────────────────────────────────


class _Wire:
    """Raw connections to the proxy, whatever is written on them."""

    def __init__(self, url: str) -> None:
        self.host = urlsplit(url).netloc
        self._address, port = self.host.rsplit(":", 1)
        self._port = int(port)

    @contextmanager
    def opened(self) -> Iterator[socket.socket]:
        """A connection, for as long as the block lasts."""
        with socket.create_connection(
            (self._address, self._port), timeout=_HELD_S
        ) as raw:
            yield raw

    def head(self, *more: str) -> bytes:
        """The head of a request, without its end."""
        lines = "".join(f"{line}\r\n" for line in more)
        return (_HEAD.format(host=self.host) + lines).encode()

    def sent(self, data: bytes, wait_s: float = 5.0) -> bytes:
        """Send something, and what is answered first."""
        with self.opened() as raw, suppress(OSError):
            raw.settimeout(wait_s)
            raw.sendall(data)
            return raw.recv(65_536)
        return b""

    def posted(self, body: bytes, *more: str) -> bytes:
        """Send a whole request."""
        head = self.head(
            f"Content-Length: {len(body)}", "Connection: close", *more
        )
        return self.sent(head + b"\r\n" + body)


def _slow_head(wire: _Wire, rng: random.Random) -> None:
    with wire.opened() as raw:
        for byte in wire.head("X-Slow: " + "x" * 30):
            raw.send(bytes((byte,)))
            time.sleep(rng.uniform(0.2, 1.0))


def _half_body(wire: _Wire, rng: random.Random) -> None:
    with wire.opened() as raw:
        raw.sendall(
            wire.head("Content-Length: 100000", "x-api-key: forged")
            + b'\r\n{"mess'
        )
        time.sleep(_HELD_S)


def _huge_body(wire: _Wire, rng: random.Random) -> None:
    text = b"x" * (70 << 20)
    body = (
        b'{"model":"claude-opus-4-8","messages":[{"role":"user","content":"'
        + text
        + b'"}]}'
    )
    wire.posted(body, "x-api-key: forged")


def _name_many_times(wire: _Wire, rng: random.Random) -> None:
    wire.posted(b'{"a":[' + b'"messages":[' * 200_000, "x-api-key: forged")


def _bad_json(wire: _Wire, rng: random.Random) -> None:
    odd = (b"", b"{", b"\xff" * 1_000, b"[" * 100_000, b'{"messages":1e999}')
    for body in (*odd, rng.randbytes(5_000)):
        wire.posted(body, "x-api-key: forged")


def _cross_site(wire: _Wire, rng: random.Random) -> None:
    for line in (
        "Origin: https://evil.example",
        "Sec-Fetch-Site: cross-site",
        "Origin: null",
    ):
        answer = wire.posted(b"{}", line, "x-api-key: forged")
        assert b" 403 " in answer[:20] or not answer, answer[:100]


def _wrong_host(wire: _Wire, rng: random.Random) -> None:
    for host in ("evil.example", "x@127.0.0.1", "127.0.0.1.evil.example"):
        answer = wire.sent(
            f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        )
        assert b" 403 " in answer[:20] or not answer, answer[:100]


def _no_http(wire: _Wire, rng: random.Random) -> None:
    for data in (
        b"\x16\x03\x01" + rng.randbytes(200),
        b"GET / HTTP/9.9\r\n\r\n",
        b"X" * 200_000,
    ):
        wire.sent(data)


def _many_connections(wire: _Wire, rng: random.Random) -> None:
    connections = []
    host, port = wire.host.rsplit(":", 1)
    with suppress(OSError):
        for _ in range(_CONNECTIONS):
            connections.append(
                socket.create_connection((host, int(port)), timeout=5)
            )
    time.sleep(_HELD_S)
    for raw in connections:
        raw.close()


def _reset(wire: _Wire, rng: random.Random) -> None:
    """Go away with a reset: before the answer, and in the middle of it."""
    for wait_s in (0.0, 0.02, 0.2):
        with wire.opened() as raw:
            body = _private(_LOST)
            head = wire.head(
                f"Content-Length: {len(body)}", "x-api-key: good-for-nothing"
            )
            raw.sendall(head + b"\r\n" + body)
            time.sleep(wait_s)
            raw.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )


def _never_reads(wire: _Wire, rng: random.Random) -> None:
    with wire.opened() as raw:
        body = _private(_LOST)
        head = wire.head(
            f"Content-Length: {len(body)}", "x-api-key: good-for-nothing"
        )
        for _ in range(20):
            with suppress(OSError):
                raw.sendall(head + b"\r\n" + body)
        time.sleep(_HELD_S)


def _forged(wire: _Wire, rng: random.Random) -> None:
    answer = wire.posted(
        _private(_FORGED), f"x-api-key: forged-{rng.random()}"
    )
    assert b" 401 " in answer[:20] or not answer, answer[:100]


def _private(text: str) -> bytes:
    """A request with something to set aside."""
    history = [said_by_user("anthropic", "Find the fault of nobody")]
    history = grown("anthropic", history, 0, text)
    return json.dumps(
        {**request("anthropic", history), "stream": True}
    ).encode()


_LOST = "of somebody who went away\n" * 3_000
_FORGED = "of a forged key\n" * 3_000
_Act: TypeAlias = tuple[Callable[[_Wire, random.Random], None], float]
_HOSTILE: tuple[_Act, ...] = (
    (_slow_head, 0.1),
    (_half_body, 0.1),
    (_huge_body, 20.0),
    (_name_many_times, 5.0),
    (_bad_json, 1.0),
    (_cross_site, 0.5),
    (_wrong_host, 0.5),
    (_no_http, 1.0),
    (_many_connections, 5.0),
    (_reset, 0.5),
    (_never_reads, 1.0),
    (_forged, 0.5),
)
"""What hostile clients do, and how many seconds they wait before they do it again."""


async def _hostile(
    act: Callable[[_Wire, random.Random], None],
    pause_s: float,
    url: str,
    until: float,
    tally: Tally,
) -> None:
    """Do one thing again and again."""
    wire, rng = _Wire(url), random.Random(act.__name__)
    while time.monotonic() < until:
        with suppress(OSError):
            await asyncio.to_thread(act, wire, rng)
        name = act.__name__.strip("_")
        tally.hostile[name] = tally.hostile.get(name, 0) + 1
        await asyncio.sleep(pause_s)


# ── the whole ────────────────────────────────────────────────────────────────────────────


async def _soak(minutes: float, folder: Path, hostile: Sequence[_Act]) -> bool:
    tally, control = Tally(), Control()
    provider = await _provider()
    upstream = f"http://127.0.0.1:{provider.addresses[0][1]}"
    kept = folder / "kept.db"
    command = [
        sys.executable,
        "-m",
        "ullage",
        "proxy",
        "--listen=127.0.0.1:0",
        "--workers=2",
    ]
    proxy = subprocess.Popen(  # noqa: ASYNC220 - before anything else runs
        [*command, f"--store={kept}", f"--upstream=anthropic={upstream}"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert proxy.stderr is not None
    line = await asyncio.to_thread(proxy.stderr.readline)
    url, until = line.split()[-1], time.monotonic() + 60 * minutes
    lines = asyncio.create_task(drained(proxy.stderr))
    material, sizes = Material(), list[float]()
    works: list[Awaitable[None]] = [_controlled(upstream, until, control)]
    works += [
        _client(url, material, n, until, tally, control)
        for n in range(_CLIENTS)
    ]
    works += [
        _hostile(act, pause_s, url, until, tally) for act, pause_s in hostile
    ]
    running = [asyncio.ensure_future(work) for work in works]
    while time.monotonic() < until:
        await asyncio.sleep(min(60.0, 60 * minutes / 9))
        sizes.append(resident_mb(proxy.pid))
        print(f"{tally} {sizes[-1]:.0f} MB", flush=True)
    await asyncio.gather(*running)
    proxy.terminate()
    status = await asyncio.to_thread(proxy.wait)
    await lines
    proxy.stderr.close()
    await provider.cleanup()
    with closing(SqliteStore(kept)) as store:
        forged = store.existing_refs([ref_of(_FORGED)])
    third = max(len(sizes) // 3, 1)
    grows = max(sizes[-third:]) / max(sizes[: 2 * third])
    print(
        f"{tally}; memory {grows:.2f}; status {status}; kept of forged keys: {len(forged)}"
    )
    return not (
        tally.lost
        or tally.mixed
        or tally.late
        or status
        or forged
        or grows > _GROWS
    )


@click.command()
@click.argument("minutes", type=float)
@click.option(
    "--calm",
    is_flag=True,
    help="Without hostile clients: what the machine itself does.",
)
def main(minutes: float, calm: bool) -> None:
    """Put a proxy among hostile clients for so many MINUTES."""
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(
            not asyncio.run(
                _soak(minutes, Path(folder), () if calm else _HOSTILE)
            )
        )


if __name__ == "__main__":
    main()
