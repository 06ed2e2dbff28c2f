"""What a store does with rows whose bodies may be in object storage.

A row whose body is an object's says so in its coding, and has the object's name for a body.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import wraps
from typing import Any, TypeAlias

from ullage.core.errors import StoreError
from ullage.stores._clean import Bounds, Collected
from ullage.stores._packing import NewBlob, Row

IN_OBJECT = " in object"
CODINGS = ("raw" + IN_OBJECT, "zstd" + IN_OBJECT)

Named: TypeAlias = Callable[[Collection[bytes]], set[bytes]]
"""Those of some objects that rows of the store name."""
Step: TypeAlias = Callable[[], Collected | None]


class Objects:
    """The objects of a store that was opened without a bucket; other workers may have written some.

    Those of a store that has a bucket are `ullage.stores.objects.storage.StoreObjects`.

    Args:
        are_there: whether there are any.
    """

    def __init__(self, are_there: Callable[[], bool]) -> None:
        self._are_there = are_there

    def moved(self, tenant: bytes, blobs: Iterable[NewBlob]) -> list[NewBlob]:
        """Contents as they are to be written: packed, and their larger bodies in objects."""
        return [blob.packed() for blob in blobs]

    def body(self, name: bytes) -> bytes | None:
        """The bytes of an object that a row names; None if it is not there.

        Raises:
            StoreError: the bucket failed, or was not given.
        """
        raise _not_given("get")

    def collected(
        self,
        tenant: str | None,
        bounds: Bounds,
        cursor: str | None,
        collect: Step,
    ) -> Collected | None:
        """A step of a clean-up: ``collect``, and after its last one those among the objects.

        Raises:
            StoreError: as of `body`: a clean-up that would leave objects behind is none.
        """
        if self._are_there():
            raise _not_given("collect")
        return collect()


def _not_given(operation: str) -> StoreError:
    reason = "its larger texts are in object storage. Open the store with blobs as the others do"
    return StoreError("object storage", operation, reason)


def pack_new(
    objects: Objects,
    tenant: bytes,
    blobs: Sequence[NewBlob],
    existing_digests: Collection[bytes],
) -> list[NewBlob]:
    """Contents ready to be written, in their order; those of known digests need not be."""
    ready = iter(
        objects.moved(
            tenant,
            [blob for blob in blobs if blob.digest not in existing_digests],
        )
    )
    return [
        blob if blob.digest in existing_digests else next(ready)
        for blob in blobs
    ]


def as_object_row(row: Row, name: str) -> Row:
    """A row of a chunk whose body is now in an object of this name."""
    return row[0], row[1] + IN_OBJECT, *row[2:-1], name.encode()


def with_body(objects: Objects, row: Sequence[Any]) -> Sequence[Any]:
    """A row that begins with a coding and a body, with the body itself.

    Raises:
        StoreError: it is in object storage, and that failed or was not given.
    """
    if row[0] not in CODINGS:
        return row
    return row[0].removesuffix(IN_OBJECT), objects.body(row[1]), *row[2:]


def and_objects(
    collect: Callable[..., Collected | None],
) -> Callable[..., Collected | None]:
    """`Store.collect` of a store that has ``_objects``: it cleans up among those too."""

    @wraps(collect)
    def both(
        self: Any,
        tenant: str | None,
        bounds: Bounds,
        cursor: str | None = None,
    ) -> Collected | None:
        objects: Objects = self._objects
        step = lambda: collect(self, tenant, bounds, cursor)  # noqa: E731
        return objects.collected(tenant, bounds, cursor, step)

    return both
