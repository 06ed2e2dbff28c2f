"""Passages that a reply repeats from far back: eight words in a row, by who wrote them.

The third axis beside values and anchors, and one that no stage is made to suit: a digest chooses
lines by the names in them. A passage counts where its newest source is as far back as that of a
far value (`wants`), and by the author of that source. Of a longer text every eight words are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from typing import Literal, TypeAlias

from msgspec import Struct

from lab.replay.carried.wants import FAR_RESULTS
from lab.replay.story import Story
from ullage.core.values.messages import ToolResult
from ullage.tools.replay.evidence.atoms import words
from ullage.tools.replay.evidence.demands import Speaker, texts_of

PASSAGE_WORDS = 8
Row: TypeAlias = tuple[str, ...]
Author: TypeAlias = Literal["user", "model", "result"]
AUTHORS: tuple[Author, ...] = ("user", "model", "result")
_AUTHOR: Mapping[Speaker, Author] = {
    "user": "user",
    "model": "model",
    "tool": "result",
}


class Passage(Struct, frozen=True):
    """Words that a reply repeats from far back.

    Attributes:
        words: with a space between two of them.
        author: who wrote the newest text that holds them; the system counts as the user.
    """

    words: str
    author: Author


def passages_of(story: Story, lengths: Sequence[int]) -> list[list[Passage]]:
    """What each reply of a run repeats from far back.

    Args:
        story: the whole run.
        lengths: how many messages came before each reply.
    """
    counts = (
        sum(isinstance(p, ToolResult) for p in each.parts)
        for each in story.parsed
    )
    results = [0, *accumulate(counts)]
    newest: dict[int, tuple[int, Speaker]] = {}

    def author_of(row: Row, length: int) -> Author | None:
        index, speaker = newest.get(hash(row), (length, "tool"))
        is_far = results[length] - results[index] >= FAR_RESULTS
        return _AUTHOR[speaker] if is_far else None

    repeated = list[list[Passage]]()
    for start, stop in pairwise((0, *lengths)):
        for index in range(start, stop):
            for piece in story.pieces[index]:
                newest.update(
                    (hash(row), (index, piece.by))
                    for row in _rows(words(piece.plain))
                )
        repeated.append(list(_repeated(story, stop, author_of)))
    return repeated


def _repeated(
    story: Story, length: int, author_of: Callable[[Row, int], Author | None]
) -> Iterator[Passage]:
    """The passages of one reply, none of which overlaps another."""
    for message in story.reply(length):
        for piece in texts_of(message):
            free = 0
            for at, row in enumerate(_rows(words(piece.plain))):
                author = author_of(row, length) if at >= free else None
                if author is not None:
                    yield Passage(" ".join(row), author)
                    free = at + PASSAGE_WORDS


def _rows(spoken: Sequence[str]) -> Iterator[Row]:
    """Every so many words in a row, from each word on."""
    return zip(
        *(islice(spoken, at, None) for at in range(PASSAGE_WORDS)),
        strict=False,
    )
