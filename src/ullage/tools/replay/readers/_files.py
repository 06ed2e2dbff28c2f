"""Files and objects to JSON values, one at a time: compressed or not, lines or one document.

Everything is recognised by content. Two bytes show gzip, four a zip, whose JSON files are read
one after the other. The first two lines show JSON Lines (one of them parses alone, or both
begin like one) from a document spread over lines; only such a document is read whole. A line
is held in memory, never the file; one line or document longer than `MOST_LINE_BYTES` is none, nor
one of more values than `MOST_VALUES`: a few bytes that are packed well can hold millions.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import msgspec
from msgspec import Struct

from ullage.stores import is_url
from ullage.tools.replay.readers._request import as_request
from ullage.tools.replay.readers._run import DamageReport

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:  # whose own zipfile opens no Zstandard, in which Inspect packs its logs
    from backports.zstd import ZstdError, zipfile

MOST_LINE_BYTES = 256 * 1024 * 1024
MOST_VALUES = 16_000_000  # by its commas, those in texts too; of objects and lists a quarter

_GZIP = b"\x1f\x8b"
_SAMPLES = (
    "samples/"  # where inspect puts them; beside them it keeps only sums
)
_ZIP = b"PK\x03\x04"
_BOM = b"\xef\xbb\xbf"
_NOTHING = object()
try:
    from lzma import LZMAError
except (
    ImportError
):  # a Python without it, which cannot unpack such a file either
    LZMAError = OSError  # type: ignore[assignment,misc]

_UNPACKING = (
    *(OSError, EOFError, RuntimeError, ValueError, struct.error),
    *(zlib.error, ZstdError, LZMAError, zipfile.BadZipFile),
)
"""What a damaged file in a zip raises, an encrypted one, or one packed as nothing here unpacks."""
_decode = msgspec.json.Decoder().decode
Lines: TypeAlias = BinaryIO | gzip.GzipFile


class LogFile(Struct, frozen=True):
    """One file that may hold runs.

    Attributes:
        name: its name, without its folders.
        size_bytes: how long it is, compressed if it is.
        open: its bytes, from the first on; raises OSError where it cannot be read.
    """

    name: str
    size_bytes: int
    open: Callable[[], BinaryIO]


def logs_under(path: str | os.PathLike[str]) -> list[LogFile]:
    """The file itself, or every file below a folder or prefix, sorted; hidden ones are left out.

    Raises:
        ConfigError: an address cannot be listed.
    """
    if is_url(path):
        from ullage.tools.replay.readers._objects import objects_under

        return objects_under(path)
    here = Path(path)
    if here.is_dir():
        entries = (
            (path, path.relative_to(here).as_posix())
            for path in sorted(here.rglob("*"))
        )
        return [
            _on_disk(path)
            for path, name in entries
            if "/." not in f"/{name}" and path.is_file()
        ]
    return [_on_disk(here)] if here.is_file() else []


def _on_disk(path: Path) -> LogFile:
    return LogFile(path.name, path.stat().st_size, lambda: path.open("rb"))


def values(
    file: LogFile, report: DamageReport
) -> Iterator[tuple[int, Any, int]]:
    """The JSON values in a file, each with its line number and the bytes read by then."""
    try:
        with file.open() as raw:
            start = raw.read(len(_ZIP))
            raw.seek(0)
            if start == _ZIP:
                documents = _zipped(raw, report)
            else:
                stream = (
                    gzip.GzipFile(fileobj=raw) if start[:2] == _GZIP else raw
                )
                documents = _documents(_lines(stream, report), report)
            for number, value in documents:
                yield number, value, raw.tell()
    except OSError as error:
        report.add(
            0,
            f"the file cannot be opened ({error.strerror or type(error).__name__})",
        )


def _zipped(raw: BinaryIO, report: DamageReport) -> Iterator[tuple[int, Any]]:
    """The values of the JSON files in a zip, numbered as the files in it."""
    try:
        archive = zipfile.ZipFile(raw)
    except zipfile.BadZipFile:
        report.add(
            0, "cannot be unpacked: the file ends too early, or it is damaged"
        )
        return
    members = [
        m
        for m in enumerate(archive.infolist(), 1)
        if m[1].filename.endswith(".json")
    ]
    samples = [m for m in members if m[1].filename.startswith(_SAMPLES)]
    for number, member in samples or members:
        if member.file_size > MOST_LINE_BYTES:
            report.add(
                number,
                f"a file in it is longer than {MOST_LINE_BYTES:,} bytes",
            )
            continue
        try:
            text = archive.read(member)
        except _UNPACKING as error:
            report.add(
                number,
                f"a file in it cannot be unpacked ({type(error).__name__})",
            )
            continue
        if _holds_too_much(text):
            report.add(
                number, f"a file in it holds more than {MOST_VALUES:,} values"
            )
        elif (value := _parse(text)) is _NOTHING:
            report.add(number, "a file in it is not JSON")
        else:
            yield number, value


def _lines(stream: Lines, report: DamageReport) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, until the end or until the compression breaks."""
    for number in itertools.count(1):
        try:
            line = stream.readline(MOST_LINE_BYTES)
            if len(line) == MOST_LINE_BYTES:
                report.add(
                    number,
                    f"the line is longer than {MOST_LINE_BYTES:,} bytes",
                )
                line = _skip_line(stream)
        except (OSError, EOFError, zlib.error) as error:
            reason = (
                "the file ends too early"
                if isinstance(error, EOFError)
                else "it is damaged"
            )
            report.add(
                number, f"cannot be decompressed from here on: {reason}"
            )
            return
        if not line:
            return
        if _holds_too_much(line):
            report.add(
                number, f"the line holds more than {MOST_VALUES:,} values"
            )
            continue
        if number == 1:
            line = line.removeprefix(_BOM)
        if not line.isspace():
            yield number, line


def _skip_line(stream: Lines) -> bytes:
    """Read to the end of a line far too long; what is left of it counts as blank."""
    while (piece := stream.readline(MOST_LINE_BYTES)) and not piece.endswith(
        b"\n"
    ):
        pass
    return b"\n" if piece else b""


def _documents(
    lines: Iterator[tuple[int, bytes]], report: DamageReport
) -> Iterator[tuple[int, Any]]:
    head = list(itertools.islice(lines, 2))
    if _is_spread([line for _, line in head]):
        whole = _parse(_joined(itertools.chain(head, lines)))
        if whole is _NOTHING:
            longest = f"or longer than {MOST_LINE_BYTES:,} bytes"
            report.add(
                head[0][0],
                f"is neither JSON nor JSON Lines, {longest}",
                "foreign",
            )
        else:
            yield from _elements(whole, head[0][0])
        return
    for number, line in itertools.chain(head, lines):
        if (value := _parse(line)) is _NOTHING:
            report.add(number, "is not JSON", "foreign")
        else:
            yield from _elements(value, number)


def _joined(lines: Iterator[tuple[int, bytes]]) -> bytes:
    """The lines as one document; nothing that parses when it is too long to be held."""
    document = bytearray()
    for _, line in lines:
        document += line
        if len(document) > MOST_LINE_BYTES:
            return b""
    return b"" if _holds_too_much(document) else bytes(document)


def _is_spread(head: list[bytes]) -> bool:
    """The first two lines open one document, and are not two (damaged) lines of many."""
    if len(head) < 2 or not head[0].lstrip().startswith((b"{", b"[")):
        return False
    opens = head[0].strip() in (b"{", b"[") or not head[1].startswith(
        (b"{", b"[")
    )
    return opens and all(_parse(line) is _NOTHING for line in head)


def _elements(value: Any, number: int) -> Iterator[tuple[int, Any]]:
    """A list is a history, or read as what it holds, counted from 1."""
    value = as_request(value)
    yield from (
        enumerate(value, 1) if isinstance(value, list) else [(number, value)]
    )


def _holds_too_much(text: bytes | bytearray) -> bool:
    """Whether its values would take gigabytes, however few its bytes are."""
    return (
        text.count(b",") > MOST_VALUES
        or 4 * (text.count(b"{") + text.count(b"[")) > MOST_VALUES
    )


def _parse(line: bytes) -> Any:
    """The value, or `_NOTHING`. The standard library reads what msgspec is too strict for."""
    for decode in (_decode, json.loads):
        with suppress(ValueError, RecursionError):  # msgspec's errors are such
            return decode(line)
    return _NOTHING
