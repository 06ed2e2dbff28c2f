"""What moves a window forward: takes messages in, shows edits, sets the limits of a request.

Only the engine and the turn hold one; what stages are given is its ``window``.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial
from typing import Any

from msgspec.structs import force_setattr

from ullage.history.measures import Tally
from ullage.history.shown import Placed
from ullage.history.transcript import Location, Transcript
from ullage.history.window import Sums, Window
from ullage.tokens.calibrate import Calibration
from ullage.tokens.meter import Meter
from ullage.values.edits import Drop, Edit, Replace, Summary
from ullage.values.messages import ReasoningRule
from ullage.values.notices import Words

__all__ = ["PAST", "WindowBuilder"]

PAST = 3
"""How many boundaries back a history may fork without being walked again from its beginning."""
_FIGURES = (
    "size",
    "fresh",
    "read_from",
    "summaries",
    "calibration",
    "limit_tokens",
    "context_tokens",
    "head_tokens",
    "head_texts",
    "reported_tokens",
    "reported_total",
    "reasoning",
    "thinks_first",
    "replaced_later",
)


class WindowBuilder:
    """The one that may write to a window.

    Args:
        transcript: the history behind it.
        meter: what counts.
        words: the wording of notices.

    Attributes:
        window: the window, read-only.
        applied: see `Window.applied`.
        stale: of each batch behind which reasoning stayed though it was bound to what the batch
            edited: the first message edited, and where the history ended then.
        past: how it was at the last boundaries, oldest first (`keep_past`).
    """

    def __init__(self, transcript: Transcript, meter: Meter, words: Words) -> None:
        self.applied: dict[bytes, int] = {}
        self.stale: list[tuple[int, int]] = []
        self._changed: dict[int, Sequence[tuple[int, int, str]]] = {}
        self._shown: dict[int, dict[tuple[int, int], Replace]] = {}
        self._spots: dict[str, Location] = {}
        self._silent: set[int] = set()
        self._hidden: set[int] = set()
        self._sums = Sums()
        self._tallies: dict[Any, Tally] = {}
        self._settled: dict[Any, list[int]] = {}
        self._edit_tokens: dict[Replace, int] = {}
        self.past: tuple[WindowBuilder, ...] = ()
        self.window = Window(
            transcript=transcript,
            meter=meter,
            words=words,
            calibration=Calibration(exact=meter.counter.exact),
            applied=self.applied,
            changed=self._changed,
            silent=self._silent,
            _shown=self._shown,
            _spots=self._spots,
            _hidden=self._hidden,
            _sums=self._sums,
            _tallies=self._tallies,
            _settled=self._settled,
            _edit_tokens=self._edit_tokens,
        )

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            force_setattr(self.window, name, value)

    # ── earlier states ───────────────────────────────────────────────────────────────

    def keep_past(self) -> None:
        """Keep how the view is now, for a history that goes on otherwise from here (`behind`)."""
        self.past = (*self.past, self._copy(self.window.transcript))[-PAST:]

    def outdate_past(self, key: bytes) -> None:
        """Forget earlier states that went past this key: the ledger holds more there now."""
        place = self.window.transcript.find(key) or 0
        self.past = tuple(past for past in self.past if past.window.size < place)

    def behind(self, transcript: Transcript) -> WindowBuilder | None:
        """What shows another transcript, as this was kept last within what the two share.

        Args:
            transcript: what the two share and nothing else.
        """
        kept = [past for past in self.past if past.window.size <= len(transcript)]
        if not kept:
            return None
        other = kept.pop()._copy(transcript)
        other.past = tuple(kept)
        return other

    def _copy(self, transcript: Transcript) -> WindowBuilder:
        """The same state, apart; only what is cached of edits is shared."""
        window = self.window
        other = WindowBuilder(transcript, window.meter, window.words)
        other._set(**{name: getattr(window, name) for name in _FIGURES})
        other._set(_edit_tokens=self._edit_tokens)
        other._edit_tokens = self._edit_tokens
        for name in ("applied", "_changed", "_shown", "_spots", "_silent", "_hidden"):
            getattr(other, name).update(getattr(self, name))
        other.stale += self.stale
        sums, copied = self._sums, other._sums
        copied.tokens, copied.uncounted = [*sums.tokens], [*sums.uncounted]
        copied.counted, copied.bound = sums.counted, sums.bound
        other._settled.update({key: [*at] for key, at in self._settled.items()})
        for key, tally in self._tallies.items():
            if tally.measure is not None:
                other._tallies[key] = tally.copy(partial(other.window.added, tally.measure))
        return other

    # ── the request at hand ──────────────────────────────────────────────────────────

    def limit(
        self,
        limit_tokens: int,
        context_tokens: int,
        head_tokens: int = 0,
        head_texts: Sequence[str] = (),
    ) -> None:
        """Set what the view may hold, and what stands outside its messages. See `Window`."""
        self._set(limit_tokens=limit_tokens, context_tokens=context_tokens)
        self._set(head_tokens=head_tokens, head_texts=head_texts)

    def reason(self, reasoning: ReasoningRule, *, thinks_first: bool) -> None:
        """Set what the model and the request ask of reasoning. See `Window`."""
        self._set(reasoning=reasoning, thinks_first=thinks_first)

    def report(self, tokens: int | None, total: int | None, calibration: Calibration) -> None:
        """Set what the provider reported, and what was learned from it. See `Window`."""
        self._set(reported_tokens=tokens, reported_total=total, calibration=calibration)

    # ── growing ──────────────────────────────────────────────────────────────────────

    def extend(self, length: int) -> None:
        """Take in the transcript's messages up to ``length``; they become the fresh ones.

        What is new is counted when it must be.
        """
        window, sums = self.window, self._sums
        messages = window.transcript.messages
        new = range(window.size, length)
        superseding = [index for index in new if messages[index].supersedes]
        if superseding:
            self._set(read_from=superseding[-1])
            self._unread()
        self._set(fresh=window.size, size=length)
        for index in range(len(sums.tokens), length):
            sums.tokens.append(-1)
            sums.uncounted.append(index)
            sums.bound += window.meter.bound(messages[index])

    def _unread(self) -> None:
        """What the provider does not read any more is shown, and costs nothing."""
        sums = self._sums
        sums.tokens = [0] * self.window.read_from
        sums.counted = sums.bound = 0
        sums.uncounted.clear()
        self._tallies.clear()

    def refresh(self, index: int) -> None:
        """A message was worded anew by the caller (same digest): count it again."""
        self._outdate(index)
        for past in self.past:
            past.refresh(index)
        window, sums = self.window, self._sums
        read = window.read_from <= index < window.size
        if read and sums.tokens[index] >= 0:
            before = sums.tokens[index]
            sums.tokens[index] = window.count_message(index)
            if index not in self._hidden:
                sums.counted += sums.tokens[index] - before

    def look_from(self, index: int) -> None:
        """Have the messages from here on count as the fresh ones."""
        self._set(fresh=index)

    def replace_later(self, spots: Set[Location]) -> None:
        """Set which leaves nobody will see as they look at first sight. See `Window`."""
        self._set(replaced_later=spots)

    def _outdate(self, index: int) -> None:
        for tally in self._tallies.values():
            tally.outdate(index)

    # ── edits ────────────────────────────────────────────────────────────────────────

    def apply(self, edit: Edit) -> tuple[int, int] | None:
        """Show an edit. Returns tokens of its place before and after; None if it is void."""
        window = self.window
        if not isinstance(edit, Replace):
            before = window.tokens
            return (before, window.tokens) if self.show(edit) else None
        spot = window.spot_for(edit, window.size)
        before = 0 if spot is None else window.leaf_tokens(spot)
        return (before, window.leaf_tokens(spot)) if spot and self.show(edit) else None

    def show(self, edit: Edit) -> bool:
        """Show an edit, and count nothing for it that need not be. Returns whether it took effect.

        An edit is void where the history no longer holds what it replaces, where its place is
        not shown, and, of a summary, where it would part another one or stand within it.
        """
        if isinstance(edit, Summary):
            return self._summarise(edit)
        return self._drop(edit) if isinstance(edit, Drop) else self._replace(edit)

    def _replace(self, edit: Replace) -> bool:
        window, sums = self.window, self._sums
        spot = window.spot_for(edit, window.size)
        if spot is None:
            return False
        index, uncounted = spot[0], sums.tokens[spot[0]] < 0
        tokens = window.leaf_bound if uncounted else window.leaf_tokens
        won = tokens(spot)
        shown = self._shown[index] = {**window.shown(index), spot[1:]: edit}
        self._spots[edit.ref] = spot
        if index not in self._hidden:
            self._changed[index] = [(*leaf, each.text) for leaf, each in shown.items()]
        won -= tokens(spot)
        self._outdate(index)
        if uncounted:
            sums.bound -= won
        else:
            sums.tokens[index] -= won
            sums.counted -= 0 if index in self._hidden else won
        return True

    def _drop(self, edit: Drop) -> bool:
        """Leave out the reasoning of a range of messages."""
        around = self.window.range_of(edit)
        thoughts = self.window.thoughts(*around) if around else []
        self._silent.update(thoughts)
        for index in thoughts:
            self.refresh(index)
        return around is not None

    def _summarise(self, edit: Summary) -> bool:
        """Show a summary in place of a range of messages, and of the summaries it covers."""
        window, sums = self.window, self._sums
        around = window.range_of(edit)
        if around is None or around[0] < window.read_from or not window.may_summarise(*around):
            return False
        window.count()
        start, stop = around
        others = [each for each in window.summaries if not start <= each.start < stop]
        gone = [each for each in window.summaries if start <= each.start < stop]
        pinned = set(window.transcript.standing(start, stop))
        for index in range(start, stop):
            if index not in self._hidden and index not in pinned:
                sums.counted -= sums.tokens[index]
                self._hidden.add(index)
                self._changed.pop(index, None)
                self._outdate(index)
        sums.counted += window.texts_tokens(edit.texts)
        sums.counted -= sum(window.texts_tokens(each.edit.texts) for each in gone)
        self._set(summaries=tuple(sorted([*others, Placed(start, stop, edit)], key=_start)))
        return True


def _start(placed: Placed) -> int:
    return placed.start
