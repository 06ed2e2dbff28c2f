"""What undoes the compression of a body, piece by piece, to its end or not at all.

A body may be several compressed ones in a row (RFC 1952, 2.2; RFC 8878, 3.1), may break off, or may
become a thousand times as long. So what comes out is given in pieces of a bounded size, whatever
went in, and a body counts as whole only where its last part has its own end.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

_PIECE_BYTES = 1 << 20
_PADDING = b"\0"

Inflater: TypeAlias = Any
"""An object with ``decompress(data, max_length)``, ``eof`` and ``unused_data``."""


class Undecodable(Exception):
    """A body is not what its encoding says, or breaks off."""


class Decoder:
    """Decodes one body as it comes.

    Args:
        make: makes what decodes one part of it, by the first bytes of the part.
    """

    def __init__(self, make: Callable[[bytes], Inflater]) -> None:
        self._make = make
        self._inflater: Inflater | None = None
        self._has_part = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What more there is with these bytes, in pieces.

        Raises:
            Undecodable: they are not of the encoding.
        """
        while data:
            if self._inflater is None:
                data = data.lstrip(_PADDING) if self._has_part else data
                if not data:
                    return
                self._inflater = self._make(data[:2])
                self._has_part = True
            yield from self._pieces(self._inflater, data)
            if not self._inflater.eof:
                return
            data = self._inflater.unused_data
            self._inflater = None

    def end(self) -> None:
        """There is no more.

        Raises:
            Undecodable: something is missing.
        """
        if self._inflater is not None:
            raise Undecodable("it breaks off")

    def _pieces(self, inflater: Inflater, data: bytes) -> Iterator[bytes]:
        """What one part gives for these bytes."""
        while True:
            try:
                piece = inflater.decompress(data, _PIECE_BYTES)
            except Exception as error:  # noqa: BLE001 - each library has its own
                raise Undecodable(type(error).__name__) from None
            if piece:
                yield bytes(piece)
            # zlib's; others keep it themselves
            data = getattr(inflater, "unconsumed_tail", b"")
            is_full = len(piece) == _PIECE_BYTES
            if inflater.eof or not (
                data or is_full or not getattr(inflater, "needs_input", True)
            ):
                return


def decoder_of(encoding: str) -> Decoder | None:
    """What decodes a body with this one ``Content-Encoding``; None if that is not known how."""
    make = _INFLATERS.get(encoding.strip().lower())
    return None if make is None else Decoder(make)


def _gzip(_: bytes) -> Inflater:
    return zlib.decompressobj(31)


def _deflate(begins: bytes) -> Inflater:
    """With the frame of zlib, as RFC 9110 (8.4.1.2) asks, or without, as some send it."""
    is_framed = (
        begins[0] & 15 == 8
        and int.from_bytes(begins.ljust(2), "big") % 31 == 0
    )
    return zlib.decompressobj(15 if is_framed else -15)


def _zstd(_: bytes) -> Inflater:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.ZstdDecompressor()


_INFLATERS = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}
