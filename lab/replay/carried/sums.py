"""What the views of a run cost, and what it costs to fetch what they do not show.

Tokens are bytes / 4. A request writes what is behind the longest prefix it shares with the one
before, at 1.25 of the price of input, and reads that prefix from the cache, at one of three prices.
A reply that needs what its view does not show is serviced: one more request for each result that
holds it, which reads the view and writes a page of at most 1,500 tokens (the whole result, where
nothing in the view opens it), and ten requests in which that page is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from lab.replay.carried.sight import Read, View
from lab.replay.carried.wants import Wants
from ullage.history.canon import ref_of
from ullage.replay.evidence.demands import Piece

READS = (0.1, 0.05, 0.025)
"""What a token read from the cache costs, in tokens of input."""
_WRITE = 1.25
_PAGE_TOKENS = 1_500
_CARRIED_CALLS = 10
_CHARS_PER_TOKEN = 4


class Sums(Struct, kw_only=True):
    """Sums over the requests of one run; tokens are bytes / 4.

    Attributes:
        calls: how many requests.
        written: tokens behind the prefix that a request shares with the one before.
        read: tokens of that prefix.
        peak: tokens of the largest request.
        breaks: requests that did not go on from the one before.
        faults: results that had to be fetched.
        lost: of these, such as nothing in the view opened.
        fault_read: tokens read in requests that fetch.
        fault_written: tokens of the pages they bring.
        far, far_shown, far_lines: far values wanted, shown, and shown in their line.
        anchors, anchors_shown: old texts of edits wanted, and shown whole.
        near, near_shown: values wanted that are not far, and shown.
        unsaid: requests in which something is missing that the user said.
        unsaid_fits: of these, such as half the limit holds all of what was said.
        cut: requests that show anything else than the history.
    """

    calls: int = 0
    written: int = 0
    read: int = 0
    peak: int = 0
    breaks: int = 0
    faults: int = 0
    lost: int = 0
    fault_read: int = 0
    fault_written: int = 0
    far: int = 0
    far_shown: int = 0
    far_lines: int = 0
    anchors: int = 0
    anchors_shown: int = 0
    near: int = 0
    near_shown: int = 0
    unsaid: int = 0
    unsaid_fits: int = 0
    cut: int = 0

    def request(self, now: Sequence[Read], before: Sequence[Read], head_bytes: int) -> None:
        """Take in one request, and the one before it."""
        common, same = _common_bytes(now, before)
        total = (head_bytes + sum(len(each.sent) for each in now)) // _CHARS_PER_TOKEN
        read = (head_bytes + common) // _CHARS_PER_TOKEN if before else 0
        self.calls += 1
        self.breaks += not same
        self.read += read
        self.written += total - read
        self.peak = max(self.peak, total)

    def reply(self, wants: Wants, view: View, opens: Callable[[str, View], bool]) -> None:
        """Take in what the reply to a view needs.

        Args:
            wants: what it needs.
            view: what it was shown.
            opens: whether something in a view opens what is kept under a ref.
        """
        missing = dict[str, Piece]()
        for value in wants.values:
            shown = view.shows(value)
            if value.is_far:
                self.far, self.far_shown = self.far + 1, self.far_shown + shown
                self.far_lines += shown and view.shows_line(value)
            else:
                self.near, self.near_shown = self.near + 1, self.near_shown + shown
            if not shown:
                missing.setdefault(ref_of(value.sources[-1].text), value.sources[-1])
        self.anchors += len(wants.anchors)
        self.anchors_shown += sum(map(view.shows_whole, wants.anchors))
        view_tokens = sum(len(each.sent) for each in view.messages) // _CHARS_PER_TOKEN
        for ref, piece in missing.items():
            tokens = len(piece.text.encode("utf-8", "replace")) // _CHARS_PER_TOKEN
            opened = opens(ref, view)
            self.faults, self.lost = self.faults + 1, self.lost + (not opened)
            page = min(tokens, _PAGE_TOKENS) if opened else tokens
            self.fault_read += view_tokens + _CARRIED_CALLS * page
            self.fault_written += page

    def cost(self, read_price: float, *, serviced: bool = True) -> float:
        """What it costs in tokens of input, with or without what had to be fetched."""
        written = self.written + (self.fault_written if serviced else 0)
        read = self.read + (self.fault_read if serviced else 0)
        return _WRITE * written + read_price * read

    def __add__(self, other: Sums) -> Sums:
        names = Sums.__struct_fields__
        summed = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Sums(**(summed | {"peak": max(self.peak, other.peak)}))


def _common_bytes(now: Sequence[Read], before: Sequence[Read]) -> tuple[int, bool]:
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
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
