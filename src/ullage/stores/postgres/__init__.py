"""A store on a PostgreSQL server, for many machines.

    schema.py      the tables, as the steps that lead from each version to the next
    asking.py      a generator of queries is run on a connection, sync or async
    outputs.py     what was set aside: how it is written, read and named
    records.py     the ledger's records
    leases.py      who asks a model for a summary just now
    spending.py    what a fleet has spent of a budget
    cleaning.py    what clean-up asks
    connecting.py  pools of connections; what is tried again, and what a failure means
    store.py       the two stores

Everything that is asked of the server is asked by a generator of queries. It knows neither a
connection nor a loop, so that the store and the one for an event loop are the same code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.on_demand import names

__all__ = ["AsyncPostgresStore", "PostgresStore"]

if TYPE_CHECKING:
    from ullage.stores.postgres.store import AsyncPostgresStore, PostgresStore
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ullage.stores.postgres.store": "AsyncPostgresStore PostgresStore",
        },
    )
