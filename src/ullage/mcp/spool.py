"""What was cut in one session, in a file without a name: it is gone however the process ends.

Memory stays where it is, however much a server says.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from threading import Lock
from typing import IO

from msgspec import Struct

from ullage.errors import RefNotFound, StoreError
from ullage.stores._base import closed, taken
from ullage.stores._chunks import pieces
from ullage.values.effects import Output, Shape

__all__ = ["MOST_BYTES", "Spool"]

MOST_BYTES = 4 << 30
"""What one session may keep; then the oldest is forgotten, half of it at a time."""


class _Kept(Struct, frozen=True, gc=False):
    """Where the chunks of an output are: their starts in the file, and what is in them."""

    starts: tuple[int, ...]
    shape: Shape


class _File:
    """A file without a name, and what is in it by ref."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile(prefix="ullage-mcp-", buffering=0)  # noqa: SIM115
        self.kept: dict[tuple[str, str], _Kept] = {}
        self.end = 0
        self.is_at_end = True


class Spool:
    """Keeps outputs until the process ends. The contract is `ullage.stores.Blobs`. Thread safe.

    Two files take turns: when the newer one is full, the older one and all that is in it goes.

    Args:
        most_bytes: what both files together may take.
    """

    name: str = "spool"

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._newer: _File | None = None
        self._older: _File | None = None
        self._is_open = True

    def put(self, tenant: str, outputs: Sequence[Output]) -> None:
        """`Blobs.put`."""
        with self._lock:
            self._check("put")
            for output in outputs:
                self._put(tenant, output)

    def look(self, tenant: str, ref: str) -> Shape:
        """`Blobs.look`."""
        with self._lock:
            self._check("look")
            return self._found(tenant, ref)[1].shape

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Blobs.chunk`."""
        with self._lock:
            self._check("chunk")
            return self._chunk(*self._found(tenant, ref), n)

    def get(self, tenant: str, ref: str) -> Output:
        """`Blobs.get`."""
        with self._lock:
            self._check("get")
            return self._get(tenant, ref)

    def close(self) -> None:
        """Forget everything. May be called twice."""
        with self._lock:
            self._is_open = False
            for each in (self._newer, self._older):
                if each is not None:
                    each.file.close()

    def _check(self, operation: str) -> None:
        if not self._is_open:
            raise closed(self.name, operation)

    def _found(self, tenant: str, ref: str) -> tuple[_File, _Kept]:
        for file in (self._newer, self._older):
            if file is not None and (tenant, ref) in file.kept:
                return file, file.kept[tenant, ref]
        raise RefNotFound(self.name, ref)

    def _chunk(self, file: _File, kept: _Kept, n: int) -> str:
        ref = kept.shape.ref
        if not 0 <= n < len(kept.starts):
            raise RefNotFound(self.name, ref)
        size_bytes = kept.shape.chunks[n].size_bytes
        try:
            file.is_at_end = False
            file.file.seek(kept.starts[n])
            raw = file.file.read(size_bytes) or b""
        except OSError as error:
            raise StoreError(self.name, "read", error.strerror or "failed", ref) from None
        if len(raw) != size_bytes:
            raise StoreError(self.name, "read", f"{size_bytes - len(raw):,} bytes are gone", ref)
        return raw.decode("utf-8", "surrogatepass")

    def _get(self, tenant: str, ref: str) -> Output:
        file, kept = self._found(tenant, ref)
        chunks = (self._chunk(file, kept, n) for n in range(len(kept.starts)))
        return Output(ref, "".join(chunks), kept.shape.kind)

    def _put(self, tenant: str, output: Output) -> None:
        if self._newer is not None and (tenant, output.ref) in self._newer.kept:
            if self._get(tenant, output.ref) != output:
                raise taken(self.name, output.ref)
            return
        starts, extents = [], []
        try:
            file = self._with_room()
            if not file.is_at_end:
                file.file.seek(file.end)
                file.is_at_end = True
            for found, raw in pieces(output.text):
                _write(file.file, raw)
                starts.append(file.end)
                extents.append(found)
                file.end += len(raw)
        except OSError as error:
            if self._newer is not None:
                self._newer.is_at_end = False
            raise StoreError(self.name, "put", error.strerror or "failed", output.ref) from None
        shape = Shape(output.ref, output.kind, tuple(extents))
        file.kept[tenant, output.ref] = _Kept(tuple(starts), shape)

    def _with_room(self) -> _File:
        if self._newer is None:
            self._newer = _File()
        if self._newer.end >= self._most_bytes // 2:
            if self._older is not None:
                self._older.file.close()
            self._older, self._newer = self._newer, _File()
        return self._newer


def _write(file: IO[bytes], raw: bytes) -> None:
    """All of it: a file without a buffer may take a part."""
    view = memoryview(raw)
    while view:
        view = view[file.write(view) :]
