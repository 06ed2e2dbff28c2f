"""The atoms of a call: the values in its arguments that can be evidence (`metrics` M1).

    path        with a slash, or a URL
    identifier  6 characters or more with a digit, one of ``_ . - @``, or a change of case
    number      4 digits or more, or with a unit or a decimal point
    hash        UUID, or 7 hexadecimal digits or more
    literal     8 characters or more in quotes, or a whole argument of several words
    quote       the old text of an edit, whole

Every string in the arguments is looked at; shell and code are split into their words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ullage.replay.evidence.texts import Atom, Kind, plain

__all__ = ["atoms_in", "atoms_of", "leaves", "tokens_in"]

_LITERAL_CHARS = 8
_PHRASE = re.compile(r"[\w ,.'’@:#+-]{8,80}")
_MOST_CHARS = 300
_URL = re.compile(r"https?://[^\s\"'<>`|)\]}\\]+")
_TOKEN = re.compile(r"~?[\w@./-]{2,}")
_QUOTED = re.compile(r"(?<!\w)([\"'`])([^\"'`\n]{8,200})\1(?!\w)")
_NUMBER = re.compile(r"\d{4,}|\d+\.\d+|\d+(?:\.\d+)?(?:[a-zA-Z]{1,2}|min|sec)")
_HASH = re.compile(
    r"(?=[0-9a-fA-F]*\d)(?=[0-9]*[a-fA-F])[0-9a-fA-F]{7,}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
_NAMED = re.compile(r"[^\W\d_]")
_MARKED = re.compile(r"[\d_.@-]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_NAME_CHARS = 6
_OLD = re.compile(r"(?i)old[_-]?(?:str|string|text|content|code)?")


def atoms_of(arguments: str) -> set[Atom]:
    """The atoms of a call.

    Args:
        arguments: its arguments as on the wire: JSON, or the plain input of a custom tool.
    """
    found: set[Atom] = set()
    for key, leaf in leaves(arguments):
        if _OLD.fullmatch(key) and len(leaf.strip()) >= _LITERAL_CHARS:
            found.add(Atom(leaf, "quote"))
        text = plain(leaf)
        phrase = text.strip()
        if " " in phrase and _PHRASE.fullmatch(phrase):
            found.add(Atom(phrase, "literal"))
        found.update(atoms_in(text))
    texts = {atom.text for atom in found if atom.kind not in ("literal", "quote")}
    return {atom for atom in found if atom.kind != "literal" or atom.text not in texts}


def atoms_in(text: str) -> Iterator[Atom]:
    """The atoms of a plain text, but for quotes and whole arguments."""
    if "://" in text:
        for match in _URL.finditer(text):
            yield Atom(_bare_url(match[0]), "path")
        text = _URL.sub(" ", text)
    for match in _QUOTED.finditer(text):
        yield Atom(match[2].strip(), "literal")
    for token in _TOKEN.findall(text):
        bare = _trimmed(token)
        kind = _kind(bare)
        if kind is not None and len(bare) <= _MOST_CHARS:
            yield Atom(bare, kind)


def tokens_in(text: str) -> set[str]:
    """Every token of a plain text that may be an atom; quicker than to tell which are."""
    tokens = {_trimmed(token) for token in _TOKEN.findall(text)}
    tokens.update(match[2].strip() for match in _QUOTED.finditer(text))
    if "://" in text:
        tokens.update(_bare_url(match[0]) for match in _URL.finditer(text))
    return tokens


def leaves(arguments: str) -> Iterator[tuple[str, str]]:
    """Every string in the arguments, with the key it stands under."""
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
            yield from _leaves(name, item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(key, item)


def _bare_url(url: str) -> str:
    return url.rstrip(".,;:!?/")[:_MOST_CHARS]


def _trimmed(token: str) -> str:
    """The token without signs that belong to the sentence or the shell around it."""
    bare = token.rstrip("./-@").lstrip("-@")
    while bare.startswith(("./", "../")):
        bare = bare.partition("/")[2]
    return bare if bare[:1] != "." or bare[1:2].isalnum() else bare.lstrip(".")


def _kind(token: str) -> Kind | None:
    if _NUMBER.fullmatch(token):
        return "number"
    if _HASH.fullmatch(token):
        return "hash"
    if not _NAMED.search(token):
        return None
    if "/" in token.strip("/") or token.startswith(("/", "~")):
        return "path" if len(token) >= _NAME_CHARS - 2 else None
    if len(token) >= _NAME_CHARS and _MARKED.search(token):
        return "identifier"
    return None
