"""What was cut in one session, in a file without a name: it is gone with the process, however that ends.

Memory stays where it is, however much a server says.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from threading import Lock

from msgspec import Struct

from ullage.errors import RefNotFound, StoreError
from ullage.values.effects import Extent, Output, Shape

__all__ = ["MOST_BYTES", "Spool"]

MOST_BYTES = 4 << 30
"""What one session may keep; then the oldest is forgotten, half of it at a time."""

_CHUNK_CHARS = 1 << 20


class _Kept(Struct, frozen=True, gc=False):
    """Where the chunks of an output are: their starts in the file, and what is in them."""

    starts: tuple[int, ...]
    shape: Shape


class _File:
    """A file without a name, and what is in it by ref."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile(prefix="ullage-mcp-", buffering=0)  # noqa: SIM115
        self.kept: dict[str, _Kept] = {}
        self.end = 0


class Spool:
    """Keeps outputs until the process ends. `ullage.stores.Blobs`; there is one tenant. Thread safe.

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
                self._put(output)

    def look(self, tenant: str, ref: str) -> Shape:
        """`Blobs.look`."""
        with self._lock:
            return self._found("look", ref)[1].shape

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Blobs.chunk`."""
        with self._lock:
            file, kept = self._found("chunk", ref)
            if not 0 <= n < len(kept.starts):
                raise RefNotFound(self.name, ref)
            try:
                file.file.seek(kept.starts[n])
                raw = file.file.read(kept.shape.chunks[n].size_bytes)
            except OSError as error:
                raise StoreError(self.name, "read", error.strerror or "failed", ref) from None
        return (raw or b"").decode("utf-8", "surrogatepass")

    def get(self, tenant: str, ref: str) -> Output:
        """`Blobs.get`."""
        shape = self.look(tenant, ref)
        chunks = (self.chunk(tenant, ref, n) for n in range(len(shape.chunks)))
        return Output(ref, "".join(chunks), shape.kind)

    def close(self) -> None:
        """Forget everything. May be called twice."""
        with self._lock:
            self._is_open = False
            for each in (self._newer, self._older):
                if each is not None:
                    each.file.close()

    def _check(self, operation: str) -> None:
        if not self._is_open:
            raise StoreError(self.name, operation, "the session is over")

    def _found(self, operation: str, ref: str) -> tuple[_File, _Kept]:
        self._check(operation)
        for file in (self._newer, self._older):
            if file is not None and ref in file.kept:
                return file, file.kept[ref]
        raise RefNotFound(self.name, ref)

    def _put(self, output: Output) -> None:
        if self._newer is not None and output.ref in self._newer.kept:
            return
        try:
            file = self._with_room()
            starts, extents = [], []
            for start in range(0, len(output.text), _CHUNK_CHARS):
                text = output.text[start : start + _CHUNK_CHARS]
                raw = text.encode("utf-8", "surrogatepass")
                file.file.seek(file.end)
                _write(file.file, raw)
                starts.append(file.end)
                extents.append(Extent(len(text), len(raw), text.count("\n")))
                file.end += len(raw)
        except OSError as error:
            raise StoreError(self.name, "put", error.strerror or "failed", output.ref) from None
        file.kept[output.ref] = _Kept(tuple(starts), Shape(output.ref, output.kind, tuple(extents)))

    def _with_room(self) -> _File:
        if self._newer is None:
            self._newer = _File()
        if self._newer.end >= self._most_bytes // 2:
            if self._older is not None:
                self._older.file.close()
            self._older, self._newer = self._newer, _File()
        return self._newer


def _write(file: object, raw: bytes) -> None:
    """All of it: a raw file may take a part."""
    view = memoryview(raw)
    while view:
        view = view[file.write(view) :]  # type: ignore[attr-defined]
