"""What a store does where its bodies may be in object storage: the one place that knows the rows.

A row whose body is an object's says so in its coding, and has the object's name for a body.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol

from ullage.errors import StoreError
from ullage.stores._clean import Bounds, Collected
from ullage.stores._packing import NewBlob, Row

__all__ = ["CODINGS", "Objects", "at_hand", "collected", "in_object", "not_given", "packed"]

IN_OBJECT = " in object"
CODINGS = ("raw" + IN_OBJECT, "zstd" + IN_OBJECT)


class Objects(Protocol):
    """The objects of one store (`ullage.stores.objects.storage.StoreObjects`)."""

    def moved(self, tenant: bytes, blobs: Iterable[NewBlob]) -> list[NewBlob]:
        """Contents as they are to be written, their larger bodies in objects."""

    def body(self, name: bytes) -> bytes | None:
        """The bytes of an object; None if it is not there."""

    def collected(
        self,
        tenant: str | None,
        bounds: Bounds,
        cursor: str | None,
        collect: Callable[[], Collected | None],
        named: Callable[[Collection[bytes]], set[bytes]],
    ) -> Collected | None:
        """A step of a clean-up (`collected`)."""


def packed(
    objects: Objects | None, tenant: bytes, blobs: Sequence[NewBlob], known: Collection[bytes]
) -> list[NewBlob]:
    """Contents ready to be written, in their order; those of known digests need not be."""
    new = [blob for blob in blobs if blob.digest not in known]
    made = iter([blob.packed() for blob in new] if objects is None else objects.moved(tenant, new))
    return [blob if blob.digest in known else next(made) for blob in blobs]


def in_object(row: Row, name: str) -> Row:
    """A row of a chunk whose body is now in an object of this name."""
    return row[0], row[1] + IN_OBJECT, *row[2:-1], name.encode()


def at_hand(objects: Objects | None, row: Sequence[Any]) -> Sequence[Any]:
    """A row that begins with a coding and a body, with the body itself.

    Raises:
        StoreError: it is in object storage, and that failed or was not given.
    """
    if row[0] not in CODINGS:
        return row
    if objects is None:
        raise not_given("get")
    return row[0].removesuffix(IN_OBJECT), objects.body(row[1]), *row[2:]


def not_given(operation: str) -> StoreError:
    """The error of a store that has objects, and was opened without."""
    reason = "its larger texts are in object storage. Open the store with blobs as the others do"
    return StoreError("object storage", operation, reason)


def collected(
    objects: Objects | None,
    tenant: str | None,
    bounds: Bounds,
    cursor: str | None,
    collect: Callable[[], Collected | None],
    named: Callable[[Collection[bytes]], set[bytes]],
) -> Collected | None:
    """A step of a clean-up: ``collect``, and after its last one those among the objects.

    Args:
        objects: those of the store, if it has any.
        tenant: whose; None: everybody's.
        bounds: see `ullage.stores.Bounds`.
        cursor: where the step before this one ended.
        collect: the store's own step from there.
        named: those of some objects that a row names.
    """
    if objects is None:
        return collect()
    return objects.collected(tenant, bounds, cursor, collect, named)
