"""Corpus: the texts that a search looks through, and what stands in view already."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ullage.core.values.effects import Output

MOST_CHARS = 16_000_000
"""A search looks through so many characters of the newest texts, and of one text at most through so
many. The first one in a conversation of that size takes some two seconds, every other one reads
what is new."""
_NUMBERED = re.compile(r"\s*\d+(?:\t|→|[:|-] ?)")


def bare(line: str) -> str:
    """A line without the number and the spaces that a tool put before it.

    Args:
        line: one line of a tool's output.
    """
    return _NUMBERED.sub("", line, count=1).strip()


CorpusOf: TypeAlias = Callable[[str | None], "Corpus | None"]
"""What a search looks through in the history at hand: beneath a ref, or (None) all that left the
view. None, where the ref names no messages of that history, or there is none."""


class Corpus(ABC):
    """Texts to be searched, the oldest first.

    Args:
        texts: the texts.
        root: of the chain of the history that they are of, so that no tenant can tell what another
            one searched. Without one nothing that is worked out of them is remembered.

    Attributes:
        texts: the texts, as far as they are looked through.
        chars: the length of all of them.
        root: as given.
    """

    def __init__(self, texts: Sequence[str], root: bytes = b"") -> None:
        # a slice that is the whole text copies nothing
        self.texts = [text[:MOST_CHARS] for text in texts]
        self.chars = sum(map(len, texts))
        self.root = root

    @abstractmethod
    def ref(self, number: int) -> str:
        """The ref under which a text opens."""

    @abstractmethod
    def about(self, number: int) -> str:
        """What a text is, in a few words."""

    def is_left(self, number: int) -> bool:
        """Whether a text is not in view, or not as it was."""
        return True

    @property
    def visible_lines(self) -> frozenset[str]:
        """The lines in view, each `bare`."""
        return frozenset()

    @property
    def begins_with(self) -> Sequence[str]:
        """The refs that the beginning of the history names, where that tells of what was before."""
        return ()


class OutputCorpus(Corpus):
    """Outputs that were set aside, none of which counts as in view.

    Args:
        outputs: the outputs, the oldest first, and a few words on each.

    Attributes:
        outputs: the same.
    """

    def __init__(self, outputs: Sequence[tuple[Output, str]]) -> None:
        super().__init__([output.text for output, _ in outputs])
        self.outputs = outputs

    def ref(self, number: int) -> str:
        """See `Corpus.ref`."""
        return self.outputs[number][0].ref

    def about(self, number: int) -> str:
        """See `Corpus.about`."""
        return self.outputs[number][1]


class ExtendedCorpus(Corpus):
    """A corpus, and before it outputs of what its history does not hold any more.

    Args:
        earlier: the outputs.
        corpus: the corpus.
    """

    def __init__(self, earlier: OutputCorpus, corpus: Corpus) -> None:
        super().__init__([*earlier.texts, *corpus.texts], corpus.root)
        self.chars = earlier.chars + corpus.chars
        self._earlier = earlier
        self._corpus = corpus

    def _of(self, number: int) -> tuple[Corpus, int]:
        """The corpus that a text is of, and its number there."""
        index = number - len(self._earlier.texts)
        if index < 0:
            return self._earlier, number
        return self._corpus, index

    def ref(self, number: int) -> str:
        """See `Corpus.ref`."""
        corpus, index = self._of(number)
        return corpus.ref(index)

    def about(self, number: int) -> str:
        """See `Corpus.about`."""
        corpus, index = self._of(number)
        return corpus.about(index)

    def is_left(self, number: int) -> bool:
        """See `Corpus.is_left`."""
        corpus, index = self._of(number)
        return corpus.is_left(index)

    @property
    def visible_lines(self) -> frozenset[str]:
        """See `Corpus.visible_lines`."""
        return self._corpus.visible_lines
