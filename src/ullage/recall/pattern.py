r"""A pattern that a model wrote, made ready to search with, or refused with what to write instead.

The engine is RE2: time linear in the text, bounded memory, whatever the pattern
(`dependencies.md` §2: the standard library's engine hangs on five of nine hostile ones). Where
google-re2 has no wheel (musl), `ullage.recall.automaton` is as linear and slower. Both are told
never to match a newline, so a match lies within one line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ullage.recall.automaton import Automaton

__all__ = ["PATTERN_CHARS", "Costly", "PatternError", "encoded", "engine"]

PATTERN_CHARS = 1_000
"""The longest pattern accepted."""

_MAX_MEM_BYTES = 8 << 20
_NEVER = r"[^\x00-\x{10FFFF}]"

_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(
    r"""\\Q.*?(?:\\E|\Z)                                # quoted
      | \\x(?:\{[^}]*\}|..) | \\.                       # escaped
      | \[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]         # a class
      | \(\?<?[=!] | \(\?>                              # look-around, atomic group
      | .""",
    re.VERBOSE | re.DOTALL,
)
_NEWLINES = frozenset({"\n", "\\n", "\\x0a", "\\x0A", "\\x{a}", "\\x{A}", "\\x{0a}", "\\x{0A}"})


class Costly(Exception):
    """A search would take too long."""


class PatternError(ValueError):
    """The pattern cannot be used. The message says why and what to write instead."""


def encoded(text: str) -> bytes:
    """UTF-8, one character for each of the text's: U+FFFD for a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


@lru_cache(maxsize=8)
def engine(pattern: str, ignore_case: bool, crlf: bool, open_end: bool = False) -> Any:
    r"""The compiled pattern.

    Args:
        pattern: RE2 syntax.
        ignore_case: take letters of either case for the same.
        crlf: ``$`` also stands before a "\r" at the end of a line.
        open_end: the end of what is searched is not the end of a line.

    Raises:
        PatternError: the pattern is too long, is not understood, or could never match.

    re2 keeps 128 of them by itself, each with up to 8 MB of states: too much for patterns
    that come from models, so its cache is emptied and a small one kept here.
    """
    if len(pattern) > PATTERN_CHARS:
        raise PatternError(
            f"the pattern has {len(pattern):,} characters and the limit is {PATTERN_CHARS:,}. "
            "Look for a shorter, telling part"
        )
    pieces = _adapted(pattern, crlf, open_end)
    try:
        import re2
    except ImportError:
        return _automaton(pieces, pattern, ignore_case)
    options = re2.Options()
    options.max_mem = _MAX_MEM_BYTES
    options.log_errors = False
    options.never_nl = True
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(b"(?m)" + encoded("".join(pieces)), options)
    except re2.error as error:
        raw = error.args[0] if error.args else b""
        said = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
        raise PatternError(_why(said, pattern)) from error
    finally:
        re2.purge()


def _automaton(pieces: list[str], pattern: str, ignore_case: bool) -> Automaton:
    """The engine for where RE2 is missing."""
    from ullage.recall.automaton import Automaton, Unknown

    try:
        return Automaton([_SURROGATE.sub("\ufffd", piece) for piece in pieces], ignore_case)
    except Unknown as error:
        raise PatternError(_why(str(error), pattern)) from error


def _adapted(pattern: str, crlf: bool, open_end: bool) -> list[str]:
    """The pieces of the pattern as RE2 shall see them; refuses what would silently find nothing."""
    pieces = []
    for token in _TOKEN.findall(pattern):
        if token in _NEWLINES:
            raise PatternError(
                r"a match lies within one line, so \n cannot match. Look for one of the lines "
                "and ask for lines of context"
            )
        if token == r"\C":
            raise PatternError(r"\C is not supported. Use . for one character")
        if token in ("(?=", "(?!", "(?<=", "(?<!", "(?>"):
            raise PatternError(
                f"{token}…) is not supported: look-around and atomic groups cannot be searched "
                "in linear time. Look for the part that must be there, and check its "
                "surroundings in the lines found"
            )
        if token in ("$", r"\z"):
            token = _NEVER if open_end else r"(?:\r?$)" if crlf and token == "$" else token
        pieces.append(token)
    return pieces


def _why(said: str, pattern: str) -> str:
    """An engine's complaint and what to do about it."""
    if re.search(r"escape sequence: \\[1-9kg]", said) or "(?P=" in pattern:
        hint = "Back-references cannot be searched in linear time: write the repeated part out"
    elif "too large" in said or "repetition size" in said:
        hint = "Counted repetitions go up to 1,000, nested ones multiplied: use * or +"
    elif "bad repetition" in said:
        hint = "Use one of * + ? at a time: nothing here can backtrack"
    else:
        hint = "Put a backslash before ( ) [ ] { } . * + ? ^ $ | where the character is meant"
    return f"the pattern is not understood: {said}. {hint}"
