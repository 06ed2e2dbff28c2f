"""Whether a provider refused a request because it was too long, and by how much.

Every provider says it in its own words, some with a status of their own, one with HTTP 200,
gateways with half of it lost (`provider-rules` §5, failure F35). `is_overflow` reads the table
``wordings.toml`` from top to bottom; the first row whose pattern is found decides:

    exact wordings with their numbers  →  what only looks like overflow  →  loose wordings

A rate limit that speaks of tokens must never be answered by shortening, nor an answer asked
for that is longer than the model can give: shortening would throw away a history and change
nothing. So the lookalikes stand before the loose wordings, and a status that means something
else (429 first of all) outweighs those.

The numbers, where a message has them, are worth keeping: they are the window as the provider
sees it and the size as it counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ullage.core.on_demand import table
from ullage.wires.overflow._evidence import Evidence, causes

By: TypeAlias = Literal["tokens", "bytes", "after_output", "text"]
"""What was too much: tokens before the answer, the request's bytes, tokens while answering, the
characters of one text."""


class Overflow(Struct, frozen=True):
    """A request that was too long.

    Attributes:
        limit_tokens: the window the provider names, or None.
        size_tokens: what it counted for the request, the answer asked for included where it
            counts that in, or None. Never set for a mere lower bound ("at least").
        by: what was too much.
        asked_output_tokens: the part of the size that was asked for the answer, where the
            message tells it apart.
        limit_chars: the most characters of one text, where ``by`` is ``"text"``.
        size_chars: how many it had, by the provider's count, or None.
    """

    limit_tokens: int | None = None
    size_tokens: int | None = None
    by: By = "tokens"
    asked_output_tokens: int | None = None
    limit_chars: int | None = None
    size_chars: int | None = None

    def room_tokens(self, shown_tokens: int) -> int:
        """The most that the next request may hold; always less than what was refused.

        Where the provider tells both its limit and its count, ours shrinks by what lies
        between the two, however the counts differ. Where it does not, by a quarter.
        """
        share = _DEEPER
        if self.limit_tokens and self.size_tokens and self.by == "tokens":
            output = self.asked_output_tokens or 0
            limit = self.limit_tokens - output
            size = self.size_tokens - output
            if 0 < limit < size:
                share = _MARGIN * limit / size
        return max(int(shown_tokens * share), 1)


_MARGIN = 0.95
"""The share that is kept of what the provider's own numbers leave."""
_DEEPER = 0.75
"""The share that is kept where it gives no numbers."""
_LEAST_TEXT_CHARS = 1_000
"""A shorter limit is one of ids, names and the like, which no cut makes shorter."""
_MOST_LAYERS = 32
_OTHER: Literal["other"] = "other"
_Verdict: TypeAlias = Overflow | Literal["other"] | None

_NUMBER = (  # with or without separators; never the 128 of "128K"
    r"(?P<{}>[0-9]{{1,3}}(?:[,._'\u00a0\u202f ][0-9]{{3}}){{1,4}}|[0-9]{{1,13}})"
    r"(?![0-9]|[kKmM]\b)"
)
_NAMED = re.compile(r"\{([a-z]+)\}")
_CUT_SHORT = re.compile(
    r"context[ _](?:window|length)[ _]exceeded|model_length", re.IGNORECASE
)
_OTHER_STATUSES = frozenset((401, 402, 403, 404, 408, 409, 429, 529))


class Wording(NamedTuple):
    """A wording: its pattern, and what was too much."""

    pattern: str
    by: By = "tokens"


class Wordings(Struct, frozen=True):
    """The table. Its file says what stands in a pattern."""

    exact: tuple[Wording, ...]
    lookalikes: tuple[str, ...]
    loose: tuple[Wording, ...]


@cache
def wordings() -> Wordings:
    """The table, read when the first error comes."""
    return table(__name__, "wordings.toml", Wordings)


@cache
def _pattern(wording: str) -> re.Pattern[str]:
    """The expression of a wording."""
    with_gaps = wording.replace("…", ".{,90}?")
    pattern = _NAMED.sub(lambda match: _NUMBER.format(match[1]), with_gaps)
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def is_overflow(error: Any) -> Overflow | None:
    """Whether this says that a request was too long; None if it says anything else.

    Args:
        error: an exception of any SDK or gateway (what it was raised from is looked at too),
            a response, a body as dict, text or bytes, an event of a stream, or a reply that
            may have ended because its window was full.

    Returns:
        What was too much, with the numbers the message gives. Never raises. A server that
        cuts a prompt silently says nothing, and is not recognised here.

    Source: `provider-rules` §5; wordings are the providers' own, as publicly reported.
    """
    verdict = _look(error, set())
    if verdict == _OTHER:
        return None
    return verdict


def _look(error: Any, seen: set[int]) -> _Verdict:
    """The verdict of this layer, or else the first that one of its causes gives."""
    if error is None or id(error) in seen or len(seen) >= _MOST_LAYERS:
        return None
    seen.add(id(error))
    verdict = _judge(Evidence.of(error))
    if verdict is not None:
        return verdict
    for cause in causes(error):
        verdict = _look(cause, seen)
        if isinstance(verdict, Overflow):
            return verdict
    return None


def _judge(evidence: Evidence) -> _Verdict:
    """What one layer says: too long, something else for certain, or nothing (None)."""
    if any(_CUT_SHORT.search(stop) for stop in evidence.stops):
        return Overflow(by="after_output")
    text = "\n".join(evidence.texts)
    all_wordings = wordings()
    verdict = _first(all_wordings.exact, text)
    if verdict is not None:
        return verdict
    looks_alike = any(
        _pattern(wording).search(text) for wording in all_wordings.lookalikes
    )
    if looks_alike or evidence.statuses & _OTHER_STATUSES:
        return _OTHER
    verdict = _first(all_wordings.loose, text)
    if verdict is None and 413 in evidence.statuses:
        return Overflow(by="bytes")
    return verdict


def _first(rows: Sequence[Wording], text: str) -> _Verdict:
    """What the first row says whose pattern is found."""
    for row in rows:
        match = _pattern(row.pattern).search(text)
        if match is not None:
            return _read(match, row.by)
    return None


def _read(match: re.Match[str], by: By) -> _Verdict:
    """The verdict of a row whose pattern matched, with the numbers in the match."""
    numbers = {}
    for name, text in match.groupdict().items():
        if text:
            numbers[name] = int(re.sub(r"[^0-9]", "", text))
    limit = numbers.get("limit")
    size = numbers.get("size")
    output = numbers.get("output")
    if by == "text":
        if limit is None or limit < _LEAST_TEXT_CHARS:
            return _OTHER
        return Overflow(by=by, limit_chars=limit, size_chars=size)
    if size is None and "input" in numbers:
        size = numbers["input"] + (output or 0)
    if limit and output and output >= limit:
        return _OTHER  # the answer alone is too long: no shorter history helps
    return Overflow(
        limit_tokens=limit or None,
        size_tokens=size or None,
        by=by,
        asked_output_tokens=output,
    )
