"""What fits requests in one worker: sessions of all conversations on one store."""

from __future__ import annotations

from collections.abc import Iterable

from ullage.exchange import Exchanges
from ullage.proxy.config import Config
from ullage.session.sessions import AsyncSessions
from ullage.stores import MemoryStore, Store
from ullage.stores._open import is_url
from ullage.stores.objects.opening import opened
from ullage.stores.threaded import Threaded
from ullage.values.effects import Record
from ullage.values.limits import Limits

__all__ = ["Near", "exchanges_of"]

_MOST_CONVERSATIONS, _FEW_KEYS = 10_000, 256


class Near(Threaded):
    """A store on this machine: what takes no longer than a thread would is asked at once."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.blocking = store

    async def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """See `Store.find`. Reading waits for no writer."""
        wanted = tuple(keys)
        if len(wanted) > _FEW_KEYS:
            return await super().find(tenant, wanted)
        return self.store.find(tenant, wanted)


def exchanges_of(config: Config) -> Exchanges:
    """The exchanges of one worker.

    A dry run keeps what it sets aside in memory: nothing of it is to last.

    Args:
        config: the proxy's settings.

    Raises:
        StoreError: the store cannot be opened.
    """
    if config.dry_run:
        store: Threaded = Near(MemoryStore())
    else:
        kept = opened(config.store or "sqlite", config.blobs, config.cache)
        store = Threaded(kept) if is_url(config.store) else Near(kept)
    limits = None if config.window_tokens is None else Limits(window_tokens=config.window_tokens)
    sessions = AsyncSessions(
        store=store,
        policy=config.policy,
        limits=limits,
        most=_MOST_CONVERSATIONS,
        most_bytes=config.limits.conversations_bytes,
    )
    return Exchanges(sessions)
