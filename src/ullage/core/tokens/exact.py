"""Exact counts of OpenAI's encodings.

The tokeniser is toktok, whose vocabularies are compiled into its wheel: no file is looked for
and nothing is downloaded. It runs at some 60–350 MB/s (4 MB of base64 on one line, its worst
kind, takes 0.1 s), so texts of every size are counted whole; there is no sampling. Where it is
not installed (it has no wheel for musl) `ullage.core.tokens.estimate` stands in for it.

Three things are minded on the way in:

- a vocabulary takes half a second of CPU and 62 MB to load, at the first count or, better, in
  the thread that ``preload`` starts. toktok holds the interpreter's lock meanwhile, so a program
  with an event loop does best to ``preload`` before it starts the loop;
- toktok asks CPython for the UTF-8 form of a string, and CPython keeps that form inside the
  string for as long as it lives. A caller's non-ASCII string must not grow by our counting, so
  it is counted through a copy that is thrown away (an ASCII string is its own UTF-8 form);
- toktok refuses lone surrogates, which JSON may carry. They are counted as U+FFFD.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

from ullage.core.tokens.estimate import Counter

_ENCODINGS = ("o200k_base", "cl100k_base")


class Vocabulary(Counter, frozen=True, kw_only=True):
    """Counts with one encoding's vocabulary; exact if the model is known to use it.

    Attributes:
        encoding: ``"o200k_base"`` or ``"cl100k_base"``.
    """

    encoding: str

    def count(self, text: str) -> int:
        """Tokens of ``text``; special tokens spelled out in it count as ordinary text."""
        tokens = _LOADED.get(self.encoding) or load(self.encoding)
        if text.isascii():
            return tokens(text)
        try:
            return tokens(
                text.encode().decode()
            )  # a copy takes the UTF-8 form with it
        except UnicodeEncodeError:
            return tokens(repaired(text))


def exact(encoding: str) -> Vocabulary:
    """The exact counter of ``"o200k_base"`` (GPT-4o and later) or ``"cl100k_base"`` (before).

    Raises KeyError if there is no such encoding here.
    """
    if encoding not in _ENCODINGS:
        raise KeyError(
            f"unknown encoding {encoding!r}; there are {', '.join(_ENCODINGS)}"
        )
    return Vocabulary(name=encoding, encoding=encoding, exact=True)


def repaired(text: str) -> str:
    """``text`` with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_LOADED: dict[str, Callable[[str], int]] = {}
_STARTED: set[str] = set()
_LOCK = threading.Lock()


@cache
def is_installed() -> bool:
    """Whether there is a tokeniser for the exact counts."""
    return find_spec("toktok") is not None


def is_loaded(encoding: str) -> bool:
    """Whether an encoding's vocabulary is in memory."""
    return encoding in _LOADED


def load(encoding: str) -> Callable[[str], int]:
    """The counting function of an encoding; loads its vocabulary once, waits if another does.

    toktok's public call goes through a thread pool (29 µs a text); the tokeniser object
    underneath takes 1 µs. Should a release hide it, the public call still serves.
    """
    with _LOCK:
        if encoding not in _LOADED:
            import toktok

            try:
                _LOADED[encoding] = toktok._encoding(encoding).count
            except AttributeError:
                _LOADED[encoding] = lambda text: toktok.batch_count(
                    [text], encoding, 1
                )[0]
        return _LOADED[encoding]


def load_in_thread(encoding: str) -> None:
    """Starts loading a vocabulary in a daemon thread, once per process."""
    with _LOCK:
        if encoding in _STARTED or encoding in _LOADED:
            return
        _STARTED.add(encoding)
    threading.Thread(
        target=load,
        args=(encoding,),
        name=f"ullage-load-{encoding}",
        daemon=True,
    ).start()


_FORK_WAITS_S = 10.0


def _before_fork() -> None:
    """A fork waits for a vocabulary that is being loaded: half of one is of no use to a child."""
    global _HELD
    _HELD = _LOCK.acquire(timeout=_FORK_WAITS_S)


def _after_fork_in_parent() -> None:
    if _HELD:
        _LOCK.release()


def _after_fork_in_child() -> None:
    """A child must not wait for a thread that only its parent has."""
    global _LOCK
    _LOCK = threading.Lock()
    _STARTED.clear()


_HELD = False
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
