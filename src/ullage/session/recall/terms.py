"""Terms: what a search by words compares, of a query and of a line alike.

    getUserName      getusername  get  user  name
    read_on_2        read_on_2  read  on  2
    src/tide_log.py  src  tide_log  tide  log  py
    潮水涨了          潮水  水涨  涨了

A word counts whole and by its parts, so that a query finds an identifier by either. Scripts that
put no spaces between words are taken by pairs of characters. Case does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3040-\u30ff"  # Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003ffff"
)
_WORD = re.compile(r"\w+")
_SMALL = rf"[^\W\d_A-Z{_UNSPACED}]"
_PART = re.compile(rf"[{_UNSPACED}]+|[A-Z]+(?!{_SMALL})|[A-Z]?{_SMALL}+|\d+")
_PAIRED = re.compile(rf"[{_UNSPACED}]")
_LONGEST_CHARS = 64
"""A longer word is no name: base64, a digest of a digest. Its parts count."""


def count_words(text: str) -> int:
    """How many words a text has; of scripts without spaces two characters count as one."""
    unspaced = len(_PAIRED.findall(text))
    spaced = len(_PAIRED.sub(" ", text).split())
    return spaced + (unspaced + 1) // 2


class Splitter(dict[str, tuple[str, ...]]):
    """The terms of each word that it was asked for, worked out once."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        terms = self[word] = tuple(dict.fromkeys(_terms(word)))
        return terms

    def terms(self, text: str) -> Iterable[str]:
        """The terms of a text, as often as they come, in order."""
        return chain.from_iterable(map(self.__getitem__, _WORD.findall(text)))


def _terms(word: str) -> Iterator[str]:
    if len(word) <= _LONGEST_CHARS and not _PAIRED.search(word):
        yield from _worth(word)
    for part in _PART.findall(word):
        if _PAIRED.match(part):
            yield from _pairs(part)
        elif len(part) <= _LONGEST_CHARS:
            yield from _worth(part)


def _worth(word: str) -> Iterator[str]:
    """A word in small letters; nothing of a single letter or digit, which stands everywhere."""
    is_one_sign = len(word) == 1 and word.isascii()
    if not is_one_sign:
        yield word.lower()


def _pairs(text: str) -> Iterator[str]:
    if len(text) == 1:
        yield text
    for at in range(len(text) - 1):
        yield text[at : at + 2]
