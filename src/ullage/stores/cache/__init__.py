"""A Valkey or Redis server beside a store: copies of objects, and leases. Nothing else.

What it holds is held elsewhere too, or is not worth keeping. A copy is found by the name of its
object, which is in a row of the store, never changes and is never used again: so a copy is never
old, and the store is asked first in any case. Each is checked before it is used. A server that
is lost, emptied, or slow changes no byte of a view: it costs the time of reading from the bucket,
and at worst that two workers pay for one summary. The ledger is never here: a Redis that
acknowledged a write may lose it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import redis
from blake3 import blake3
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from ullage.core.errors import ConfigError, StoreError
from ullage.core.values.carried import Portable
from ullage.stores._base import Store, StoreWrapper
from ullage.stores._packing import to_utf8
from ullage.stores.leases import Lease

__all__ = ["Cache", "Leased"]

T = TypeVar("T")

NAME = "cache"
_SCHEMES = {
    "valkey": "redis",
    "valkeys": "rediss",
    "redis": "redis",
    "rediss": "rediss",
}
_KEPT_S = 3_600
_AWAY_S = 5.0
"""How long a server that did not answer is not asked for copies; then it is tried again."""
_SEAL = 16

_CLAIM = """
local held = redis.call('HMGET', KEYS[1], 'holder', 'reply')
if held[2] then return {0, held[2]} end
if held[1] and held[1] ~= ARGV[1] then return {0} end
redis.call('HSET', KEYS[1], 'holder', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {1}
"""
_FULFIL = """
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[1] then return 0 end
if ARGV[3] == '' then return redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'reply', ARGV[3])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""


class Cache(Portable):
    """Copies of objects, and leases, on a Valkey or Redis server. Safe over threads and forks.

    The contract is `ullage.stores.objects.storage.BodyCache`.

    Args:
        url: ``valkey://host:6379/0``, with ``valkeys://`` over TLS; ``redis://`` is the same.
        timeout_s: how long an answer is waited for. A copy that takes longer is no gain.
        kept_s: how long a copy is held. Give the server a ``maxmemory`` and a policy such as
            ``allkeys-lru``.

    Raises:
        ConfigError: the address cannot be read. Whether a server is there is not asked.
    """

    def __init__(
        self, url: str, *, timeout_s: float = 0.25, kept_s: float = _KEPT_S
    ) -> None:
        scheme, slashes, rest = url.partition("://")
        try:
            self._server = redis.Redis.from_url(
                _SCHEMES[scheme] + slashes + rest,
                socket_timeout=timeout_s,
                socket_connect_timeout=timeout_s,
                retry=Retry(
                    NoBackoff(), 1
                ),  # a connection that was closed meanwhile
            )
        except (KeyError, ValueError):
            remedy = "Write it as valkey://host:6379/0"
            raise ConfigError(
                "cache", "the address cannot be read", remedy
            ) from None
        self._kept_ms = int(kept_s * 1_000)
        self._away_until_s = 0.0
        self._claim = self._server.register_script(_CLAIM)
        self._fulfil = self._server.register_script(_FULFIL)

    def body(self, name: str) -> bytes | None:
        """The copy of an object; None if there is none, or it is damaged.

        Args:
            name: of the object.
        """
        copy = self._ask(lambda: self._server.get(_body_key(name)))
        if not isinstance(copy, bytes) or _seal(name, copy[_SEAL:]) != copy:
            return None
        return copy[_SEAL:]

    def keep(self, name: str, body: bytes) -> None:
        """Store a copy for a while.

        Args:
            name: of the object.
            body: its bytes.
        """
        key = _body_key(name)
        copy = _seal(name, body)
        self._ask(lambda: self._server.set(key, copy, px=self._kept_ms))

    def lose(self, names: Sequence[str]) -> None:
        """Remove copies. Those on a server that does not answer go when their time is up.

        Args:
            names: of the objects.
        """
        self._ask(lambda: self._server.unlink(*map(_body_key, names)))

    def claim(
        self, tenant: str, key: bytes, holder: bytes, for_s: float
    ) -> Lease:
        """`ullage.stores.leases.Leases.claim`.

        Raises:
            StoreError: the server does not answer.
        """
        arguments: tuple[bytes | int, ...] = (holder, int(for_s * 1_000))
        answer = self._require(
            "claim", lambda: self._claim([_lease_key(tenant, key)], arguments)
        )
        return Lease(bool(answer[0]), answer[1] if len(answer) > 1 else None)

    def fulfil(
        self,
        tenant: str,
        key: bytes,
        holder: bytes,
        reply: bytes | None,
        for_s: float,
    ) -> None:
        """`ullage.stores.leases.Leases.fulfil`.

        Raises:
            StoreError: the server does not answer.
        """
        arguments: tuple[bytes | int, ...] = (
            holder,
            int(for_s * 1_000),
            reply or b"",
        )
        self._require(
            "fulfil",
            lambda: self._fulfil([_lease_key(tenant, key)], arguments),
        )

    def around(self, store: Store) -> Leased:
        """Wrap a store, so that its leases are on this server.

        Args:
            store: the store.
        """
        return Leased(store, self)

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _ask(self, ask: Callable[[], T]) -> T | None:
        """The server's answer; None if it does not answer, or did not a moment ago."""
        if time.monotonic() < self._away_until_s:
            return None
        try:
            return ask()
        except (RedisError, OSError):
            # a copy is never worth a second wait
            self._away_until_s = time.monotonic() + _AWAY_S
            return None

    def _require(self, operation: str, ask: Callable[[], Any]) -> Any:
        """The server's answer; its failures are raised as StoreError."""
        try:
            return ask()
        except (RedisError, OSError):
            raise StoreError(
                NAME, operation, "the server does not answer. Check it"
            ) from None


class Leased(StoreWrapper):
    """A store whose leases are on a cache; closing it closes both."""

    def __init__(self, store: Store, cache: Cache) -> None:
        super().__init__(store)
        self._cache = cache
        self.claim = cache.claim
        self.fulfil = cache.fulfil

    def close(self) -> None:
        """`Store.close`."""
        self._cache.close()
        self.store.close()


def _seal(name: str, body: bytes) -> bytes:
    """A copy, with a hash in front that binds it to its object."""
    seal = blake3(name.encode(), derive_key_context="ullage copy").update(body)
    return seal.digest(_SEAL) + body


def _body_key(name: str) -> bytes:
    return b"ullage:object:" + name.encode()


def _lease_key(tenant: str, key: bytes) -> bytes:
    return b"ullage:lease:" + blake3(key + to_utf8(tenant)).digest()
