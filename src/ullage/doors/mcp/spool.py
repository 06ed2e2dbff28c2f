"""What was cut in one session, in a file without a name: it is gone however the process ends.

Memory stays where it is, however much a server says and however often: what is kept, and where, is
in the file too.
"""

from __future__ import annotations

import struct
import tempfile
from array import array
from collections.abc import Sequence
from typing import IO, NamedTuple

import msgspec
from msgspec import Struct

from ullage import Output
from ullage.core.errors import RefNotFound, StoreError
from ullage.core.locks import Lock
from ullage.stores import Shape, pieces

MOST_BYTES = 4 << 30
"""What one session may keep; then the oldest is forgotten, half of it at a time."""

_BUCKETS = 1 << 13


class _Entry(Struct, frozen=True, array_like=True, gc=False):
    """What stands in the file behind the chunks of an output.

    Attributes:
        tenant: whose it is.
        start: where its first chunk begins; the others follow.
        shape: what is in them.
        previous: the place of an earlier entry of the same bucket, or -1.
    """

    tenant: str
    start: int
    shape: Shape
    previous: int


_SIZE = struct.Struct("<I")
_read_entry = msgspec.msgpack.Decoder(_Entry).decode
_written = msgspec.msgpack.Encoder().encode


class _StoredEntry(NamedTuple):
    file: _File
    entry: _Entry


class _File:
    """A file without a name: chunks, their entry, chunks, their entry, and so on."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="ullage-mcp-", buffering=0)  # noqa: SIM115
        # of each bucket, the place of its last entry
        self._newest_places = array("q", [-1]) * _BUCKETS
        self.end = 0

    def add(self, tenant: str, output: Output) -> None:
        """Keep an output. If that fails it is as if nothing had been written."""
        self._file.seek(self.end)
        extents = []
        place = self.end
        for extent, raw in pieces(output.text):
            _write(self._file, raw)
            extents.append(extent)
            place += len(raw)
        bucket = _bucket(tenant, output.ref)
        shape = Shape(output.ref, output.kind, tuple(extents))
        entry = _written(
            _Entry(tenant, self.end, shape, self._newest_places[bucket])
        )
        _write(self._file, _SIZE.pack(len(entry)) + entry)
        self._newest_places[bucket] = place
        self.end = place + _SIZE.size + len(entry)

    def find(self, tenant: str, ref: str) -> _Entry | None:
        """The entry of an output."""
        place = self._newest_places[_bucket(tenant, ref)]
        while place >= 0:
            (size_bytes,) = _SIZE.unpack(self.read(place, _SIZE.size))
            entry = _read_entry(self.read(place + _SIZE.size, size_bytes))
            if (entry.tenant, entry.shape.ref) == (tenant, ref):
                return entry
            place = entry.previous
        return None

    def read(self, start: int, size_bytes: int) -> bytes:
        """Read a part of the file. Raises OSError where it is not there."""
        self._file.seek(start)
        raw = self._file.read(size_bytes) or b""
        if len(raw) != size_bytes:
            raise OSError(0, f"{size_bytes - len(raw):,} bytes are gone")
        return raw

    def close(self) -> None:
        """Close the file, which deletes it."""
        self._file.close()


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
        self._files: list[_File] = []  # the newer one first
        self._is_open = True

    def put(self, tenant: str, outputs: Sequence[Output]) -> None:
        """`Blobs.put`."""
        with self._lock:
            self._check("put")
            for output in outputs:
                self._put(tenant, output)

    def stat(self, tenant: str, ref: str) -> Shape:
        """`Blobs.stat`."""
        with self._lock:
            self._check("stat")
            return self._found(tenant, ref).entry.shape

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Blobs.chunk`."""
        with self._lock:
            self._check("chunk")
            return self._chunk(self._found(tenant, ref), n)

    def get(self, tenant: str, ref: str) -> Output:
        """`Blobs.get`."""
        with self._lock:
            self._check("get")
            return self._get(self._found(tenant, ref))

    def close(self) -> None:
        """Forget everything. May be called twice."""
        with self._lock:
            self._is_open = False
            for file in self._files:
                file.close()

    def _check(self, operation: str) -> None:
        if not self._is_open:
            raise StoreError(
                self.name, operation, "the store is closed. Open a new one"
            )

    def _found(self, tenant: str, ref: str) -> _StoredEntry:
        try:
            for file in self._files:
                if (entry := file.find(tenant, ref)) is not None:
                    return _StoredEntry(file, entry)
        except OSError as error:
            raise self._failed("read", error, ref) from None
        raise RefNotFound(self.name, ref)

    def _chunk(self, stored: _StoredEntry, n: int) -> str:
        ref = stored.entry.shape.ref
        chunks = stored.entry.shape.chunks
        if not 0 <= n < len(chunks):
            raise RefNotFound(self.name, ref)
        start = stored.entry.start + sum(
            extent.size_bytes for extent in chunks[:n]
        )
        try:
            raw = stored.file.read(start, chunks[n].size_bytes)
        except OSError as error:
            raise self._failed("read", error, ref) from None
        return raw.decode("utf-8", "surrogatepass")

    def _get(self, stored: _StoredEntry) -> Output:
        shape = stored.entry.shape
        text = "".join(
            self._chunk(stored, n) for n in range(len(shape.chunks))
        )
        return Output(shape.ref, text, shape.kind)

    def _put(self, tenant: str, output: Output) -> None:
        try:
            newer = self._with_room()
            entry = newer.find(tenant, output.ref)
            if entry is None:
                newer.add(tenant, output)
                return
        except OSError as error:
            raise self._failed("put", error, output.ref) from None
        if self._get(_StoredEntry(newer, entry)) != output:
            raise StoreError(
                self.name,
                "put",
                "the ref is taken by different content",
                output.ref,
            )

    def _with_room(self) -> _File:
        if not self._files or self._files[0].end >= self._most_bytes // 2:
            for older in self._files[1:]:
                older.close()
            self._files = [_File(), *self._files[:1]]
        return self._files[0]

    def _failed(self, operation: str, error: OSError, ref: str) -> StoreError:
        return StoreError(
            self.name, operation, error.strerror or "failed", ref
        )


def _bucket(tenant: str, ref: str) -> int:
    return hash((tenant, ref)) % _BUCKETS


def _write(file: IO[bytes], raw: bytes) -> None:
    """All of it: a file without a buffer may take a part."""
    view = memoryview(raw)
    while view:
        view = view[file.write(view) :]
