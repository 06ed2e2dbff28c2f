"""The window: a history as it is shown at one boundary, counted against its limits.

A window is the fold of the edits made so far over a transcript. It keeps running sums, and so
answers "how much is shown" without a scan. Stages read it and cannot write to it; a
`ullage.history.builder.WindowBuilder` moves it forward. Every token figure comes from here:
trigger, cut and acceptance use one estimator (failure F29).

Counting is put off while a bound decides: the bytes of what is uncounted are an upper bound
of its tokens, so while the bound fits, nothing needs counting (`core-feasibility` §2).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NoReturn

from msgspec import Struct, field

from ullage.history.measures import Measure, Tally, table_of
from ullage.history.shown import ShownHistory
from ullage.history.transcript import Location, Transcript, leaves_of
from ullage.tokens.calibrate import Calibration
from ullage.tokens.meter import Meter
from ullage.values.edits import Replace
from ullage.values.messages import Reasoning, ReasoningRule, ToolResult
from ullage.values.notices import NO_REASONING, Words

__all__ = ["Sums", "Window"]


class Sums(Struct):
    """What is counted so far.

    Attributes:
        tokens: of each message as it is shown; -1 where it is not counted yet.
        counted: of all shown messages that are counted, and of the summaries.
        bound: of all that are not, at most.
        uncounted: which these are.
    """

    tokens: list[int] = field(default_factory=list)
    counted: int = 0
    bound: int = 0
    uncounted: list[int] = field(default_factory=list)


class Window(ShownHistory, frozen=True, eq=False, kw_only=True):
    """A shown history with its token sums and limits. Read-only: writing is an AttributeError.

    Attributes:
        meter: what counts.
        words: the wording of notices.
        limit_tokens: the most the prompt may hold.
        context_tokens: the model's whole context window, prompt and answer together.
        head_tokens: tokens of what stands outside the messages (system text, tools).
        head_texts: the same as text: system text, each tool as JSON, schemas of the answer.
        reported_tokens: what the provider reported for the request at the last boundary, or
            None if nobody told.
        reported_total: the same, and its answer.
        reasoning: what an edit does to the reasoning behind it, for this model.
        thinks_first: an open turn must begin with thinking (manual thinking, A14).
        calibration: what was learned from reported usage so far.
        applied: how many of the first batches under a key of the ledger are shown whole.
    """

    meter: Meter
    words: Words
    calibration: Calibration
    limit_tokens: int = 0
    context_tokens: int = 0
    head_tokens: int = 0
    head_texts: Sequence[str] = ()
    reported_tokens: int | None = None
    reported_total: int | None = None
    reasoning: ReasoningRule = "free"
    thinks_first: bool = False
    applied: Mapping[bytes, int] = field(default_factory=dict)
    _sums: Sums = field(default_factory=Sums)
    _edit_tokens: MutableMapping[Replace, int] = field(default_factory=dict)
    _settled: dict[Any, list[int]] = field(default_factory=dict)
    _tallies: dict[Any, Tally] = field(default_factory=dict)

    def may_cut(self, index: int) -> bool:
        """Whether the history may begin anew here, and the view go on behind a summary."""
        return self.transcript.may_cut(index) and self.may_go_on(index)

    def may_go_on(self, index: int) -> bool:
        """Whether the turn that is left behind a summary begins as it must.

        A tool loop is one turn: where that must begin with thinking, a summary within it goes
        up to a reply that does, or to the end (A14).
        """
        if not self.thinks_first or not self.transcript.in_loop(index, self.size):
            return True
        first = next(iter(self.transcript.messages[index].parts), None)
        return isinstance(first, Reasoning) and index not in self.silent

    # ── counting ─────────────────────────────────────────────────────────────────────

    def count(self) -> None:
        """Count what has not been counted yet."""
        sums = self._sums
        for index in sums.uncounted:
            tokens = sums.tokens[index] = self.count_message(index)
            sums.counted += tokens
        sums.uncounted.clear()
        sums.bound = 0

    def count_message(self, index: int) -> int:
        """Tokens of a message as it is shown, counted anew."""
        counts = self.leaf_counts(index)
        total = self.meter.framing(self.transcript.messages[index]) + sum(counts)
        shown, silent = self.shown(index), index in self.silent
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

    def leaf_tokens(self, spot: Location) -> int:
        """Tokens of a leaf as it is shown."""
        index, number, item = spot
        if index < self.read_from:
            return 0
        edit = self.shown(index).get((number, item))
        if edit is not None:
            return self.edit_tokens(edit)
        return self.leaf_counts(index)[self.transcript.once(_STARTS, index)[number] + item]

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
        return self._sums.tokens[index]

    def texts_tokens(self, texts: Sequence[str]) -> int:
        """Tokens of texts that are shown as a message each."""
        return sum(map(self.meter.message, texts))

    @property
    def summaries_tokens(self) -> int:
        """Tokens of the summaries that the provider still reads."""
        return sum(self.texts_tokens(placed.edit.texts) for placed in self.open_summaries)

    @property
    def tokens(self) -> int:
        """Uncalibrated tokens of the whole view: head and messages."""
        self.count()
        return self.head_tokens + self._sums.counted

    @property
    def estimate(self) -> int:
        """Calibrated tokens of the whole view: what the provider would report."""
        return self.calibration.apply(self.tokens)

    def within(self, limit_tokens: int, *, surely: bool = False) -> bool:
        """Whether the view fits a limit; ``surely`` asks it of the upper bound (F58)."""
        apply = self.calibration.upper if surely else self.calibration.apply
        sums = self._sums
        if sums.uncounted and apply(self.head_tokens + sums.counted + sums.bound) <= limit_tokens:
            return True
        return apply(self.tokens) <= limit_tokens

    # ── measures ─────────────────────────────────────────────────────────────────────

    def tally(self, measure: Measure[int]) -> Tally:
        """A sum over the messages taken in, worked out for new and newly edited ones only.

        Args:
            measure: what a message adds, as it is shown; one behind a summary adds nothing.

        Raises:
            ConfigError: it is a plain function. A `Measure` gives it a name.
        """
        make = partial(Tally, partial(self._measured, measure))
        return table_of(self._tallies, measure, make).to(self.size)

    def total(self, measure: Measure[int]) -> int:
        """Such a sum, as one number."""
        return self.tally(measure).sum

    def _measured(self, measure: Measure[int], index: int) -> int:
        return 0 if index in self._hidden else measure(self, index)

    def settled_to(self, stop: int, is_settled: Measure[bool]) -> int:
        """The first message below ``stop`` of which that does not hold; once settled, for ever.

        So a stage that looks for old outputs begins here: its work is proportional to what is
        new.
        """
        at = table_of(self._settled, is_settled, lambda: [0])
        while at[0] < stop and is_settled(self, at[0]):
            at[0] += 1
        return min(at[0], stop)


def _starts(transcript: Transcript, index: int) -> tuple[int, ...]:
    """How many leaves of a message stand before each of its parts."""
    parts = transcript.messages[index].parts
    sizes = (len(part.content) if isinstance(part, ToolResult) else 1 for part in parts)
    return tuple(accumulate(sizes, initial=0))


_STARTS = Measure("ullage.starts", _starts)


def _refuse(window: Window, name: str, *_: object) -> NoReturn:
    raise AttributeError(
        f"{name!r} of a {type(window).__name__} cannot be written: a stage reads the window and "
        "returns cuts. Return Cut(Replace(…), …), Cut(Summary(…), …) or Cut(Drop(…), …) instead."
    )


Window.__setattr__ = Window.__delattr__ = _refuse  # type: ignore[assignment,method-assign]
