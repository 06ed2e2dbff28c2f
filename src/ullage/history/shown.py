"""The history as shown: with its edits in their places.

It moves forward only, and knows where each edit stands and what it hides. It counts nothing:
`ullage.history.window` counts it against its limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from ullage.history.transcript import Location, Transcript
from ullage.values.edits import Drop, Edit, Replace, Span
from ullage.values.messages import Reasoning, ToolResult

__all__ = ["Shown", "ShownHistory"]

Shown = dict[tuple[int, int], Replace]
"""What replaces the leaves of one message, by part and item index."""

_WHOLE: Shown = {}


class ShownHistory:
    """A transcript as shown.

    Attributes:
        transcript: the history behind it.
        size: how many messages are taken in.
        fresh: index of the first message that was not there at the last boundary.
        read_from: index of the first message that the provider still reads.
        span: the run of messages shown as an account, with its edges, or None.
        owed: of each batch behind which reasoning stayed though it was bound to what the batch
            edited: the first message edited, and where the history ended then.
    """

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.size = 0
        self.fresh = 0
        self.read_from = 0
        self.span: tuple[int, int, Span] | None = None
        self.owed: list[tuple[int, int]] = []
        self._shown: dict[int, Shown] = {}
        self._spots: dict[str, Location] = {}
        self._changed: dict[int, list[tuple[int, int, str]]] | None = None
        self._silent: set[int] = set()

    def extend(self, length: int) -> None:
        """Take in the transcript's messages up to ``length``; they become the fresh ones."""
        self.fresh = self.size
        for index in range(self.size, length):
            if self.transcript.messages[index].supersedes:
                self.read_from = index
        self.size = length

    # ── placing ──────────────────────────────────────────────────────────────────────

    def spot_for(self, edit: Replace, length: int) -> Location | None:
        """Where an edit stands within a length; None where the history holds no such leaf."""
        spot = self.transcript.locate(edit.place)
        if spot is None or spot[0] >= length:
            return None
        original = self.transcript.output(spot)
        return spot if original is not None and _is_of(edit, original.ref) else None

    def _place(self, edit: Replace, spot: Location) -> None:
        index, number, item = spot
        self._shown[index] = {**self._shown.get(index, _WHOLE), (number, item): edit}
        self._spots[edit.ref] = spot
        if self._changed is not None and not self.hidden(index):
            self._changed[index] = _changes(self._shown[index])

    def _run(self, edit: Span | Drop) -> tuple[int, int] | None:
        """First message of a run and one past its last, or None if it is not here."""
        start, stop = self.transcript.find(edit.after), self.transcript.find(edit.upto)
        if start is None or stop is None or not start <= stop <= self.size:
            return None
        return start, stop

    def _silence(self, start: int, stop: int) -> list[int]:
        """Leave out the reasoning of a run of messages. Returns those that hold any."""
        thought = [
            index
            for index in range(start, stop)
            if any(isinstance(part, Reasoning) for part in self.transcript.messages[index].parts)
        ]
        self._silent.update(thought)
        return thought

    def _cover(self, start: int, stop: int, span: Span) -> None:
        """Show an account in place of a run of messages."""
        self.span, self._changed = (start, stop, span), None

    # ── reading ──────────────────────────────────────────────────────────────────────

    def shows(self, edit: Edit) -> bool:
        """Whether this very edit stands in its place, so that showing it would change nothing."""
        if isinstance(edit, Span):
            return self.span is not None and self.span[2] is edit
        if isinstance(edit, Drop):
            return False
        spot = self._spots.get(edit.ref)
        return spot is not None and self.shown(spot[0]).get(spot[1:]) is edit

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

    def bound_reasoning(self, start: int, stop: int | None = None) -> bool:
        """Whether reasoning bound to what is before it stands at or after a message.

        Also what an account hides: that may be given back, and be shown behind something else.

        Args:
            start: the message.
            stop: where the run ends; None for the end of what is taken in.
        """
        bound = self.transcript.bound(start, self.size if stop is None else stop)
        return not self._silent.issuperset(bound)

    def signed(self, index: int) -> bool:
        """Whether signed reasoning stands by a message, so that its calls must stay as they are.

        It stands in the message itself, or in one of its own of the same reply.
        """
        messages, reply = self.transcript.messages, self.transcript.reply(index, self.size)
        bound = self.transcript.bound(reply.start, reply.stop)
        return any(at == index or messages[at].only_thought for at in bound)

    def spot_of(self, ref: str) -> Location | None:
        """The leaf that an edit made so far set aside under this ref."""
        return self._spots.get(ref)

    def results(self, start: int, stop: int) -> Iterator[Location]:
        """Every item of every visible tool result in a range of messages."""
        for index in range(start, stop):
            if self.hidden(index):
                continue
            for number, part in enumerate(self.transcript.messages[index].parts):
                if isinstance(part, ToolResult):
                    for item in range(len(part.content)):
                        yield index, number, item

    def tool_of(self, spot: Location) -> str:
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
