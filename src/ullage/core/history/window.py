"""The window: a history as it is shown at one boundary, counted against its limits.

It is the fold of the edits made so far over a transcript, with running sums. Stages read it; a
`ullage.core.history.builder.WindowBuilder` moves it forward. Every token figure comes from here:
trigger, cut and acceptance use one estimator (failure F29). Nothing is counted while the bytes
of what is uncounted, an upper bound of its tokens, fit.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Hashable,
    Mapping,
    MutableMapping,
    Sequence,
    Set,
)
from functools import partial
from typing import Any, NoReturn, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr

from ullage.core.history.measures import Measure, Tally, table_of
from ullage.core.history.remembered import REMEMBERED
from ullage.core.history.shown import ShownHistory
from ullage.core.history.transcript import Location, leaves_of
from ullage.core.tokens.calibrate import Calibration
from ullage.core.tokens.meter import Meter
from ullage.core.values.edits import Replace
from ullage.core.values.messages import (
    Reasoning,
    ReasoningRule,
    Text,
    ToolCall,
)
from ullage.core.values.notices import NO_REASONING, Words

T = TypeVar("T")
_WORTH_CHARS = 2_000
"""Counting a shorter text is not worth remembering."""


class TokenSums(Struct):
    """What is counted so far.

    Attributes:
        tokens: of each message as it is shown; where it is not counted yet, ``~`` of the most it
            can have.
        counted: of all shown messages that are counted, and of the summaries.
        bound: of all that are not, at most.
        uncounted: which these are. The list grows, and is replaced when they are counted: what was
            frozen holds the earlier one.
        touched: the messages whose tokens were written since the window was frozen last.
    """

    tokens: list[int] = field(default_factory=list)
    counted: int = 0
    bound: int = 0
    uncounted: list[int] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)

    def copy(self) -> TokenSums:
        """The same sums, to go on by themselves."""
        uncounted = self.uncounted.copy()
        touched = self.touched.copy()
        return TokenSums(
            self.tokens.copy(), self.counted, self.bound, uncounted, touched
        )


class Window(ShownHistory, frozen=True, eq=False, kw_only=True):
    """A shown history with its token sums and limits. Read-only: writing is an AttributeError.

    The working window of a session moves on with every turn, and is read and written under the
    session's lock alone. A frozen one (`ullage.core.history.frozen`) stays as it is: that is what
    `Session.window` gives, and any thread may read it.

    Attributes:
        meter: what counts.
        words: the wording of notices.
        limit_tokens: the most the prompt may hold.
        context_tokens: the model's whole context window, prompt and answer together.
        head_tokens: tokens of what is outside the messages (system text, tools).
        head_texts: the same as text: system text, each tool as JSON, schemas of the answer.
        reported_tokens: what the provider reported for the request at the last boundary, or
            None without a report.
        reported_total: the same, and its answer.
        reasoning: what an edit does to the reasoning behind it, for this model.
        thinks_first: an open turn must begin with thinking (manual thinking, A14).
        calibration: what was learned from reported usage so far.
        calibrated_at: how many messages there were when that was last reported.
        applied: how many of the first batches under a key of the ledger are shown whole.
        replaced_later: leaves that the ledger replaces before anything is decided again, so that
            nobody sees how they look on arrival.
    """

    meter: Meter
    words: Words
    calibration: Calibration
    calibrated_at: int = 0
    limit_tokens: int = 0
    context_tokens: int = 0
    head_tokens: int = 0
    head_texts: Sequence[str] = ()
    reported_tokens: int | None = None
    reported_total: int | None = None
    reasoning: ReasoningRule = "free"
    thinks_first: bool = False
    applied: Mapping[bytes, int] = field(default_factory=dict)
    replaced_later: Set[Location] = frozenset()
    _sums: TokenSums = field(default_factory=TokenSums)
    _edit_tokens: MutableMapping[Replace, int] = field(default_factory=dict)
    _settled: dict[Any, list[int]] = field(default_factory=dict)
    _tallies: dict[Any, Tally] = field(default_factory=dict)
    _is_frozen: bool = False

    def may_cut(self, index: int) -> bool:
        """Whether the history may begin again here, and the view go on behind a summary."""
        return self.transcript.may_cut(index) and self.may_go_on(index)

    def may_go_on(self, index: int) -> bool:
        """Whether the turn that is left behind a summary begins as it must.

        A tool loop is one turn: where that must begin with thinking, a summary within it goes
        up to a reply that does, or to the end (A14).
        """
        if not self.thinks_first:
            return True
        if self.transcript.marked("asks", index, self.size):
            return True
        return self.thinks(index)

    def thinks(self, index: int) -> bool:
        """Whether a message shows the reasoning it came with."""
        if index in self.reasoning_dropped:
            return False
        parts = self.transcript.messages[index].parts
        return any(isinstance(part, Reasoning) for part in parts)

    def is_recall(self, location: Location) -> bool:
        """Whether a leaf belongs to a call of a recall tool: its arguments, or what it gave."""
        index, number, _ = location
        part = self.transcript.messages[index].parts[number]
        if isinstance(part, ToolCall):
            return self.words.is_recall(part.name, index)
        call = self.transcript.call_for(index, number)
        if call is None:
            return False
        call_index: int | None = index
        # where a tool was called matters once ours had other names
        if self.words.former:
            call_index = self.transcript.call_index(index, number)
        return self.words.is_recall(call.name, call_index)

    # ── counting ─────────────────────────────────────────────────────────────────────

    def count(self) -> None:
        """Count what has not been counted yet."""
        sums = self._sums
        if not sums.uncounted:
            return
        if self._is_frozen:
            sums = sums.copy()
        self._count_into(sums)
        if self._is_frozen:
            # at once: another thread may be reading
            force_setattr(self, "_sums", sums)

    def _count_into(self, sums: TokenSums) -> None:
        for index in sums.uncounted:
            # else an interrupted call came as far as this, or it is hidden by now
            if sums.tokens[index] < 0 and not self._hidden[index]:
                tokens = self.count_message(index)
                sums.tokens[index] = tokens
                sums.counted += tokens
        sums.touched.update(sums.uncounted)
        sums.uncounted = []
        sums.bound = 0

    def count_message(self, index: int) -> int:
        """Tokens of a message as it is shown; what no model is shown of it is not counted."""
        message = self.transcript.messages[index]
        is_dropped = index in self.reasoning_dropped
        total = self.meter.framing(message)
        for number, item, leaf in leaves_of(message):
            if is_dropped and isinstance(leaf, Reasoning):
                continue
            total += self.leaf_tokens((index, number, item))
        if is_dropped and message.only_thought:
            total += self.meter.text(NO_REASONING)
        return total

    def leaf_counts(self, index: int) -> tuple[int, ...]:
        """Tokens of each leaf of a message, unedited, in wire order."""
        counts = list[int]()
        for number, item, _ in leaves_of(self.transcript.messages[index]):
            counts.append(self._unedited_tokens((index, number, item)))
        return tuple(counts)

    def leaf_tokens(self, location: Location) -> int:
        """Tokens of a leaf as it is shown."""
        if location[0] < self.read_from:
            return 0
        edit = self.edit_at(location)
        return (
            self._unedited_tokens(location)
            if edit is None
            else self.edit_tokens(edit)
        )

    def _unedited_tokens(self, location: Location) -> int:
        """Tokens of a leaf, unedited, counted once; a long text once in this process."""
        tokens = self.transcript.counts.get(location)
        if tokens is None:
            tokens = self._count(location)
            self.transcript.counts[location] = tokens
        return tokens

    def _count(self, location: Location) -> int:
        transcript = self.transcript
        index, number, _ = location
        leaf = transcript.original(location)
        if leaf is None or transcript.reader(index, number) == "program":
            return 0
        # nothing of a secret may be remembered
        has_secret = index in transcript.originals
        if has_secret or not isinstance(leaf, (Text, ToolCall)):
            return self.meter.leaf(leaf)
        text = leaf.arguments if isinstance(leaf, ToolCall) else leaf.text
        if len(text) < _WORTH_CHARS:
            return self.meter.leaf(leaf)
        content = (type(leaf), len(text), hash(text))
        return self._remembered(content, self.meter.leaf, leaf)

    def edit_tokens(self, edit: Replace) -> int:
        """Tokens of what an edit shows, counted once."""
        tokens = self._edit_tokens.get(edit)
        if tokens is None:
            text = edit.text
            is_call = edit.address.kind == "call"
            count = self.meter.arguments if is_call else self.meter.text
            tokens = self._remembered((is_call, text), count, text, len(text))
            self._edit_tokens[edit] = tokens
        return tokens

    def _remembered(
        self,
        content: Hashable,
        count: Callable[[T], int],
        counted: T,
        chars: int = 0,
    ) -> int:
        """What this process counted before for a content, for this model and tenant."""
        key = self.transcript.chain[0], self.meter.counts_as, content
        tokens: int | None = REMEMBERED.get(key)
        if tokens is None:
            tokens = count(counted)
            REMEMBERED.put(key, tokens, chars)
        return tokens

    def leaf_bound(self, location: Location) -> int:
        """An upper bound of the tokens of a leaf as it is shown, found without counting."""
        edit = self.edit_at(location)
        if edit is not None:
            return self.meter.counter.bound(edit.text)
        leaf = self.transcript.original(location)
        return 0 if leaf is None else self.meter.leaf_bound(leaf)

    def message_bound(self, index: int) -> int:
        """An upper bound of the tokens of a message as it came, found without counting."""
        transcript = self.transcript
        message = transcript.originals.get(index, transcript.messages[index])
        if not transcript.has_program(index):
            return self.meter.bound(message)
        bound = self.meter.framing(message)
        for number, _, leaf in leaves_of(message):
            if transcript.reader(index, number) == "model":
                bound += self.meter.leaf_bound(leaf)
        return bound

    def message_tokens(self, index: int) -> int:
        """Tokens of a message as it is shown, its framing included."""
        self.count()
        tokens = self._sums.tokens[index]
        if tokens < 0:  # a hidden message, which no sum holds
            tokens = self.count_message(index)
            if not self._is_frozen:
                self._sums.tokens[index] = tokens
                self._sums.touched.add(index)
        return tokens

    def tokens_from(self, start: int) -> int:
        """Tokens of the messages from an index on, as they are shown; of no summary."""
        self.count()
        tokens = self._sums.tokens
        return sum(
            [tokens[index] for index in self.visible_in(start, self.size)]
        )

    def texts_tokens(self, texts: Sequence[str]) -> int:
        """Tokens of texts that are shown as a message each."""
        count = self.meter.message
        total = 0
        for text in texts:
            total += self._remembered(
                ("message", text), count, text, len(text)
            )
        return total

    @property
    def summaries_tokens(self) -> int:
        """Tokens of the summaries that the provider still reads."""
        return sum(
            self.texts_tokens(placed.edit.texts)
            for placed in self.open_summaries
        )

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
        if sums.uncounted:
            bound = self.head_tokens + sums.counted + sums.bound
            if apply(bound) <= limit_tokens:
                return True
        return apply(self.tokens) <= limit_tokens

    # ── measures ─────────────────────────────────────────────────────────────────────

    def tally(
        self, measure: Measure[int], *, with_hidden: bool = False
    ) -> Tally:
        """A sum over the messages taken in, worked out for new and newly edited ones only.

        Args:
            measure: what a message adds, as it is shown; one behind a summary adds nothing.
            with_hidden: one behind a summary adds something too; the same at each call.

        Raises:
            ConfigError: it is a plain function. A `Measure` gives it a name.
        """
        # a tally is worked on in place, so a frozen window begins its own
        tallies = {} if self._is_frozen else self._tallies
        tally = table_of(tallies, measure, lambda: Tally(measure))
        if with_hidden:
            return tally.to(self.size, partial(measure, self))
        return tally.to(self.size, partial(self._added, measure))

    def total(self, measure: Measure[int]) -> int:
        """Such a sum, as one number."""
        return self.tally(measure).sum

    def _added(self, measure: Measure[int], index: int) -> int:
        return 0 if self._hidden[index] else measure(self, index)

    def settled_to(self, stop: int, is_settled: Measure[bool]) -> int:
        """The first message below ``stop`` of which that does not hold; where it holds, for ever.

        A stage that looks for old outputs begins here: its work is proportional to what is new.
        """
        settled = {} if self._is_frozen else self._settled
        reached = table_of(settled, is_settled, lambda: [0])
        while reached[0] < stop and is_settled(self, reached[0]):
            reached[0] += 1
        return min(reached[0], stop)


def _refuse(window: Window, name: str, *_: object) -> NoReturn:
    raise AttributeError(
        f"{name!r} of a {type(window).__name__} cannot be written: a stage reads the window and "
        "returns what it proposes: ProposedEdit(Replace(…), …), with a ReplaceSpan(…) or with a "
        "Drop(…)."
    )


Window.__setattr__ = Window.__delattr__ = _refuse  # type: ignore[assignment,method-assign]
