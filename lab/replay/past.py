"""What a frame policy may look at, the history up to now, and what its view opens."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from lab.replay.story import Story
from ullage.core.values.limits import Limits
from ullage.core.values.messages import Text, ToolResult
from ullage.core.values.notices import Pointer
from ullage.tools.replay.calls import asked_output_tokens
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Run
from ullage.tools.replay.reading import refs_in
from ullage.wires import Change

Block: TypeAlias = range
"""Messages that stay or go together: a reply with its results, or what a user says."""


class Shown(Struct, frozen=True):
    """A view, and what the refs in it open.

    Attributes:
        messages: the view.
        pages: the text that opening a ref returns, whole, by ref.
    """

    messages: Sequence[Any]
    pages: Mapping[str, str] = {}


class Past:
    """The first ``length`` messages of a story, before one call. Nothing of what follows.

    Attributes:
        story: the run; a policy reads no further than ``length``.
        length: how many messages stand before the call.
        call: the number of the call.
    """

    def __init__(
        self, story: Story, length: int, call: int, judge: Judge, memo: Memo
    ) -> None:
        """Stand before a call. The memo is shared by all pasts of a run."""
        self.story, self.length, self.call = story, length, call
        self._judge, self._memo = judge, memo
        self.blocks = [range(*edges) for edges in story.blocks(length)]

    @property
    def results(self) -> list[tuple[int, int]]:
        """Where each tool result stands: message and part."""
        found = self.story.results
        return found[: bisect_left(found, (self.length, 0))]

    def text_tokens(self, text: str) -> int:
        """Tokens of a text, by the judge."""
        return self._judge.text(text)

    def tokens(self, messages: Sequence[Any]) -> int:
        """Tokens of messages, by the judge."""
        return self._judge.tokens(messages)

    def result_texts(self, index: int, part: int) -> list[str]:
        """The texts of a tool result."""
        return [p.text for p in self.story.pieces[index] if p.part == part]

    def is_fixed(self, block: Block) -> bool:
        """Whether users or the system say all of it."""
        return all(self.story.is_fixed(index) for index in block)

    def with_results(
        self, cut: Callable[[str], str], which: Sequence[tuple[int, int]]
    ) -> Edited:
        """The messages that change if these results are cut so, by index."""
        by_message: dict[int, list[int]] = {}
        for index, part in which:
            by_message.setdefault(index, []).append(part)
        edited: dict[int, Any] = {}
        for index, parts in by_message.items():
            changes = [
                change
                for part in parts
                for change in self._changes(index, part, cut)
            ]
            if changes:
                edited[index] = self._edit(index, tuple(changes))
        return edited

    def _changes(
        self, index: int, part: int, cut: Callable[[str], str]
    ) -> list[Change]:
        result = self.story.parsed[index].parts[part]
        leaves = (
            enumerate(result.content) if isinstance(result, ToolResult) else ()
        )
        texts = [
            (item, leaf.text)
            for item, leaf in leaves
            if isinstance(leaf, Text)
        ]
        return [
            (part, item, new)
            for item, text in texts
            if len(new := cut(text)) < len(text)
        ]

    def _edit(self, index: int, changes: tuple[Change, ...]) -> Any:
        key = (index, changes)
        if key not in self._memo:
            message = self.story.parsed[index]
            self._memo[key] = self.story.wire.edit(
                self.story.messages[index], message, changes
            )
        return self._memo[key]


Edited: TypeAlias = Mapping[int, Any]
Memo: TypeAlias = dict[tuple[int, tuple[Change, ...]], Any]
Frame: TypeAlias = Callable[[Past, int], Shown]
"""A policy to compare with: a plain function from a past and a budget in tokens to a view."""


class PageLibrary:
    """Opens refs that return all there is under them in one page.

    Attributes:
        pages: what each ref opens.
    """

    def __init__(self) -> None:
        """Nothing is kept yet."""
        self.pages: Mapping[str, str] = {}

    def page(self, pointer: Pointer) -> str:
        """See `Library.page`."""
        return self.pages.get(pointer.ref, "")

    def find(self, words: str, page: int = 1) -> str | None:
        """See `PagedLibrary.find`: no policy of the frame offers a search."""
        return None

    def whole(self, ref: str) -> str:
        """See `Library.whole`."""
        return self.pages.get(ref, "")

    def leads(self, ref: str) -> Sequence[str]:
        """See `Library.leads`."""
        return ()

    def named(self, text: str) -> Sequence[Pointer]:
        """See `Library.named`."""
        return refs_in(text)


def budget_of(run: Run, window_tokens: int, judge: Judge) -> int:
    """The tokens that messages may take in a window: without the head, and with a reserve."""
    prompt = Limits(window_tokens=window_tokens).prompt_tokens(
        asked_output_tokens(run)
    )
    return prompt - judge.text(head_of(run.request))
