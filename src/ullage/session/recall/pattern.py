r"""Read a regular expression that a model wrote to a tree, or refuse it with what to write instead.

The syntax is RE2's as far as it can be searched line by line (`ullage.session.recall.automaton`):
literals, ``.``, classes, groups, ``|``, repetitions, ``^ $ \A \z \b \B``, and the flag ``i``.
``\d``, ``\s``, ``\w`` and ``\b`` are of ASCII. Whatever needs backtracking (back-references,
look-around, atomic groups) is refused, so no pattern that is accepted can be catastrophic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

PATTERN_CHARS = 1_000
"""The longest pattern accepted."""

_MOST_REPEATS = 1_000
_NESTED = 50  # groups within groups

Ranges: TypeAlias = tuple[tuple[str, str], ...]


class PatternError(ValueError):
    """The pattern cannot be used. The message says why and what to write instead."""


class Chars(Struct, frozen=True):
    r"""One character, never a "\n".

    Attributes:
        ranges: (first, last) of each range it may be in.
        negated: it is in none of them.
        folds: letters of either case are the same.
    """

    ranges: Ranges
    negated: bool = False
    folds: bool = False

    def has(self, char: str) -> bool:
        """Whether it may be this character; "" and a newline it is never."""
        if char in "\n":
            return False
        cases = (char, char.lower(), char.upper()) if self.folds else (char,)
        here = any(
            low <= one <= high
            for one in cases
            if len(one) == 1
            for low, high in self.ranges
        )
        return here != self.negated


class Assertion(Struct, frozen=True):
    r"""A place between two characters, such as ``^`` or ``\b``."""

    sign: str


class Either(Struct, frozen=True):
    """A group: one of several sequences."""

    ways: tuple[Sequence, ...]


class Repeat(Struct, frozen=True):
    """The same several times; ``most`` is None where there is no bound."""

    node: Node
    least: int
    most: int | None


Node: TypeAlias = Chars | Assertion | Either | Repeat
Sequence: TypeAlias = tuple[Node, ...]

_TOKEN = re.compile(
    r"""\\Q(?P<quoted>.*?)(?:\\E|\Z)
      | (?P<escape> \\x\{\w*\} | \\x.{2} | \\.)
      | \[(?P<negated>\^?+)(?P<items>(?:\]|\\.|\[:\^?\w+:\]|[^\]\\])(?:\\.|\[:\^?\w+:\]|[^\]\\])*)\]
      | (?P<opened> \((?:\?(?:<?[=!]|>|P=|P?<\w+>|[a-zA-Z-]*[:)]))?)
      | (?P<repeat> (?:[*+?]|\{\d+(?:,\d*)?\})\??)
      | (?P<char> .)""",
    re.VERBOSE | re.DOTALL,
)
_ONE = r"\\x\{\w*\}|\\x..|\\.|."
_ITEM = re.compile(
    rf"(?P<named>\\[dDsSwW]|\[:\^?\w+:\])|(?P<low>{_ONE})(?:-(?P<high>{_ONE}))?",
    re.DOTALL,
)
_CLASS = re.compile(r"\\[dDsSwW]")
_FLAGS = re.compile(r"\(\?([imsU]*)-?([imsU]*)[:)]")
_COUNTS = re.compile(r"\{(\d+)(,?)(\d*)\}")

_PAIRS = {
    "d": "09", "s": "\t\n\f\r  ", "w": "09AZ__az", "alnum": "09AZaz", "alpha": "AZaz",
    "ascii": "\0\x7f", "blank": "\t\t  ", "cntrl": "\0\x1f\x7f\x7f", "digit": "09", "graph": "!~",
    "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ",
    "word": "09AZ__az", "xdigit": "09AFaf",
}  # fmt: skip
_CLASSES: dict[str, Ranges] = {
    name: tuple(zip(pairs[::2], pairs[1::2], strict=True))
    for name, pairs in _PAIRS.items()
}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_UNBOUNDED = {"*": 0, "+": 1}

_CHARACTERS = "Put a backslash before ( ) [ ] { } . * + ? ^ $ | where the character is meant"
_COUNTED = (
    "Counted repetitions go up to 1,000, nested ones multiplied: use * or +"
)
_REFERENCES = "Back-references cannot be searched in linear time: write the repeated part out"


def parse(pattern: str, ignore_case: bool = False) -> Either:
    """The tree of a pattern.

    Args:
        pattern: in RE2's syntax; flags but ``i`` change nothing, a match being within one line.
        ignore_case: take letters of either case for the same.

    Raises:
        PatternError: it is too long, is not understood, or could never match.
    """
    if len(pattern) > PATTERN_CHARS:
        raise PatternError(
            f"the pattern has {len(pattern):,} characters and the limit is {PATTERN_CHARS:,}. "
            "Look for a shorter, telling part"
        )
    return _group(_TOKEN.finditer(pattern), ignore_case, 0)


def too_large() -> PatternError:
    """The error of repetitions that multiply to too much."""
    return _unknown("too large", _COUNTED)


def _unknown(problem: str, remedy: str = _CHARACTERS) -> PatternError:
    return PatternError(f"the pattern is not understood: {problem}. {remedy}")


def _group(tokens: Iterator[re.Match[str]], folds: bool, depth: int) -> Either:
    """What is in a group, up to its end; the whole pattern is one without brackets."""
    ways = list[Sequence]()
    items = list[Node]()
    for token in tokens:
        kind = token.lastgroup
        text = token[0]
        if text == ")" and depth:
            return Either((*ways, tuple(items)))
        if text == "|":
            ways.append(tuple(items))
            items = []
        elif kind == "opened":
            inner = _flags(text, folds)
            if text.endswith(")"):  # flags for the rest of this group
                folds = inner
            elif depth == _NESTED:
                raise _unknown(
                    f"groups go {_NESTED} deep",
                    "Take brackets away that group nothing",
                )
            else:
                items.append(_group(tokens, inner, depth + 1))
        elif kind == "repeat":
            items[-1:] = [_repeated(items[-1:], text)]
        else:
            items += _read(token, folds)
    if depth:
        raise _unknown("missing )")
    return Either((*ways, tuple(items)))


def _flags(opened: str, folds: bool) -> bool:
    """Whether a group ignores case; refuses what is not searched for."""
    if opened in ("(?=", "(?!", "(?<=", "(?<!", "(?>"):
        raise PatternError(
            f"{opened}…) is not supported: look-around and atomic groups cannot be searched "
            "in linear time. Look for the part that must be there, and check its "
            "surroundings in the lines found"
        )
    if opened == "(?P=":
        raise _unknown("(?P=", _REFERENCES)
    if opened == "(" or "<" in opened:
        return folds
    flags = _FLAGS.fullmatch(opened)
    if flags is None:
        raise _unknown(f"{opened} sets an unknown flag")
    return ("i" in flags[1] or folds) and "i" not in flags[2]


def _repeated(operand: list[Node], text: str) -> Repeat:
    """The last item read, as often as a sign says."""
    if not operand:
        raise _unknown(f"nothing is repeated by {text}")
    if isinstance(operand[0], Repeat):
        raise _unknown(
            f"{text} follows a repetition", "Use one of * + ? {…} at a time"
        )
    counts = _COUNTS.match(text)
    most: int | None
    if counts is None:
        least = _UNBOUNDED.get(text[0], 0)
        most = 1 if text[0] == "?" else None
    else:
        least = int(counts[1])
        most = least
        if counts[2]:  # a comma: {3,} or {3,5}
            most = int(counts[3]) if counts[3] else None
    if max(least, most or 0) > _MOST_REPEATS:
        raise too_large()
    if most is not None and most < least:
        raise _unknown(f"{text} has its larger number first")
    return Repeat(operand[0], least, most)


def _read(token: re.Match[str], folds: bool) -> Iterator[Node]:
    """What is quoted, a class, an escape, or a character by itself."""
    if token["quoted"] is not None:
        for char in token["quoted"]:
            yield Chars(((char, char),), folds=folds)
    elif token["items"] is not None:
        yield Chars(
            tuple(_ranges(token["items"])), bool(token["negated"]), folds
        )
    else:
        yield _single(token[0], folds)


def _single(text: str, folds: bool) -> Node:
    """An escape, or a character by itself."""
    if text in ("^", "$", r"\A", r"\z", r"\b", r"\B"):
        return Assertion(text)
    if text == ".":
        return Chars((), negated=True)
    if text in ("(", ")", "[", "\\"):
        raise _unknown(f"{text} is alone")
    if _CLASS.fullmatch(text):
        return Chars(_named(text))
    char = _char(text)
    if char == "\n":
        raise PatternError(
            r"a match lies within one line, so \n cannot match. Look for one of the lines "
            "and ask for lines of context"
        )
    return Chars(((char, char),), folds=folds)


def _char(text: str) -> str:
    """The character that an escape, or a character by itself, means."""
    if not text.startswith("\\"):
        return text
    if text.startswith(r"\x"):
        try:
            return chr(int(text[2:].strip("{}"), 16))
        except (ValueError, OverflowError) as error:
            raise _unknown(f"{text[:12]} is no character") from error
    if text == r"\C":
        raise PatternError(r"\C is not supported. Use . for one character")
    if text[1] in "123456789kg":
        raise _unknown(f"{text} is a back-reference", _REFERENCES)
    if text[1] in _CONTROLS:
        return _CONTROLS[text[1]]
    if text[1].isascii() and text[1].isalnum():
        raise _unknown(f"{text} is no escape")
    return text[1]


def _ranges(items: str) -> Iterator[tuple[str, str]]:
    """The ranges of what is in a class."""
    for item in _ITEM.finditer(items):
        if item["named"]:
            yield from _named(item[0])
            continue
        low = _char(item["low"])
        high = _char(item["high"] or item["low"])
        if high < low:
            raise _unknown(f"the range {item[0]} runs backwards")
        yield low, high


def _named(name: str) -> Ranges:
    r"""The ranges of a class such as ``\D`` or ``[:^alpha:]``."""
    word = name.strip("[:]^\\")
    if word.lower() not in _CLASSES:
        raise _unknown(f"{name} is no class of characters")
    ranges = _CLASSES[word.lower()]
    return tuple(_others(ranges)) if "^" in name or word.isupper() else ranges


def _others(ranges: Ranges) -> Iterator[tuple[str, str]]:
    """The ranges between some that are in order."""
    next_code = 0
    for low, high in ranges:
        if ord(low) > next_code:
            yield chr(next_code), chr(ord(low) - 1)
        next_code = ord(high) + 1
    yield chr(next_code), "\U0010ffff"
