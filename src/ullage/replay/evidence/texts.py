"""When one text occurs in another: on token boundaries, whatever JSON escaping it went through.

Both sides are read in one plain form, so that a value inside a JSON string is the same value
(`metrics` M1). What is quoted whole (the old text of an edit) is compared byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ["Atom", "Kind", "holds", "places", "plain", "quotes", "words"]

Kind: TypeAlias = Literal["path", "identifier", "number", "hash", "literal", "quote"]

_HEX = "[0-9a-fA-F]"
_ESCAPE = re.compile(
    rf"\\+u([dD][89abAB]{_HEX}{{2}})\\+u([dD][c-fC-F]{_HEX}{{2}})"  # two stand for one sign
    rf"|\\+(?:u({_HEX}{{4}})|([nrt\"'/]))|\\{{2,}}"
)
_SIGNS = {"n": "\n", "r": "\r", "t": "\t"}
_WORD = re.compile(r"\w+")


class Atom(Struct, frozen=True, order=True):
    """A value a call uses, which must have come from somewhere.

    Attributes:
        text: the value; of a quote as it was given, of all others in the plain form.
        kind: what it looks like. A quote is the whole old text of an edit.
    """

    text: str
    kind: Kind


def plain(text: str) -> str:
    """The text without JSON escapes, however often it was escaped; itself if it has none."""
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    high, low, code, sign = match.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    if code:
        return chr(int(code, 16))
    return _SIGNS.get(sign, sign) if sign else "\\"


def words(text: str) -> list[str]:
    """The words of a text, in order: runs of letters, digits and underscores."""
    return _WORD.findall(text)


def holds(text: str, atom: Atom) -> bool:
    """Whether an atom that is no quote occurs in a plain text."""
    return next(places(text, atom), -1) >= 0


def places(text: str, atom: Atom) -> Iterator[int]:
    """Where an atom that is no quote occurs in a plain text, on token boundaries.

    A path also occurs as the end of a longer path, from a ``/`` on.
    """
    at = text.find(atom.text)
    while at >= 0:
        if _is_bounded(text, at, at + len(atom.text), atom.kind):
            yield at
        at = text.find(atom.text, at + 1)


def quotes(text: str, quote: str) -> bool:
    """Whether a text as sent holds the quote whole: byte for byte, or as JSON writes it."""
    if quote in text:
        return True
    if '"' not in quote and "\\" not in quote and "\n" not in quote and quote.isascii():
        return False
    return any(
        json.dumps(quote, ensure_ascii=only_ascii)[1:-1] in text for only_ascii in (False, True)
    )


def _is_bounded(text: str, start: int, stop: int, kind: Kind) -> bool:
    before, after = text[max(start - 2, 0) : start], text[stop : stop + 2]
    if _is_word(before[-1:]) or _is_word(after[:1]):
        return False
    if kind == "path":  # a longer name, or the beginning of a longer path, is another path
        return before[-1:] not in ("-", ".") and not (after[:1] in "./-" and _is_word(after[1:]))
    if kind == "number":  # part of a longer number
        longer = before[-1:] in (".", ",") and before[:1].isdigit()
        return not longer and not (after[:1] in (".", ",") and after[1:].isdigit())
    return True


def _is_word(sign: str) -> bool:
    return sign == "_" or sign.isalnum()
