"""A Valkey or Redis server beside a store: copies of objects, and leases. Nothing else.

    cache.py   what is asked of the server, and what happens when it does not answer

What it holds is held elsewhere too, or is not worth keeping. A copy is found by the name of its
object, which is in a row of the store, never changes and is never used again: so a copy is never
old, and the store is asked first in any case. Each is checked before it is used. A server that
is lost, emptied, or slow changes no byte of a view: it costs the time of reading from the bucket,
and at worst that two workers pay for one summary. The ledger is never here: a Redis that
acknowledged a write may lose it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.on_demand import names

__all__ = ["Cache"]

if TYPE_CHECKING:
    from ullage.stores.cache.cache import Cache
else:
    __getattr__, __dir__ = names(__name__, {"ullage.stores.cache.cache": "Cache"})
