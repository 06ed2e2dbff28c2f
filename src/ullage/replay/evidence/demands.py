"""What a call demands of the history: the values that only a tool could have given it.

A value in the arguments of call ``t`` is a *demand* if it is in an earlier result and
nobody else has said it: not the system, the tools' schemas or the user, not the model itself
before. Values the model has written before are the *re-use* series, kept apart. All others
are never scored (`metrics` M1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ullage.replay.evidence.atoms import atoms_of
from ullage.replay.evidence.story import Piece, Story
from ullage.replay.evidence.texts import Atom, plain
from ullage.wires import Format

Use: TypeAlias = Literal["first", "reuse"]
Sources: TypeAlias = tuple[tuple[int, Piece], ...]
"""The texts that hold a value, oldest first, each with the number of its message."""
BUCKETS = ("1", "2-3", "4-10", "11-30", ">30")
_UPPER = (1, 3, 10, 30)


def bucket_of(age: int) -> str:
    """The bucket of an age in calls."""
    return BUCKETS[sum(age > upper for upper in _UPPER)]


class Demand(Struct, frozen=True):
    """One value one call needs from the history.

    Attributes:
        call: the number of the call, from 0.
        use: its first use, or one the model has written before.
        age: calls between the latest text that holds it and this one; 1 is the newest.
        weight: 1 over the number of demands of the same use in this call.
        sources: the texts that hold it, oldest first, with their message: of a first use
            tool results; of a re-use everything said.
    """

    call: int
    atom: Atom
    use: Use
    age: int
    weight: float
    sources: Sources

    @property
    def is_far(self) -> bool:
        """Whether it is of the headline: age 4 or more."""
        return self.age >= 4


Demands: TypeAlias = Sequence[Sequence[Demand]]
"""What the calls of a run demand, by call."""


class Head(Struct, frozen=True):
    """What a request has outside its messages, for the question who said a value first.

    Attributes:
        said: system text and tool schemas, in one.
        enums: by tool, its name and the values its schema allows.
    """

    said: Piece
    enums: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, wire: Format, request: Mapping[str, Any]) -> Head:
        """The head of a request."""
        whole = {**request, wire.key: []}
        tools = {wire.tool_name(tool): tool for tool in wire.tools(whole)}
        enums = {name: frozenset({name, *_enums(tool)}) for name, tool in tools.items()}
        text = "\n".join(wire.head(whole).texts)
        return cls(Piece("user", text, plain(text), 0), enums)

    def allows(self, tool: str, atom: Atom) -> bool:
        """Whether an atom is the tool's name, or a value its schema lists."""
        return atom.text == tool or atom.text in self.enums.get(tool, ())


def demands_of(
    story: Story, lengths: Sequence[int], head: Head, common: Set[str] = frozenset()
) -> Demands:
    """The demands of every call of a run."""
    found = (classes_of(story, length, head, common) for length in lengths)
    return [list(_made(number, of_call, lengths)) for number, of_call in enumerate(found)]


def classes_of(
    story: Story, length: int, head: Head, common: Set[str] = frozenset()
) -> dict[Atom, tuple[str, Sources]]:
    """The class of every value in the arguments of one reply; of demands, the sources.

    One of ``first`` and ``reuse``, which are demands; ``given`` by the user or the system,
    ``schema``, ``common``, ``generated``.
    """
    found: dict[Atom, tuple[str, Sources]] = {}
    for call in (call for message in story.reply(length) for call in message.calls):
        for atom in sorted(atoms_of(call.arguments)):
            if atom not in found:
                found[atom] = _class(atom, call.name, story, length, head, common)
    return found


def _made(
    number: int, found: Mapping[Atom, tuple[str, Sources]], lengths: Sequence[int]
) -> Iterator[Demand]:
    uses: tuple[Use, ...] = ("first", "reuse")
    for use in uses:
        mine = [(atom, sources) for atom, (kind, sources) in found.items() if kind == use]
        for atom, sources in mine:
            age = number - bisect_right(lengths, sources[-1][0]) + 1
            yield Demand(number, atom, use, age, 1 / len(mine), sources)


def _class(
    atom: Atom, tool: str, story: Story, length: int, head: Head, common: Set[str]
) -> tuple[str, Sources]:
    places = story.before(atom, length)
    if head.said.holds(atom) or any(piece.by == "user" for _, piece in places):
        return "given", ()
    if head.allows(tool, atom):
        return "schema", ()
    if not places:
        return "generated", ()
    if atom.text in common:
        return "common", ()
    if any(piece.by == "model" for _, piece in places):
        return "reuse", tuple(places)
    return "first", tuple(places)


def _enums(value: Any) -> Iterator[str]:
    """Every value that a schema lists, anywhere in it."""
    if isinstance(value, Mapping):
        listed = value.get("enum")
        yield from (item for item in listed or () if isinstance(item, str))
        for item in value.values():
            yield from _enums(item)
    elif isinstance(value, list):
        for item in value:
            yield from _enums(item)
