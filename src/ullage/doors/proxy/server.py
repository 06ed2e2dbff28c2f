"""A worker: a listening socket, a relay behind it, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

from aiohttp import web

from ullage.core.errors import ConfigError
from ullage.doors.proxy.config import Config, host_and_port
from ullage.doors.proxy.connections import (
    BoundedServer,
    Connections,
    Handler,
    most_connections,
    raise_descriptors,
)
from ullage.doors.proxy.observers import Observers, observers_of
from ullage.doors.proxy.pages import Pages
from ullage.doors.proxy.quiet import own_words, quiet_loop
from ullage.doors.proxy.relay import RequestRelay
from ullage.doors.proxy.run_keys import RunKeys
from ullage.doors.proxy.siblings import ALONE, Siblings
from ullage.doors.proxy.spending import renewed
from ullage.doors.proxy.stderr import unwaited
from ullage.doors.proxy.tenants import Tenants, secret_of
from ullage.doors.proxy.upstream import client_of

_NO_KEY = "this proxy is for the command that it was started with, at the addresses it was given."
_BACKLOG = 1_024
_TAKEN_AT_ONCE = 1
"""So many connections a worker takes before it looks after those it has; asyncio takes as many as
may wait, so that of sixteen that come together one worker would get nearly all."""
_COLLECTED = 10_000, 20, 50
"""So many new containers, and collections of the generation before, lead to the next collection. A
body of 2 MB makes thousands of containers and no cycle."""


def bound(config: Config) -> socket.socket:
    """A socket that listens where the configuration says.

    Raises:
        ConfigError: that address cannot be had.
    """
    host, port = host_and_port(config.listen)
    try:
        return socket.create_server(
            (host, port), family=_family(host), backlog=_BACKLOG
        )
    except OSError as error:
        raise ConfigError(
            "listen",
            f"{config.listen} cannot be listened on ({error.strerror or type(error).__name__})",
            "Choose another port, or stop what holds this one.",
        ) from None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def serve(
    config: Config,
    listening: socket.socket,
    ready: Callable[[], None],
    *,
    siblings: Siblings = ALONE,
    leash: int | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then let what is under way come to its end.

    Args:
        config: the proxy's settings.
        listening: the socket.
        ready: called once requests are answered.
        siblings: the other workers on that socket.
        leash: a pipe to read from; where nobody holds its other end any more, that is the end too.
    """
    gc.freeze()  # what was imported stays: no collection has to walk it
    gc.set_threshold(*_COLLECTED)
    raise_descriptors()
    with unwaited(), own_words():
        asyncio.run(_serve(config, listening, ready, siblings, leash))


async def _serve(
    config: Config,
    listening: socket.socket,
    ready: Callable[[], None],
    siblings: Siblings,
    leash: int | None,
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    if leash is not None:
        loop.add_reader(leash, stop.set)
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(
            NotImplementedError
        ):  # Windows has none of it
            loop.add_signal_handler(signal_number, stop.set)
    async with running(config, listening, observers_of(config), siblings):
        ready()
        await stop.wait()
        if leash is not None:
            loop.remove_reader(leash)


@contextlib.asynccontextmanager
async def running(
    config: Config,
    listening: socket.socket,
    observers: Observers,
    siblings: Siblings = ALONE,
    run_keys: RunKeys | None = None,
) -> AsyncIterator[RequestRelay]:
    """A relay that answers on a socket while the block lasts; leaving it waits for replies.

    Args:
        config: the proxy's settings.
        listening: the socket, closed at the end.
        observers: called with each request that is over.
        siblings: the other workers on that socket.
        run_keys: who may use it; None: whoever reaches it.
    """
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(listening.close)
        tenants = _tenants_of(config)
        client = await stack.enter_async_context(client_of(config))
        relay = RequestRelay(
            config, client, tenants, observers, siblings.writer
        )
        relay.refuse = observers.refuse
        pages = Pages(config, relay, observers, siblings)
        if relay.keepalive is not None:
            relay.keepalive.notice = pages.note_kept_alive
            if siblings.folder is not None:
                relay.keepalive.is_elsewhere = pages.is_used_elsewhere

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            target = (
                request.raw_path
                if run_keys is None
                else run_keys.target(request)
            )
            if target is None:
                return relay.refusal(404, _NO_KEY, Connection="close")
            return await (pages if pages.are_meant(target) else relay)(
                request, target
            )

        quiet_loop(asyncio.get_running_loop())
        limits = config.limits
        connections = Connections(
            limits.connections or most_connections(), limits.head_s
        )
        relay.connections = connections
        runner = web.ServerRunner(
            _http(answer, connections), handle_signals=False
        )
        await runner.setup()
        site = web.SockSite(runner, listening, backlog=_TAKEN_AT_ONCE)
        await site.start()
        listening.listen(
            _BACKLOG
        )  # the site has made the queue as short as that
        try:
            async with (
                renewed(relay.budgets, relay.exchanges.sessions.store),
                siblings.answering(pages.for_siblings),
                connections.looked_after(),
            ):
                yield relay
        finally:
            relay.is_stopping = True
            if relay.keepalive is not None:
                await relay.keepalive.close()
            await _drained(relay, config.limits.drain_s, site)
            await runner.cleanup()
            await relay.close()


def _tenants_of(config: Config) -> Tenants:
    """Who names the tenants; where all are one, no secret is needed."""
    secret = b"" if config.tenant is not None else secret_of(config.store)
    return Tenants(config, secret)


def _http(answer: Handler, connections: Connections) -> BoundedServer:
    return BoundedServer(
        answer,
        connections,
        auto_decompress=False,
        access_log=cast("Any", None),
        keepalive_timeout=75.0,
        max_line_size=65_536,
        max_field_size=65_536,
        max_headers=512,
    )


async def _drained(
    relay: RequestRelay, most_s: float, site: web.SockSite
) -> None:
    """Take no more connections, and wait for the replies under way."""
    await site.stop()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(most_s):
            await relay.idle.wait()
