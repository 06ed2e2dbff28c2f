"""The gates: what must hold of every view, whatever it saves (`metrics` G1 to G6, DESIGN §11 G8).

    G1   legal on the wire                       judged by `ullage.wires.rules`
    G2   within the limit                        by the judge's own count
    G3   prefix-closed and deterministic         a cold session arrives at the same view
    G4   lossless                                every result visible, or opened by its notice
    G5   user and system text kept               verbatim, or listed in an event
    G6   never larger                            than the raw history + 2 %
    G8   first look                              each new result is shown once, as on arrival

A recorded run may break wire rules by itself; only what the view breaks and the recording
does not is counted against the view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ullage import ReplaceSpan, Session, Window
from ullage.core.tokens.estimate import Counter as TokenCounter
from ullage.core.tokens.models import counter_for
from ullage.core.turn.rendering import groups
from ullage.doors.host import Message, Text
from ullage.policy import Location
from ullage.policy.stages.arrivals import equal_shares
from ullage.policy.stages.shrink import reducible_tokens
from ullage.tools.replay.cost.prefix import message_tokens
from ullage.tools.replay.reading import reachable
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

_PAGE = "[ullage: this page"
"""So begins what stands for a page of recall, which the same call gives again."""
JUDGE_MODEL = "gpt-5"
"""Whose tokens are counted, whatever model a run is of."""
GATES = ("G1", "G2", "G3", "G4", "G5", "G6", "G8")
Wire = Mapping[str, Any]


class Judge:
    """One tokeniser for everybody: o200k, or where it is not installed our estimate of it.

    A message counts as its texts and 4 tokens of framing. Counts are kept by identity while
    the message lives.
    """

    def __init__(self) -> None:
        self._counter: TokenCounter = counter_for(JUDGE_MODEL)
        self._seen: dict[int, tuple[Any, int]] = {}

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return self._counter.count(text)

    def tokens(self, messages: Sequence[Any]) -> int:
        """Tokens of a row of messages."""
        return sum(self.message(message) for message in messages)

    def message(self, message: Any) -> int:
        """Tokens of one message."""
        cached = self._seen.get(id(message))
        if cached is not None and cached[0] is message:
            return cached[1]
        count = message_tokens(message, self._counter.count)
        self._seen[id(message)] = (message, count)
        return count


def tokeniser() -> str:
    """How the judge counts tokens: the encoding, or that it is estimated."""
    is_exact = counter_for(JUDGE_MODEL).exact
    return "o200k_base" if is_exact else "estimate of o200k_base"


class Gates:
    """Watches one session over one run.

    Attributes:
        broken: how often each gate was broken.
    """

    def __init__(
        self, session: Session, judge: Judge, head_tokens: int
    ) -> None:
        self.session = session
        self.judge = judge
        self.head_tokens = head_tokens
        self.broken: Counter[str] = Counter()
        self._opened: dict[str, str] = {}
        self._texts: set[str] = set()
        self._summaries: set[ReplaceSpan] = set()

    def check(self, raw: Sequence[Wire], view: Sequence[Wire]) -> None:
        """Judge one view against the history it was made from."""
        self._count(
            "G1", breaks_wire(str(self.session.state.format), raw, view)
        )
        tokens = self.judge.tokens(view)
        self._count(
            "G2", tokens + self.head_tokens > self.session.window.limit_tokens
        )
        self._count("G6", tokens > self.judge.tokens(raw) * 1.02)
        self._count("G8", bool(unseen(self.session)))
        self._lossless(raw, view)
        self._said(raw, view)

    def same(self, view: object, twin: object) -> None:
        """G3: two views that must be the same."""
        self._count("G3", view != twin)

    def _count(self, gate: str, is_broken: bool) -> None:
        if is_broken:
            self.broken[gate] += 1

    def _lossless(self, raw: Sequence[Wire], view: Sequence[Wire]) -> None:
        window = self.session.window
        leading = len(raw) - len(self.session.window.transcript)
        wire = FORMATS[str(self.session.state.format)]
        heads: list[list[int | str]] = [[at] for at in range(-leading, 0)]
        laid = [*heads, *groups(window, wire, window.meter.model)]
        texts = [
            text
            for group, message in zip(laid, view, strict=True)
            if any(isinstance(item, str) for item in group)
            for text in self._said_in(message)
        ]
        for placed in window.summaries:
            if placed.edit not in self._summaries:
                self._summaries.add(placed.edit)
                self._open(texts)
                run = raw[placed.start + leading : placed.stop + leading]
                hidden = [
                    text
                    for hidden_message in run
                    for text in self._given_in(hidden_message)
                ]
                lines = "\n".join(texts)
                self._count(
                    "G4",
                    any(
                        t not in self._texts and t not in lines for t in hidden
                    ),
                )
        for group, message in zip(laid, view, strict=True):
            head = group[0]
            if isinstance(head, str) or raw[head + leading] is message:
                continue
            holds = self._kept if len(group) == 1 else self._joined
            self._count("G4", not holds(raw[head + leading], message))

    def _joined(self, original: Wire, message: Wire) -> bool:
        """Whether a message into which others went still says what it said, or opens it."""
        said = self._said_in(message)
        joined = "\n".join(said)
        missing = [
            text for text in self._said_in(original) if text not in joined
        ]
        if missing:
            self._open(said)
        return all(text in self._texts for text in missing)

    def _kept(self, original: Wire, message: Wire) -> bool:
        """Whether each result of an edited message is there, or its notice opens it."""
        for text, seen in zip(
            self._given_in(original), self._given_in(message), strict=True
        ):
            if text != seen and text not in self._texts:
                self._open([seen])
                if text not in self._texts and not seen.startswith(_PAGE):
                    return False
        return True

    def _open(self, texts: Sequence[str]) -> None:
        count = len(self._opened)
        reachable(self.session, texts, self._opened)
        if len(self._opened) > count:
            self._texts.update(self._opened.values())

    def _said(self, raw: Sequence[Wire], view: Sequence[Wire]) -> None:
        """G5: every user text is in the view, unless an event reported the place."""
        reported = any(
            event.kind in ("condensed", "cut") for event in self.session.events
        )
        if reported or self.session.window.summaries:
            return
        for original, message in zip(raw, view, strict=True):
            if original is not message and original.get("role") in (
                "user",
                "system",
                "developer",
            ):
                self._count(
                    "G5", self._said_in(original) != self._said_in(message)
                )

    def _said_in(self, raw: Wire) -> list[str]:
        """The texts of a message that are no results."""
        return [
            part.text
            for part in self._parse(raw).parts
            if isinstance(part, Text)
        ]

    def _given_in(self, raw: Wire) -> list[str]:
        """The texts of the results in a message."""
        leaves = [
            leaf for part in self._parse(raw).results for leaf in part.content
        ]
        return [leaf.text for leaf in leaves if isinstance(leaf, Text)]

    def _parse(self, raw: Wire) -> Message:
        return FORMATS[str(self.session.state.format)].parse(raw, "a view")


def unseen(session: Session) -> list[Location]:
    """G8: the texts of new results that the view neither shows nor quotes as on arrival.

    None where nothing else could have given way instead, and none of those that share what the
    rest of the window leaves them (`ullage.policy.stages.arrivals`).

    Args:
        session: the session, after it made the view.
    """
    window = session.window
    transcript = window.transcript
    shared = _shared(session)
    locations = list[Location]()
    lost_tokens = 0
    quoted = "\n".join(placed.edit.text for placed in window.summaries)
    for index in range(window.turn_start, window.size):
        for spot in transcript.results(index):
            if transcript.reader(spot[0], spot[1]) == "program":
                continue
            if window.edit_at(spot) in shared:
                continue
            leaf = transcript.leaf(spot)
            if isinstance(leaf, Text) and not _is_seen(
                window, spot, leaf.text, quoted
            ):
                locations.append(spot)
                lost_tokens += window.meter.leaf(leaf)
    return locations if reducible_tokens(window) > lost_tokens else []


def _shared(session: Session) -> list[object]:
    """The edits that brought the new results to equal shares of what the rest leaves them."""
    window = session.window
    ledger = session.state.ledger
    edits = list[object]()
    for key in window.transcript.chain[window.turn_start :]:
        for recorded in ledger.at(key).batches:
            if recorded.stage == equal_shares.__name__:
                edits += recorded.edits
    return edits


def _is_seen(window: Window, spot: Location, text: str, quoted: str) -> bool:
    edit = window.edit_at(spot)
    if window.hidden(spot[0]):
        visible_text = text if edit is None else edit.text
        return visible_text in quoted
    return edit is None or not edit.was_sent


def breaks_wire(name: str, raw: Sequence[Wire], view: Sequence[Wire]) -> bool:
    """G1: whether a view breaks a rule of its format more often than the recording does."""
    problems = problems_of(name, view)
    if not problems:
        return False
    raw_counts = Counter(problem.rule for problem in problems_of(name, raw))
    view_counts = Counter(problem.rule for problem in problems)
    return any(view_counts[rule] > raw_counts[rule] for rule in view_counts)
