"""What the model reads where something was left out, and how that is read back.

One formatter and one parser, so that writer and reader of a ref can never disagree
(failure F81). A notice says who cut, how much there was, and the one call that reads on. It
is never trusted: a ref opens because the ledger and the store hold it for this tenant, not
because some text names it (DESIGN §6).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

__all__ = ["NO_REASONING", "Pointer", "Words", "aside", "pointers"]

CONTINUATION = "get_continuation"
READ = "tool_output_cache"
GREP = "tool_output_cache_grep"
NO_REASONING = "[ullage: reasoning left out]"
"""What stands in place of a message that was nothing but reasoning."""

RECALL_TOOLS = frozenset((CONTINUATION, READ, GREP))

_CALL = re.compile(r'get_continuation\(tool_call_id=\\?"([0-9a-z]{16})\\?", offset=(\d+)\)')
_REF = re.compile(r"\bref[ =]\\?\"?([0-9a-z]{16})\b")


class Pointer(Struct, frozen=True):
    """A ref named by a visible notice, and the character offset to read on from."""

    ref: str
    offset: int


class Words(Struct, frozen=True):
    """The wording of one session: the names of its recall tools, or none of them.

    Attributes:
        recall: whether the request holds the recall tools; without them a notice names the
            ref alone (failure F80: never a hint at a tool that is not there).
        prefix: what stands before the tools' names after a clash with the caller's own.
    """

    recall: bool = True
    prefix: str = ""

    def read_on(self, ref: str, offset: int) -> str:
        """The call that reads on from ``offset``, or the bare ref without recall tools."""
        if not self.recall:
            return f"ref={ref}, from character {offset:,}"
        return f'{self.prefix}{CONTINUATION}(tool_call_id="{ref}", offset={offset})'

    def cut(self, ref: str, shown: int, total: int, offset: int) -> str:
        """The notice at the end of a result that is shown in part."""
        search = f'; search it: {self.prefix}{GREP}(ref_id="{ref}", pattern="…")'
        return (
            f"[ullage: {shown:,} of {total:,} characters shown. "
            f"Read on: {self.read_on(ref, offset)}{search if self.recall else ''}]"
        )

    def placeholder(self, ref: str, text: str) -> str:
        """What stands in place of a result that left the window: a few words and the ref."""
        first = " ".join(text[:400].split())[:80].replace('"', "'")
        return (
            f"[ullage: tool output set aside, {len(text):,} characters, "
            f'begins "{first}". Read it: {self.read_on(ref, 0)}]'
        )

    def media(self, ref: str, what: str) -> str:
        """What stands in place of an image, document or sound."""
        return f"[ullage: {what} set aside. See it again: {self.read_on(ref, 0)}]"

    def arguments(self, ref: str, chars: int) -> str:
        """What is added to call arguments whose long strings were left out."""
        return f"[{chars:,} characters of arguments set aside. Read: {self.read_on(ref, 0)}]"

    def more(self, ref: str, start: int, stop: int, total: int) -> str:
        """The last line of a page that is not the last page."""
        return (
            f"[characters {start:,} to {stop:,} of {total:,}. Read on: {self.read_on(ref, stop)}]"
        )


def aside(what: str, kept: Sequence[tuple[str, int]]) -> str:
    """The line in place of something that may not stand in the view: its refs and lengths.

    It names refs alone, so that it reads the same with the recall tools and without.
    """
    listed = " and ".join(f"ref={ref} ({chars:,} characters)" for ref, chars in kept)
    return f"[ullage: {what} was set aside: {listed or 'it was empty'}]"


def pointers(text: str) -> list[Pointer]:
    """Every ref that a visible text names, as a model would read it, in order."""
    found = [(m.start(), Pointer(m[1], int(m[2]))) for m in _CALL.finditer(text)]
    found += [(m.start(), Pointer(m[1], 0)) for m in _REF.finditer(text)]
    return [pointer for _, pointer in sorted(found, key=lambda pair: pair[0])]
