"""The history as shown: with its edits in their places, read-only, and nothing counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from msgspec import Struct, field

from ullage.core.history.hand import Pins, parting
from ullage.core.history.transcript import Location, Transcript
from ullage.core.values.edits import (
    Drop,
    Edit,
    Insert,
    Replace,
    ReplaceSpan,
    Restore,
)
from ullage.core.values.messages import BlockFrame, Opaque

LeafEdits = Mapping[tuple[int, int], Replace]
"""What replaces the leaves of one message, by part and item index."""

_WHOLE: LeafEdits = {}
# the flags of a window have one of these for each message
SHOWN = 0
HIDDEN = 1
"""A summary is shown in place of the message."""


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
    changed: Mapping[int, Sequence[tuple[int, int, str]]] = field(
        default_factory=dict
    )
    reasoning_dropped: Set[int] = field(default_factory=set)
    arrived: Mapping[int, int] = field(default_factory=dict)
    holds_back: bool = True
    pins: Pins = Pins()
    revealed: frozenset[int] = frozenset()
    lifted: tuple[Replace, ...] = ()
    shown_whole: frozenset[Restore] = frozenset()
    added: tuple[PlacedText, ...] = ()
    _shown: dict[int, LeafEdits] = field(default_factory=dict)
    _locations: dict[str, Location] = field(default_factory=dict)
    _hidden: bytearray = field(default_factory=bytearray)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size} messages>"

    def shows(self, edit: Edit) -> bool:
        """Whether applying an edit would change nothing: it is shown, or a summary covers it."""
        if isinstance(edit, ReplaceSpan):
            return self._shows_span(edit)
        if isinstance(edit, Drop):
            return False
        if isinstance(edit, Restore):
            return edit in self.shown_whole
        if isinstance(edit, Insert):
            return self._shows_text(edit)
        if any(edit is lifted for lifted in self.lifted):
            return True  # another one may be equal, and stand
        location = self._locations.get(edit.ref)
        return location is not None and self.edit_at(location) is edit

    def _shows_span(self, edit: ReplaceSpan) -> bool:
        """Whether a summary is shown, or another covers its range and more."""
        covered = self.range_of(edit)
        if covered is None:
            return False
        start, stop = covered
        for placed in self.summaries:
            is_around = placed.start <= start and stop <= placed.stop
            is_wider = (placed.start, placed.stop) != covered
            if is_around and (placed.edit is edit or is_wider):
                return True
        return False

    def _shows_text(self, edit: Insert) -> bool:
        """Whether a text of the user's is shown, or one that is to go is not."""
        if any(placed.edit == edit for placed in self.added):
            return True
        if edit.text:
            return False
        return all(placed.edit.name != edit.name for placed in self.added)

    def range_of(self, edit: ReplaceSpan | Drop) -> tuple[int, int] | None:
        """First message of a range and one past its last, or None if it is not here."""
        start = self.transcript.find(edit.after)
        stop = self.transcript.find(edit.upto)
        if start is None or stop is None:
            return None
        return (start, stop) if start <= stop <= self.size else None

    def may_summarise(self, start: int, stop: int) -> bool:
        """Whether a summary may be shown in place of a range: it cuts none in two."""
        if start >= stop:
            return False
        for placed in self.summaries:
            is_apart = stop <= placed.start or placed.stop <= start
            is_covered = start <= placed.start and placed.stop <= stop
            if not is_apart and not is_covered:
                return False
        return True

    @property
    def open_summaries(self) -> tuple[Placed, ...]:
        """The summaries that the provider still reads."""
        if self.read_from == 0:  # nearly always nothing was superseded
            return self.summaries
        return tuple(
            placed for placed in self.summaries if placed.stop > self.read_from
        )

    def location_for(self, edit: Replace, length: int) -> Location | None:
        """Where an edit is within a length; None where the history holds no such leaf.

        What a program reads is never shown otherwise.
        """
        location = self.transcript.locate(edit.address)
        if location is None or location[0] >= length:
            return None
        if self.transcript.reader(location[0], location[1]) == "program":
            return None  # it would work on a part of it, and nobody would know
        original = self.transcript.output(location)
        leaf = self.transcript.leaf(location)
        if (
            original is None
            or isinstance(leaf, BlockFrame)
            or _defines_tools(leaf)
        ):
            return None
        # of a call the chain vouches: clients write the same arguments with other spaces
        is_same = edit.address.kind == "call" or edit.ref == original.ref
        return location if is_same else None

    def age_of(self, index: int) -> int:
        """The place of a message in the order of what is new: its index, or when it changed."""
        return self.arrived.get(index, index)

    def staying(self, start: int, stop: int) -> set[int]:
        """The messages of a range that a summary of it may not hide, but for the system's.

        They define tools that the model may call, or they are new though they stand at an old
        place; and what they cannot be shown without (`Transcript.inseparable`).
        """
        if not self.holds_back:
            return set()
        staying = set[int]()
        for index in self._needed(stop):
            if start <= index < stop:
                group = self.transcript.inseparable(index, self.size)
                if self._is_whole(group, start, stop):
                    staying |= group
        return staying | parting(
            self.transcript, self.hidden, start, stop, staying
        )

    def _needed(self, stop: int) -> Iterator[int]:
        """The messages that may not be hidden by a summary up to ``stop``, by themselves."""
        yield from self.transcript.loading(self.size)
        youngest = min(stop, self.turn_start)
        for index, age in self.arrived.items():
            if age >= youngest:
                yield index
        yield from self.pins.messages

    def _is_whole(self, group: set[int], start: int, stop: int) -> bool:
        """Whether messages that go together are all in a range, and none is hidden."""
        if not all(start <= index < stop for index in group):
            return False
        return not any(self.hidden(index) for index in group)

    def is_pinned(self, location: Location) -> bool:
        """Whether a user wants a leaf whole, and there is another way to make the view fit."""
        if not self.pins or not self.holds_back:
            return False
        return self.pins.covers(location)

    def kept_by(self, edit: ReplaceSpan) -> set[int]:
        """The messages that a summary leaves where it is made, though an earlier one may hide them.

        What the model thought by itself is no step of the chain: it goes with what follows it.
        """
        messages = self.transcript.messages
        indices = set[int]()
        for key in edit.keeps:
            index = (self.transcript.find(key) or 0) - 1
            if index < 0:
                continue
            indices.add(index)
            while index > 0 and messages[index - 1].only_thought:
                index -= 1
                indices.add(index)
        return indices

    @property
    def turn_start(self) -> int:
        """Where the newest reply begins: what is behind that reply was never sent before."""
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

    def shown(self, index: int) -> LeafEdits:
        """What replaces the leaves of a message."""
        return self._shown.get(index, _WHOLE)

    def edit_at(self, location: Location) -> Replace | None:
        """What replaces a leaf, or None."""
        return self.shown(location[0]).get(location[1:])

    def holds_account(self, location: Location) -> bool:
        """Whether the account of hidden messages stands in a result.

        Their summary has no text of its own then: what is shown of the result may not be cut
        again, for the account would go with it.
        """
        edit = self.edit_at(location)
        if edit is None:
            return False
        for placed in self.summaries:
            is_next = placed.start == location[0] + 1
            if (
                is_next
                and not placed.edit.text
                and placed.edit.ref in edit.text
            ):
                return True
        return False

    def bound_reasoning(self, start: int, stop: int | None = None) -> bool:
        """Whether reasoning bound to what is before it is at or after a message.

        Also what a summary hides: that may be given back, and be shown behind something else.
        """
        if stop is None:
            stop = self.size
        bound = self.transcript.marked("bound", start, stop)
        return not self.reasoning_dropped >= set(bound)

    def signed(self, index: int) -> bool:
        """Whether signed reasoning is by a message, so that its calls must stay as they are.

        It is in the message itself, or in one of its own of the same reply.
        """
        reply = self.transcript.reply(index, self.size)
        for bound in self.transcript.marked("bound", reply.start, reply.stop):
            if bound == index or self.transcript.messages[bound].only_thought:
                return True
        return False

    def location_of(self, ref: str) -> Location | None:
        """The leaf that an edit made so far set aside under this ref."""
        return self._locations.get(ref)

    def results(self, start: int, stop: int) -> Iterator[Location]:
        """Every item of every visible result in a range that a tool wrote for the model.

        What the user answered through a tool, and what a program reads, are no such results: they
        are left as they are.
        """
        for index in self.visible_in(start, stop):
            yield from self.transcript.tool_results(index)

    def tool_of(self, location: Location) -> str:
        """Name of the tool whose result is at a location, or ``""``."""
        call = self.transcript.call_for(location[0], location[1])
        return call.name if call else ""


def _defines_tools(leaf: object) -> bool:
    """Whether tools are defined by a leaf: then it stands as it came."""
    return isinstance(leaf, Opaque) and bool(leaf.loads)
