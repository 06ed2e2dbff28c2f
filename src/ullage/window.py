"""The window: a history as it is shown at one boundary, counted against its limits.

A window is the fold of the edits made so far over a transcript. It moves forward only, keeps
running sums and an index, and so answers "how much is shown" without a scan; stages read it
and never write it. Every token figure comes from here: trigger, cut and acceptance use one
estimator (failure F29).

Counting is put off while a bound decides: the bytes of what is uncounted are an upper bound
of its tokens, so while the bound fits, nothing needs counting (`core-feasibility` §2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial

from ullage.edits import Drop, Edit, Replace, Span
from ullage.messages import Reasoning, ReasoningRule, ToolResult
from ullage.meter import Meter
from ullage.notices import NO_REASONING, Words
from ullage.tally import Tally
from ullage.tokens import Calibration
from ullage.transcript import Spot, Transcript, leaves_of

__all__ = ["Shown", "Window"]

Shown = dict[tuple[int, int], Replace]
"""What replaces the leaves of one message, by part and item index."""

_WHOLE: Shown = {}


class Window:
    """A transcript as shown: edits, token sums, limits.

    Attributes:
        transcript: the history behind it.
        size: how many messages are taken in.
        fresh: index of the first message that was not there at the last boundary.
        limit_tokens: the most the prompt may hold.
        context_tokens: the model's whole context window, prompt and answer together.
        head_tokens: tokens of what stands outside the messages (system text, tools).
        head_texts: the same as text: system text, and each tool as JSON.
        reported_tokens: what the provider reported for the request at the last boundary, or
            None if nobody told.
        reported_total: the same, and its answer.
        words: the wording of notices.
        reasoning: what an edit does to the reasoning behind it, for this model.
        span: the run of messages shown as an account, with its edges, or None.
        calibration: what was learned from reported usage so far.
        read_from: index of the first message that the provider still reads.
        standing: how many of the first batches under a key of the ledger are shown whole.
    """

    def __init__(self, transcript: Transcript, meter: Meter, words: Words) -> None:
        self.transcript = transcript
        self.meter = meter
        self.words = words
        self.size = 0
        self.fresh = 0
        self.limit_tokens = 0
        self.context_tokens = 0
        self.head_tokens = 0
        self.head_texts: Sequence[str] = ()
        self.reported_tokens: int | None = None
        self.reported_total: int | None = None
        self.reasoning: ReasoningRule = "free"
        self.span: tuple[int, int, Span] | None = None
        self.calibration = Calibration(exact=meter.counter.exact)
        self.read_from = 0
        self.standing: dict[bytes, int] = {}
        self._shown: dict[int, Shown] = {}
        self._spots: dict[str, Spot] = {}
        self._edit_tokens: dict[Replace, int] = {}
        self._changed: dict[int, list[tuple[int, int, str]]] | None = None
        self._tokens: list[int] = []
        self._counted = 0
        self._bound = 0
        self._uncounted: list[int] = []
        self._silent: set[int] = set()
        self._span_tokens = 0
        self._settled: dict[Callable[[Window, int], bool], int] = {}
        self._tallies: dict[Callable[[Window, int], int], Tally] = {}

    # ── growing ──────────────────────────────────────────────────────────────────────

    def extend(self, length: int) -> None:
        """Take in the transcript's messages up to ``length``; they become the fresh ones."""
        self.fresh = self.size
        for index in range(self.size, length):
            if self.transcript.messages[index].supersedes:
                self._unread(index)
            self._tokens.append(-1)
            self._uncounted.append(index)
            self._bound += self.meter.bound(self.transcript.messages[index])
        self.size = length

    def _unread(self, stop: int) -> None:
        """The provider reads nothing before ``stop`` any more: it is shown, and costs nothing."""
        self.read_from, self._tokens = stop, [0] * stop
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

    def apply(self, edit: Edit) -> tuple[int, int] | None:
        """Show an edit. Returns tokens of its place before and after; None if it is void.

        An edit is void where the history no longer holds what it replaces, or where its
        place is not shown.
        """
        if isinstance(edit, Span):
            return self._condense(edit)
        return self._drop(edit) if isinstance(edit, Drop) else self._replace(edit)

    def shows(self, edit: Edit) -> bool:
        """Whether this very edit stands in its place, so that showing it would change nothing."""
        if isinstance(edit, Span):
            return self.span is not None and self.span[2] is edit
        if isinstance(edit, Drop):
            return False
        spot = self._spots.get(edit.ref)
        return spot is not None and self.shown(spot[0]).get(spot[1:]) is edit

    def _replace(self, edit: Replace) -> tuple[int, int] | None:
        spot = self.transcript.locate(edit.place)
        if spot is None or spot[0] >= self.size:
            return None
        original = self.transcript.output(spot)
        if original is None or not _is_of(edit, original.ref):
            return None
        index, number, item = spot
        before = self.leaf_tokens(spot)
        after = self.edit_tokens(edit) if index >= self.read_from else 0
        self._shown.setdefault(index, {})[number, item] = edit
        self._spots[edit.ref] = spot
        self._outdate(index)
        if self._changed is not None and not self.hidden(index):
            self._changed[index] = _changes(self._shown[index])
        if self._tokens[index] < 0:
            self._bound += after - before
        else:
            self._tokens[index] += after - before
            self._counted += 0 if self.hidden(index) else after - before
        return before, after

    def _drop(self, edit: Drop) -> tuple[int, int] | None:
        run = self._run(edit)
        if run is None:
            return None
        before = self.tokens
        for index in range(*run):
            parts = self.transcript.messages[index].parts
            if any(isinstance(part, Reasoning) for part in parts):
                self._silent.add(index)
                self.refresh(index)
        return before, self.tokens

    def _run(self, edit: Span | Drop) -> tuple[int, int] | None:
        """First message of a run and one past its last, or None if it is not here."""
        start, stop = self.transcript.find(edit.after), self.transcript.find(edit.upto)
        if start is None or stop is None or not start <= stop <= self.size:
            return None
        return start, stop

    def _condense(self, edit: Span) -> tuple[int, int] | None:
        run = self._run(edit)
        if run is None:
            return None
        start, stop = run
        if start < self.read_from:
            return None
        before = self.tokens
        if self.span:
            self._counted += self._hidden_tokens() - self._span_tokens
        self.span, self._changed = (start, stop, edit), None
        self._span_tokens = sum(map(self.meter.message, edit.texts))
        self._counted += self._span_tokens - self._hidden_tokens()
        return before, self.tokens

    def _hidden_tokens(self) -> int:
        start, stop, _ = self.span or (0, 0, None)
        standing = self.transcript.standing(start, stop)
        return sum(self._tokens[start:stop]) - sum(self._tokens[index] for index in standing)

    # ── counting ─────────────────────────────────────────────────────────────────────

    def count(self) -> None:
        """Count what has not been counted yet."""
        for index in self._uncounted:
            tokens = self._tokens[index] = self._count(index)
            self._counted += tokens
        self._uncounted.clear()
        self._bound = 0

    def _count(self, index: int) -> int:
        counts = self.leaf_counts(index)
        total = self.meter.framing(self.transcript.messages[index]) + sum(counts)
        shown, silent = self._shown.get(index, _WHOLE), index in self._silent
        if shown or silent:
            leaves = leaves_of(self.transcript.messages[index])
            for (number, item, leaf), tokens in zip(leaves, counts, strict=True):
                if (number, item) in shown:
                    total += self.edit_tokens(shown[number, item]) - tokens
                elif silent and isinstance(leaf, Reasoning):
                    total -= tokens
        if silent and self.transcript.messages[index].only_thought:
            total += self.meter.text(NO_REASONING)
        return total

    def leaf_counts(self, index: int) -> tuple[int, ...]:
        """Tokens of each leaf of a message, unedited, in wire order."""
        counts = self.transcript.counts[index]
        if counts is None:
            leaves = leaves_of(self.transcript.messages[index])
            counts = tuple(self.meter.leaf(leaf) for _, _, leaf in leaves)
            self.transcript.counts[index] = counts
        return counts

    def leaf_tokens(self, spot: Spot) -> int:
        """Tokens of a leaf as it is shown."""
        index, number, item = spot
        if index < self.read_from:
            return 0
        edit = self._shown.get(index, _WHOLE).get((number, item))
        if edit is not None:
            return self.edit_tokens(edit)
        leaves = leaves_of(self.transcript.messages[index])
        for (at, within, _), tokens in zip(leaves, self.leaf_counts(index), strict=True):
            if (at, within) == (number, item):
                return tokens
        return 0

    def edit_tokens(self, edit: Replace) -> int:
        """Tokens of what an edit shows, counted once."""
        tokens = self._edit_tokens.get(edit)
        if tokens is None:
            count = self.meter.arguments if edit.place.kind == "call" else self.meter.text
            tokens = self._edit_tokens[edit] = count(edit.text)
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

    # ── reading ──────────────────────────────────────────────────────────────────────

    @property
    def open_span(self) -> tuple[int, int, Span] | None:
        """The span that a new one must go on from; None where the provider reads none of it."""
        return self.span if self.span is not None and self.span[1] > self.read_from else None

    @property
    def turn_start(self) -> int:
        """Index of the last assistant message: what is after it was never sent before."""
        return self.transcript.turn_start(self.size)

    def hidden(self, index: int) -> bool:
        """Whether the span shown as an account stands in the place of a message."""
        span = self.span
        within = span is not None and span[0] <= index < span[1]
        return within and not self.transcript.messages[index].stands

    @property
    def visible(self) -> list[int]:
        """The messages in whose place no account stands."""
        start, stop, _ = self.span or (0, 0, None)
        standing = self.transcript.standing(start, stop)
        return [*range(start), *standing, *range(stop, self.size)]

    def shown(self, index: int) -> Shown:
        """What replaces the leaves of a message."""
        return self._shown.get(index, _WHOLE)

    @property
    def changed(self) -> Mapping[int, Sequence[tuple[int, int, str]]]:
        """Every edited message outside the span: part, item and new text of each edit."""
        if self._changed is None:
            self._changed = {
                index: _changes(shown)
                for index, shown in self._shown.items()
                if not self.hidden(index)
            }
        return self._changed

    @property
    def silent(self) -> Set[int]:
        """Messages whose reasoning is left out."""
        return self._silent

    def bound_reasoning(self, start: int) -> bool:
        """Whether reasoning bound to what is before it is shown at or after a message."""
        return any(
            self.signed(index) and index not in self._silent and not self.hidden(index)
            for index in range(start, self.size)
        )

    def signed(self, index: int) -> bool:
        """Whether signed reasoning stands by a message, so that its calls must stay as they are.

        It stands in the message itself, or in one of its own of the same reply.
        """
        messages = self.transcript.messages
        return any(
            isinstance(part, Reasoning) and part.bound
            for at in self.transcript.reply(index, self.size)
            if at == index or messages[at].only_thought
            for part in messages[at].parts
        )

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

    def spot_of(self, ref: str) -> Spot | None:
        """The leaf that an edit made so far set aside under this ref."""
        return self._spots.get(ref)

    def results(self, start: int, stop: int) -> Iterator[Spot]:
        """Every item of every visible tool result in a range of messages."""
        for index in range(start, stop):
            if self.hidden(index):
                continue
            for number, part in enumerate(self.transcript.messages[index].parts):
                if isinstance(part, ToolResult):
                    for item in range(len(part.content)):
                        yield index, number, item

    def tool_of(self, spot: Spot) -> str:
        """Name of the tool whose result stands at a spot, or ``""``."""
        call = self.transcript.call_for(spot[0], spot[1])
        return call.name if call else ""


def _changes(shown: Shown) -> list[tuple[int, int, str]]:
    return [(number, item, edit.text) for (number, item), edit in shown.items()]


def _is_of(edit: Replace, ref: str) -> bool:
    """Whether an edit is of the leaf that stands in its place now.

    Of a call the chain vouches for it: clients write the same arguments with other spaces.
    """
    return edit.place.kind == "call" or edit.ref == ref
