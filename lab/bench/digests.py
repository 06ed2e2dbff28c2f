"""How fast digests are made, and what of that nothing can save: `python -m lab.bench.digests`.

Processor time over texts of 20,000 characters, the least of some tries: one after the other what a
digest needs at least (to part a text into words, to tell which are names), then the whole of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence

from lab.bench.material import Material
from ullage.policy.stages.digest import read
from ullage.policy.stages.names import KnownNames, names_in, words_in

_TEXTS, _CHARS, _TRIES = 200, 20_000, 5
_PRICE, _MOST_CHARS = 6, 8_000


def rates(
    texts: Sequence[str], tries: int = _TRIES
) -> Iterator[tuple[str, float]]:
    """What is done, and of how many megabytes in a second.

    Args:
        texts: the texts.
        tries: how often each is done; the fastest counts.
    """
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    for name, work in _STEPS.items():
        yield (
            name,
            megabytes / min(_seconds(work, texts) for _ in range(tries)),
        )


def _seconds(
    work: Callable[[Sequence[str]], object], texts: Sequence[str]
) -> float:
    began = time.process_time()
    work(texts)
    return time.process_time() - began


def _words(text: str) -> list[str]:
    return words_in(text.replace("\n", " \n "))


def _digests(texts: Sequence[str], *, with_lines: bool) -> None:
    known = KnownNames.of(set(), ())
    for text in texts:
        reading = read(text, known, _PRICE)
        if with_lines:
            reading.digest(_PRICE, _MOST_CHARS)


_STEPS: dict[str, Callable[[Sequence[str]], object]] = {
    "parted into words": lambda texts: [_words(text) for text in texts],
    "and its names": lambda texts: [names_in(_words(text)) for text in texts],
    "and which line tells which": lambda texts: _digests(
        texts, with_lines=False
    ),
    "and the lines chosen": lambda texts: _digests(texts, with_lines=True),
}


def main() -> None:
    """Print the rates."""
    material, rng = Material(), random.Random(0)
    for name, rate in rates(
        [material.text(rng, _CHARS) for _ in range(_TEXTS)]
    ):
        print(f"{name:30} {rate:6.0f} MB/s")


if __name__ == "__main__":
    main()
