"""The history as shown: with its edits in their places, read-only, and nothing counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from msgspec import Struct, field

from ullage.core.history.hand import Pins
from ullage.core.history.transcript import Location, Transcript
from ullage.core.values.edits import Drop, Edit, Insert, Replace, ReplaceSpan, Restore
from ullage.core.values.messages import BlockFrame, Opaque

Shown = Mapping[tuple[int, int], Replace]
"""What replaces the leaves of one message, by part and item index."""

_WHOLE: Shown = {}
SHOWN, HIDDEN = 0, 1
"""What stands for a message in the flags of a window: whether a summary is shown in its place."""


class Placed(NamedTuple):
    """A summary where it is shown: in place of the messages from ``start`` up to ``stop``."""

    start: int
    stop: int
    edit: ReplaceSpan


class PlacedText(NamedTuple):
    """A text of the user's where it is shown: before the message at an index."""

    message_index: int
    edit: Insert


class ShownHistory(Struct, frozen=True, eq=False, kw_only=True):
    """A transcript as shown.

    Attributes:
        transcript: the history behind it.
        size: how many messages are taken in.
        fresh: index of the first message that was not there at the last boundary.
        read_from: index of the first message that the provider still reads.
        summaries: what is shown in place of ranges of messages, in order; no two overlap.
        changed: every edited message that is shown: part, item and new text of each edit.
        reasoning_dropped: messages whose reasoning is dropped.
        arrived: of messages that changed at an old place, how many messages there were before the
            change: they are as new as what came then.
        holds_back: whether what `staying` and `pins` name may not be hidden or cut; not where
            nothing else is left that could make the view fit.
        pins: what a user wants to stay.
        revealed: the messages within summaries that a user had shown again.
        lifted: the replacements that a user had taken out.
        shown_whole: what a user had shown again.
        added: the texts that a user added, in order.
    """

    transcript: Transcript
    size: int = 0
    fresh: int = 0
    read_from: int = 0
    summaries: tuple[Placed, ...] = ()
    changed: Mapping[int, Sequence[tuple[int, int, str]]] = field(default_factory=dict)
    reasoning_dropped: Set[int] = field(default_factory=set)
    arrived: Mapping[int, int] = field(default_factory=dict)
    holds_back: bool = True
    pins: Pins = Pins()
    revealed: frozenset[int] = frozenset()
    lifted: tuple[Replace, ...] = ()
    shown_whole: frozenset[Restore] = frozenset()
    added: tuple[PlacedText, ...] = ()
    _shown: dict[int, Shown] = field(default_factory=dict)
    _spots: dict[str, Location] = field(default_factory=dict)
    _hidden: bytearray = field(default_factory=bytearray)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size} messages>"

    def shows(self, edit: Edit) -> bool:
        """Whether applying an edit would change nothing: it is shown, or a summary covers it."""
        if isinstance(edit, ReplaceSpan):
            around = self.range_of(edit)
            return around is not None and any(
                placed.edit is edit or (placed.start, placed.stop) != around
                for placed in self.summaries
                if placed.start <= around[0] and around[1] <= placed.stop
            )
        if isinstance(edit, Drop):
            return False
        if isinstance(edit, Restore):
            return edit in self.shown_whole
        if isinstance(edit, Insert):
            return any(placed.edit == edit for placed in self.added) or not (
                edit.text or any(placed.edit.name == edit.name for placed in self.added)
            )
        if any(edit is lifted for lifted in self.lifted):
            return True  # another one may be equal, and stand
        spot = self._spots.get(edit.ref)
        return spot is not None and self.edit_at(spot) is edit

    def range_of(self, edit: ReplaceSpan | Drop) -> tuple[int, int] | None:
        """First message of a range and one past its last, or None if it is not here."""
        start, stop = self.transcript.find(edit.after), self.transcript.find(edit.upto)
        if start is None or stop is None or not start <= stop <= self.size:
            return None
        return start, stop

    def may_summarise(self, start: int, stop: int) -> bool:
        """Whether a summary may be shown in place of a range: it cuts none in two."""
        return start < stop and all(
            stop <= placed.start
            or placed.stop <= start
            or (start <= placed.start and placed.stop <= stop)
            for placed in self.summaries
        )

    @property
    def open_summaries(self) -> tuple[Placed, ...]:
        """The summaries that the provider still reads."""
        first = self.read_from  # nearly always nothing was superseded
        return (
            tuple(it for it in self.summaries if it.stop > first)
            if first
            else self.summaries
        )

    def spot_for(self, edit: Replace, length: int) -> Location | None:
        """Where an edit is within a length; None where the history holds no such leaf.

        What a program reads is never shown otherwise.
        """
        spot = self.transcript.locate(edit.address)
        if spot is None or spot[0] >= length:
            return None
        if self.transcript.reader(spot[0], spot[1]) == "program":
            return None  # it would work on a part of it, and nobody would know
        original = self.transcript.output(spot)
        leaf = self.transcript.leaf(spot)
        if original is None or isinstance(leaf, BlockFrame) or _defines_tools(leaf):
            return None
        # of a call the chain vouches: clients write the same arguments with other spaces
        return spot if edit.address.kind == "call" or edit.ref == original.ref else None

    def age_of(self, index: int) -> int:
        """The place of a message in the order of what is new: its index, or when it changed."""
        return self.arrived.get(index, index)

    def staying(self, start: int, stop: int) -> set[int]:
        """The messages of a range that a summary of it may not hide, but for the system's.

        They define tools that the model may call, or they are new though they stand at an old
        place; and what they cannot be shown without (`Transcript.together`).
        """
        if not self.holds_back:
            return set()
        young = min(stop, self.turn_start)
        needed = [
            index
            for index in self.transcript.loading(self.size)
            if start <= index < stop
        ]
        needed += [
            at
            for at in self.arrived
            if start <= at < stop and self.arrived[at] >= young
        ]
        needed += [at for at in self.pins.messages if start <= at < stop]
        groups = [
            set(self.transcript.inseparable(index, self.size)) for index in needed
        ]
        return {
            at for group in groups if self._is_whole(group, start, stop) for at in group
        }

    def _is_whole(self, group: set[int], start: int, stop: int) -> bool:
        """Whether messages that go together are all in a range, and none is hidden by itself."""
        hidden = [self.hidden(at) for at in group]
        is_within = all(start <= at < stop for at in group)
        return is_within and (all(hidden) or not any(hidden))

    def is_pinned(self, spot: Location) -> bool:
        """Whether a user wants a leaf whole, and there is another way to make the view fit."""
        return bool(self.pins) and self.holds_back and self.pins.covers(spot)

    def kept_by(self, edit: ReplaceSpan) -> set[int]:
        """The messages that a summary leaves where it is made, though an earlier one may hide them.

        What the model thought by itself is no step of the chain: it goes with what follows it.
        """
        found, messages = set[int](), self.transcript.messages
        for key in edit.keeps:
            index = (self.transcript.find(key) or 0) - 1
            if index < 0:
                continue
            found.add(index)
            while index > 0 and messages[index - 1].only_thought:
                index -= 1
                found.add(index)
        return found

    @property
    def turn_start(self) -> int:
        """Index of the last assistant message: what is after it was never sent before."""
        return self.transcript.turn_start(self.size)

    def hidden(self, index: int) -> bool:
        """Whether a summary is shown in place of a message."""
        return index < len(self._hidden) and bool(self._hidden[index])

    @property
    def visible(self) -> list[int]:
        """The messages in whose place no summary is shown."""
        return self.visible_in(0, self.size)

    def visible_in(self, start: int, stop: int) -> list[int]:
        """Those of a range. What is hidden is passed over in C, however much it is."""
        visible = list[int]()
        index = self._hidden.find(SHOWN, start, stop)
        while index >= 0:
            visible.append(index)
            index = self._hidden.find(SHOWN, index + 1, stop)
        return visible

    def shown(self, index: int) -> Shown:
        """What replaces the leaves of a message."""
        return self._shown.get(index, _WHOLE)

    def edit_at(self, spot: Location) -> Replace | None:
        """What replaces a leaf, or None."""
        return self.shown(spot[0]).get(spot[1:])

    def holds_account(self, spot: Location) -> bool:
        """Whether the account of hidden messages stands in a result.

        Their summary has no text of its own then: what is shown of the result may not be cut
        again, for the account would go with it.
        """
        edit = self.edit_at(spot)
        return edit is not None and any(
            placed.start == spot[0] + 1
            and not placed.edit.text
            and placed.edit.ref in edit.text
            for placed in self.summaries
        )

    def bound_reasoning(self, start: int, stop: int | None = None) -> bool:
        """Whether reasoning bound to what is before it is at or after a message.

        Also what a summary hides: that may be given back, and be shown behind something else.
        """
        bound = self.transcript.marked(
            "bound", start, self.size if stop is None else stop
        )
        return not self.reasoning_dropped >= set(bound)

    def signed(self, index: int) -> bool:
        """Whether signed reasoning is by a message, so that its calls must stay as they are.

        It is in the message itself, or in one of its own of the same reply.
        """
        reply = self.transcript.reply(index, self.size)
        bound = self.transcript.marked("bound", reply.start, reply.stop)
        return any(
            at == index or self.transcript.messages[at].only_thought for at in bound
        )

    def spot_of(self, ref: str) -> Location | None:
        """The leaf that an edit made so far set aside under this ref."""
        return self._spots.get(ref)

    def results(self, start: int, stop: int) -> Iterator[Location]:
        """Every item of every visible result in a range that a tool wrote for the model.

        What the user answered through a tool, and what a program reads, are no such results: they
        are left as they are.
        """
        for index in self.visible_in(start, stop):
            yield from self.transcript.tool_results(index)

    def tool_of(self, spot: Location) -> str:
        """Name of the tool whose result is at a location, or ``""``."""
        call = self.transcript.call_for(spot[0], spot[1])
        return call.name if call else ""


def _defines_tools(leaf: object) -> bool:
    """Whether tools are defined by a leaf: then it stands as it came."""
    return isinstance(leaf, Opaque) and bool(leaf.loads)
