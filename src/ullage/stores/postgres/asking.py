"""Generators of queries, and how one is run on a connection.

A generator yields the queries of one round trip and is sent the rows of each. They are sent
together (libpq's pipeline mode). What the server refuses is raised into the generator. Each is
given the time as well, None for the server's (`NOW`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, LiteralString, NamedTuple, TypeAlias, TypeVar

from psycopg import AsyncConnection, Connection, Error

T = TypeVar("T")

NOW = "coalesce(%(now)s::bigint, extract(epoch FROM statement_timestamp())::bigint)"
"""The time in seconds since 1970: the database's, unless one is given."""
EACH = "OFFSET 0"
"""Ends a query that is asked once for each of some keys. Of a tenant that the server takes for a
small one it would else read every row, and pick those: a turn would cost more as it grows."""


class Query(NamedTuple):
    """A statement and the values of its parameters."""

    sql: LiteralString
    given: Mapping[str, Any] = {}

    def at(self, now_s: int | None) -> Query:
        """The query with the time as a value, unless it has one.

        Args:
            now_s: seconds since 1970; None: the server's time.
        """
        return Query(self.sql, {"now": now_s, **self.given})


Rows: TypeAlias = list[tuple[Any, ...]]
Asking: TypeAlias = Generator[Sequence[Query], list[Rows], T]

BEGIN = Query("BEGIN")
COMMIT = Query("COMMIT")


def answered(
    connection: Connection, asking: Asking[T], now_s: int | None = None
) -> T:
    """Run a generator of queries to its end, and return its result.

    Args:
        connection: the connection to run them on.
        asking: the generator.
        now_s: the time, in seconds since 1970; None: the server's.
    """
    try:
        queries = next(asking)
        while True:
            try:
                results = _ask(
                    connection, [query.at(now_s) for query in queries]
                )
            except Error as error:
                queries = asking.throw(error)
            else:
                queries = asking.send(results)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        asking.close()


async def async_answered(
    connection: AsyncConnection, asking: Asking[T], now_s: int | None = None
) -> T:
    """`answered` for an event loop."""
    try:
        queries = next(asking)
        while True:
            try:
                results = await _ask_async(
                    connection, [query.at(now_s) for query in queries]
                )
            except Error as error:
                queries = asking.throw(error)
            else:
                queries = asking.send(results)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        asking.close()


def _ask(connection: Connection, queries: Sequence[Query]) -> list[Rows]:
    if len(queries) == 1:
        cursors = [connection.execute(*queries[0], binary=True)]
    else:
        with connection.pipeline():
            cursors = [
                connection.execute(*query, binary=True) for query in queries
            ]
    return [
        cursor.fetchall() if cursor.description else [] for cursor in cursors
    ]


async def _ask_async(
    connection: AsyncConnection, queries: Sequence[Query]
) -> list[Rows]:
    if len(queries) == 1:
        cursors = [await connection.execute(*queries[0], binary=True)]
    else:
        async with connection.pipeline():
            cursors = [
                await connection.execute(*query, binary=True)
                for query in queries
            ]
    return [
        await cursor.fetchall() if cursor.description else []
        for cursor in cursors
    ]
