"""Conversations as a client sends them, and what their answers take."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import aiohttp

from lab.bench.material import Format, Material, grown, request, said_by_user

PATHS = {"openai-chat": "/v1/chat/completions", "anthropic": "/v1/messages"}
_HEADERS = {
    "Content-Type": "application/json",
    "Authorization": "Bearer sk-bench-only-0123456789ab",
    "x-api-key": "none",
    "anthropic-version": "2023-06-01",
}
_MESSAGES, _NEW_CHARS = 100, 1_500


def bodies_of(
    material: Material,
    format: Format,
    kind: str,
    megabytes: float,
    conversation: int,
) -> Iterator[bytes]:
    """The requests of one conversation of about this size, without end.

    Args:
        material: what it is made of.
        format: its wire.
        kind: ``"grow"``: each has two messages more than the one before; ``"tail"``: each
            differs from the one before in its last message alone.
        megabytes: its size.
        conversation: which; no two say the same, nor do two kinds or sizes of one.
    """
    history = material.history(format, _MESSAGES + conversation, megabytes)
    # a conversation of its own: one that began like an earlier one would be that one, changed
    named = f"part {conversation} of {megabytes} MB, {kind},"
    history[0] = said_by_user(
        format, f"Find out why the tests of {named} fail."
    )
    if kind == "tail":  # of a conversation that was seen before
        yield _body(request(format, history))
    number = 0
    while True:
        output = f"{number} " + material.source[number : number + _NEW_CHARS]
        longer = grown(
            format, history, number if kind == "grow" else 0, output
        )
        if kind == "grow":
            history = longer
        yield _body(request(format, longer))
        number += 1


def _body(request: Mapping[str, Any]) -> bytes:
    """A request as the providers' SDKs write it: without spaces, in UTF-8."""
    text = json.dumps(request, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def times_of(
    url: str, format: Format, conversations: Sequence[Sequence[bytes]]
) -> tuple[list[float], float]:
    """Milliseconds of every answer, each conversation over a connection of its own, all at once.

    Args:
        url: of the proxy.
        format: the wire.
        conversations: the requests of each, in order.

    Returns:
        The times, and the seconds that all of them took.

    Raises:
        RuntimeError: an answer was none.
    """
    return asyncio.run(_times(f"{url}{PATHS[format]}", conversations))


async def _times(
    url: str, conversations: Sequence[Sequence[bytes]]
) -> tuple[list[float], float]:
    timeout = aiohttp.ClientTimeout(total=120)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout
    ) as client:
        began = time.perf_counter()
        found = await asyncio.gather(
            *(_one(client, url, each) for each in conversations)
        )
        whole_s = time.perf_counter() - began
    return [ms for each in found for ms in each], whole_s


async def _one(
    client: aiohttp.ClientSession, url: str, bodies: Sequence[bytes]
) -> list[float]:
    times = []
    for body in bodies:
        began = time.perf_counter()
        async with client.post(url, data=body, headers=_HEADERS) as reply:
            said = await reply.read()
            if reply.status != 200:
                raise RuntimeError(f"status {reply.status}: {said[:200]!r}")
        times.append((time.perf_counter() - began) * 1_000)
    return times
