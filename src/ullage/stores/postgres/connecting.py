"""Connections to the server: shared by what a process opens there, tried again, and explained.

Everything that is asked may be asked again, for all of it is idempotent: so a deadlock, a
restart of the server, and a connection that breaks before the answer came are tried again until
the time is up. A server that did not answer in that time is left alone for a while
(`ullage.stores.postgres.outage`). No answer of the server is shown in an error: it may hold
content.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from ullage.core.errors import ConfigError, StoreError, StoreFull
from ullage.stores._base import closed_error
from ullage.stores.postgres.asking import answered
from ullage.stores.postgres.outage import Outage
from ullage.stores.postgres.schema import NAME, prepare

T = TypeVar("T")

_AGAIN = frozenset(
    (
        *(
            "40001",
            "40P01",
            "55P03",
        ),  # two met: serialization, deadlock, lock not available
        *(
            "57P01",
            "57P02",
            "57P03",
        ),  # the server stops, crashed, or is not up yet
        *(
            "57P05",
            "25P03",
            "25P04",
        ),  # it ended the connection: idle, or in a transaction too long
        "53300",  # it has no connection left
        "25006",  # read-only: a standby that is becoming the server
    )
)
"""States after which the same may be asked again (PostgreSQL, "Error Codes")."""
_NO_CONNECTION = "08"
"""The class of states by which a pooler tells that it does not reach the server behind it."""
_REASONS: dict[type[Exception], str] = {
    errors.ReadOnlySqlTransaction: "the server takes no writes. Name the one that does",
    errors.InsufficientPrivilege: "the role may not do that. Grant it the schema ullage",
    errors.UndefinedTable: "its tables are not there. Open the store with a role that may create",
    errors.InvalidCatalogName: "there is no such database. Create it",
    errors.InvalidPassword: "the server refused the password. Check it",
    errors.InvalidAuthorizationSpecification: "the server refused the role. Check its name",
    psycopg.DataError: "a value is none that it takes: a text with a NUL, a number over 64 bits",
}
_RECONNECTED_S = 2.0
"""So long a pool waits longer and longer between two tries to connect, then it begins anew: it has
a connection soon after a server is back, however long that was away."""
_ANSWER_SHARE = 1.2
"""A connection waits for an answer longer than the server does for a lock, by this: else nobody
could tell a server that waits from one that is away."""
_UNREACHABLE = (
    "the server cannot be reached. Check its address, and that it runs"
)
_FULL = "all connections are in use. Try again, or raise most_connections of the store"


def conninfo_of(url: str, timeout_s: float) -> str:
    """What libpq is given: the address, and times within which a dead peer is noticed.

    Raises:
        ConfigError: the address cannot be read; it is not shown, for it may hold a password.
    """
    defaults: dict[str, Any] = {
        "connect_timeout": max(2, int(timeout_s)),
        "keepalives_idle": max(1, int(timeout_s)),
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": int(timeout_s * 1_000),
        "application_name": "ullage",
    }
    remedy = "Write it as postgresql://user@host:5432/database"
    if not isinstance(url, str):
        raise ConfigError(
            "store", f"a {type(url).__name__} is no address", remedy
        )
    try:
        parameters = conninfo_to_dict(url)
        return make_conninfo(**{**defaults, **parameters})
    except psycopg.ProgrammingError:
        raise ConfigError(
            "store", "the address cannot be read", remedy
        ) from None


def _settings(timeout_s: float) -> str:
    """What each connection is told: nobody holds a lock, or waits for one, for ever."""
    wait_ms = int(timeout_s * 1_000)
    return f"SET lock_timeout = {wait_ms}; SET idle_in_transaction_session_timeout = {wait_ms}"


def may_try_again(error: psycopg.Error) -> bool:
    """Whether the same may be asked once more, of this server or of the one that follows it."""
    return _is_lost(error) or error.sqlstate in _AGAIN


def _is_lost(error: psycopg.Error) -> bool:
    """Whether no server answered, nor a connection of the pool came free in time.

    What psycopg itself refuses has no state either.
    """
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_NO_CONNECTION)
    return isinstance(error, psycopg.OperationalError)


def _pause_s(tries: int) -> float:
    """How long to wait before the next try; at random, so that two do not meet again."""
    return random.uniform(0.5, 1) * float(min(0.01 * 2**tries, 0.5))


def store_error(operation: str, error: psycopg.Error) -> StoreError:
    """What is raised for a refusal: why, and what to do, without content and without address."""
    kind = StoreFull if isinstance(error, errors.DiskFull) else StoreError
    reason = next(
        (text for kind, text in _REASONS.items() if isinstance(error, kind)),
        "",
    )
    if isinstance(error, errors.DiskFull):
        reason = "the server's disk is full. Free some space and try again"
    elif _is_lost(error):
        reason = _UNREACHABLE
    return kind(
        NAME, operation, reason or f"PostgreSQL refused it ({error.sqlstate})"
    )


class _Call:
    """One call over a pool: how long it is tried, and what its end tells of the server.

    As a context it has a connection.

    Args:
        outage: what the calls over the pool know of the server.
        operation: what is done, for errors.
        timeout_s: how long it is tried while the server is there.

    Raises:
        StoreError: the server did not answer a moment ago.
    """

    def __init__(
        self, outage: Outage, operation: str, timeout_s: float
    ) -> None:
        patience_s = outage.patience_s(timeout_s)
        if not patience_s:
            raise StoreError(NAME, operation, _UNREACHABLE)
        self._outage = outage
        self._operation = operation
        self._began_s = time.monotonic()
        self._until_s = self._began_s + patience_s
        self._tries = 0

    @property
    def left_s(self) -> float:
        """How long it is still tried, in seconds."""
        return self._until_s - time.monotonic()

    def __enter__(self) -> None:
        self._outage.asking.add(self)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._outage.asking.discard(self)
        if kind is None:
            self._outage.answer()

    def pause_s(self, error: psycopg.Error) -> float:
        """How long to wait before the next try, in seconds.

        Args:
            error: what the try before it met.

        Raises:
            StoreError: there is no next try.
        """
        pause_s = _pause_s(self._tries)
        self._tries += 1
        if may_try_again(error) and pause_s <= self.left_s:
            return pause_s
        raise self._end(error) from None

    def _end(self, error: psycopg.Error) -> StoreError:
        """Note what the last try tells of the server; the error to raise."""
        if isinstance(error, PoolTimeout) and self._outage.is_full:
            return StoreError(NAME, self._operation, _FULL)
        if _is_lost(error):
            self._outage.fail(self._began_s)
        elif error.sqlstate is not None:
            self._outage.answer()
        return store_error(self._operation, error)


class _Bounded(Connection):
    """A connection that waits for an answer no longer than ``longest_s``, and is closed then."""

    longest_s: float | None = None

    def wait(
        self, gen: Any, interval: float = 0.1, timeout: float | None = None
    ) -> Any:
        """`psycopg.Connection.wait`, with an end."""
        try:
            return super().wait(
                gen, interval, self.longest_s if timeout is None else timeout
            )
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.close()
            raise


class _AsyncBounded(AsyncConnection):
    """The same for an event loop."""

    longest_s: float | None = None

    async def wait(  # psycopg's own signature
        self,
        gen: Any,
        interval: float = 0.1,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Any:
        """`psycopg.AsyncConnection.wait`, with an end."""
        try:
            return await super().wait(
                gen, interval, self.longest_s if timeout is None else timeout
            )
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self.close()
            raise


class Pool:
    """The connections of one process to one address, for as many stores as it opens there.

    A fork gets connections of its own.

    Args:
        conninfo: the server and the database (`conninfo_of`).
        timeout_s: how long a call is tried before it fails.
        most: the most connections at once.
    """

    def __init__(self, conninfo: str, timeout_s: float, most: int) -> None:
        self._conninfo = conninfo
        self._timeout_s = timeout_s
        self._most = most
        self._shared: _SharedPool | None = None
        self._is_open = True

    def run(self, operation: str, work: Callable[[Connection], T]) -> T:
        """Do some work on a connection, and again where that may help.

        Args:
            operation: what is done, for errors.
            work: is given the connection.

        Raises:
            StoreError: it failed, or the time is up.
        """
        call = _Call(self._pool(operation).outage, operation, self._timeout_s)
        while True:
            connections = self._pool(operation).connections
            try:
                with connections.connection(call.left_s) as db, call:
                    return work(db)
            except psycopg.Error as error:
                pause_s = call.pause_s(error)
            # outside of the block: the connection is back in the pool meanwhile
            time.sleep(pause_s)

    def close(self) -> None:
        """Close the connections, unless another store of this process uses them."""
        self._is_open = False
        self._shared = None

    def _pool(self, operation: str) -> _SharedPool:
        if not self._is_open:
            raise closed_error(NAME, operation)
        key = os.getpid(), self._conninfo, self._most
        with _LOCK:
            shared = self._shared
            if shared is None or shared.process != os.getpid():
                shared = _SHARED.get(key) or _SharedPool(
                    self._conninfo, self._timeout_s, self._most
                )
                self._shared = _SHARED[key] = shared
            return shared


def prepared(url: str, timeout_s: float, most: int) -> Pool:
    """The connections of this process to an address, whose tables are there.

    Raises:
        ConfigError: the address cannot be read.
        StoreError: the server cannot be reached, or has tables that a later version made.
    """
    conninfo = conninfo_of(url, timeout_s)
    try:
        with psycopg.connect(conninfo, autocommit=True) as db:
            answered(db, prepare())
    except psycopg.Error as error:
        raise store_error("open", error) from None
    return Pool(conninfo, timeout_s, most)


class _SharedPool:
    """Connections that are closed when no store holds them; a fork leaves them to its parent."""

    def __init__(self, conninfo: str, timeout_s: float, most: int) -> None:
        self.outage = Outage(most)
        self.connections = ConnectionPool(
            conninfo,
            connection_class=_Bounded,
            kwargs={"autocommit": True},
            configure=partial(_prepare, timeout_s=timeout_s),
            min_size=1,
            max_size=most,
            reconnect_timeout=_RECONNECTED_S,
            reconnect_failed=ConnectionPool.check,
            open=True,
        )
        self.process = os.getpid()
        weakref.finalize(self, _close, self.connections, self.process)


def _close(connections: ConnectionPool[_Bounded], process: int) -> None:
    if process == os.getpid():
        connections.close()


_SHARED: weakref.WeakValueDictionary[tuple[int, str, int], _SharedPool] = (
    weakref.WeakValueDictionary()
)
"""By process, address and number of connections."""
_LOCK = threading.Lock()


def _prepare(db: _Bounded, timeout_s: float) -> None:
    db.execute(_settings(timeout_s))
    db.longest_s = timeout_s * _ANSWER_SHARE


def _forked() -> None:
    """A fork has none of the threads that may hold the lock."""
    global _LOCK
    _LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class AsyncPool:
    """`Pool` for one event loop, with connections of its own."""

    def __init__(self, conninfo: str, timeout_s: float, most: int) -> None:
        self._timeout_s = timeout_s
        self._is_open = True
        self._outage = Outage(most)
        self._connections = AsyncConnectionPool(
            conninfo,
            connection_class=_AsyncBounded,
            kwargs={"autocommit": True},
            configure=self._prepare,
            min_size=1,
            max_size=most,
            reconnect_timeout=_RECONNECTED_S,
            reconnect_failed=AsyncConnectionPool.check,
            open=False,
        )

    async def run(
        self, operation: str, work: Callable[[AsyncConnection], Awaitable[T]]
    ) -> T:
        """See `Pool.run`."""
        call = _Call(self._outage, operation, self._timeout_s)
        while True:
            if not self._is_open:
                raise closed_error(NAME, operation)
            try:
                await self._connections.open()
                async with self._connections.connection(call.left_s) as db:
                    with call:
                        return await work(db)
            except psycopg.Error as error:
                pause_s = call.pause_s(error)
            await asyncio.sleep(pause_s)

    async def close(self) -> None:
        """Let go of the connections."""
        self._is_open = False
        await self._connections.close()

    async def _prepare(self, db: _AsyncBounded) -> None:
        await db.execute(_settings(self._timeout_s))
        db.longest_s = self._timeout_s * _ANSWER_SHARE
