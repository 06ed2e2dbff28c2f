"""Digest: of an old tool output the lines that tell most, in their order.

A line tells what it names and no line before it named, by its length. Identifiers count for
more than words and paths, for they are what an agent uses again (`frontier`, "Evidence");
what is named three times for more than what is named once; definitions and errors for more
than other lines. The first and the last lines stay. One line at the end names what the lines
left out name. So what was read long ago stands in the view in the line that gave it, at a
fraction of its tokens.

Scores are whole numbers, and names are taken in the order of the text: a digest comes out the
same in every process, whatever its hash seed. The newest few thousand are remembered by what
they are of, for a history that was rewound or changed is gone through again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain

from ullage.stages.shorten import ERRORS, safe_cut

__all__ = ["digest"]

_NAME = re.compile(r"(?=[\w$.\-/:]{4})(?:[A-Za-z_$][\w$]*(?:[.\-/:][\w$]+)*|\d[\w.]{3,})")
_DEFINES = re.compile(
    r"[\s\d:|→]*(?:\w+\s+){0,2}?"  # the number of the line, and words such as `async`
    r"(?:class|const|def|enum|export|fn|func|function|impl|interface|public|struct|type)\b"
)
_WORTH_OF_IDENTIFIER, _WORTH_OF_OTHERS = 10, 3
_MARKED_TIMES = 1.5
"""What a definition or an error counts for."""
_OFTEN = 3
_MOST_NAME_CHARS = 60
_COUNTED_CHARS = 20
"""A name is worth its characters, but no more than these."""
_LINE_CHARS = 240
_LINE_COST_CHARS = 12
"""What a line costs beside its characters, so that none wins by being short."""
_EDGE_LINES = 2
_LEAST_LINE_CHARS = 4
_LINES_SHARE = 0.8
_GAP = "…"
_READ_CHARS = 40_000
"""Of a longer text the digest is made of its beginning and its end."""

_REMEMBERED = 4_096
_remembered: dict[tuple[bytes, int], str] = {}
"""The digests made last, by a hash of what was read and the room; no text itself is held."""


def digest(text: str, chars: int) -> str:
    """The lines of a text that tell most, and names from the others.

    A line of more than 240 characters is taken in pieces, and of a text of more than 40,000
    the middle is passed over. Where lines are left out stands ``…``.

    Args:
        text: the original.
        chars: about how many characters the digest may have.
    """
    read = _read(text)
    key = blake2b("\n".join(read).encode("utf-8", "surrogatepass")).digest(), chars
    known = _remembered.get(key)
    if known is not None:
        return known
    made = _digest(list(chain.from_iterable(map(_lines, read))), chars)
    _remembered[key] = made
    if len(_remembered) > _REMEMBERED:
        for old in list(_remembered)[: _REMEMBERED // 2]:
            _remembered.pop(old, None)
    return made


def _digest(lines: Sequence[str], chars: int) -> str:
    named = [_NAME.findall(line) for line in lines]
    counts = Counter(chain.from_iterable(named))
    chosen = _choose(lines, _worths(lines, named, counts), int(chars * _LINES_SHARE))
    shown, last = list[str](), -1
    for number in chosen:
        if number > last + 1:
            shown.append(_GAP)
        shown.append(lines[number])
        last = number
    if last + 1 < len(lines):
        shown.append(_GAP)
    told = set(chain.from_iterable(named[number] for number in chosen))
    names = " ".join(_names(counts, told, chars - sum(map(len, shown))))
    return "\n".join([*shown, f"[also: {names}]"] if names else shown)


def _read(text: str) -> tuple[str, ...]:
    """The pieces of a text that are read: all of it, or its beginning and its end."""
    if len(text) <= _READ_CHARS:
        return (text,)
    head, tail = safe_cut(text, _READ_CHARS * 2 // 3), len(text) - _READ_CHARS // 3
    return text[:head], text[safe_cut(text, tail) :]


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        start = 0
        while len(line) - start > _LINE_CHARS:
            stop = line.rfind(" ", start + _LINE_CHARS // 2, start + _LINE_CHARS)
            stop = stop if stop > 0 else safe_cut(line, start + _LINE_CHARS)
            yield line[start:stop]
            start = stop
        yield line[start:] if start else line


def _worths(
    lines: Sequence[str], named: Sequence[Sequence[str]], counts: Mapping[str, int]
) -> list[float]:
    """What each line tells that no line before it told, by its length."""
    new = {name: _worth(name, count) for name, count in counts.items()}
    worths = []
    for line, names in zip(lines, named, strict=True):
        told = 0.0
        for name in names:
            told += new.pop(name, 0)
        if told and (_DEFINES.match(line) or ERRORS.search(line)):
            told *= _MARKED_TIMES
        worths.append(told / (len(line) + _LINE_COST_CHARS))
    return worths


def _choose(lines: Sequence[str], worths: Sequence[float], room: int) -> list[int]:
    """The numbers of the lines that fit: the edges first, then what tells most."""
    first, last = range(len(lines))[:_EDGE_LINES], range(len(lines))[_EDGE_LINES:][-_EDGE_LINES:]
    within = range(_EDGE_LINES, len(lines) - len(last))
    best = sorted((number for number in within if worths[number]), key=lambda n: -worths[n])
    chosen = []
    for number in (*first, *last, *best):
        cost = len(lines[number]) + 1
        if cost <= room and lines[number].strip():
            room -= cost
            chosen.append(number)
            if room < _LEAST_LINE_CHARS:
                break
    return sorted(chosen)


def _names(counts: Mapping[str, int], told: set[str], room: int) -> Iterator[str]:
    """Identifiers of the lines left out: the frequent first, of them the short; paths last."""
    left = [n for n in counts if n not in told and len(n) <= _MOST_NAME_CHARS and not _is_word(n)]
    for name in sorted(left, key=lambda n: ("/" in n, -min(counts[n], _OFTEN), len(n))):
        room -= len(name) + 1
        if room < 0:
            return
        yield name


def _worth(name: str, count: int) -> int:
    worth = _WORTH_OF_OTHERS if "/" in name or _is_word(name) else _WORTH_OF_IDENTIFIER
    return worth * min(len(name), _COUNTED_CHARS) * (2 if count >= _OFTEN else 1)


def _is_word(name: str) -> bool:
    """Whether a name is a plain word: no mark or digit in it, and no capital behind the first."""
    return name.isalpha() and name[1:].islower()
