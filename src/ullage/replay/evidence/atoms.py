"""The atoms of a call: the values in its arguments that can be evidence (`metrics` M1).

    path        with a slash and a letter, 4 characters or more; or a URL
    identifier  6 characters or more with a digit, one of ``_ / . - @``, or a change of case
    number      4 digits or more, or with a decimal point or a unit
    hash        UUID, or 7 hexadecimal digits or more that are no number
    literal     8 characters or more in quotes, or a whole argument of several words
    quote       the old text of an edit, whole, 8 characters or more

Every string in the arguments is split into its words, the old text of an edit too, after its
escapes are undone. Two kinds cannot be one value: what fits a kind further down is none above.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ullage.replay.evidence.texts import URL, Atom, Kind, bare_url, plain

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
_HASH = re.compile(r"(?:0x)?[0-9a-fA-F]{7,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NAMED = re.compile(r"[^\W\d_]")
_MARKED = re.compile(r"[\d_./@-]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_NAME_CHARS = 6
_PATH_CHARS = 4
_OLD = re.compile(r"(?i)old[_-]?(?:str|string|text|content|code)?")


def atoms_of(arguments: str) -> set[Atom]:
    """The atoms of a call."""
    kinds: dict[str, Kind] = {}
    found: set[Atom] = set()
    for key, leaf in leaves(arguments):
        if _OLD.fullmatch(key) and len(leaf.strip()) >= _LITERAL_CHARS:
            found.add(Atom(leaf, "quote"))
        phrase = plain(leaf).strip()
        if " " in phrase and _PHRASE.fullmatch(phrase):
            kinds.setdefault(phrase, "literal")
        for atom in atoms_in(leaf):
            if atom.kind != "literal" or atom.text not in kinds:
                kinds[atom.text] = atom.kind
    for quote in found:
        kinds.pop(quote.text, None)
    return found | {Atom(text, kind) for text, kind in kinds.items()}


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
    tokens = {match.strip() for quoted in _QUOTED for match in quoted.findall(text)}
    if "://" in text:
        tokens.update(bare_url(match[0]) for match in URL.finditer(text))
        text = URL.sub(" ", text)
    once = "\n".join(set(_ROUGH.findall(text)))  # most are in a text many times
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
