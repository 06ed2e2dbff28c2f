"""What the views of a run cost, and what it costs to fetch what they do not show.

Tokens are bytes / 4. A request writes what is behind the longest prefix it shares with the one
before, at 1.25 of the price of input, and reads that prefix from the cache, at one of three prices.
A reply that needs what its view does not show is serviced: one more request for each page that a
reader needs to get it back (`recalling`), which reads the view and writes the page, and ten
requests in which that page is read again. The bound is one page of at most 1,500 tokens for each
result that holds what is missed (the whole result, where nothing in the view opens it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from lab.replay.carried.passages import Passage
from lab.replay.carried.recalling import (
    PAGE_TOKENS,
    Fetched,
    Recall,
    tokens_of,
)
from lab.replay.carried.sight import Read, View
from lab.replay.carried.wants import Value, Wants
from ullage.core.history.canon import ref_of

READS = (0.1, 0.05, 0.025)
"""What a token read from the cache costs, in tokens of input."""
_WRITE = 1.25
_CARRIED_CALLS = 10
_CHARS_PER_TOKEN = 4

Service: TypeAlias = Literal["pages", "edits", "bound", "none"]
"""What is paid for a miss: the pages a reader needs, these and the files that edits want read
again, one page, or nothing."""


class Sums(Struct, kw_only=True):
    """Sums over the requests of one run; tokens are bytes / 4.

    Attributes:
        calls: how many requests.
        written: tokens behind the prefix that a request shares with the one before.
        read: tokens of that prefix.
        peak: tokens of the largest request.
        breaks: requests that did not go on from the one before.
        missed: values that a view did not show.
        pages: pages that were read to get them back, results of tools run again included.
        page_read: tokens read in requests that fetch these pages.
        page_written: tokens of these pages.
        by_ref: values whose line the ref opened first shows, in one page.
        searched: values that could be searched for by words.
        by_words, by_words_2: of these, such as the first page shows in their line, or the second.
        faults: results that hold what was missed: as many as would be fetched at the least.
        lost: of these, such as nothing in the view opened.
        bound_read, bound_written: as of the pages, where each such result takes one page.
        far, far_shown, far_lines: far values wanted, shown, and shown in their line.
        anchors, anchors_shown: old texts of edits wanted, and shown whole.
        again_read, again_written: as of the pages, where each text that holds an old text that is
            not shown whole is read again before its edit.
        near, near_shown: values wanted that are not far, and shown.
        user, user_shown: passages of the user's that replies repeat, and in view (`passages`).
        model, model_shown: the same of the model's own.
        result, result_shown: the same of results.
        unsaid: requests in which something is missing that the user said.
        unsaid_fits: of these, such as half the limit holds all of what was said.
        cut: requests that show anything else than the history.
    """

    calls: int = 0
    written: int = 0
    read: int = 0
    peak: int = 0
    breaks: int = 0
    missed: int = 0
    pages: int = 0
    page_read: int = 0
    page_written: int = 0
    by_ref: int = 0
    searched: int = 0
    by_words: int = 0
    by_words_2: int = 0
    faults: int = 0
    lost: int = 0
    bound_read: int = 0
    bound_written: int = 0
    far: int = 0
    far_shown: int = 0
    far_lines: int = 0
    anchors: int = 0
    anchors_shown: int = 0
    again_read: int = 0
    again_written: int = 0
    near: int = 0
    near_shown: int = 0
    user: int = 0
    user_shown: int = 0
    model: int = 0
    model_shown: int = 0
    result: int = 0
    result_shown: int = 0
    unsaid: int = 0
    unsaid_fits: int = 0
    cut: int = 0

    def request(
        self, now: Sequence[Read], before: Sequence[Read], head_bytes: int
    ) -> None:
        """Take in one request, and the one before it."""
        common, same = _common_bytes(now, before)
        total = (
            head_bytes + sum(len(each.sent) for each in now)
        ) // _CHARS_PER_TOKEN
        read = (head_bytes + common) // _CHARS_PER_TOKEN if before else 0
        self.calls += 1
        self.breaks += not same
        self.read += read
        self.written += total - read
        self.peak = max(self.peak, total)

    def reply(self, wants: Wants, view: View, recall: Recall) -> None:
        """Take in what the reply to a view needs.

        Args:
            wants: what it needs.
            view: what it was shown.
            recall: brings back what the view does not show.
        """
        missed = list[Value]()
        for value in wants.values:
            shown = view.shows(value)
            if value.is_far:
                self.far, self.far_shown = self.far + 1, self.far_shown + shown
                self.far_lines += shown and view.shows_line(value)
            else:
                self.near, self.near_shown = (
                    self.near + 1,
                    self.near_shown + shown,
                )
            if not shown:
                missed.append(value)
        hidden = [
            anchor
            for anchor in wants.anchors
            if not view.shows_whole(anchor.text)
        ]
        self.anchors += len(wants.anchors)
        self.anchors_shown += len(wants.anchors) - len(hidden)
        view_tokens = (
            sum(len(each.sent) for each in view.messages) // _CHARS_PER_TOKEN
        )
        # a tool that edits wants its file read: once, whatever is edited in it
        for holder in {anchor.holder for anchor in hidden}:
            tokens = tokens_of(holder)
            self.again_written += tokens
            self.again_read += view_tokens + _CARRIED_CALLS * tokens
        if missed:
            self._fetch(missed, recall(missed, view), view_tokens)

    def _fetch(
        self,
        missed: Sequence[Value],
        fetched: Sequence[Fetched],
        view_tokens: int,
    ) -> None:
        """Pay for what a reply brings back, by the pages it needs and by one page a result."""
        held = dict[str, tuple[int, bool]]()
        for value, how in zip(missed, fetched, strict=True):
            self.missed += 1
            self.pages += len(how.page_tokens)
            self.page_written += sum(how.page_tokens)
            self.page_read += sum(
                view_tokens + _CARRIED_CALLS * page for page in how.page_tokens
            )
            self.by_ref += how.by_ref
            self.searched += how.by_words is not None
            self.by_words += how.by_words == 1
            self.by_words_2 += how.by_words == 2
            text = value.sources[-1].text
            held.setdefault(ref_of(text), (tokens_of(text), how.is_lost))
        for tokens, is_lost in held.values():
            page = tokens if is_lost else min(tokens, PAGE_TOKENS)
            self.faults, self.lost = self.faults + 1, self.lost + is_lost
            self.bound_read += view_tokens + _CARRIED_CALLS * page
            self.bound_written += page

    def repeat(self, passages: Sequence[Passage], view: View) -> None:
        """Take in the passages that the reply to a view repeats from far back."""
        for passage in passages:
            shown = view.says(passage.words)
            match passage.author:
                case "user":
                    self.user, self.user_shown = (
                        self.user + 1,
                        self.user_shown + shown,
                    )
                case "model":
                    self.model, self.model_shown = (
                        self.model + 1,
                        self.model_shown + shown,
                    )
                case "result":
                    self.result, self.result_shown = (
                        self.result + 1,
                        self.result_shown + shown,
                    )

    def cost(self, read_price: float, service: Service = "pages") -> float:
        """What it costs in tokens of input, with what is paid for misses."""
        fetched = {
            "pages": (self.page_written, self.page_read),
            "edits": (
                self.page_written + self.again_written,
                self.page_read + self.again_read,
            ),
            "bound": (self.bound_written, self.bound_read),
            "none": (0, 0),
        }
        written, read = fetched[service]
        return _WRITE * (self.written + written) + read_price * (
            self.read + read
        )

    def __add__(self, other: Sums) -> Sums:
        names = Sums.__struct_fields__
        summed = {
            name: getattr(self, name) + getattr(other, name) for name in names
        }
        return Sums(**(summed | {"peak": max(self.peak, other.peak)}))


def _common_bytes(
    now: Sequence[Read], before: Sequence[Read]
) -> tuple[int, bool]:
    """Bytes of the prefix that two requests share, and whether the one before is all of it."""
    common = 0
    for one, other in zip(now, before, strict=False):
        if one is not other and one.sent != other.sent:
            return common + _alike(one.sent, other.sent), False
        common += len(one.sent)
    return common, len(now) >= len(before)


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes two messages begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next(
        (at for at, (a, b) in pairs if a != b), min(len(one), len(other))
    )
