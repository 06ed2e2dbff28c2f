"""What was worked out from content alone, remembered by content.

Cuts on arrival, digests and token counts are pure functions of a text and settings, so they
are remembered for the whole process: a retry, an edit, a fork of a history and a new session find
them again. It may be dropped at any time and changes nothing but speed.

Keys begin with the root of a chain, so that no tenant can tell from the time a call takes what
another one sent. No lock is held: threads and interrupts can lose an entry, never see half of one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

_ENTRY_BYTES = 400
"""About what an entry takes beside its texts."""


class Remembered:
    """A mapping that forgets what was not asked for longest, bounded in bytes.

    Two generations: what is found in the old one moves to the new one, and once the new one
    holds half of the bytes, it becomes the old one.

    Args:
        most_bytes: about the most bytes held.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._new: dict[Hashable, tuple[Any, int]] = {}
        self._old: dict[Hashable, tuple[Any, int]] = {}
        self._bytes = 0

    def get(self, key: Hashable) -> Any:
        """What was put under a key, or None."""
        entry = self._new.get(key) or self._old.get(key)
        if entry is None:
            return None
        value, chars = entry
        if key not in self._new:
            self.put(key, value, chars)
        return value

    def put(self, key: Hashable, value: Any, chars: int = 0) -> None:
        """Remember a value, not None, whose texts and whose key's have so many characters."""
        self._new[key] = value, chars
        self._bytes += chars + _ENTRY_BYTES
        if self._bytes > self._most_bytes // 2:
            self._old = self._new
            self._new = {}
            self._bytes = 0

    def clear(self) -> None:
        """Forget everything."""
        self._new = {}
        self._old = {}
        self._bytes = 0


REMEMBERED = Remembered(32 << 20)
"""What this process remembers."""
