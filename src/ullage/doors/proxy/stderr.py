"""Standard error that nobody waits for.

It may be a pipe whose reader has stopped. Once that is full, whoever writes waits; in a proxy that
would be every request, for the sake of a log line or a warning. So a thread writes, and what comes
while too much is waiting is left out and counted.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue

_MOST_TEXTS = 10_000
_PATIENCE_S = 1.0


@contextmanager
def unwaited() -> Iterator[None]:
    """Standard error is written by a thread while the block lasts."""
    original = sys.stderr
    try:
        original.flush()
        descriptor = original.fileno()
    except (
        AttributeError,
        OSError,
        ValueError,
    ):  # there is none, or it is no file
        yield
        return
    sys.stderr = unwaiting = Unwaited(descriptor)
    try:
        yield
    finally:
        sys.stderr = original
        unwaiting.close()


class Unwaited(io.TextIOBase):
    """A file that is written by a thread; `close` waits for it, but not for long.

    Args:
        descriptor: of the file. It stays open.
        most: so many texts may wait; what comes then is left out.
    """

    encoding = "utf-8"

    def __init__(self, descriptor: int, most: int = _MOST_TEXTS) -> None:
        self._descriptor = descriptor
        self._most = most
        self._left_out = 0
        self._waiting: SimpleQueue[str | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=self._write_all, name="ullage-stderr", daemon=True
        )
        self._thread.start()

    def write(self, text: str) -> int:
        """Have a text written, if there is room for it to wait.

        Raises:
            TypeError: it is not text.
        """
        if not isinstance(text, str):  # who asks whether this file takes bytes
            raise TypeError("a text is expected")
        if self._waiting.qsize() < self._most:
            self._waiting.put(text)
        else:
            self._left_out += 1
        return len(text)

    def fileno(self) -> int:
        """The descriptor, for who has to write at once."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._descriptor)

    def close(self) -> None:
        """Write what waits, as far as that can be done soon."""
        if not self.closed:
            self._waiting.put(None)
            self._thread.join(_PATIENCE_S)
        super().close()

    def _write_all(self) -> None:
        while (text := self._waiting.get()) is not None:
            left_out = self._left_out
            self._left_out = 0
            more = (
                f"ullage proxy: {left_out:,} texts were left out here\n"
                if left_out
                else ""
            )
            data = memoryview(
                (more + text).encode("utf-8", "backslashreplace")
            )
            with suppress(OSError):  # nobody is there to be told
                while data:
                    data = data[os.write(self._descriptor, data) :]
