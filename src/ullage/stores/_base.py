"""The contract of a store: `Blobs` for what was set aside, `Records` for the ledger.

The two ask different things of a database. Blobs are content-addressed: putting one twice is
putting it once, and nobody has to agree with anybody. Records need transactions: of two workers
that decide at one place, one is first, and both go by what it wrote. So outputs are kept before
the records that name them. A process that dies in between leaves outputs that nothing names,
which clean-up takes; a record whose output is missing there never is.

A store is both, and what keeps it in bounds. Whoever writes one inherits from `Store`, which has
`get` and `commit`, and proves it by `ullage.testing.StoreContract`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ullage.core.errors import StoreError
from ullage.core.values.carried import Portable
from ullage.core.values.effects import Output, Record, Shape
from ullage.stores._clean import Bounds, Collected

P = ParamSpec("P")
T = TypeVar("T")

_EVERYTHING = Bounds(older_than_s=-1, has_conversations=True)


class Blobs(Protocol):
    """Stores outputs under their refs, by tenant.

    Every method raises `StoreError` when the store itself fails. A method may be called from any
    thread. What one tenant put, no other tenant can read.
    """

    name: str

    def put(self, tenant: str, outputs: Sequence[Output]) -> None:
        """Store outputs. One that is stored already is left as it is, and counts as used now.

        When it returns, they outlive the process, if the store says that anything does. It may be
        done again after any failure. A store that many write to at once writes in the order of the
        refs, so that two writers of the same outputs do not wait for each other.

        Args:
            tenant: whose they are.
            outputs: the outputs, each under the ref of its content.

        Raises:
            StoreError: the store failed, or a ref is taken by different content.
        """

    def stat(self, tenant: str, ref: str) -> Shape:
        """Return the size of an output and of its chunks. Reads no text of a huge one.

        Args:
            tenant: the owner.
            ref: its ref.

        Raises:
            RefNotFound: nothing is kept under it for this tenant.
            StoreError: what is kept there is damaged.
        """

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """Return the text of one chunk, its integrity checked. All of them joined are the output.

        Args:
            tenant: the owner.
            ref: of the output.
            n: the number of the chunk, from 0.

        Raises:
            RefNotFound: nothing is kept under it for this tenant, or it has no such chunk.
            StoreError: what is kept there is damaged.
        """

    def get(self, tenant: str, ref: str) -> Output:
        """Return a whole output.

        Args:
            tenant: the owner.
            ref: its ref.

        Raises:
            RefNotFound: nothing is kept under it for this tenant.
            StoreError: what is kept there is damaged.
        """
        shape = self.stat(tenant, ref)
        chunks = (self.chunk(tenant, ref, n) for n in range(len(shape.chunks)))
        return Output(ref, "".join(chunks), shape.kind)


class Records(Protocol):
    """Stores ledger records under their keys, by tenant. Errors and threads as of `Blobs`."""

    name: str

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """Return every record under any of these keys, in order of (key as given, kind, n, name).

        Sees whatever was stored before it was called, by any worker. Records of kinds that this
        version does not know are returned like any other.

        Args:
            tenant: whose ledger.
            keys: any number of them.
        """

    def newest(
        self, tenant: str, kind: str, limit: int
    ) -> tuple[tuple[Record, float], ...]:
        """Return the newest records of a kind, each with the time of its last use.

        For tools that show a store: a turn never calls it.

        Args:
            tenant: whose ledger.
            kind: the kind of record.
            limit: the most records.

        Returns:
            (record, seconds since 1970), the newest first.

        Raises:
            StoreError: the store cannot list its records.
        """
        raise StoreError(
            self.name, "newest", "this store does not list its records"
        )

    def append(
        self, tenant: str, records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """Store records, all of them or none, in one transaction.

        A record that is written once (`Record.is_once`) and finds different data in its place is
        not written. Then none of these records is stored, and those that stand in the way are
        returned. A record of any other kind replaces the one in its place.

        Records that can be observed again (all of them of kinds that hold the newest value) are
        visible to everybody when this returns, and need not outlive a loss of power.

        Args:
            tenant: whose ledger.
            records: the records.

        Returns:
            The records that stand in the way; empty if these were stored.

        Raises:
            StoreError: the store failed, or two of the records contradict each other.
        """


class Store(Blobs, Records, Protocol):
    """The contract of a store: blobs, records, and what keeps them within bounds."""

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`put` outputs, then `append` records. A store that can, does both in one transaction.

        Args:
            tenant: whose they are.
            outputs: as of `put`.
            records: as of `append`.

        Returns:
            As of `append`.

        Raises:
            StoreError: as of `put` and `append`.
        """
        if outputs:
            self.put(tenant, outputs)
        return self.append(tenant, records) if records else ()

    def refs(
        self, tenant: str, after: str = "", limit: int = 1_000
    ) -> tuple[str, ...]:
        """A page of this tenant's refs, in their own order (of their UTF-8).

        Args:
            tenant: whose.
            after: the last ref of the page before, ``""`` for the first page.
            limit: the most refs of a page; a shorter one is the last.
        """

    def existing_refs(self, refs: Collection[str]) -> frozenset[str]:
        """Return those of some refs that any tenant holds, for copies beside the store.

        Args:
            refs: the refs to look for.
        """

    def collect(
        self, tenant: str | None, bounds: Bounds, cursor: str | None = None
    ) -> Collected | None:
        """Remove what is beyond the bounds: one step of a clean-up (`ullage.stores._clean`).

        Args:
            tenant: whose outputs and records; None: everybody's.
            bounds: how long and how much is kept, and how much a step looks at.
            cursor: where the step before this one ended; None: begin.

        Returns:
            What went, with the cursor for the next step; None if ``cursor`` is, and the last
            clean-up began less than ``bounds.every_s`` ago.

        Raises:
            ConfigError: the cursor is none that a step returned.
        """

    def close(self) -> None:
        """Release files and connections. A closed store raises StoreError."""


class Transactional(Store, Protocol):
    """A store that writes by `commit` alone."""

    def put(self, tenant: str, outputs: Sequence[Output]) -> None:
        """`Blobs.put`."""
        self.commit(tenant, outputs, ())

    def append(
        self, tenant: str, records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`Records.append`."""
        return self.commit(tenant, (), records)


def _beneath(
    method: Callable[Concatenate[Store, P], T],
) -> Callable[Concatenate[StoreWrapper, P], T]:
    """A method that calls the same one of the store underneath."""
    name = method.__name__

    def call(self: StoreWrapper, /, *args: P.args, **kwargs: P.kwargs) -> T:
        bound: Callable[P, T] = getattr(self.store, name)
        return bound(*args, **kwargs)

    call.__doc__ = f"`Store.{name}`."
    return call


class StoreWrapper(Portable, Transactional):
    """A store around another one: each method that is not overridden calls the store underneath.

    Attributes:
        store: the store underneath; closing this closes it.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.name = store.name

    commit = _beneath(Store.commit)
    find = _beneath(Store.find)
    newest = _beneath(Store.newest)
    stat = _beneath(Store.stat)
    chunk = _beneath(Store.chunk)
    refs = _beneath(Store.refs)
    existing_refs = _beneath(Store.existing_refs)
    collect = _beneath(Store.collect)
    close = _beneath(Store.close)


def every_ref(store: Store, tenant: str) -> Iterator[str]:
    """Yield every ref of a tenant, page by page.

    Args:
        store: the store.
        tenant: whose refs.
    """
    page = store.refs(tenant)
    while page:
        yield from page
        page = store.refs(tenant, page[-1])


def forget(store: Store, tenant: str) -> Collected:
    """Erase a tenant: its outputs and ledger, in the store and in files beside it.

    Conversations of it that are owners of their own go too. Content that another tenant holds
    too stays theirs. To have the bytes leave an SQLite file as well, `SqliteStore.shrink` follows.

    Args:
        store: the store. Nothing may be written for the tenant meanwhile.
        tenant: whose; ``""`` for the unnamed one.

    Returns:
        What went.

    Raises:
        StoreError: the store failed. What went until then is gone.
    """
    collected = Collected((), 0, 0)
    # twice: what was used later than now is marked as used now first, and goes after that
    for _ in range(2):
        step = store.collect(tenant, _EVERYTHING)
        while step is not None:
            collected = collected.then(step)
            step = (
                store.collect(tenant, _EVERYTHING, step.cursor)
                if step.cursor
                else None
            )
    return collected


class AsyncStore(Protocol):
    """The part of `Store` that a session on an event loop awaits."""

    name: str

    async def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]: ...

    async def find(
        self, tenant: str, keys: Iterable[bytes]
    ) -> tuple[Record, ...]: ...

    async def get(self, tenant: str, ref: str) -> Output: ...

    async def stat(self, tenant: str, ref: str) -> Shape: ...

    async def chunk(self, tenant: str, ref: str, n: int) -> str: ...

    async def close(self) -> None: ...


def closed_error(store: str, operation: str) -> StoreError:
    """The error of a store that is used after `close`."""
    return StoreError(store, operation, "the store is closed. Open a new one")


def ref_taken_error(store: str, ref: str) -> StoreError:
    """The error of an output whose ref already names something else."""
    return StoreError(
        store,
        "put",
        "the ref is taken by different content. Derive refs with ullage.stores.ref_of",
        ref,
    )


def refuse_contradictions(store: str, records: Iterable[Record]) -> None:
    """Refuse two records of one append that are written once, at one place, and differ.

    Raises:
        StoreError: there are such records. Neither could be said to be the first.
    """
    places: dict[tuple[bytes, str, int, str], bytes] = {}
    for record in records:
        if (
            record.is_once
            and places.setdefault(record.place, record.data) != record.data
        ):
            raise StoreError(
                store,
                "append",
                f"two different records are number {record.n} of their kind under one key. "
                "Number them apart",
            )
