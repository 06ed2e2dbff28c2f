"""A summary that several workers want at once is asked for, and paid for, once.

Two workers that answer one turn of one conversation ask a model for the same summary. Where they
share a store that has leases, the first takes one on the request and puts the reply there; the
others wait for it. A lease ends by itself, so that nobody waits for a worker that died longer than
for the model. A store that fails is no reason to go without a summary: then it is paid for twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from os import urandom  # secrets would load OpenSSL: 4 MB
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec
from blake3 import blake3
from msgspec.structs import replace

from ullage.core.errors import StoreError
from ullage.core.values.effects import Reply, Summarise
from ullage.core.values.usage import Usage

__all__ = ["Lease", "Leases", "once"]

MARGIN_S = 5.0
"""How much longer a lease lasts than the model may take."""
KEPT_S = 600.0
"""How long a reply is there for those who come late."""
_PAUSE_S = 0.05

_Acts: TypeAlias = Generator[Callable[[], Any], Any, Any]


class Lease(NamedTuple):
    """The answer to a request for a lease.

    Attributes:
        is_mine: whether it was granted.
        reply: what its holder put there before, or None.
    """

    is_mine: bool
    reply: bytes | None = None


class Leases(Protocol):
    """The methods of a store that has leases; of an asynchronous one both are awaited."""

    def claim(
        self, tenant: str, key: bytes, holder: bytes, for_s: float
    ) -> Lease:
        """Take the lease on a key, unless another holds it or has put a reply there.

        Args:
            tenant: whose key.
            key: what the lease is on.
            holder: random bytes that name this holder.
            for_s: how long it lasts, in seconds.
        """

    def fulfil(
        self,
        tenant: str,
        key: bytes,
        holder: bytes,
        reply: bytes | None,
        for_s: float,
    ) -> None:
        """Put a reply where the lease is, or give the lease back.

        Args:
            tenant: as of `claim`.
            key: as of `claim`.
            holder: as of `claim`.
            reply: the reply; None: give the lease back.
            for_s: how long the reply stays there, in seconds.
        """


def once(
    request: Summarise,
    ask: Callable[[Summarise], Any],
    store: object,
    tenant: str,
    longest_s: float,
) -> _Acts:
    """Ask for a summary by way of leases, where the store has them.

    Args:
        request: what is asked for.
        ask: asks a model; may be a coroutine function.
        store: of the session; its layers are looked through for one that has leases.
        tenant: whose they are.
        longest_s: how long the model may take.

    Returns:
        Steps, each a function that is to be called; in the end the reply.
    """
    leases = _leases_of(store)
    if leases is None:
        return (yield partial(ask, request))
    key = _key(request)
    holder = urandom(16)
    for_s = longest_s + MARGIN_S
    until_s = time.monotonic() + for_s
    lease = Lease(is_mine=False)
    with suppress(StoreError):
        while not lease.is_mine and time.monotonic() < until_s:
            lease = yield partial(leases.claim, tenant, key, holder, for_s)
            reply = _decode(lease.reply)
            if reply is not None:
                return reply
            if not lease.is_mine:
                yield partial(time.sleep, _PAUSE_S)
    # with the lease, or without where its holder took too long
    reply = yield partial(ask, request)
    if lease.is_mine:
        with suppress(StoreError):
            yield partial(
                leases.fulfil, tenant, key, holder, _encode(reply), KEPT_S
            )
    return reply


def _leases_of(store: object) -> Leases | None:
    from ullage.stores._open import layers

    return next(
        (layer for layer in layers(store) if hasattr(layer, "claim")), None
    )


def _key(request: Summarise) -> bytes:
    return blake3(repr(request).encode("utf-8", "surrogatepass")).digest()


def _encode(reply: Reply | None) -> bytes | None:
    """The bytes of a reply that others can use, or None."""
    if reply is None or reply.problem:
        return None
    try:
        return msgspec.msgpack.encode(reply)
    except UnicodeEncodeError:  # a lone surrogate
        return None


def _decode(data: bytes | None) -> Reply | None:
    """The reply that another worker paid for: it counts no usage here."""
    try:
        reply = (
            None if data is None else msgspec.msgpack.decode(data, type=Reply)
        )
    except msgspec.MsgspecError:  # of another version
        return None
    return reply and replace(reply, usage=Usage())
