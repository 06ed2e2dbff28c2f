"""Open what a view names as a model would: by the calls its visible notices ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from ullage import Session
from ullage.core.values.notices import Pointer, next_offset
from ullage.core.values.toolset import CONTINUATION, READ
from ullage.doors.host import Text, pointers
from ullage.wires import FORMATS
from ullage.wires.convert.write import call_on

_INDEX = "Index of messages"
_ASIDE = re.compile(r"\[ullage: [^\n]* was set aside: ref=[^\n]*\]")
# arguments of the continuation tool, where its schema has them
_PATTERN = "pattern"
"""What to search one output for."""
_WORDS = "words"
"""What to search all that left the view for."""
_PAGE = "page"
"""Which page of the hits to show, from 1."""


def ask(session: Session, tool: str, arguments: Mapping[str, Any]) -> str:
    """Make a recall call in the session's own format; the text that comes back."""
    wire = FORMATS[str(session.state.format)]
    call = call_on(
        wire.name,
        tool,
        dict(arguments),
        json.dumps(dict(arguments)),
        "call_read",
    )
    (carrier,) = wire.results([session.recall(call)])
    (answer,) = wire.parse(carrier, "a recall").results
    return "".join(
        leaf.text for leaf in answer.content if isinstance(leaf, Text)
    )


def follow(session: Session, ref: str, offset: int = 0) -> str:
    """Read on from a character to the end, page after page, as each page says.

    Raises:
        ValueError: a page says to read on from where it began.
    """
    words = session.window.words
    pages = list[str]()
    while True:
        arguments = {"tool_call_id": ref, "offset": offset}
        text = ask(session, words.prefix + CONTINUATION, arguments)
        more = next_offset(text)
        if more is None:
            return "".join([*pages, text])
        page, following = more
        if following <= offset:
            raise ValueError(
                f"paging of {ref!r} does not move on from character {offset:,}"
            )
        pages.append(page)
        offset = following


def reachable(
    session: Session, texts: Sequence[str], opened: dict[str, str]
) -> None:
    """Open every ref that these texts name, and every ref an index among them names."""

    def leads(ref: str) -> list[str]:
        if ref in opened:
            return []
        opened[ref] = follow(session, ref)
        return leads_to(opened[ref])

    reachable_with(
        leads, [pointer.ref for text in texts for pointer in pointers(text)]
    )


def leads_to(text: str) -> list[str]:
    """The refs that an index of messages names, or a line of what was set aside by repair; none if
    the text is neither.
    """
    is_lead = text.startswith(_INDEX) or _ASIDE.fullmatch(text) is not None
    return [pointer.ref for pointer in refs_in(text)] if is_lead else []


def reachable_with(
    leads: Callable[[str], Iterable[str]], refs: Iterable[str]
) -> list[str]:
    """These refs, and every ref that they lead to, each once."""
    reached = dict[str, None]()
    queue = list(refs)
    while queue:
        ref = queue.pop()
        if ref not in reached:
            reached[ref] = None
            queue += leads(ref)
    return list(reached)


class Library(Protocol):
    """Opens refs as what is judged documents it."""

    def whole(self, ref: str) -> str:
        """Everything kept under a ref, page after page."""

    def leads(self, ref: str) -> Sequence[str]:
        """The refs that what is kept under a ref names, if it is an index of others."""

    def named(self, text: str) -> Sequence[Pointer]:
        """Every ref that a visible text names, in order."""


class SessionLibrary:
    """Opens refs by the session's own recall tools; nothing, if it offers none that does."""

    def __init__(self, session: Session) -> None:
        """Open refs of this session. Each is read once."""
        self._session = session
        self._wholes: dict[str, str] = {}

    def whole(self, ref: str) -> str:
        """See `Library.whole`."""
        if ref not in self._wholes:
            pages = (
                follow(self._session, ref)
                if self._reads_on
                else self.open(Pointer(ref, 0))
            )
            self._wholes[ref] = pages
        return self._wholes[ref]

    def leads(self, ref: str) -> Sequence[str]:
        """See `Library.leads`."""
        return leads_to(self.whole(ref))

    def named(self, text: str) -> Sequence[Pointer]:
        """See `Library.named`."""
        return refs_in(text)

    def open(self, pointer: Pointer) -> str:
        """What one call with a ref returns."""
        words = self._session.window.words
        if self._reads_on:
            arguments = {"tool_call_id": pointer.ref, "offset": pointer.offset}
            return ask(self._session, words.prefix + CONTINUATION, arguments)
        if not words.recall or READ not in words.toolset.names:
            return ""
        return ask(self._session, words.prefix + READ, {"ref_id": pointer.ref})

    def pages(self, pointer: Pointer) -> Iterator[str]:
        """What is kept from a place on, page after page, each as a call returns it."""
        while True:
            text = self.open(pointer)
            yield text
            more = next_offset(text) if self._reads_on else None
            if more is None or more[1] <= pointer.offset:
                return
            pointer = Pointer(pointer.ref, more[1])

    def grep(self, ref: str, pattern: str) -> str | None:
        """What a search of one output for a pattern returns; None if no tool takes one."""
        return self._called({"tool_call_id": ref, _PATTERN: pattern}, _PATTERN)

    def find(self, words: str, page: int = 1, ref: str = "") -> str | None:
        """A page of a search by words, in all that left the view or in the output of a ref.

        None, if no tool takes words.
        """
        arguments: dict[str, Any] = {_WORDS: words, _PAGE: page}
        if ref:
            arguments["tool_call_id"] = ref
        return self._called(arguments, _WORDS)

    def _called(self, arguments: Mapping[str, Any], needed: str) -> str | None:
        """What the continuation tool returns; None where it does not take what is needed."""
        words = self._session.window.words
        tools = (
            tool for tool in words.toolset.tools if tool.name == CONTINUATION
        )
        takes = any(needed in tool.parameters["properties"] for tool in tools)
        if not words.recall or not takes:
            return None
        return ask(self._session, words.prefix + CONTINUATION, arguments)

    @property
    def _reads_on(self) -> bool:
        words = self._session.window.words
        return words.recall and CONTINUATION in words.toolset.names


def refs_in(text: str) -> Sequence[Pointer]:
    """Every ref that a text names in ullage's own words."""
    return _pointers(text) if any(name in text for name in _MAY_NAME) else ()


_MAY_NAME = ("ref", "get_continuation(", ".txt")


@lru_cache(maxsize=4096)
def _pointers(text: str) -> tuple[Pointer, ...]:
    return tuple(pointers(text))
