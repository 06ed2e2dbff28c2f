"""The values in the arguments of a call that can be evidence, and where they occur (`metrics` M1).

    path        with a slash and a letter, 4 characters or more; or a URL
    identifier  6 characters or more with a digit, one of ``_ / . - @``, or a change of case
    number      4 digits or more, or with a decimal point or a unit
    hash        UUID, or 7 hexadecimal digits or more that are no number
    literal     8 characters or more in quotes, or a whole argument of several words
    quote       the old text of an edit, whole, 8 characters or more

Every string in the arguments is split into its words, the old text of an edit too, after its
escapes are undone. Two kinds cannot be one value: what fits a kind further down is none above.

A value and a text are compared in one plain form, so that a value inside a JSON string is the
same value; a quote byte for byte. A token is a row of letters, digits and ``_`` with single
``. - @ /`` inside. A value occurs as a whole token, or as what follows a slash of one. Dots also
divide a name: ``user_id`` occurs in ``self.user_id``, but neither a number nor a path does so. A
literal is bounded by words alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal[
    "path", "identifier", "number", "hash", "literal", "quote"
]

_HEX = "[0-9a-fA-F]"
_ESCAPE = re.compile(
    rf"\\+u([dD][89abAB]{_HEX}{{2}})\\+u([dD][c-fC-F]{_HEX}{{2}})"  # two stand for one sign
    rf"|\\+(?:u({_HEX}{{4}})|([a-zA-Z\"'/]))|\\+(?=\n|\Z)|\\{{2,}}"
)
URL = re.compile(
    r"\b[A-Za-z]\w*://(?:[^\s\"'`<>|\\()\[\]{}]|\([^\s\"'`<>|\\()\[\]{}]*\))+"
)
"""A URL, perhaps with the stop behind it (`bare_url`). It may hold brackets that it closes."""
_LONGER = {
    True: re.compile(r"[-@]\w|/[.@]?\w"),
    False: re.compile(r"[-.@]\w|/[.@]?\w"),
}
"""What makes a longer token of one that ends here, where dots divide names and where not."""
_NOT_BEFORE_ROOT = frozenset("~./<*)}]")
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

    @property
    def plain(self) -> str:
        """The value in the plain form, as it is written in a plain text."""
        return plain(self.text) if self.kind == "quote" else self.text


def plain(text: str) -> str:
    r"""The text without JSON escapes, however often it was escaped; itself if it has none.

    Escapes of regular expressions and shells (``\b``) are no words: a space stands for them. The
    backslash of a line that goes on is left out: in JSON it is one with the escape behind it.
    """
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    high, low, code, sign = match.groups()
    if high:
        return chr(
            0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF)
        )
    if code:
        return chr(int(code, 16))
    if not sign:
        return (
            ""
            if match.string[match.end() : match.end() + 1] in ("", "\n")
            else "\\"
        )
    return _SIGNS.get(sign, " ") if sign.isalpha() else sign


def bare_url(url: str) -> str:
    """The URL without the stop of the sentence it ends."""
    return url.rstrip(".,:;!?*/")


def words(text: str) -> list[str]:
    """The words of a text, in order: runs of letters, digits and underscores."""
    return _WORD.findall(text)


def holds(text: str, atom: Atom) -> bool:
    """Whether an atom that is no quote occurs in a plain text."""
    return next(places(text, atom), -1) >= 0


def places(text: str, atom: Atom) -> Iterator[int]:
    """Where an atom occurs in a plain text, on token boundaries; a quote anywhere.

    A path also occurs as the end of a longer path, from a ``/`` on.
    """
    value = atom.plain
    at = text.find(value)
    while at >= 0:
        if atom.kind == "quote" or _is_bounded(text, at, atom):
            yield at
        at = text.find(value, at + 1)


def quotes(text: str, quote: str) -> bool:
    """Whether a text as sent holds the quote whole: byte for byte, or as JSON writes it."""
    if quote in text:
        return True
    if (
        quote.isascii()
        and quote.isprintable()
        and '"' not in quote
        and "\\" not in quote
    ):
        return False  # JSON writes it as it is
    return any(
        json.dumps(quote, ensure_ascii=only_ascii)[1:-1] in text
        for only_ascii in (False, True)
    )


def _is_bounded(text: str, start: int, atom: Atom) -> bool:
    stop = start + len(atom.text)
    preceding = text[max(start - 2, 0) : start]
    if _is_word(preceding[-1:]) or _is_word(text[stop : stop + 1]):
        return False
    if atom.kind == "literal":
        return True
    if atom.kind == "path" and not _is_whole_path(text, start, atom.text):
        return False
    dots_divide = atom.kind in ("identifier", "hash")
    is_joined = preceding[-1:] in ("-", "@") or (
        preceding[-1:] == "." and not dots_divide
    )
    if is_joined and _is_word(preceding[:-1]):
        return False
    return not _LONGER[dots_divide].match(text, stop)


def _is_whole_path(text: str, start: int, path: str) -> bool:
    """Whether what begins here is this path or URL, and no other root than its own."""
    preceding = text[max(start - 1, 0) : start]
    if "://" in path:
        match = URL.match(text, start)
        return match is not None and bare_url(match[0]) == path
    return preceding != "." and not (
        path[0] == "/" and preceding in _NOT_BEFORE_ROOT
    )


def _is_word(sign: str) -> bool:
    return sign == "_" or sign.isalnum()


_LITERAL_CHARS = 8
_PHRASE = re.compile(r"[\w ,.'’@:#+-]{8,80}")
_NAME = r"\w+(?:[.@-]\w+)*"
_TOKEN = re.compile(  # a slash before it is its own only if nothing that it closes is there
    rf"(?:(?<!\w)~/|(?<![\w~./<*)}}\]])/)?(?:(?<![\w@])[.@])?{_NAME}(?:/[.@]?{_NAME})*"
)
_ROUGH = re.compile(r"[\w@./~<*)}\]-][\w@./~-]+")
_QUOTED = tuple(
    re.compile(
        rf"{q}(?<!\w{q})(?=(?:[^{q}\\\n]|\\.){{8}})([^{q}\\\n]*(?:\\.[^{q}\\\n]*)*){q}(?!\w)"
    )
    for q in "\"'"
)
_NUMBER = re.compile(
    r"\d{4,}(?:\.\d+)?|\d+\.\d+"
    r"|\d+(?:\.\d+)?(?:[kKMGTP]i?[bB]?|[bB]|bytes|[nuµm]?s|min|sec|h|d|px|r?em|pt|[kMG]?Hz)"
)
_HASH = re.compile(
    r"(?:0x)?[0-9a-fA-F]{7,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
_NAMED = re.compile(r"[^\W\d_]")
_MARKED = re.compile(r"[\d_./@-]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_NAME_CHARS = 6
_PATH_CHARS = 4
_OLD = re.compile(r"(?i)old[_-]?(?:str|string|text|content|code)?")


def atoms_of(arguments: str) -> set[Atom]:
    """The atoms of a call."""
    kinds: dict[str, Kind] = {}
    quote_atoms: set[Atom] = set()
    for key, leaf in leaves(arguments):
        if _OLD.fullmatch(key) and len(leaf.strip()) >= _LITERAL_CHARS:
            quote_atoms.add(Atom(leaf, "quote"))
        phrase = plain(leaf).strip()
        if " " in phrase and _PHRASE.fullmatch(phrase):
            kinds.setdefault(phrase, "literal")
        for atom in atoms_in(leaf):
            if atom.kind != "literal" or atom.text not in kinds:
                kinds[atom.text] = atom.kind
    for quote in quote_atoms:
        kinds.pop(quote.text, None)
    return quote_atoms | {Atom(text, kind) for text, kind in kinds.items()}


def atoms_in(text: str) -> Iterator[Atom]:
    """The atoms of a text, but for quotes and whole arguments."""
    for quoted in _QUOTED:
        for match in quoted.findall(text):
            literal = plain(match).strip()
            if len(literal) >= _LITERAL_CHARS:
                yield Atom(literal, "literal")
    text = plain(text)
    if "://" in text:
        for match in URL.finditer(text):
            yield Atom(bare_url(match[0]), "path")
        text = URL.sub(" ", text)
    for token in map(_trimmed, _TOKEN.findall(text)):
        kind = _kind(token)
        if kind is not None:
            yield Atom(token, kind)


def tokens_in(text: str) -> set[str]:
    """Every token of a plain text that may be an atom; quicker than to find out which are."""
    tokens = {
        match.strip() for quoted in _QUOTED for match in quoted.findall(text)
    }
    if "://" in text:
        tokens.update(bare_url(match[0]) for match in URL.finditer(text))
        text = URL.sub(" ", text)
    once = "\n".join(
        set(_ROUGH.findall(text))
    )  # most are in a text many times
    tokens.update(map(_trimmed, _TOKEN.findall(once)))
    return tokens


def leaves(arguments: str) -> Iterator[tuple[str, str]]:
    """Every string in the arguments, with the key it is under."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = arguments
    yield from _leaves("", value)


def _leaves(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            is_old = name == "search" and "replace" in value
            yield from _leaves("old" if is_old else name, item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(key, item)


def _trimmed(token: str) -> str:
    """The token without signs that belong to the sentence or the code around it."""
    return token.lstrip("@") if "/" in token else token.lstrip(".@")


def _kind(token: str) -> Kind | None:
    if _NUMBER.fullmatch(token):
        return "number"
    if _HASH.fullmatch(token):
        return "hash"
    if "/" in token and len(token) >= _PATH_CHARS and _NAMED.search(token):
        return "path"
    if len(token) >= _NAME_CHARS and _MARKED.search(token):
        return "identifier"
    return None
