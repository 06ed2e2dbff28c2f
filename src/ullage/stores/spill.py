"""Any store, and beside it a folder of plain files that an agent's own tools can open.

    {folder}/{ref}.txt                the text of each output, as UTF-8, byte for byte
    {folder}/{subfolder}/{ref}.txt    the same, of a store that has a subfolder of its own there

Files are private (0600, a new folder 0700), named by their content, and appear whole or not
at all. A lone surrogate, which UTF-8 does not have, is written as its three bytes
("surrogatepass"); `SpillStore.retrieve` reads it back. What an agent can open here, it can open
whosever it is: give each tenant a folder or a subfolder of its own. Clean-up covers all subfolders.

The files are copies: recall, integrity and clean-up rest on the store underneath.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ullage.core.errors import SpillNotFound, StoreError
from ullage.core.history.canon import ref_of
from ullage.core.values.carried import Arguments
from ullage.core.values.effects import ChunkSize, Output, Record, pieces
from ullage.stores._base import Store, StoreWrapper
from ullage.stores._clean import DAY_S, Bounds, Collected, is_recent
from ullage.stores._file import make_folders
from ullage.stores._reasons import kind_of

_SUBFOLDER = re.compile(r"[0-9a-z]{16}")
_NAME = re.compile(r"([0-9a-z]{16})\.txt")
_UNFINISHED = re.compile(r"\.([0-9a-z]{16})\.[0-9a-f]{16}\.part")
_UNFINISHED_S = 3_600
_SWEPT = ".swept"
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_WAIT = getattr(
    os, "O_NONBLOCK", 0
)  # a pipe at the place of a file holds nobody up
_MOST_BYTES = 256 << 20  # of a file that is read whole


class _File(NamedTuple):
    """A spill file: its ref, its place, when it was last wanted, and how large it is."""

    ref: str
    path: Path
    used_s: float
    size_bytes: int


class SpillStore(StoreWrapper):
    """A store whose outputs are files too. The contract is `ullage.stores.Store`.

    An output whose ref is not derived from its content gets no file
    (`ullage.core.history.canon.ref_of`).

    Args:
        store: the store underneath; closing this closes it.
        folder: where the files are; made with mode 0700 if need be.
        subfolder: the one for the files of this store, named like a ref; "" for none.
        files_kept_s: files not wanted for so many seconds go, once a day, as the store is
            used; what they hold stays in the store underneath. None: `collect` alone does it.
        clock: the time in seconds since 1970.

    Attributes:
        files_created: how many files were written, the document's ``SpillFilesCreated``.
        bytes_written: how many bytes were, the document's ``SpillBytesWritten``.

    Raises:
        StoreError: the folder cannot be made, or a link stands in its place.
    """

    def __init__(
        self,
        store: Store,
        folder: str | os.PathLike[str],
        *,
        subfolder: str = "",
        files_kept_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(store)
        self._whole = Path(folder).expanduser().absolute()
        self.folder = self._whole / subfolder
        self.files_created = 0
        self.bytes_written = 0
        self._files_kept_s = files_kept_s
        self._clock = clock
        with self._errors("open"):
            make_folders(self.folder)
            if any(
                p.is_symlink() or not p.is_dir()
                for p in (self._whole, self.folder)
            ):
                reason = "a link or a file is at the place of the folder. Use another"
                raise StoreError(self.name, "open spill folder", reason)

    def _made_with(self) -> Arguments:
        """The folder as it is: another process may be in another one."""
        _, named = self._arguments
        return (), {**named, "store": self.store, "folder": str(self._whole)}

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """Write the files, then `Store.commit`: a path that a view names is there.

        Raises:
            StoreError: a file could not be written, or the store underneath failed.
        """
        for output in outputs:
            if ref_of(output.text, output.kind) == output.ref:
                with self._errors("write", output.ref):
                    self._write(output)
        if outputs and self._files_kept_s is not None:
            # a sweep that fails is tried again a day later, and loses nothing
            with suppress(OSError):
                self._sweep(self._clock(), self._files_kept_s)
        return self.store.commit(tenant, outputs, records)

    def path_of(self, ref: str) -> Path:
        """The path of an output's file; the file need not exist.

        Args:
            ref: of the output.
        """
        return self.folder / f"{ref}.txt"

    def retrieve(self, path: str | os.PathLike[str]) -> str:
        """The text of a spill file, its integrity checked.

        Args:
            path: the path that `path_of` gave, or its last part; nothing else of it is used.

        Raises:
            SpillNotFound: there is no such file in the folder.
            StoreError: it cannot be read, or does not hold what was written.
        """
        name = os.fspath(path).replace("\\", "/").rpartition("/")[2]
        match = _NAME.fullmatch(name)
        if match is None:
            raise SpillNotFound(self.name, name)
        ref = match[1]
        with self._errors("read", ref):
            try:
                descriptor = os.open(
                    self.path_of(ref), os.O_RDONLY | _NO_FOLLOW | _NO_WAIT
                )
            except FileNotFoundError:
                raise SpillNotFound(self.name, name) from None
            text = _read(descriptor)
        if text is None or ref not in (ref_of(text), ref_of(text, "block")):
            reason = "it does not hold what was written, or too much. Read the output by its ref"
            raise StoreError(self.name, "read spill file", reason, ref)
        return text

    def collect(
        self, tenant: str | None, bounds: Bounds, cursor: str | None = None
    ) -> Collected | None:
        """`Store.collect`, and the files of what no tenant holds any more.

        After the last step, so do files that the store underneath never knew (an earlier
        process kept its outputs in memory): by age, and while all files together are over
        ``max_bytes``, the longest unused first.

        Raises:
            StoreError: a file cannot be removed, or the store underneath failed.
        """
        began_s = self._clock()
        collected = self.store.collect(tenant, bounds, cursor)
        if collected is not None and not bounds.dry_run:
            with self._errors("clean up"):
                self._clear(collected, bounds, began_s)
        return collected

    def _write(self, output: Output) -> None:
        """Write a file whole, unless it exists; in either case mark it as used now."""
        path = self.path_of(output.ref)
        now_s = self._clock()
        size_bytes = ChunkSize.of(output.text).size_bytes
        with suppress(FileNotFoundError):
            there = path.lstat()
            if stat.S_ISREG(there.st_mode) and there.st_size == size_bytes:
                os.utime(path, (now_s, now_s))
                return
        part = self.folder / f".{output.ref}.{secrets.token_hex(8)}.part"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW
            with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
                for _, raw in pieces(output.text):
                    file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            os.utime(part, (now_s, now_s))
            # renamed once it is on the disk: the file appears whole or not at all
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        self.files_created += 1
        self.bytes_written += size_bytes

    def _sweep(self, now_s: float, kept_s: float) -> None:
        """Remove the files that nobody used for so long; once a day, over all processes."""
        swept = self._whole / _SWEPT
        with suppress(FileNotFoundError):
            there = swept.lstat()
            if stat.S_ISREG(there.st_mode) and is_recent(
                there.st_mtime, now_s, DAY_S
            ):
                return
            swept.unlink()  # never written to: it may be a link somewhere else
        descriptor = os.open(
            swept, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600
        )
        try:
            os.utime(
                descriptor if os.utime in os.supports_fd else swept,
                (now_s, now_s),
            )
        finally:
            os.close(descriptor)
        for file in self._files():
            if file.used_s <= now_s - kept_s:
                file.path.unlink(missing_ok=True)

    def _clear(
        self, collected: Collected, bounds: Bounds, began_s: float
    ) -> None:
        """Remove the files of outputs that no tenant holds; at the end also unfinished files."""
        removed_refs = {item.ref for item in collected.removed}
        at_end = collected.cursor is None
        if not (removed_refs or at_end):
            return
        files = sorted(self._files(), key=lambda file: file.used_s)
        total = sum(file.size_bytes for file in files)
        existing = self.store.existing_refs(
            removed_refs if not at_end else {file.ref for file in files}
        )
        for file in files:
            if (
                file.ref in existing
                or file.ref in bounds.keep
                or file.used_s > began_s
            ):
                continue
            beyond = file.used_s <= bounds.last_s(began_s) or bounds.is_over(
                total
            )
            if file.ref in removed_refs or (at_end and beyond):
                file.path.unlink(missing_ok=True)
                total -= file.size_bytes
        for file in self._files(_UNFINISHED) if at_end else ():
            if file.used_s < began_s - _UNFINISHED_S:
                file.path.unlink(missing_ok=True)

    def _files(self, name: re.Pattern[str] = _NAME) -> Iterator[_File]:
        """The files with such names in the folder and in each of its subfolders."""
        subfolders = (
            path
            for path in self._whole.iterdir()
            if _SUBFOLDER.fullmatch(path.name)
        )
        inner = (
            path
            for path in subfolders
            if path.is_dir() and not path.is_symlink()
        )
        for path in chain(
            self._whole.iterdir(), *(folder.iterdir() for folder in inner)
        ):
            match = name.fullmatch(path.name)
            with suppress(FileNotFoundError):
                if match and stat.S_ISREG((there := path.lstat()).st_mode):
                    yield _File(match[1], path, there.st_mtime, there.st_size)

    @contextmanager
    def _errors(
        self, operation: str, ref: str | None = None
    ) -> Iterator[None]:
        """The system's refusals as StoreError, without a path."""
        try:
            yield
        except OSError as error:
            reason = f"{error.strerror or 'the system refused'}. Check the folder and its modes"
            raise kind_of(error)(
                self.name, f"{operation} spill file", reason, ref
            ) from error


def _read(descriptor: int) -> str | None:
    """The text of a regular file of at most `_MOST_BYTES`, else None. Closes the descriptor."""
    with os.fdopen(descriptor, "rb") as file:
        there = os.fstat(descriptor)
        if not stat.S_ISREG(there.st_mode) or there.st_size > _MOST_BYTES:
            return None
        try:
            return file.read(_MOST_BYTES).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return None
