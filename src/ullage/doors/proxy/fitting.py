"""What fits requests in one worker: sessions of all conversations on one store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from ullage import (
    AsyncSessions,
    Limits,
    Output,
    Record,
    SqliteStore,
    TeamBudgets,
    common_keys,
)
from ullage.core.errors import StoreError
from ullage.doors.exchange import Exchanges
from ullage.doors.host import to_its_end
from ullage.doors.proxy.acceptance import Acceptance, HoldingStore
from ullage.doors.proxy.config import Config
from ullage.session.summarise import Summariser
from ullage.stores import (
    MemoryStore,
    SpendingRow,
    SpendingSum,
    Store,
    Threaded,
    is_url,
    open_lasting,
    spending_of,
)

_MOST_CONVERSATIONS = 10_000
_FEW_KEYS = 256


class LocalStore(Threaded):
    """A store on this machine: what takes no longer than a thread would is asked at once.

    Args:
        store: the store.
        quick: another handle of what it keeps, which waits for nobody; None: there is none, and
            whatever is written is written in a thread.
    """

    def __init__(self, store: Store, quick: Store | None = None) -> None:
        super().__init__(store)
        self.blocking = store
        self._quick = quick

    async def find(
        self, tenant: str, keys: Iterable[bytes]
    ) -> tuple[Record, ...]:
        """See `Store.find`. Reading waits for no writer."""
        key_list = tuple(keys)
        if len(key_list) <= _FEW_KEYS:
            with suppress(StoreError):
                return (self._quick or self.store).find(tenant, key_list)
        return await super().find(tenant, key_list)

    async def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """See `Store.commit`. What is not synced is written at once, unless others write now."""
        is_synced = bool(outputs) or any(record.is_once for record in records)
        if self._quick is not None and not is_synced:
            with suppress(StoreError):
                return self._quick.commit(tenant, outputs, records)
        return await super().commit(tenant, outputs, records)

    async def book_spending(
        self, rows: Sequence[SpendingRow]
    ) -> tuple[SpendingSum, ...]:
        """See `SpendingStore.book_spending`. At once, unless others write now."""
        keeper = spending_of(self._quick)
        if keeper is not None:
            with suppress(StoreError):
                sums: tuple[SpendingSum, ...] = keeper.book_spending(rows)
                return sums
        return await _booked_in_thread(self.store, rows)

    async def close(self) -> None:
        """See `Store.close`."""
        if self._quick is not None:
            self._quick.close()
        await super().close()


def local_store(
    store: Store, acceptance: Acceptance | None = None
) -> LocalStore:
    """A store on this machine, for an event loop.

    Args:
        store: the store.
        acceptance: what is held of tenants that no upstream has accepted; None: nothing is.
    """
    holding = store if acceptance is None else HoldingStore(store, acceptance)
    if isinstance(store, SqliteStore):
        with suppress(StoreError):  # another process holds the file just now
            quick: Store = SqliteStore(store.path, busy_timeout_s=0.0)
            quick = (
                quick
                if acceptance is None
                else HoldingStore(quick, acceptance, waits=False)
            )
            return LocalStore(holding, quick)
    return LocalStore(holding)


class RemoteStore(Threaded):
    """A store on another machine, for an event loop."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.blocking = store

    async def book_spending(
        self, rows: Sequence[SpendingRow]
    ) -> tuple[SpendingSum, ...]:
        """See `SpendingStore.book_spending`."""
        return await _booked_in_thread(self.store, rows)


async def _booked_in_thread(
    store: Store, rows: Sequence[SpendingRow]
) -> tuple[SpendingSum, ...]:
    book = spending_of(store).book_spending
    sums: tuple[SpendingSum, ...] = await to_its_end(
        asyncio.to_thread(book, rows)
    )
    return sums


def _threaded(store: Store, acceptance: Acceptance | None) -> Threaded:
    """A store on another machine, for an event loop."""
    return RemoteStore(
        store if acceptance is None else HoldingStore(store, acceptance)
    )


def exchanges_of(
    config: Config,
    acceptance: Acceptance | None = None,
    summariser: Summariser | None = None,
) -> Exchanges:
    """The exchanges of one worker.

    A dry run keeps what it sets aside in memory: nothing of it is to last.

    Args:
        config: the proxy's settings.
        acceptance: what is held of tenants that no upstream has accepted; None: nothing is.
        summariser: who writes summaries; None: nobody.

    Raises:
        StoreError: the store cannot be opened.
    """
    if config.dry_run:
        store: Threaded = LocalStore(MemoryStore())
    else:
        opened = open_lasting(
            config.store or "sqlite", config.blobs, config.cache
        )
        make = _threaded if is_url(config.store) else local_store
        store = make(opened, acceptance)
    limits = (
        None
        if config.window_tokens is None
        else Limits(window_tokens=config.window_tokens)
    )
    sessions = AsyncSessions(
        store=store,
        policy=config.policy,
        joins=config.joins,
        holdout=config.holdout,
        limits=limits,
        summariser=summariser,
        user_tools=config.user_tools,
        redact=common_keys if config.redact else None,
        outline=config.outline,
        most=_MOST_CONVERSATIONS,
        most_bytes=config.limits.conversations_bytes,
        older_bytes=config.limits.older_bytes,
    )
    return Exchanges(sessions)


def budgets_of(
    config: Config,
    exchanges: Exchanges,
    acceptance: Acceptance | None,
    writer: str | None = None,
) -> TeamBudgets | None:
    """The budgets that requests of one worker count towards; None: there are none.

    A dry run counts nothing: its store does not last.

    Args:
        config: the proxy's settings.
        exchanges: of the worker.
        acceptance: whom the upstreams have accepted; None: everybody is.
        writer: names the worker, also when it is started again; None: it has no name.
    """
    if not config.budgets or config.dry_run:
        return None
    store: Any = exchanges.sessions.store

    def is_known(tenant: str) -> bool:
        if acceptance is None or tenant in config.tenants:
            return True
        return acceptance.is_accepted(tenant)

    return TeamBudgets(
        config.budgets,
        store.book_spending,
        is_known=is_known,
        writer=writer,
    )
