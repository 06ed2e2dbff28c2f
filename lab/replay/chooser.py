"""Which ref a reader would open, and what it then reads (`metrics` M1, "recoverable in one").

Nobody chooses with hindsight: the refs a view names are ranked by BM25 over the words beside
each ref and the call it belongs to; the question is the model's reply with the value masked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import log
from typing import Protocol

from msgspec import Struct

from ullage.core.values.messages import Text
from ullage.core.values.notices import Pointer
from ullage.session.session import Session
from ullage.tools.replay.evidence.atoms import Atom, plain
from ullage.tools.replay.evidence.demands import MessageText, RunHistory
from ullage.tools.replay.reading import Library, SessionLibrary, refs_in

_TERM = re.compile(r"[^\W\d_]+|\d+")
WORD_PAGES = 2
"""So many pages of a search by words are read before a reader turns to refs."""
_NEAR_CHARS = 300
_K1, _B = 1.5, 0.75


class PagedLibrary(Library, Protocol):
    """Opens refs as what is judged documents it, a page a call."""

    def page(self, pointer: Pointer) -> str:
        """What one call with this ref returns."""

    def find(self, words: str, page: int = 1) -> str | None:
        """A page of a search by words in all that left the view; None if no tool takes words."""


class SessionPages(SessionLibrary):
    """Opens refs by the session's own recall tools, with their documented pages."""

    def __init__(self, session: Session) -> None:
        """Open refs of this session. Each page is read once."""
        super().__init__(session)
        self._pages: dict[Pointer, str] = {}

    def page(self, pointer: Pointer) -> str:
        """See `PagedLibrary.page`. Empty if the session offers no tool that opens refs."""
        if pointer not in self._pages:
            self._pages[pointer] = self.open(pointer)
        return self._pages[pointer]


class Stub(Struct, frozen=True):
    """A ref as a view names it.

    Attributes:
        pointer: the ref, and where to read on.
        text: the words beside it.
        call: the arguments of the call it belongs to, as the view shows them.
    """

    pointer: Pointer
    text: str
    call: str


def stubs_in(
    texts: Iterable[Sequence[MessageText]],
    named: Callable[[str], Sequence[Pointer]] = refs_in,
) -> list[Stub]:
    """Every ref that the texts of a view's messages name, once, where it is named last.

    Args:
        texts: the texts of each message.
        named: the refs that a text names.
    """
    calls: dict[str, str] = {}
    found: dict[Pointer, Stub] = {}
    for pieces in texts:
        for piece in pieces:
            if piece.by == "model" and piece.call_id:
                calls[piece.call_id] = piece.text
            for pointer in named(piece.text):
                beside = _beside(piece.text, pointer.ref)
                found[pointer] = Stub(
                    pointer, beside, calls.get(piece.call_id, "")
                )
    return list(found.values())


def _beside(text: str, ref: str) -> str:
    """The lines around the last place that names a ref, within 300 characters of it."""
    at = text.rfind(ref)
    before, behind = (
        text[max(at - _NEAR_CHARS, 0) : at],
        text[at : at + _NEAR_CHARS],
    )
    return before[before.rfind("\n") + 1 :] + behind.partition("\n")[0]


def question(story: RunHistory, length: int) -> str:
    """What the model says and asks for in the reply that begins at this message."""
    texts: list[str] = []
    for message in story.reply(length):
        texts += [
            part.text for part in message.parts if isinstance(part, Text)
        ]
        texts += [f"{call.name} {call.arguments}" for call in message.calls]
    return plain("\n".join(texts))


def masked(asked: str, atom: Atom) -> str:
    """A question without the value that is looked for."""
    return asked.replace(plain(atom.text), " ")


def found_by_words(library: PagedLibrary, asked: str) -> Iterator[str]:
    """The first pages of a search by words for a question; nothing where no tool takes words."""
    for number in range(1, WORD_PAGES + 1):
        page = library.find(asked, number)
        if page is None:
            return
        yield page


class Shelf:
    """The refs of one view, ranked for a question by BM25 over their stubs and calls."""

    def __init__(self, stubs: Sequence[Stub]) -> None:
        """Put these refs on the shelf, the oldest first."""
        self.stubs = stubs
        self._with_term: dict[str, list[tuple[int, int]]] = {}
        lengths = []
        for number, stub in enumerate(stubs):
            counts = _counts(f"{stub.text} {stub.call}")
            lengths.append(sum(counts.values()))
            for term, often in counts.items():
                self._with_term.setdefault(term, []).append((number, often))
        mean = sum(lengths) / max(len(lengths), 1)
        self._damping = [
            _K1 * (1 - _B + _B * length / mean) for length in lengths
        ]

    def ranked(self, asked: str, atom: Atom) -> list[Stub]:
        """The refs in the order in which a reader would open them, the value masked.

        Of two that fit alike the newer is opened first.
        """
        scores = [0.0] * len(self.stubs)
        for term in sorted(set(_terms(masked(asked, atom)))):
            holding = self._with_term.get(term, ())
            rarity = log(
                1 + (len(scores) - len(holding) + 0.5) / (len(holding) + 0.5)
            )
            for number, often in holding:
                scores[number] += (
                    rarity
                    * often
                    * (_K1 + 1)
                    / (often + self._damping[number])
                )
        newest_first = range(len(scores) - 1, -1, -1)
        return [
            self.stubs[i]
            for i in sorted(newest_first, key=lambda i: -scores[i])
        ]


@lru_cache(maxsize=8192)
def _counts(text: str) -> Counter[str]:
    return Counter(_terms(text))


def _terms(text: str) -> list[str]:
    return _TERM.findall(text.lower())
