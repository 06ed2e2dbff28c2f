"""A budget that many processes and machines spend of together.

Each keeps account as ever, and at each `fit` and each reply tells the others what it spent and
hears what they did: one statement on the server. So the sum that a call is claimed against is at
most one call of each of the others old, and

    spent ≤ allowance + the most that one call can come to, for each worker

and one wrap-up for each session, where the allowance is given with one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import sub
from secrets import token_bytes
from typing import Any

from ullage.core.errors import ConfigError
from ullage.core.locks import Lock
from ullage.core.values.carried import Arguments
from ullage.core.values.effects import Do, Steps
from ullage.core.values.usage import Usage
from ullage.session.spend.book import Book, BookEntry
from ullage.session.spend.budget import Budget
from ullage.session.spend.calls import Call, Spent
from ullage.stores import PostgresStore, Store
from ullage.stores._open import innermost
from ullage.stores.postgres.spending import CallRow

__all__ = ["SharedBudget"]

_UNKEPT = re.compile("[\0\ud800-\udfff]")


class _Book(Book):
    """A book of calls, some of which are booked by other workers."""

    def know(self, spent: Spent) -> None:
        """Go on from the sum that the server holds."""
        if spent != self.spent:
            self._rows.append(BookEntry(len(self._rows), None, spent))

    def since(self, number: int) -> list[BookEntry]:
        """The rows from this number on."""
        return self._rows[number:]


class SharedBudget(Budget):
    """A `Budget` under one name on a PostgreSQL server.

    What was spent under the name before, by whomever, is spent. Each call is in the server's table
    ``ullage.calls``, with its agent and model. `calls` and `totals` have those of this process;
    `spent` is everybody's, of which the parts by modality are this process's alone.

    Args:
        name: the budget's; whoever gives the same at the same address spends of the same.
        store: the server, as ``"postgresql://…"``, or a store that is there.
        settings: those of `Budget`. All who share a budget give the same allowance.

    Raises:
        ConfigError: as of `Budget`, or ``store`` is no PostgreSQL server, or it does not
            take this name.
        StoreError: the server cannot be reached.
    """

    def __init__(self, name: str, store: str | Store, **settings: Any) -> None:
        if "spent" in settings:
            raise ConfigError(
                "spent", "the server knows what was spent", "Leave it out."
            )
        super().__init__(**settings)
        if _UNKEPT.search(name):
            reason = "it has a NUL or a lone surrogate, which the server does not take"
            raise ConfigError("name", reason, "Give another one.")
        if isinstance(store, str):
            store = PostgresStore(store)
        server = innermost(store)
        if not isinstance(server, PostgresStore):
            raise ConfigError(
                "store",
                "a shared budget needs a server",
                'Give "postgresql://…".',
            )
        self.name = name
        self._book: _Book = _Book(Spent())
        self._store = server
        self._worker = token_bytes(12)
        self._synced_rows = 1  # rows of the book; the first one is no call
        self._sync_lock = Lock()
        self.sync()

    def _made_with(self) -> Arguments:
        return self._arguments

    def synced(self) -> Steps[None]:
        """`sync` as steps of a session."""
        yield Do(self.sync)

    def sync(self) -> None:
        """Book on the server what is not booked there yet, and take its sum.

        Raises:
            StoreError: the server failed. What was to be booked is, the next time.
        """
        # the book's lock is not held while the server is asked: calls go on being booked
        with self._sync_lock:
            with self._lock:
                self._book_abandoned()
                rows = self._book.since(self._synced_rows)
            upto = self._synced_rows + len(rows)
            calls = self._rows_of(rows)
            sums = self._store.book(self.name, calls)
            with self._lock:  # calls were counted meanwhile
                more = (
                    call[_SUMS:]
                    for call in self._rows_of(self._book.since(upto))
                )
                self._book.know(
                    _spent(map(sum, zip(sums, *more, strict=True)))
                )
                self._synced_rows = upto

    def _rows_of(self, rows: Iterable[BookEntry]) -> list[CallRow]:
        return [self._row(row) for row in rows if row.call is not None]

    def _row(self, row: BookEntry) -> CallRow:
        """A call as a row of the server's table; of a fuller report, what it adds."""
        call = row.call
        replaced = None
        assert call is not None
        if row.replaces is not None:
            replaced = self._book.since(row.replaces)[0].call
        sums = _sums(call)
        replaced_sums = _sums(replaced)
        id = self._worker + row.number.to_bytes(8, "big")
        return CallRow(
            id, call.agent, call.model, *map(sub, sums, replaced_sums)
        )


_SUMS = CallRow._fields.index("fresh_tokens")


def _sums(call: Call | None) -> tuple[Any, ...]:
    """The columns of a call that are summed."""
    if call is None:
        return (0,) * len(CallRow._fields[_SUMS:])
    usage = call.usage
    is_priced = call.cost_usd is not None
    estimated = call.spent.estimated_tokens
    classes = (*usage.input_classes, usage.output_tokens)
    return (*classes, estimated, 1, call.cost_usd or 0.0, int(not is_priced))


def _spent(sums: Iterable[Any]) -> Spent:
    fresh, read, written, output, estimated, calls, cost_usd, unpriced = sums
    usage = Usage(
        fresh_tokens=fresh,
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=output,
    )
    cost = None if unpriced else cost_usd
    return Spent(
        usage=usage, cost_usd=cost, calls=calls, estimated_tokens=estimated
    )
