r"""A linear-time engine in plain Python, for where google-re2 has no wheel.

The pattern becomes the states of an automaton that reads a line *backwards*: whatever place a
match can begin at is then seen in one pass, and the last one seen is the first in the line. States
are sets of places in the pattern, made when they are first met (a lazy DFA), so that no pattern
backtracks; what making them may cost is bounded, and a pattern beyond that is refused. Literal
text that every match holds is looked for first, at the speed of ``find``.

It reads the syntax of RE2 as far as Python's own parser does, with RE2's meanings: ``\d``, ``\s``,
``\w`` and ``\b`` are of ASCII. Not known are ``\pN``, flags in the middle, and ``(?U)``. It takes
some 80 ns a character where no literal text helps.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, TypeAlias

__all__ = ["Automaton", "Unknown"]

from ullage.recall.pattern import Costly

_MOST_NODES = 3_000
_MOST_REPEATS = 1_000
_MOST_WORK = 1_500_000  # places looked at to make states, a search: about a second
_MOST_STATES = 5_000
_TEXT_END, _LINE_END, _WORD, _OTHER = range(4)  # what stands on a side of a place

_Test: TypeAlias = Callable[[str], bool]

_WORDS = frozenset(string.ascii_letters + string.digits + "_")
_CATEGORIES: dict[Any, frozenset[str]] = {
    ops.CATEGORY_DIGIT: frozenset(string.digits),
    ops.CATEGORY_SPACE: frozenset("\t\n\f\r "),
    ops.CATEGORY_WORD: _WORDS,
}
_NOT_IN: dict[Any, frozenset[str]] = {
    ops.CATEGORY_NOT_DIGIT: frozenset(string.digits),
    ops.CATEGORY_NOT_SPACE: frozenset("\t\n\f\r "),
    ops.CATEGORY_NOT_WORD: _WORDS,
}
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_IN_CLASS = re.compile(r"\\x\{(\w+)\}|\\.|\[:(\^?\w+):\]|\[|&|~|\||--", re.DOTALL)


class Unknown(ValueError):
    """The pattern has something this engine cannot read."""


class _State(dict[str, "_State"]):
    """Places of the pattern reached; by the character to the left, the state after it.

    Attributes:
        places: to go on from.
        right: what stands to the right.
        hit: a match begins to the right of the character last read.
    """

    __slots__ = ("hit", "machine", "places", "right")

    def __init__(self, machine: Automaton, key: tuple[frozenset[int], int, bool]) -> None:
        self.machine = machine
        self.places, self.right, self.hit = key

    def __missing__(self, left: str) -> _State:
        state = self[left] = self.machine.after(self, left)
        return state


class Found:
    """A match, of which the place is known."""

    def __init__(self, at: int) -> None:
        self._at = at

    def start(self) -> int:
        """The byte it begins at."""
        return self._at


class Automaton:
    """A compiled pattern: as much of RE2's object as a search of lines needs.

    Args:
        tokens: the pattern in RE2's syntax, a piece each for what is escaped, quoted or a class.
        ignore_case: take letters of either case for the same.

    Attributes:
        programsize: places in the pattern.

    Raises:
        Unknown: it is not understood; the message says what.
    """

    def __init__(self, tokens: Iterable[str], ignore_case: bool) -> None:
        try:
            parsed = parser.parse(
                "".join(map(_for_python, tokens)), re.IGNORECASE if ignore_case else 0
            )
        except (re.error, RecursionError, OverflowError) as error:
            raise Unknown(str(error)) from error
        self._tests: list[_Test | None] = []  # of places that read a character
        self._next: list[tuple[int, ...]] = []
        self._asserts: list[Any] = []
        self._done = self._place(None, ())
        flags = parsed.state.flags
        self._start = self._sequence(parsed, self._done, flags)
        self._literal = "" if flags & re.IGNORECASE else _literal(parsed)
        self._states: dict[tuple[frozenset[int], int, bool], _State] = {}
        self._work = 0

    @property
    def programsize(self) -> int:
        """Places in the pattern."""
        return len(self._next)

    def search(self, body: bytes, at: int) -> Found | None:
        r"""The first match at ``at`` or later in lines of UTF-8 parted by "\n".

        Raises:
            Costly: making the states costs too much.
        """
        self._work = 0
        needed = self._literal.encode()
        while at <= len(body):
            if needed:
                found = body.find(needed, at)
                if found < 0:
                    return None
                at = max(at, body.rfind(b"\n", 0, found) + 1)
            begin = body.rfind(b"\n", 0, at) + 1
            end = body.find(b"\n", at)
            right = _TEXT_END if end < 0 else _LINE_END
            end = len(body) if end < 0 else end
            line = body[at:end].decode()
            left = body[begin:at].decode()[-1:] or ("\n" if begin else "")
            place = self._first(line, left, right)
            if place is not None:
                return Found(at + len(line[:place].encode()))
            at = end + 1
        return None

    def _first(self, line: str, left: str, right: int) -> int | None:
        """The first place in a line that a match begins at, read from its end."""
        if len(self._states) > _MOST_STATES:
            self._states.clear()
        state = self._state((frozenset((self._start,)), right, False))
        first = None
        for back, char in enumerate(reversed(line)):
            state = state[char]
            if state.hit:
                first = back
        if state[left].hit:
            return 0
        return None if first is None else len(line) - first

    def after(self, state: _State, left: str) -> _State:
        r"""The state after reading one more character, or ``"\n"`` or ``""`` for a border."""
        side = _side(left)
        reached = self._reached(state.places, side, state.right)
        self._work += len(reached)
        if self._work > _MOST_WORK:
            raise Costly
        places = {self._start}
        for place in reached:
            test = self._tests[place]
            if test is not None and test(left):
                places.update(self._next[place])
        return self._state((frozenset(places), side, self._done in reached))

    def _state(self, key: tuple[frozenset[int], int, bool]) -> _State:
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(self, key)
        return state

    def _reached(self, places: Iterable[int], left: int, right: int) -> set[int]:
        """All places that can be reached without reading, between what stands on both sides."""
        reached: set[int] = set()
        stack = list(places)
        while stack:
            place = stack.pop()
            if place in reached:
                continue
            reached.add(place)
            asked = self._asserts[place]
            if self._tests[place] is None and (asked is None or _holds(asked, left, right)):
                stack.extend(self._next[place])
        return reached

    def _place(self, test: _Test | None, then: tuple[int, ...], asked: Any = None) -> int:
        if len(self._next) >= _MOST_NODES:
            raise Unknown("too large")
        self._tests.append(test)
        self._next.append(then)
        self._asserts.append(asked)
        return len(self._next) - 1

    def _sequence(self, items: Iterable[tuple[Any, Any]], then: int, flags: int) -> int:
        """The place that reads a sequence from its end and goes on to ``then``."""
        for op, arg in items:
            then = self._item(op, arg, then, flags)
        return then

    def _item(self, op: Any, arg: Any, then: int, flags: int) -> int:
        if op is ops.BRANCH:
            return self._place(None, tuple(self._sequence(way, then, flags) for way in arg[1]))
        if op is ops.SUBPATTERN:
            _, added, removed, items = arg
            return self._sequence(items, then, (flags | added) & ~removed)
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            least, most, repeated = arg
            return self._repeat(least, most, repeated, then, flags)
        if op is ops.AT:
            return self._place(None, (then,), arg)
        return self._place(_test(op, arg, flags), (then,))

    def _repeat(self, least: int, most: Any, items: Any, then: int, flags: int) -> int:
        if least > _MOST_REPEATS or (most is not ops.MAXREPEAT and most > _MOST_REPEATS):
            raise Unknown("bad repetition size")
        for _ in range(least):
            then = self._sequence(items, then, flags)
        if most is ops.MAXREPEAT:
            loop = self._place(None, (then,))
            self._next[loop] = (then, self._sequence(items, loop, flags))
            return loop
        done = then
        for _ in range(most - least):
            then = self._place(None, (done, self._sequence(items, then, flags)))
        return then


def _test(op: Any, arg: Any, flags: int) -> _Test:
    """Whether a character is one that an item of the pattern reads."""
    if op is ops.ANY:
        return (lambda char: char != "") if flags & re.DOTALL else (lambda char: char not in "\n")
    if op is ops.LITERAL or op is ops.NOT_LITERAL:
        items, negated = [(ops.LITERAL, arg)], op is ops.NOT_LITERAL
    elif op is ops.IN:
        negated = arg[0][0] is ops.NEGATE
        items = arg[negated:]
    else:
        raise Unknown(_WHY.get(str(op), "bad escape"))
    folds = bool(flags & re.IGNORECASE)

    def test(char: str) -> bool:
        if char in "\n":
            return False
        chars = {char, *(c for c in (char.lower(), char.upper()) if len(c) == 1 and folds)}
        return any(_has(item, one) for item in items for one in chars) != negated

    return test


_WHY = {
    "GROUPREF": "invalid escape sequence: \\1",
    "GROUPREF_EXISTS": "invalid escape sequence: \\1",
    "POSSESSIVE_REPEAT": "bad repetition operator",
}


def _has(item: tuple[Any, Any], char: str) -> bool:
    """Whether an item of a class holds a character."""
    op, arg = item
    if op is ops.LITERAL:
        return bool(ord(char) == arg)
    if op is ops.RANGE:
        low, high = arg
        return bool(low <= ord(char) <= high)
    return char in _CATEGORIES[arg] if arg in _CATEGORIES else char not in _NOT_IN[arg]


def _side(char: str) -> int:
    if not char:
        return _TEXT_END
    return _LINE_END if char == "\n" else _WORD if char in _WORDS else _OTHER


def _holds(asked: Any, left: int, right: int) -> bool:
    """Whether an assertion holds between two sides."""
    if asked is ops.AT_BEGINNING:
        return left <= _LINE_END
    if asked is ops.AT_END:
        return right <= _LINE_END
    if asked is ops.AT_BEGINNING_STRING:
        return left == _TEXT_END
    if asked is ops.AT_END_STRING:
        return right == _TEXT_END
    is_border = (left == _WORD) != (right == _WORD)
    return is_border is (asked is ops.AT_BOUNDARY)


def _literal(parsed: Any) -> str:
    """The longest text that stands in every match."""
    best = run = ""
    for op, arg in parsed:
        run = run + chr(arg) if op is ops.LITERAL else ""
        best = max(best, run, key=len)
    return best


def _for_python(token: str) -> str:
    """A token of RE2's syntax as Python's parser reads it."""
    if token.startswith(r"\Q"):
        return re.escape(token[2:].removesuffix(r"\E"))
    if token.startswith("[") and len(token) > 1:
        return "[" + _IN_CLASS.sub(_in_class, token[1:-1]) + "]"
    if token.startswith(r"\x{"):
        return _escaped(token[3:-1])
    return r"\Z" if token == r"\z" else token


def _in_class(found: re.Match[str]) -> str:
    """A part of a class: Python warns of what might once mean more."""
    if found[1]:
        return _escaped(found[1])
    if found[2]:
        if found[2] not in _POSIX:
            raise Unknown(f"invalid character class range: {found[0]}")
        return _POSIX[found[2]]
    return found[0] if found[0].startswith("\\") else rf"\{found[0]}"


def _escaped(digits: str) -> str:
    try:
        return re.escape(chr(int(digits, 16)))
    except (ValueError, OverflowError) as error:
        raise Unknown(f"invalid escape sequence: \\x{{{digits}}}") from error
