"""One private SQLite file: its place, its schema, its connection, its failures.

*Private.* The file is created exclusively with mode 0600 (SQLite gives -wal and -shm the mode
of the file), in folders created with 0700, whatever the umask says. A link, a folder or a
device at its place is refused. An existing file is never opened by us and then closed:
POSIX drops every lock this process holds on it when any descriptor of it is closed.

*One connection, one lock*, for all stores of a process that have the same file: a thousand
sessions on one path take three descriptors. Compression and hashing happen outside of the lock,
so it is held for the statements alone. A connection for each thread was measured and won nothing
for writers (SQLite has one at a time) and little for readers (`lab.bench.stores`).

*Syncs.* A commit reaches the disk before it returns. One that says it need not (`transaction`) is
visible to everybody at once, as the -wal file is shared memory to all who read it, and reaches the
disk with the next commit that does. The setting is that of the connection, so it is changed only
when the next commit wants the other.

*Forks.* A connection that lives through a fork takes SQLite's belief about its locks into the
child, where they do not exist: when the parent closes, it removes the -wal file under the
child, and commits that had returned are gone (`tests/stores/test_sqlite.py` shows it). So
every connection is closed *before* a fork and opened again, on either side, when it is next
used. Should a fork have gone past Python, the process id tells, and the connection is left
alone rather than used or closed.

*Versions.* `PRAGMA user_version` counts the migrations applied. A file from a later version,
or of another application, is refused untouched.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from weakref import WeakSet, WeakValueDictionary

from ullage.core.errors import ConfigError, StoreError
from ullage.core.locks import Lock, RLock
from ullage.stores._base import closed_error
from ullage.stores._reasons import code_of, kind_of, reason_of
from ullage.stores._schema import APPLICATION_ID, MIGRATIONS

_STORE = "sqlite"
_RETRY_S = 0.02
_SIDE_FILES = ("", "-wal", "-shm", "-journal")

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


class PrivateFile:
    """The file and this process's one connection to it. Made by `opened`.

    Attributes:
        path: where the file is.
    """

    def __init__(self, path: Path, wait_s: float) -> None:
        self.path = path
        self._wait_s = wait_s
        self._lock = RLock()
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._is_synced: bool | None = None
        self._holders: WeakSet[object] = WeakSet()

    @staticmethod
    def opened(
        holder: object, path: Path, *, own_folder: bool, wait_s: float
    ) -> PrivateFile:
        """The file, shared with every holder in this process that has it open and waits as long.

        It is open until every holder has called `release` or is no more. A folder of our own has
        its mode tightened if it exists.

        Args:
            holder: the store that uses it.
            path: where the file is.
            own_folder: whether the folder is ours.
            wait_s: how long a call waits while another process writes, in seconds.

        Raises:
            StoreError: the file cannot be opened, is not private, or is not ours.
        """
        settings = (path, wait_s)
        with _FORKING:
            file = _FILES.get(settings)
            if file is None:
                file = _FILES[settings] = PrivateFile(*settings)
            file._holders.add(holder)
        with file.connection(holder, "open"):
            if own_folder:
                _tighten(path.parent, 0o700)
            return file

    @contextmanager
    def connection(
        self, holder: object, operation: str
    ) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone; SQLite's failures become StoreError.

        Args:
            holder: the store that asks.
            operation: what it does, for errors.
        """
        if self._pid != os.getpid():
            self._leave_behind()
        if self._lock._is_owned():  # type: ignore[attr-defined]  # as threading.Condition asks
            reason = (
                "it is in use by what this call interrupts. Try again after it"
            )
            raise StoreError(_STORE, operation, reason)
        with self._lock:
            if holder not in self._holders:
                raise closed_error(_STORE, operation)
            try:
                yield self._live_connection()
            except (sqlite3.Error, OSError, OverflowError) as error:
                raise kind_of(error)(
                    _STORE, operation, reason_of(error)
                ) from error

    @contextmanager
    def transaction(
        self,
        holder: object,
        operation: str,
        *,
        writes: bool = False,
        synced: bool = True,
    ) -> Iterator[sqlite3.Connection]:
        """A connection inside one transaction, rolled back if anything is raised.

        Others that write wait from the beginning of one that ``writes``; what it writes reaches
        the disk before this ends if it is ``synced``.
        """
        with self.connection(holder, operation) as connection:
            try:
                if writes:
                    self.sync(connection, is_synced=synced)
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    try:
                        connection.execute("ROLLBACK")
                    except sqlite3.Error:
                        # the connection is beyond use: the next call opens a new one
                        self._disconnect()

    def release(self, holder: object) -> None:
        """Let a holder go, and close the connection with the last one; waits for calls under way.

        Args:
            holder: the store that used it.
        """
        if self._pid != os.getpid():
            self._leave_behind()
        with self._lock:
            self._holders.discard(holder)
            if not self._holders:
                self._disconnect()

    def pause(self) -> None:
        """Close the connection and hold the lock until `resume`: the process is about to fork."""
        self._lock.acquire()
        self._disconnect()

    def resume(self) -> None:
        """Let others in again, in the process that forked."""
        self._lock.release()

    def restart(self) -> None:
        """Begin again in a child. Nothing is connected, the lock is the parent's."""
        self._lock = RLock()
        self._pid = os.getpid()

    def _leave_behind(self) -> None:
        """Drop a connection that was open during a fork, neither used nor closed."""
        _LEFT_BEHIND.append(self._connection)
        self._connection = None
        self.restart()

    def _live_connection(self) -> sqlite3.Connection:
        """The connection, opened again if the file was moved away meanwhile."""
        connection = self._connection
        if connection is not None and _inode(self.path) == self._inode:
            if connection.in_transaction:  # of a call that was interrupted
                connection.execute("ROLLBACK")
            return connection
        self._disconnect()
        deadline = time.monotonic() + self._wait_s
        while True:
            try:
                self._connection, self._inode = self._connect()
                return self._connection
            except sqlite3.OperationalError as error:
                # Several processes that turn WAL on at once do not wait for each other.
                if code_of(error) not in _BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)

    def _connect(self) -> tuple[sqlite3.Connection, tuple[int, int]]:
        with _OPENING:
            stats = filter(None, map(_lstat, _places(self.path)))
            if not all(stat.S_ISREG(entry.st_mode) for entry in stats):
                raise _unsafe(
                    "a link, a folder or a device is at the place of the file. Use another path"
                )
            create_private(self.path)
            inode = _inode(self.path)
            connection = sqlite3.connect(
                self.path,
                timeout=self._wait_s,
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            if inode is None or _inode(self.path) != inode:
                raise _unsafe(
                    "the file was exchanged while it was being opened. Try again"
                )
            connection.execute(
                "BEGIN"
            )  # one view: another process may be migrating
            # a file that is not ours is refused before it is touched
            version = _version(connection)
            connection.execute("COMMIT")
            for place in _places(self.path):
                _tighten(place, 0o600)
            if version < len(MIGRATIONS):
                _migrate(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            self._is_synced = None
            self.sync(connection, is_synced=True)
        except BaseException:
            connection.close()
            raise
        return connection, inode

    def sync(self, connection: sqlite3.Connection, *, is_synced: bool) -> None:
        """Choose whether the next commit is synced to the disk.

        Args:
            connection: of this file.
            is_synced: whether it is.
        """
        if self._is_synced is not is_synced:
            self._is_synced = None  # not known, should this be interrupted
            connection.execute(
                f"PRAGMA synchronous = {'FULL' if is_synced else 'NORMAL'}"
            )
            self._is_synced = is_synced

    def _disconnect(self) -> None:
        connection = self._connection
        self._connection = None
        if connection is not None:
            connection.close()


def default_path() -> Path:
    """``ullage.db`` where the platform keeps the data of users."""
    from platformdirs import user_data_dir  # 10 ms that no other path needs

    return Path(user_data_dir("ullage", appauthor=False)) / "ullage.db"


def absolute(path: str | os.PathLike[str]) -> Path:
    """An absolute path, independent of the working folder.

    Args:
        path: of a file; ``~`` is the home folder.

    Raises:
        ConfigError: it is not a path of a file.
    """
    text = os.fspath(path)
    if not text or "\0" in text or text == ":memory:":
        raise ConfigError(
            "store",
            "this is no path of a file",
            'Name a file, or use "memory"',
        )
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:
        raise ConfigError(
            "store", "no home folder is known for ~", "Write it out"
        ) from error


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to this version, in one transaction. Another process may be first."""
    connection.execute("BEGIN IMMEDIATE")
    for steps in MIGRATIONS[_version(connection) :]:
        for step in steps:
            connection.execute(step)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    """The version of the file, 0 if it is empty. To be read inside a transaction."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (objects,) = connection.execute(
        "SELECT count(*) FROM sqlite_master"
    ).fetchone()
    if application != APPLICATION_ID and (version or objects):
        raise _unsafe(
            "the file belongs to another application. Use another path"
        )
    if version > len(MIGRATIONS):
        raise _unsafe(
            f"the file has version {version} and this ullage reads versions up to "
            f"{len(MIGRATIONS)}. Upgrade ullage, or use another path"
        )
    return int(version)


def create_private(path: Path) -> None:
    """Create a file with mode 0600, and its folders, unless they are there.

    Raises:
        OSError: the system refused.
    """
    make_folders(path.parent)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    with suppress(FileExistsError):
        os.close(os.open(path, flags, 0o600))


def make_folders(folder: Path) -> None:
    """Create what is missing with mode 0700; leave what exists."""
    missing = [
        place for place in (folder, *folder.parents) if not place.exists()
    ]
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)


def _tighten(place: Path, mode: int) -> None:
    """Remove the rights of group and others, if they have any."""
    # another connection may close, and take a file away
    with suppress(FileNotFoundError):
        if os.name == "posix" and stat.S_IMODE(place.stat().st_mode) & 0o077:
            place.chmod(mode)


def _places(path: Path) -> tuple[Path, ...]:
    """The file and those SQLite puts beside it."""
    return tuple(path.with_name(path.name + suffix) for suffix in _SIDE_FILES)


def _inode(path: Path) -> tuple[int, int] | None:
    """(device, inode) of a regular file; None for anything else."""
    status = _lstat(path)
    return (
        (status.st_dev, status.st_ino)
        if status and stat.S_ISREG(status.st_mode)
        else None
    )


def _lstat(place: Path) -> os.stat_result | None:
    """The status of what is at a place, if anything is; another connection may remove it."""
    try:
        return os.lstat(place)
    except FileNotFoundError:
        return None


def _unsafe(reason: str) -> StoreError:
    return StoreError(_STORE, "open", reason)


_OPENING = Lock()
_FORKING = (
    threading.Lock()
)  # held over a fork, and given back in both processes
_FILES: WeakValueDictionary[tuple[Path, float], PrivateFile] = (
    WeakValueDictionary()
)
_PAUSED: list[PrivateFile] = []
_LEFT_BEHIND: list[sqlite3.Connection | None] = []


def _before_fork() -> None:
    _FORKING.acquire()
    _PAUSED.extend(_FILES.values())
    for file in _PAUSED:
        file.pause()


def _after_fork(go_on: Callable[[PrivateFile], None]) -> None:
    while _PAUSED:
        go_on(_PAUSED.pop())
    _FORKING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=partial(_after_fork, PrivateFile.resume),
        after_in_child=partial(_after_fork, PrivateFile.restart),
    )
