"""What moves a window forward: takes messages in, shows edits, sets the limits of a request.

Only the engine and the turn hold one; what stages are given is its ``window``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import cast

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from ullage.core.history.again import ShownAgain
from ullage.core.history.frozen import Changes, FrozenWindow, Parts
from ullage.core.history.hand import Pins
from ullage.core.history.shown import HIDDEN, Placed
from ullage.core.history.transcript import Location, Transcript
from ullage.core.history.window import Window
from ullage.core.tokens.calibrate import Calibration
from ullage.core.tokens.meter import Meter
from ullage.core.values.edits import (
    Drop,
    Edit,
    Insert,
    Replace,
    ReplaceSpan,
    Restore,
)
from ullage.core.values.messages import Reasoning, ReasoningRule
from ullage.core.values.notices import Words

PAST = 3
"""How many boundaries back a history may fork without being walked again from its beginning."""
_GROWING = (
    "applied",
    "changed",
    "reasoning_dropped",
    "_hidden",
    "_shown",
    "_locations",
    "_sums",
)
"""What of a window is written to in place."""


class CarryingCost(Struct, frozen=True):
    """What the requests up to a boundary carried in vain while a conversation waits.

    Attributes:
        length: how many messages there were.
        freed: characters that would have been cut of these.
        chars: characters of all of these.
        cost: the sum of what each request carried in vain.
        most_won: the most that the cost was over its price, without what stands around the
            messages; None: there was nothing to cut.
    """

    length: int = 0
    freed: int = 0
    chars: int = 0
    cost: int = 0
    most_won: float | None = None


def _edited_between(past: Window, later: Window) -> Iterator[int]:
    """The messages that a later state of a window shows otherwise."""
    flags = zip(past._hidden, later._hidden, strict=False)
    for index, (past_flag, later_flag) in enumerate(flags):
        if past_flag != later_flag:
            yield index
    yield from past.reasoning_dropped ^ later.reasoning_dropped
    for index in {**past._shown, **later._shown}:
        if later._shown.get(index) is not past._shown.get(index):
            yield index


class WindowBuilder(ShownAgain):
    """The one that may write to a window.

    Args:
        transcript: the history behind it.
        meter: what counts.
        words: the wording of notices.

    Attributes:
        window: the window, read-only.
        stale: of each batch behind which reasoning stayed though it was bound to what the batch
            edited: the first message edited, and where the history ended then.
        past: how it was at the last boundaries, oldest first (`keep_past`).
        excess: characters of each message that would be cut on arrival, were recall tools
            offered (`ullage.core.turn.joining`).
        carried: what the requests so far carried of them.
    """

    _parts: Parts
    _changes: Changes

    def __init__(
        self, transcript: Transcript, meter: Meter, words: Words
    ) -> None:
        calibration = Calibration(exact=meter.counter.exact)
        window = Window(
            transcript=transcript,
            meter=meter,
            words=words,
            calibration=calibration,
        )
        self._hold(window, [])
        self._parts = Parts()
        self._changes = Changes()

    def _hold(self, window: Window, stale: list[tuple[int, int]]) -> None:
        self.window = window
        self.stale = stale
        self.past: tuple[WindowBuilder, ...] = ()
        self.excess: dict[int, int] = {}
        self.carried = CarryingCost()
        self._applied = cast("dict[bytes, int]", window.applied)
        self._changed = cast(
            "dict[int, Sequence[tuple[int, int, str]]]", window.changed
        )
        self._reasoning_dropped = cast("set[int]", window.reasoning_dropped)

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            force_setattr(self.window, name, value)

    # ── snapshots ────────────────────────────────────────────────────────────────────

    def freeze(self) -> FrozenWindow:
        """The window as it is now, for whoever reads it while this one moves on.

        It takes time proportional to what was written since the last time.
        """
        self._fold_changes()
        self.window.transcript.share()
        return FrozenWindow(self.window, self._parts)

    def _fold_changes(self) -> None:
        """Take what was written since the window was frozen last into its parts."""
        self._parts = self._parts.after(self.window, self._changes)
        self._changes = Changes()
        self.window._sums.touched = set()

    # ── earlier states ───────────────────────────────────────────────────────────────

    def keep_past(self) -> None:
        """Keep how the view is now, for a history that goes on otherwise from here (`behind`)."""
        state = self._copy(self.window.transcript)
        self.past = (*self.past, state)[-PAST:]

    def invalidate_past(self, key: bytes) -> None:
        """Forget earlier states that went past this key: the ledger holds more there now."""
        length = self.window.transcript.find(key) or 0
        self.past = tuple(
            past for past in self.past if past.window.size < length
        )

    def behind(self, transcript: Transcript) -> WindowBuilder | None:
        """What shows another transcript, as this was kept last within what the two share.

        Args:
            transcript: what the two share and nothing else.
        """
        length = len(transcript)
        states = [past for past in self.past if past.window.size <= length]
        if not states:
            return None
        past = states.pop()
        later = self.window
        if past.window._sums.uncounted[:1] != later._sums.uncounted[:1]:
            past.window.count()  # it will be asked of each history that forks here
        fork = past._copy(transcript)
        fork.past = tuple(states)
        if past.window.read_from == later.read_from:
            edited = {*_edited_between(past.window, later)}
            for key, tally in later._tallies.items():
                fork.window._tallies[key] = tally.upto(
                    past.window.size, edited
                )
        return fork

    def _copy(self, transcript: Transcript) -> WindowBuilder:
        """The same state, apart, without tallies; only what is cached of edits is shared."""
        self._fold_changes()
        source = self.window
        fields: dict[str, object] = {}
        for name in _GROWING:
            fields[name] = getattr(source, name).copy()
        settled = {key: [*reached] for key, reached in source._settled.items()}
        fields.update(arrived={}, _settled=settled, _tallies={})
        twin = WindowBuilder.__new__(WindowBuilder)
        twin._hold(
            replace(source, transcript=transcript, **fields), [*self.stale]
        )
        twin._parts = self._parts
        twin._changes = Changes()
        twin.excess = self.excess.copy()
        twin.carried = self.carried
        return twin

    # ── the request at hand ──────────────────────────────────────────────────────────

    def limit(
        self,
        limit_tokens: int,
        context_tokens: int,
        head_tokens: int = 0,
        head_texts: Sequence[str] = (),
    ) -> None:
        """Set what the view may hold, and what is outside its messages. See `Window`."""
        self._set(limit_tokens=limit_tokens, context_tokens=context_tokens)
        self._set(head_tokens=head_tokens, head_texts=head_texts)

    def reason(self, reasoning: ReasoningRule, *, thinks_first: bool) -> None:
        """Set what the model and the request ask of reasoning. See `Window`."""
        self._set(reasoning=reasoning, thinks_first=thinks_first)

    def report(
        self, tokens: int | None, total: int | None, calibration: Calibration
    ) -> None:
        """Set what the provider reported, and what was learned from it. See `Window`."""
        if calibration is not self.window.calibration:
            self._set(calibrated_at=self.window.size)
        self._set(
            reported_tokens=tokens,
            reported_total=total,
            calibration=calibration,
        )

    def removed(self, tokens: int) -> None:
        """Set how much of what was reported last has been taken out since (`Calibration`)."""
        self._set(calibration=self.window.calibration.without(tokens))

    # ── growing ──────────────────────────────────────────────────────────────────────

    def extend(self, length: int) -> None:
        """Take in the transcript's messages up to ``length``; they become the fresh ones.

        What is new is counted when it must be.
        """
        window = self.window
        sums = window._sums
        messages = window.transcript.messages
        for index in range(length - 1, window.size - 1, -1):
            if messages[index].supersedes:
                self._read_from(index)
                break
        self._set(fresh=window.size, size=length)
        window._hidden.extend(bytes(length - len(window._hidden)))
        for index in range(len(sums.tokens), length):
            bound = window.message_bound(index)
            sums.tokens.append(~bound)
            sums.touched.add(index)
            sums.uncounted.append(index)
            sums.bound += bound

    def _read_from(self, index: int) -> None:
        """The provider reads nothing before this message: that is shown, and costs nothing."""
        sums = self.window._sums
        self._set(read_from=index)
        sums.tokens = [0] * index
        sums.counted = 0
        sums.bound = 0
        sums.uncounted = []
        sums.touched.update(range(index))
        self.window._tallies.clear()

    def refresh(self, index: int) -> None:
        """A message was worded again by the caller (same digest): count it again."""
        self._invalidate(index)
        self.carried = CarryingCost()
        for past in self.past:
            past.refresh(index)
        window = self.window
        sums = window._sums
        is_read = window.read_from <= index < window.size
        if not is_read or sums.tokens[index] < 0:
            return
        tokens = window.count_message(index)
        if not window._hidden[index]:
            sums.counted += tokens - sums.tokens[index]
        sums.tokens[index] = tokens
        sums.touched.add(index)

    def look_from(self, index: int) -> None:
        """Have the messages from here on count as the fresh ones."""
        self._set(fresh=index)

    def arrive(self, arrived: Mapping[int, int]) -> None:
        """Set which messages are newer than their place. See `ShownHistory`."""
        self._set(arrived=arrived)

    def hold_back(self, *, holds_back: bool) -> None:
        """Set whether what would have to stay may be hidden. See `ShownHistory`."""
        self._set(holds_back=holds_back)

    def pin(self, pins: Pins) -> None:
        """Set what a user wants to stay. See `ShownHistory`."""
        self._set(pins=pins)

    def replace_later(self, spots: Set[Location]) -> None:
        """Set which leaves nobody will see as they look on arrival. See `Window`."""
        self._set(replaced_later=spots)

    def apply_batches(self, key: bytes, count: int) -> None:
        """Set how many of the first batches under a key are shown whole. See `Window.applied`."""
        self._applied[key] = count
        self._changes.applied[key] = count

    def _invalidate(self, index: int) -> None:
        for tally in self.window._tallies.values():
            tally.invalidate(index)

    # ── edits ────────────────────────────────────────────────────────────────────────

    def apply(self, edit: Edit) -> tuple[int, int] | None:
        """Show an edit. Returns tokens before and after; None if it is void.

        They are those of the text that it replaces; of an edit of whole messages, those of the
        view, as it is compared with a limit.
        """
        window = self.window
        if not isinstance(edit, Replace):
            view_tokens = window.estimate
            return (view_tokens, window.estimate) if self.show(edit) else None
        location = window.location_for(edit, window.size)
        if location is None:
            return None
        tokens = window.leaf_tokens(location)
        if not self.show(edit):
            return None
        return tokens, window.leaf_tokens(location)

    def show(self, edit: Edit) -> bool:
        """Show an edit, and count nothing for it that need not be. Returns whether it took effect.

        An edit is void where the history no longer holds what it replaces, where its place is
        not shown, and, of a summary, where it would part another one or stand within it.
        """
        match edit:
            case ReplaceSpan():
                return self._summarise(edit)
            case Drop():
                return self._drop(edit)
            case Restore():
                return self._show_whole(edit)
            case Insert():
                return self._add(edit)
            case Replace():
                return self._replace(edit)

    def _replace(self, edit: Replace) -> bool:
        window = self.window
        location = window.location_for(edit, window.size)
        if location is None:
            return False
        self._show_at(location, edit)
        window._locations[edit.ref] = location
        self._changes.locations[edit.ref] = location
        if window.lifted:
            lifted = (
                earlier for earlier in window.lifted if earlier is not edit
            )
            self._set(lifted=tuple(lifted))
        return True

    def _show_at(self, location: Location, edit: Replace | None) -> None:
        """Show an edit at a leaf, or the leaf itself, and bring the sums up to date."""
        window = self.window
        sums = window._sums
        index = location[0]
        is_counted = sums.tokens[index] >= 0
        tokens_of = window.leaf_tokens if is_counted else window.leaf_bound
        won = tokens_of(location)
        edits = {**window.shown(index)}
        if edit is None:
            edits.pop(location[1:], None)
        else:
            edits[location[1:]] = edit
        window._shown[index] = edits
        self._note_edited(index)
        won -= tokens_of(location)
        self._invalidate(index)
        sums.touched.add(index)
        is_visible = not window._hidden[index]
        if is_counted:
            sums.tokens[index] -= won
            sums.counted -= won if is_visible else 0
        else:  # what is not counted is stored as ``~`` of its bound
            sums.tokens[index] += won
            sums.bound -= won if is_visible else 0

    def _note_edited(self, index: int) -> None:
        """Bring `ShownHistory.changed` up to date for a message."""
        window = self.window
        edits = window._shown.get(index)
        self._changes.edited.add(index)
        if edits and not window._hidden[index]:
            changes = [(*leaf, edit.text) for leaf, edit in edits.items()]
            self._changed[index] = changes
        else:
            self._changed.pop(index, None)
        if not edits:
            window._shown.pop(index, None)

    def _drop(self, edit: Drop) -> bool:
        """Leave out the reasoning of a range of messages."""
        dropped = self.window.range_of(edit)
        if dropped is None:
            return False
        messages = self.window.transcript.messages
        for index in range(*dropped):
            if any(
                isinstance(part, Reasoning) for part in messages[index].parts
            ):
                self._reasoning_dropped.add(index)
                self._changes.edited.add(index)
                self.refresh(index)
        return True

    def _summarise(self, edit: ReplaceSpan) -> bool:
        """Show a summary in place of a range of messages, and of the summaries it covers."""
        window = self.window
        sums = window._sums
        replaced = window.range_of(edit)
        if replaced is None:
            return False
        start, stop = replaced
        if start < window.read_from or not window.may_summarise(start, stop):
            return False
        hides = set(window.visible_in(start, stop))
        hides.difference_update(
            window.transcript.marked("permanent", start, stop)
        )
        kept = window.kept_by(edit).intersection(range(start, stop))
        self._hide(hides - kept)
        self._unhide(kept)
        summaries = [Placed(start, stop, edit)]
        sums.counted += window.texts_tokens(edit.texts)
        for placed in window.summaries:
            if start <= placed.start < stop:
                sums.counted -= window.texts_tokens(placed.edit.texts)
            else:
                summaries.append(placed)
        self._set(summaries=tuple(sorted(summaries)))
        return True

    def _hide(self, indices: Set[int]) -> None:
        """Take messages out of the view: a summary stands for them."""
        window = self.window
        sums = window._sums
        for index in indices:
            tokens = sums.tokens[index]
            sums.counted -= max(tokens, 0)
            sums.bound -= max(~tokens, 0)
            if self._changed.pop(index, None) is not None:
                self._changes.edited.add(index)
            self._invalidate(index)
            window._hidden[index] = HIDDEN
        if window.revealed and not indices.isdisjoint(window.revealed):
            self._set(revealed=window.revealed - indices)
