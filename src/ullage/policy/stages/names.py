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
_DIALOGUE_PERCENT = 15
"""So much of that, if the user or the model said it,"""
_OUTPUT_PERCENT = 15
"""if another output tells it,"""
_NUMBER_PERCENT = 30
"""if a digit begins it."""
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
"""Plain words that count as names, again in each output: a line that speaks of errors stays."""
_LEAST_CHARS = 4
_MOST_CHARS = 80
_ALARM_LETTERS = {alarm[0] for alarm in ALARMS}
_PLAIN = "".join(sorted({*string.ascii_letters} - _ALARM_LETTERS))
_words = re.compile(
    rf"(?:[{_PLAIN}][a-z]*+ ++|[0-9]++ ++)*+([^ ]++) *+"
).findall
"""Passes over whole numbers, and plain words but those that begin as an alarm does."""
_SEPARATORS = re.compile(rf"[^\w\n{re.escape(_MARKS)}]")
_ASCII = bytes(range(128))
_FEW_SEPARATORS = 32
"""Up to so many kinds of them it is quicker to replace one after the other."""
_SPACED_ASCII = _SEPARATORS.sub(" ", _ASCII.decode())
_SPACED = _SPACED_ASCII.encode() + bytes(range(128, 256))
"""Each byte, with a space for an ASCII character that is in no name."""
_NAME_BYTES = 80
"""About what a name takes in a set beside its characters."""


class KnownNames(NamedTuple):
    """The names that a view tells beside the outputs that are about to leave it.

    Attributes:
        dialogue: in what the user or the model said, ever.
        outputs: in outputs that stay. Grows by the names of each output that was looked at.
    """

    dialogue: Set[str]
    outputs: set[str]

    @classmethod
    def of(
        cls,
        dialogue: Set[str],
        texts: Iterable[str],
        root: bytes = b"",
    ) -> KnownNames:
        """These names, and those of texts that the view shows.

        Args:
            dialogue: what the user and the model said.
            texts: the texts.
            root: what the names of each text are remembered under, another for each tenant.
        """
        outputs = set[str]()
        for text in texts:
            outputs.update(_remembered_names(text, root))
        return cls(dialogue, outputs)


def spaced(text: str) -> str:
    """A text with a space for every character that is in no name; line ends stay."""
    raw = text.encode("utf-8", "surrogatepass")
    if not text.isascii():
        beyond_ascii = raw.translate(None, _ASCII).decode(
            "utf-8", "surrogatepass"
        )
        separators = [char for char in {*beyond_ascii} if not char.isalnum()]
        if len(separators) > _FEW_SEPARATORS:
            return _SEPARATORS.sub(" ", text)
        for char in separators:
            encoded = char.encode("utf-8", "surrogatepass")
            raw = raw.replace(encoded, b" ")
    return raw.translate(_SPACED).decode("utf-8", "surrogatepass")


def words_in(text: str) -> list[str]:
    """The words that may hold a name, line ends between spaces, and a last one, in their order."""
    return _words(f"{spaced(text)} \n")


def names_in(words: Iterable[str]) -> dict[str, str]:
    """The name in each word that holds one."""
    names = dict[str, str]()
    for word in {*words}:
        name = word.strip(_MARKS)
        if not _LEAST_CHARS <= len(name) <= _MOST_CHARS:
            continue
        is_word = name.isalpha() and name[1:].islower()
        is_plain = name.isdigit() or is_word
        if not is_plain or word in ALARMS:
            names[word] = name
    return names


def _names(text: str) -> tuple[str, ...]:
    """The names in a text, each once."""
    names = names_in(words_in(text.replace("\n", " ")))
    return tuple({*names.values()})


def _remembered_names(text: str, root: bytes) -> tuple[str, ...]:
    """The names in a text, worked out once."""
    # under a root of the tenant's: nothing one tenant sent tells another anything
    key = root, "names", len(text), hash(text)
    names: tuple[str, ...] | None = REMEMBERED.get(key)
    if names is None:
        names = _names(text)
        size_bytes = len(names) * _NAME_BYTES
        for name in names:
            size_bytes += len(name)
        REMEMBERED.put(key, names, size_bytes)
    return names


def _worths() -> list[int]:
    """What a name is worth that was said (1), is told (2), begins with a digit (4), by the sum."""
    # each percent doubles the list: the sum of what holds is the index
    worths = [WORTH]
    for percent in (_DIALOGUE_PERCENT, _OUTPUT_PERCENT, _NUMBER_PERCENT):
        worths += [worth * percent // 100 for worth in worths]
    return worths


_WORTHS = _worths()


def worth_of(names: Mapping[str, str], known: KnownNames) -> dict[str, int]:
    """What each word is worth that holds a name, `WORTH` at most.

    Args:
        names: the name in each word.
        known: the names that the view tells.
    """
    dialogue, outputs = known
    worths = dict[str, int]()
    for word, name in names.items():
        if name in ALARMS:
            worths[word] = WORTH
            continue
        in_dialogue = name in dialogue
        in_outputs = name in outputs
        is_number = name[0].isdigit()
        worths[word] = _WORTHS[in_dialogue + 2 * in_outputs + 4 * is_number]
    return worths


def _dialogue_names(transcript: Transcript, index: int) -> tuple[str, ...]:
    """The names that the user or the model says in a message, arguments and answers included."""
    message = transcript.messages[index]
    texts = []
    for number, _, leaf in leaves_of(message):
        is_result = isinstance(message.parts[number], ToolResult)
        if is_result and not transcript.user_words(index, number):
            continue
        if isinstance(leaf, ToolCall):
            texts.append(leaf.arguments)
        else:
            texts.append(getattr(leaf, "text", ""))
    return _names("\n".join(texts))


_DIALOGUE_NAMES = Measure("ullage.said_names", _dialogue_names)


def dialogue_names(window: Window) -> frozenset[str]:
    """The names that the user and the model have said."""
    transcript = window.transcript
    names = set[str]()
    for index in range(window.size):
        names.update(transcript.once(_DIALOGUE_NAMES, index))
    return frozenset(names)


def visible_texts(window: Window, leaving: Set[Location]) -> list[str]:
    """What a view shows of results and in summaries, but for the results at these places."""
    texts = []
    for spot in window.results(0, window.size):
        if spot in leaving:
            continue
        shown = window.edit_at(spot) or window.transcript.leaf(spot)
        texts.append(getattr(shown, "text", ""))
    for placed in window.open_summaries:
        texts.append(placed.edit.text)
    return texts
