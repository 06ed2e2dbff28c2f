"""Names: what an agent takes from an old output, and how much each is worth keeping.

What is used again are identifiers, types, constants and paths (`frontier`, "Evidence"). A name is
worth most while nothing else in the view tells it. What the user or the model has said already, and
what another output tells, counts for little; what begins with a digit is seldom asked for again.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from ullage.core.history.measures import Measure
from ullage.core.history.remembered import REMEMBERED
from ullage.core.history.transcript import Location, Transcript, leaves_of
from ullage.core.history.window import Window
from ullage.core.values.messages import ToolCall, ToolResult

WORTH = 400
"""What a name is worth that nobody has told."""
_SAID, _TOLD, _NUMBER = 15, 15, 30
"""Percent of that, if user or model said it, another output tells it, a digit begins it."""
_MARKS = "_$.-/"
ALARMS = frozenset(
    (
        "error",
        "errors",
        "Error",
        "ERROR",
        "failed",
        "FAILED",
        "exception",
        "fatal",
        "panic",
    )
)
"""Plain words that count as names, anew in each output: a line that speaks of errors stays."""
_LEAST_CHARS, _MOST_CHARS = 4, 80
_PLAIN = "".join(sorted({*string.ascii_letters} - {alarm[0] for alarm in ALARMS}))
_words = re.compile(rf"(?:[{_PLAIN}][a-z]*+ ++|[0-9]++ ++)*+([^ ]++) *+").findall
"""Passes over whole numbers, and plain words but those that begin as an alarm does."""
_OTHERS, _ASCII, _FEW = (
    re.compile(rf"[^\w\n{re.escape(_MARKS)}]"),
    bytes(range(128)),
    32,
)
_SPACED = _OTHERS.sub(" ", _ASCII.decode()).encode() + bytes(range(128, 256))
_NAME_BYTES = 80
"""About what a name takes in a set beside its characters."""


class KnownNames(NamedTuple):
    """The names that a view tells beside the outputs that are about to leave it.

    Attributes:
        said: by the user or the model, ever.
        told: by outputs that stay. Grows by the names of each output that was looked at.
    """

    dialogue: Set[str]
    outputs: set[str]

    @classmethod
    def of(cls, said: Set[str], told: Iterable[str], root: bytes = b"") -> KnownNames:
        """These names, and those in texts that are told; of each text remembered, under a root."""
        return cls(said, set().union(*(_told(text, root) for text in told)))


def spaced(text: str) -> str:
    """A text with a space for every character that is in no name; line ends stay."""
    raw = text.encode("utf-8", "surrogatepass")
    if not text.isascii():
        kinds = {*raw.translate(None, _ASCII).decode("utf-8", "surrogatepass")}
        others = [char for char in kinds if not char.isalnum()]
        if len(others) > _FEW:
            return _OTHERS.sub(" ", text)
        for char in others:
            raw = raw.replace(char.encode("utf-8", "surrogatepass"), b" ")
    return raw.translate(_SPACED).decode("utf-8", "surrogatepass")


def words_in(text: str) -> list[str]:
    """The words that may hold a name, line ends between spaces, and a last one, in their order."""
    return _words(f"{spaced(text)} \n")


def names_in(words: Iterable[str]) -> dict[str, str]:
    """The name in each word that holds one."""
    names = dict[str, str]()
    for word in {*words}:
        name = word.strip(_MARKS)
        is_plain = name.isdigit() or (name.isalpha() and name[1:].islower())
        if _LEAST_CHARS <= len(name) <= _MOST_CHARS and (
            not is_plain or word in ALARMS
        ):
            names[word] = name
    return names


def _names(text: str) -> tuple[str, ...]:
    return tuple({*names_in(words_in(text.replace("\n", " "))).values()})


def _told(text: str, root: bytes) -> tuple[str, ...]:
    key = root, "names", len(text), hash(text)
    names: tuple[str, ...] | None = REMEMBERED.get(key)
    if names is None:
        names = _names(text)
        REMEMBERED.put(key, names, sum(len(name) + _NAME_BYTES for name in names))
    return names


def _worths() -> list[int]:
    """What a name is worth that was said (1), is told (2), begins with a digit (4), by the sum."""
    worths = [WORTH]
    for percent in (_SAID, _TOLD, _NUMBER):
        worths += [worth * percent // 100 for worth in worths]
    return worths


_WORTHS = _worths()


def worth_of(names: Mapping[str, str], known: KnownNames) -> dict[str, int]:
    """What each word is worth that holds a name."""
    said, told = known
    return {
        word: WORTH
        if name in ALARMS
        else _WORTHS[(name in said) + 2 * (name in told) + 4 * name[0].isdigit()]
        for word, name in names.items()
    }


def _said(transcript: Transcript, index: int) -> tuple[str, ...]:
    """The names that the user or the model says in a message, arguments and answers included."""
    message = transcript.messages[index]
    texts = [
        leaf.arguments if isinstance(leaf, ToolCall) else getattr(leaf, "text", "")
        for number, _, leaf in leaves_of(message)
        if not isinstance(message.parts[number], ToolResult)
        or transcript.words(index, number)
    ]
    return _names("\n".join(texts))


_SAID_NAMES = Measure("ullage.said_names", _said)


def dialogue_names(window: Window) -> frozenset[str]:
    """The names that the user and the model have said."""
    once = window.transcript.once
    return frozenset().union(
        *(once(_SAID_NAMES, index) for index in range(window.size))
    )


def visible_texts(window: Window, leaving: Set[Location]) -> list[str]:
    """What a view shows of results and in summaries, but for the results at these places."""
    staying = (spot for spot in window.results(0, window.size) if spot not in leaving)
    shown = (window.edit_at(spot) or window.transcript.leaf(spot) for spot in staying)
    told = [getattr(each, "text", "") for each in shown]
    return told + [placed.edit.text for placed in window.open_summaries]
