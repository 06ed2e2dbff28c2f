"""The window: a history as it is shown at one boundary, counted against its limits.

A window is the fold of the edits made so far over a transcript. It is a view that keeps running
sums, and so answers "how much is shown" without a scan; stages read it and never write it.
Every token figure comes from here: trigger, cut and acceptance use one estimator (failure F29).

Counting is put off while a bound decides: the bytes of what is uncounted are an upper bound
of its tokens, so while the bound fits, nothing needs counting (`core-feasibility` §2).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from copy import copy
from functools import partial
from typing import TypeVar

from ullage.history.remembered import REMEMBERED
from ullage.history.shown import ShownHistory
from ullage.history.tally import Tally
from ullage.history.transcript import Location, Transcript, leaves_of
from ullage.tokens.calibrate import Calibration
from ullage.tokens.meter import Meter
from ullage.values.edits import Drop, Edit, Replace, Span
from ullage.values.messages import (
    Content,
    Part,
    Reasoning,
    ReasoningRule,
    ToolCall,
)
from ullage.values.notices import NO_REASONING, Words

__all__ = ["PAST", "Window"]

T = TypeVar("T")
PAST = 3
"""How many boundaries back a history may fork without being walked again from its beginning."""
_WORTH_CHARS = 2_000
"""Counting a shorter text is not worth remembering."""


class Window(ShownHistory):
    """A view with its token sums and limits.

    Attributes:
        meter: what counts.
        limit_tokens: the most the prompt may hold.
        context_tokens: the model's whole context window, prompt and answer together.
        head_tokens: tokens of what stands outside the messages (system text, tools).
        head_texts: the same as text: system text, each tool as JSON, schemas of the answer.
        reported_tokens: what the provider reported for the request at the last boundary, or
            None if nobody told.
        reported_total: the same, and its answer.
        words: the wording of notices.
        reasoning: what an edit does to the reasoning behind it, for this model.
        thinks_first: an open turn must begin with thinking (manual thinking, A14).
        calibration: what was learned from reported usage so far.
        standing: how many of the first batches under a key of the ledger are shown whole.
        replaced_later: leaves that the ledger replaces before anything is decided again, so that
            nobody sees how they look at first sight.
        past: how it was at the last boundaries, oldest first (`keep_past`).
    """

    def __init__(self, transcript: Transcript, meter: Meter, words: Words) -> None:
        super().__init__(transcript)
        self.meter = meter
        self.words = words
        self.limit_tokens = 0
        self.context_tokens = 0
        self.head_tokens = 0
        self.head_texts: Sequence[str] = ()
        self.reported_tokens: int | None = None
        self.reported_total: int | None = None
        self.reasoning: ReasoningRule = "free"
        self.thinks_first = False
        self.calibration = Calibration(exact=meter.counter.exact)
        self.standing: dict[bytes, int] = {}
        self.replaced_later: Set[Location] = frozenset()
        self.past: tuple[Window, ...] = ()
        self._edit_tokens: dict[Replace, int] = {}
        self._tokens: list[int] = []
        self._counted = 0
        self._bound = 0
        self._uncounted: list[int] = []
        self._span_tokens = 0
        self._settled: dict[Callable[[Window, int], bool], int] = {}
        self._tallies: dict[Callable[[Window, int], int], Tally] = {}

    # ── earlier states ───────────────────────────────────────────────────────────────

    def keep_past(self) -> None:
        """Keep how the view is now, for a history that goes on otherwise from here (`behind`)."""
        self.past = (*self.past, self._copy())[-PAST:]

    def outdate_past(self, key: bytes) -> None:
        """Forget earlier states that went past this key: the ledger holds more there now."""
        place = self.transcript.find(key) or 0
        self.past = tuple(past for past in self.past if past.size < place)

    def behind(self, transcript: Transcript) -> Window | None:
        """The view of another transcript, as this was kept last within what the two share.

        Args:
            transcript: what the two share and nothing else.
        """
        kept = [past for past in self.past if past.size <= len(transcript)]
        if not kept:
            return None
        window = kept.pop()._copy()
        window.transcript, window.past = transcript, tuple(kept)
        for measure, tally in window._tallies.items():
            tally.measure = partial(measure, window)
        return window

    def _copy(self) -> Window:
        """The same state, apart; only what is cached of edits is shared."""
        other = copy(self)
        for name, value in vars(self).items():
            if type(value) in (dict, list, set) and value is not self._edit_tokens:
                setattr(other, name, value.copy())
        other._tallies = {measure: tally.copy() for measure, tally in self._tallies.items()}
        other.past = ()
        return other

    # ── growing ──────────────────────────────────────────────────────────────────────

    def extend(self, length: int) -> None:
        """See `ShownHistory.extend`; what is new is counted when it must be."""
        read_from = self.read_from
        super().extend(length)
        if self.read_from != read_from:
            self._unread()
        for index in range(len(self._tokens), length):
            self._tokens.append(-1)
            self._uncounted.append(index)
            self._bound += self.meter.bound(self.transcript.messages[index])

    def _unread(self) -> None:
        """What the provider does not read any more is shown, and costs nothing."""
        self._tokens = [0] * self.read_from
        self._counted = self._bound = self._span_tokens = 0
        self._uncounted.clear()
        self._tallies.clear()

    def refresh(self, index: int) -> None:
        """A message was worded anew by the caller (same digest): count it again."""
        self._outdate(index)
        read = self.read_from <= index < self.size
        if read and self._tokens[index] >= 0 and not self.hidden(index):
            self._counted -= self._tokens[index]
            self._tokens[index] = self._count(index)
            self._counted += self._tokens[index]
        for past in self.past:
            past.refresh(index)

    def apply(self, edit: Edit) -> tuple[int, int] | None:
        """Show an edit. Returns tokens of its place before and after; None if it is void."""
        if not isinstance(edit, Replace):
            before = self.tokens
            return (before, self.tokens) if self.show(edit) else None
        spot = self.spot_for(edit, self.size)
        before = 0 if spot is None else self.leaf_tokens(spot)
        return (before, self.leaf_tokens(spot)) if spot and self.show(edit) else None

    def show(self, edit: Edit) -> bool:
        """Show an edit, and count nothing for it that need not be. Returns whether it took effect.

        An edit is void where the history no longer holds what it replaces, or where its
        place is not shown.
        """
        if isinstance(edit, Span):
            return self._condense(edit)
        return self._drop(edit) if isinstance(edit, Drop) else self._replace(edit)

    def _replace(self, edit: Replace) -> bool:
        spot = self.spot_for(edit, self.size)
        if spot is None:
            return False
        index, uncounted = spot[0], self._tokens[spot[0]] < 0
        tokens = self._leaf_bound if uncounted else self.leaf_tokens
        won = tokens(spot)
        self._place(edit, spot)
        won -= tokens(spot)
        self._outdate(index)
        if uncounted:
            self._bound -= won
        else:
            self._tokens[index] -= won
            self._counted -= 0 if self.hidden(index) else won
        return True

    def _leaf_bound(self, spot: Location) -> int:
        """An upper bound of the tokens of a leaf as it is shown, found without counting."""
        edit = self.shown(spot[0]).get(spot[1:])
        if edit is not None:
            return self.meter.counter.bound(edit.text)
        leaf = self.transcript.leaf(spot)
        return 0 if leaf is None else self.meter.leaf_bound(leaf)

    def _drop(self, edit: Drop) -> bool:
        run = self._run(edit)
        for index in () if run is None else self._silence(*run):
            self.refresh(index)
        return run is not None

    def _condense(self, edit: Span) -> bool:
        run = self._run(edit)
        if run is None or run[0] < self.read_from:
            return False
        self.count()
        if self.span:
            self._counted += self._hidden_tokens() - self._span_tokens
        self._cover(*run, edit)
        self._span_tokens = sum(map(self.meter.message, edit.texts))
        self._counted += self._span_tokens - self._hidden_tokens()
        return True

    def _hidden_tokens(self) -> int:
        start, stop, _ = self.span or (0, 0, None)
        standing = self.transcript.standing(start, stop)
        return sum(self._tokens[start:stop]) - sum(self._tokens[index] for index in standing)

    def may_cut(self, index: int) -> bool:
        """Whether the history may begin anew here, and the view go on behind an account."""
        return self.transcript.may_cut(index) and self.may_go_on(index)

    def may_go_on(self, index: int) -> bool:
        """Whether the turn that is left behind an account begins as it must.

        A tool loop is one turn: where that must begin with thinking, an account within it goes
        up to a reply that does, or to the end (A14).
        """
        if not self.thinks_first or not self.transcript.in_loop(index, self.size):
            return True
        first = next(iter(self.transcript.messages[index].parts), None)
        return isinstance(first, Reasoning) and index not in self.silent

    # ── counting ─────────────────────────────────────────────────────────────────────

    def count(self) -> None:
        """Count what has not been counted yet."""
        for index in self._uncounted:
            if self._tokens[index] < 0:  # else an interrupted call came as far as this
                tokens = self._count(index)
                self._tokens[index], self._counted = tokens, self._counted + tokens
        self._uncounted, self._bound = [], 0

    def _count(self, index: int) -> int:
        """Tokens of a message as it is shown; what is not shown of it is not counted."""
        message, silent = self.transcript.messages[index], index in self.silent
        total = self.meter.framing(message)
        for number, item, leaf in leaves_of(message):
            if not (silent and isinstance(leaf, Reasoning)):
                total += self.leaf_tokens((index, number, item))
        if silent and message.only_thought:
            total += self.meter.text(NO_REASONING)
        return total

    def leaf_counts(self, index: int) -> tuple[int, ...]:
        """Tokens of each leaf of a message, unedited, in wire order."""
        leaves = leaves_of(self.transcript.messages[index])
        return tuple(self._original((index, number, item), leaf) for number, item, leaf in leaves)

    def leaf_tokens(self, spot: Location) -> int:
        """Tokens of a leaf as it is shown."""
        index, number, item = spot
        if index < self.read_from:
            return 0
        edit = self.shown(index).get((number, item))
        if edit is not None:
            return self.edit_tokens(edit)
        tokens = self.transcript.counts.get(spot)
        if tokens is None:
            leaf = self.transcript.leaf(spot)
            tokens = 0 if leaf is None else self._original(spot, leaf)
        return tokens

    def _original(self, spot: Location, leaf: Part | Content) -> int:
        """Tokens of a leaf, unedited, counted once; a long text once in this process."""
        tokens = self.transcript.counts.get(spot)
        if tokens is None:
            tokens = self.transcript.counts[spot] = self._measured(leaf, spot)
        return tokens

    def _measured(self, leaf: Part | Content, spot: Location) -> int:
        text = leaf.arguments if isinstance(leaf, ToolCall) else getattr(leaf, "text", "")
        output = self.transcript.output(spot) if len(text) >= _WORTH_CHARS else None
        if output is None or output.kind != "text":
            return self.meter.leaf(leaf)
        return self._remembered((type(leaf), output.ref), self.meter.leaf, leaf)

    def edit_tokens(self, edit: Replace) -> int:
        """Tokens of what an edit shows, counted once."""
        tokens = self._edit_tokens.get(edit)
        if tokens is None:
            is_call, text = edit.place.kind == "call", edit.text
            count = self.meter.arguments if is_call else self.meter.text
            tokens = self._remembered((is_call, text), count, text, len(text))
            self._edit_tokens[edit] = tokens
        return tokens

    def _remembered(
        self, content: Hashable, count: Callable[[T], int], counted: T, chars: int = 0
    ) -> int:
        """What this process counted before for a content, for this model and tenant."""
        key = self.transcript.chain[0], self.meter.counts_as, content
        tokens: int | None = REMEMBERED.get(key)
        if tokens is None:
            tokens = count(counted)
            REMEMBERED.put(key, tokens, chars)
        return tokens

    def message_tokens(self, index: int) -> int:
        """Tokens of a message as it is shown, its framing included."""
        self.count()
        return self._tokens[index]

    @property
    def tokens(self) -> int:
        """Uncalibrated tokens of the whole view: head and messages."""
        self.count()
        return self.head_tokens + self._counted

    @property
    def estimate(self) -> int:
        """Calibrated tokens of the whole view: what the provider would report."""
        return self.calibration.apply(self.tokens)

    def tally(self, measure: Callable[[Window, int], int]) -> Tally:
        """A sum over the messages taken in, worked out for new and newly edited ones only.

        Args:
            measure: what a message of this index adds, as it is shown.
        """
        if measure not in self._tallies:
            self._tallies[measure] = Tally(partial(measure, self))
        return self._tallies[measure].to(self.size)

    def total(self, measure: Callable[[Window, int], int]) -> int:
        """Such a sum without the messages that an account stands for."""
        tally = self.tally(measure)
        return tally.sum if self.span is None else tally.sum - tally.of_run(*self.span[:2])

    def _outdate(self, index: int) -> None:
        for tally in self._tallies.values():
            tally.outdate(index)

    def within(self, limit_tokens: int, *, surely: bool = False) -> bool:
        """Whether the view fits a limit; ``surely`` asks it of the upper bound (F58)."""
        apply = self.calibration.upper if surely else self.calibration.apply
        bound = self.head_tokens + self._counted + self._bound
        if self._uncounted and apply(bound) <= limit_tokens:
            return True
        return apply(self.tokens) <= limit_tokens

    def settled_to(self, stop: int, is_settled: Callable[[Window, int], bool]) -> int:
        """The first message below ``stop`` of which that does not hold; once settled, for ever.

        So a stage that looks for old outputs begins here: its work is proportional to what is
        new.
        """
        at = self._settled.get(is_settled, 0)
        while at < stop and is_settled(self, at):
            at += 1
        self._settled[is_settled] = at
        return min(at, stop)
