"""Names: what an agent takes from an old output, and how much each is worth keeping.

What is used again are identifiers, types, constants and paths (`frontier`, "Evidence"). A name is
worth most while nothing else in the view tells it. What the user or the model has said already, and
what another output tells, counts for little; what begins with a digit is seldom asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from ullage.history.measures import Measure
from ullage.history.remembered import REMEMBERED
from ullage.history.transcript import Location, Transcript, leaves_of
from ullage.history.window import Window
from ullage.values.messages import ToolCall, ToolResult

WORTH = 400
"""What a name is worth that nobody has told."""
_SAID, _TOLD, _NUMBER = (15, 100), (15, 100), (30, 100)
"""What of that it is worth if user or model said it, another output tells it, a digit begins it."""
_MARKS = "_$.-/"
ALARMS = frozenset(
    ("error", "errors", "Error", "ERROR", "failed", "FAILED", "exception", "fatal", "panic")
)
"""Plain words that count as names, anew in each output: a line that speaks of errors stays."""
_LEAST_CHARS, _MOST_CHARS = 4, 80
_ASCII, _FEW = bytes(range(128)), 32
_MOST_KNOWN = 20_000
_NAME_BYTES = 80
"""About what a name takes in a set beside its characters."""


class _Spaces(dict[int, str]):
    """What `str.translate` puts for a character: itself in names and line ends, else a space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        put = char if char.isalnum() or char in f"\n{_MARKS}" else " "
        if len(self) < _MOST_KNOWN:
            self[code] = put
        return put


_SPACES = _Spaces()


class Known(NamedTuple):
    """The names that a view tells beside the outputs that are about to leave it.

    Attributes:
        said: by the user or the model, ever.
        told: by outputs that stay. Grows by the names of each output that was looked at.
        plain: words in which no name stands, as far as they were met.
    """

    said: Set[str]
    told: set[str]
    plain: set[str]

    @classmethod
    def of(cls, said: Set[str], told: Iterable[str], root: bytes = b"") -> Known:
        """These names, and those in texts that are told; of each text remembered, under a root."""
        return cls(said, set().union(*(_told(text, root) for text in told)), set())


def spaced(text: str) -> str:
    """A text with a space for every character that is in no name; line ends stay."""
    if not text.isascii():  # one character beyond it, and `translate` is thirty times slower
        others = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
        kinds = {*others.decode("utf-8", "surrogatepass")}
        for char in kinds if len(kinds) < _FEW else ():
            text = text if char.isalnum() else text.replace(char, " ")
    return text.translate(_SPACES)


def names_in(words: Iterable[str], plain: set[str] | None = None) -> dict[str, str]:
    """The name in each word that holds one: a word may have marks at its ends.

    A plain word is none, whether or not it begins with a capital, nor is a whole number.

    Args:
        words: the words.
        plain: of these it is known that they hold none.
    """
    every, names = set(words), dict[str, str]()
    new = every if plain is None else every - plain
    for word in new:
        if len(word) < _LEAST_CHARS or (word.isalpha() and word[1:].islower()):
            continue  # most are: what follows costs as much again
        name = word.strip(_MARKS)
        is_plain = name.isalpha() and name[1:].islower()
        if _LEAST_CHARS <= len(name) <= _MOST_CHARS and not is_plain and not name.isdigit():
            names[word] = name
    if plain is not None:
        plain |= new - names.keys()
    return names | {word: word for word in ALARMS & every}


def _told(text: str, root: bytes) -> frozenset[str]:
    key = root, "names", len(text), hash(text)
    names: frozenset[str] | None = REMEMBERED.get(key)
    if names is None:
        names = frozenset(names_in(spaced(text).split()).values())
        REMEMBERED.put(key, names, sum(len(name) + _NAME_BYTES for name in names))
    return names


def worth_of(names: Mapping[str, str], known: Known) -> dict[str, int]:
    """What each word is worth that holds a name, at most `WORTH`; nothing is left out of worth."""
    said, told, worth = known.said, known.told, dict[str, int]()
    for word, name in names.items():
        value = WORTH
        if name in said and name not in ALARMS:
            value = value * _SAID[0] // _SAID[1]
        if name in told and name not in ALARMS:
            value = value * _TOLD[0] // _TOLD[1]
        if name[0].isdigit():
            value = value * _NUMBER[0] // _NUMBER[1]
        if value:
            worth[word] = value
    return worth


def _said(transcript: Transcript, index: int) -> frozenset[str]:
    """The names that the user or the model says in a message, arguments included."""
    message = transcript.messages[index]
    texts = [
        leaf.arguments if isinstance(leaf, ToolCall) else getattr(leaf, "text", "")
        for number, _, leaf in leaves_of(message)
        if not isinstance(message.parts[number], ToolResult)
    ]
    return frozenset(names_in(spaced("\n".join(texts)).split()).values())


_SAID_NAMES = Measure("ullage.said_names", _said)


def said_in(window: Window) -> frozenset[str]:
    """The names that the user and the model have said."""
    once = window.transcript.once
    return frozenset().union(*(once(_SAID_NAMES, index) for index in range(window.size)))


def told_in(window: Window, leaving: Set[Location]) -> list[str]:
    """What a view shows of results and in summaries, but for the results at these places."""
    staying = (spot for spot in window.results(0, window.size) if spot not in leaving)
    shown = (window.edit_at(spot) or window.transcript.leaf(spot) for spot in staying)
    told = [getattr(each, "text", "") for each in shown]
    return told + [placed.edit.text for placed in window.open_summaries]
