"""What a user has shown again, or added: how a window takes it in, and where it stands.

A message that comes back leaves the summary that hid it where it is. A text that is added keeps
its place among the messages, whatever is summarised around it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from ullage.core.history.frozen import Changes
from ullage.core.history.hand import index_of, locations_of, parting
from ullage.core.history.shown import SHOWN, PlacedText
from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.values.decisions import Target
from ullage.core.values.edits import Insert, Replace, Restore


class ShownAgain(ABC):
    """The part of a `ullage.core.history.builder.WindowBuilder` that a user's decisions move.

    Attributes:
        window: the window that is written to.
    """

    window: Window
    _changes: Changes

    @abstractmethod
    def _set(self, **values: object) -> None:
        """Set fields of the window."""

    @abstractmethod
    def _show_at(self, location: Location, edit: Replace | None) -> None:
        """Show an edit in place of a leaf, or the leaf itself."""

    @abstractmethod
    def _note_edited(self, index: int) -> None:
        """Note that a message is shown otherwise than it was."""

    @abstractmethod
    def _invalidate(self, index: int) -> None:
        """Forget what was worked out of a message as it was shown."""

    def _show_whole(self, edit: Restore) -> bool:
        """Show a message, or a leaf of it, as it came."""
        window = self.window
        index = index_of(window.transcript, edit.message)
        if index is None or not window.read_from <= index < window.size:
            return False
        if window.hidden(index):
            self._reveal(window.transcript.inseparable(index, window.size))
        lifted = list(window.lifted)
        for location in locations_of(
            window.transcript, Target(edit.message, edit.leaf)
        ):
            replacement = window.edit_at(location)
            if replacement is not None:
                lifted.append(replacement)
                self._show_at(location, None)
        self._set(
            lifted=tuple(lifted), shown_whole=window.shown_whole | {edit}
        )
        return True

    def _reveal(self, group: Iterable[int]) -> None:
        """Show messages that a summary hides; the summary stays."""
        window = self.window
        shown = {*group}
        for start, stop, _ in window.summaries:
            within = {*window.visible_in(start, stop)}
            within.update(index for index in shown if start <= index < stop)
            shown |= parting(
                window.transcript, window.hidden, start, stop, within
            )
        hidden = self._unhide(shown)
        self._set(revealed=window.revealed.union(hidden))

    def _unhide(self, indices: Iterable[int]) -> list[int]:
        """Take messages into the view again; returns those that a summary hid."""
        window = self.window
        sums = window._sums
        hidden = [index for index in sorted(indices) if window.hidden(index)]
        for index in hidden:
            window._hidden[index] = SHOWN
            self._note_edited(index)
            self._invalidate(index)
            if sums.tokens[index] < 0:
                sums.uncounted.append(index)
                sums.bound += ~sums.tokens[index]
            else:
                sums.counted += sums.tokens[index]
            sums.touched.add(index)
        return hidden

    def _add(self, edit: Insert) -> bool:
        """Show a text of the user's behind the messages that were there then; none for ``""``."""
        window = self.window
        sums = window._sums
        index = window.transcript.find(edit.after)
        if index is None or not window.read_from <= index <= window.size:
            return False
        if window.shows(edit):
            return False
        replaced = [
            placed for placed in window.added if placed.edit.name == edit.name
        ]
        added = [placed for placed in window.added if placed not in replaced]
        if edit.text:
            added.append(PlacedText(index, edit))
            sums.counted += window.texts_tokens([edit.text])
        for placed in replaced:
            if placed.message_index >= window.read_from:
                sums.counted -= window.texts_tokens([placed.edit.text])
        added.sort(key=lambda placed: placed.message_index)
        self._set(added=tuple(added))
        return bool(edit.text or replaced)


def seat_of(view: Window, laid: Sequence[int | str], index: int) -> int:
    """Where a text of the user's stands in a layout: before the first message from an index on.

    What the system says before a reply stays before that (A20).
    """
    seat = len(laid)
    for position, entry in enumerate(laid):
        if isinstance(entry, int) and entry >= index:
            seat = position
            break
    messages = view.transcript.messages
    while seat:
        previous = laid[seat - 1]
        if isinstance(previous, str) or not messages[previous].before_reply:
            break
        seat -= 1
    return seat
