"""What a turn leaves for whoever reads: a window and a history as they are at its end.

    builder.freeze() ──▶ FrozenWindow ──▶ its sizes     at once
                              └─────────▶ its window    made by the first reader who asks

The laws:

- A turn freezes its window under the lock of its session, in time proportional to what is new.
- What is frozen does not change, whatever later turns write; so it is read without a lock.
- What a reader works out of it (token counts above all) is kept in it and nowhere else. It is
  written by one assignment, and two readers at once come to the same.

How it can be cheap: a window is kept in `Layers`, and a history only grows. A frozen history
shares the lists and tables of the growing one and reads them up to its own length. Where a message
is worded again in its place, the growing history first takes copies (`Transcript.refresh`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple, NoReturn

from msgspec import Struct, field
from msgspec.structs import replace

from ullage.core.history.layers import Layers
from ullage.core.history.measures import Folded
from ullage.core.history.shown import LeafEdits
from ullage.core.history.transcript import Location, Mark, Transcript
from ullage.core.history.window import TokenSums, Window
from ullage.core.tokens.calibrate import Calibration
from ullage.core.tokens.meter import Meter
from ullage.core.values.edits import Address
from ullage.core.values.messages import Message

_ROWS = {
    "messages": 0,
    "digests": 0,
    "chain": 1,
    "_reply_ends": 1,
    "_turns": 1,
    "_closed": 0,
}
"""The lists of a transcript that only grow, and how much longer each is than the history."""
_OWN = ("counts", "_refs", "_texts", "_measured")
"""Tables of what is worked out of messages: a reader fills its own, and has folds of its own."""


class FrozenTranscript(Transcript):
    """The first messages of a history, as they were when it was frozen.

    Args:
        growing: the history. Only whoever may write to it may freeze it.
        length: how many of its messages these are.

    Raises:
        TypeError: something tries to change it.
    """

    def __init__(self, growing: Transcript, length: int) -> None:
        self._length = length
        # the lists and tables themselves are shared
        self._growing = growing.__dict__.copy()
        self._ends_closed = growing.closed(length)

    def __getattr__(self, name: str) -> Any:
        """A list or table of the history, as far as it goes, when somebody first asks for it.

        In the tables that are shared, entries of earlier messages stay as they are, and what is
        beyond the length is never looked at.
        """
        if name.startswith("__") or name not in self._growing:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
            )
        if name in _ROWS:
            value: Any = self._growing[name][: self._length + _ROWS[name]]
        elif name in _OWN:
            value = {}
        elif name == "_folded":
            value = Folded(self)
        elif name == "loaded":
            value = self._names_loaded(self._length)
        else:
            value = self._growing[name]
        return self.__dict__.setdefault(name, value)

    def __len__(self) -> int:
        return self._length

    def find(self, key: bytes) -> int | None:
        """See `Transcript.find`."""
        length = super().find(key)
        return None if length is None or length > self._length else length

    def closed(self, length: int) -> bool:
        """See `Transcript.closed`."""
        return (
            self._closed[length]
            if length < self._length
            else self._ends_closed
        )

    def locate(self, address: Address) -> Location | None:
        """See `Transcript.locate`."""
        location = super().locate(address)
        return (
            None
            if location is None or location[0] >= self._length
            else location
        )

    def newest_result(self, call_id: str, length: int) -> Location | None:
        """See `Transcript.newest_result`."""
        return super().newest_result(call_id, min(length, self._length))

    def marked(self, mark: Mark, start: int, stop: int) -> list[int]:
        """See `Transcript.marked`."""
        return super().marked(mark, start, min(stop, self._length))

    def append(self, message: Message, digest: bytes) -> NoReturn:
        """Refused: nothing is added to it."""
        self._refuse()

    def refresh(self, index: int, message: Message) -> NoReturn:
        """Refused: no message of it is worded again."""
        self._refuse()

    def upto(self, length: int) -> NoReturn:
        """Refused: only the growing history can go on otherwise."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TypeError(
            "this history is frozen: the session's own goes on, and this one does not"
        )


class Edited(NamedTuple):
    """How one message is shown.

    Attributes:
        edits: what replaces its leaves (`ShownHistory.shown`), or None.
        changed: its entry of `ShownHistory.changed`, or None.
        drops_reasoning: whether its reasoning is dropped.
    """

    edits: LeafEdits | None
    changed: Sequence[tuple[int, int, str]] | None
    drops_reasoning: bool


class Parts(Struct, frozen=True):
    """What of a window is written to in place, as it was when it was frozen.

    Attributes:
        tokens: `TokenSums.tokens`, by message.
        edited: the edited messages.
        locations: where the edits are, by ref.
        applied: `Window.applied`.
    """

    tokens: Layers[int, int] = Layers()
    edited: Layers[int, Edited] = Layers()
    locations: Layers[str, Location] = Layers()
    applied: Layers[bytes, int] = Layers()

    def after(self, window: Window, changes: Changes) -> Parts:
        """These with what was written to their window since."""
        tokens = window._sums.tokens
        counted = {index: tokens[index] for index in window._sums.touched}
        edited = {
            index: _edited(window, index) for index in sorted(changes.edited)
        }
        return Parts(
            tokens=self.tokens.with_changes(counted),
            edited=self.edited.with_changes(edited),
            locations=self.locations.with_changes(changes.locations),
            applied=self.applied.with_changes(changes.applied),
        )


class Changes(Struct):
    """What was written to a window since it was frozen last; `TokenSums.touched` is beside it.

    Attributes:
        edited: the messages whose edits changed.
        locations: new locations of edits, by ref.
        applied: new entries of `Window.applied`.
    """

    edited: set[int] = field(default_factory=set)
    locations: dict[str, Location] = field(default_factory=dict)
    applied: dict[bytes, int] = field(default_factory=dict)


def _edited(window: Window, index: int) -> Edited:
    return Edited(
        window._shown.get(index),
        window.changed.get(index),
        index in window.reasoning_dropped,
    )


class FrozenWindow:
    """A window as it was at the end of a turn: read by anybody, from any thread, without a lock.

    Args:
        window: the working window. Only whoever may write to it may freeze it.
        parts: what of it is written to in place.

    Attributes:
        transcript: the history behind it.
        size: how many messages are taken in.
        limit_tokens: the most the prompt may hold.
        bound_tokens: an upper bound of `tokens`, without counting.
        meter: what counts.
        calibration: what was learned from reported usage so far.
    """

    def __init__(self, window: Window, parts: Parts) -> None:
        sums = window._sums
        self.transcript = FrozenTranscript(window.transcript, window.size)
        self.size = window.size
        self.limit_tokens = window.limit_tokens
        self.meter: Meter = window.meter
        self.calibration: Calibration = window.calibration
        self.bound_tokens = window.head_tokens + sums.counted + sums.bound
        # what is written to in place is read from the parts alone
        self._values = copy(window)
        self._parts = parts
        self._hidden = window._hidden[: window.size]  # one byte a message
        self._counted = sums.counted
        self._bound = sums.bound
        self._uncounted = sums.uncounted
        self._uncounted_size = len(sums.uncounted)
        self._tokens: int | None = None
        if not sums.uncounted:
            self._tokens = window.head_tokens + sums.counted
        self._window: Window | None = None

    @property
    def is_counted(self) -> bool:
        """Whether its tokens are known; else the next reader counts them."""
        return self._tokens is not None

    @property
    def is_edited(self) -> bool:
        """Whether anything of the history is shown otherwise than it came, or not at all."""
        messages = self._parts.edited.merged().values()
        return any(self._hidden) or any(map(any, messages))

    @property
    def tokens(self) -> int:
        """Uncalibrated tokens of the whole view; counted now if nobody has before."""
        if self._tokens is None:
            self._tokens = self.window.tokens
        return self._tokens

    @property
    def estimate(self) -> int:
        """Tokens of the view as the provider is expected to count them."""
        return self.calibration.apply(self.tokens)

    def take_count(self, tokens: int) -> None:
        """Know the tokens, which the working window has counted before it moved on."""
        self._tokens = tokens

    @property
    def window(self) -> Window:
        """All that was shown. The first reader has it made, in time proportional to its size."""
        if self._window is None:
            self._window = self._make_window()
        return self._window

    def _make_window(self) -> Window:
        tokens = self._parts.tokens.merged()
        sums = TokenSums(
            tokens=[tokens[index] for index in range(self.size)],
            counted=self._counted,
            bound=self._bound,
            uncounted=self._uncounted[: self._uncounted_size],
        )
        edits: dict[int, LeafEdits] = {}
        changed: dict[int, Sequence[tuple[int, int, str]]] = {}
        reasoning_dropped = set[int]()
        for index, message in self._parts.edited.merged().items():
            if message.edits is not None:
                edits[index] = message.edits
            if message.changed is not None:
                changed[index] = message.changed
            if message.drops_reasoning:
                reasoning_dropped.add(index)
        return replace(
            self._values,
            transcript=self.transcript,
            changed=changed,
            reasoning_dropped=reasoning_dropped,
            applied=self._parts.applied.merged(),
            _shown=edits,
            _hidden=self._hidden,
            _locations=self._parts.locations.merged(),
            _sums=sums,
            _edit_tokens={},
            _settled={},
            _tallies={},
            _is_frozen=True,
        )
