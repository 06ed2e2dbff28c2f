r"""Find a pattern in lines, in time that is linear in their length, whatever the pattern.

The tree of a pattern becomes the states of an automaton that reads a line *backwards*: whatever
place a match can begin at is then seen in one pass, and the last one seen is the first in the
line. A state is a set of places in the pattern. States are made when they are first met (a lazy
DFA: Cox, *Regular Expression Matching Can Be Simple And Fast*), so nothing backtracks; what making
them may cost is bounded, and a pattern beyond that is refused.

Lines that cannot match are passed over without reading them: a run of single characters that is in
every match is looked for first with the standard library's engine, which cannot backtrack over
what repeats nothing. A character that is read takes some 80 ns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from ullage.session.recall.pattern import (
    Assertion,
    Chars,
    Either,
    Node,
    Repeat,
    Sequence,
    parse,
    too_large,
)

TEXT_END, LINE_END, CR_END, OTHER, _WORD = range(5)
r"""What is on a side of a place: `CR_END` is the "\r" of a "\r\n"."""

_MOST_PLACES = 3_000
_MOST_WORK = 1_000_000  # places looked at to make states: some 0.6 s
_MOST_MADE = 50_000  # transitions kept
_RUN_CHARS = 8  # of a text looked for first
_RUNS = 8

_Run: TypeAlias = tuple[Chars, ...]


class SearchTooCostly(Exception):
    """The states of a pattern cost too much."""


class _State(dict[str, "_State"]):
    """Places of the pattern reached; by the character to the left, the state after it.

    Attributes:
        places: to go on from.
        right: what is to the right.
        hit: a match begins to the right of the character last read.
    """

    __slots__ = ("hit", "machine", "places", "right")

    def __init__(
        self, machine: Automaton, key: tuple[frozenset[int], int, bool]
    ) -> None:
        self.machine = machine
        self.places, self.right, self.hit = key

    def __missing__(self, left_char: str) -> _State:
        state = self[left_char] = self.machine.after(self, left_char)
        return state


class Automaton:
    """A pattern made ready for one search.

    Args:
        pattern: as `ullage.session.recall.pattern.parse` reads it.
        ignore_case: take letters of either case for the same.

    Attributes:
        needed: finds what a line with a match has in it; None: any line may match.

    Raises:
        PatternError: it is not understood, or is too large.
    """

    def __init__(self, pattern: str, ignore_case: bool = False) -> None:
        tree = parse(pattern, ignore_case)
        # at each place: what is to be passed, and where that leads
        self._reads: list[Chars | Assertion | None] = []
        self._next: list[tuple[int, ...]] = []
        self._done = self._place(None, ())
        self._start = self._before(tree, self._done)
        runs = ["".join(map(_class, run)) for run in _required_runs(tree)]
        self.needed: re.Pattern[str] | None = None
        if runs:
            self.needed = re.compile("|".join(runs))
        self._states: dict[tuple[frozenset[int], int, bool], _State] = {}
        self._work = self._made = 0

    def first_match(self, line: str, left_char: str, right: int) -> int | None:
        r"""The first place at which a match begins in a line, given without its end.

        Left of it is a character, "" at the beginning of the text; right of it a side.

        Raises:
            Costly: making the states costs too much.
        """
        # states are made as they are met; too many are dropped, and made again if need be
        if self._made > _MOST_MADE:
            self._states.clear()
            self._made = 0
        state = self._state((frozenset((self._start,)), right, False))
        nearest = None
        for back, char in enumerate(reversed(line)):
            state = state[char]
            if state.hit:
                nearest = back
        if state[left_char].hit:
            return 0
        return None if nearest is None else len(line) - nearest

    def after(self, state: _State, left_char: str) -> _State:
        r"""The state after reading one more character, or ``"\n"`` or ``""`` for a border."""
        side = _side(left_char, state.right)
        reached = self._reached(state.places, side, state.right)
        self._made += 1
        self._work += len(reached)
        if self._work > _MOST_WORK:
            raise SearchTooCostly
        places = {self._start}
        for place in reached:
            reads = self._reads[place]
            if isinstance(reads, Chars) and reads.has(left_char):
                places.update(self._next[place])
        return self._state((frozenset(places), side, self._done in reached))

    def _state(self, key: tuple[frozenset[int], int, bool]) -> _State:
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(self, key)
        return state

    def _reached(
        self, places: Iterable[int], left_side: int, right_side: int
    ) -> set[int]:
        """All places that can be reached without reading, between what is on both sides."""
        reached: set[int] = set()
        stack = list(places)
        while stack:
            place = stack.pop()
            if place in reached:
                continue
            reached.add(place)
            reads = self._reads[place]
            if isinstance(reads, Assertion):
                is_open = _holds(reads, left_side, right_side)
            else:
                is_open = reads is None
            if is_open:
                stack.extend(self._next[place])
        return reached

    def _place(
        self, reads: Chars | Assertion | None, then: tuple[int, ...]
    ) -> int:
        if len(self._next) >= _MOST_PLACES:
            raise too_large()
        self._reads.append(reads)
        self._next.append(then)
        return len(self._next) - 1

    def _before(self, node: Node, then: int) -> int:
        """The place that reads a node from its end and goes on to ``then``."""
        match node:
            case Either(ways):
                starts = tuple(self._through(way, then) for way in ways)
                return self._place(None, starts)
            case Repeat(inner, least, most):
                for _ in range(least):
                    then = self._before(inner, then)
                if most is None:
                    loop = self._place(None, (then,))
                    self._next[loop] = (then, self._before(inner, loop))
                    return loop
                end = then
                for _ in range(most - least):
                    then = self._place(None, (end, self._before(inner, then)))
                return then
            case _:
                return self._place(node, (then,))

    def _through(self, items: Sequence, then: int) -> int:
        for node in items:
            then = self._before(node, then)
        return then


def _side(char: str, right: int) -> int:
    if char in "\n":
        return LINE_END if char else TEXT_END
    if char == "\r" and right == LINE_END:
        return CR_END
    if char == "_" or (char.isascii() and char.isalnum()):
        return _WORD
    return OTHER


def _holds(assertion: Assertion, left_side: int, right_side: int) -> bool:
    """Whether an assertion holds between two sides."""
    match assertion.sign:
        case "^":
            return left_side <= LINE_END
        case "$":
            return right_side <= CR_END
        case r"\A":
            return left_side == TEXT_END
        case r"\z":
            return right_side == TEXT_END
        case sign:
            is_border = (left_side == _WORD) != (right_side == _WORD)
            return is_border is (sign == r"\b")


def _required_runs(node: Node) -> tuple[_Run, ...]:
    """Runs of single characters of which every match has one; () where none are known."""
    match node:
        case Chars(_, negated) if not negated:
            return ((node,),)
        case Repeat(inner, least, _) if least:
            return _required_runs(inner)
        case Either(ways):
            best = [_rarest(way) for way in ways]
            runs = sum(best, ())
            # one way of which nothing is known, and nothing is known of the group
            if all(best) and len(runs) <= _RUNS:
                return runs
    return ()


def _rarest(items: Sequence) -> tuple[_Run, ...]:
    """Of the runs that a sequence needs, those that are longest."""
    run = list[Chars]()
    candidates: list[tuple[_Run, ...]] = [()]
    for node in items:
        if isinstance(node, Chars) and not node.negated:
            run.append(node)
            candidates.append((tuple(run[-_RUN_CHARS:]),))
        elif not isinstance(node, Assertion):
            run.clear()
            candidates.append(_required_runs(node))
    return max(candidates, key=lambda runs: min(map(len, runs), default=0))


def _class(chars: Chars) -> str:
    """A regular expression of the standard library for these characters.

    A single character is written without brackets: so it is found faster.
    """
    low, high = chars.ranges[0]
    if len(chars.ranges) == 1 and low == high:
        expression = re.escape(low)
    else:
        ranges = "".join(
            f"{re.escape(low)}-{re.escape(high)}" for low, high in chars.ranges
        )
        expression = f"[{ranges}]"
    if chars.folds:
        return f"(?i:{expression})"
    return expression
