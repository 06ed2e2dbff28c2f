"""What a summary may not be silent about: the facts of the record that decide what comes next.

A call that nobody has answered yet, a failure that nobody has mended, a file that was changed.
The record beneath a model's words holds them all; words that leave one out say something else
than the record, and so are not accepted (failures F50, F52).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ullage.stages.facts import Deed, unresolved
from ullage.values.briefs import Fact

__all__ = ["essentials"]

_MOST = 12
_SHOWN_CHARS = 80
_NAME = re.compile(r"[\w.\-]{4,}")


def essentials(done: Sequence[Deed]) -> tuple[Fact, ...]:
    """The newest facts that a summary of these deeds has to speak of, each once.

    Args:
        done: every tool call of the run, in the order in which they ended.
    """
    found: dict[str, Fact] = {}
    for fact in _facts(done):
        found.pop(fact.shown, None)
        found[fact.shown] = fact
    return tuple(found.values())[-_MOST:]


def _facts(done: Sequence[Deed]) -> Iterator[Fact]:
    for deed in done:
        if deed.verb in ("changed", "removed") and deed.ended:
            yield Fact(_short(deed.subject), (deed.subject, deed.subject.rsplit("/", 1)[-1]))
    for deed in unresolved(done):
        yield Fact(_short(deed.error), (deed.subject, *_NAME.findall(deed.error)))
    for deed in done:
        if deed.ended is None:
            yield Fact(_short(f"{deed.tool} {deed.subject}"), (deed.tool, deed.subject))


def _short(text: str) -> str:
    """A text on one line."""
    words = " ".join(text[: 4 * _SHOWN_CHARS].split())
    return words if len(words) <= _SHOWN_CHARS else f"{words[:_SHOWN_CHARS]}…"
