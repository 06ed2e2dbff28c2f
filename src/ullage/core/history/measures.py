"""What is worked out of each message once: measures, their sums, and folds over ranges of them.

A measure is a function with a name and settings. Tables are kept under these and not under the
function, so that a measure made again at every turn finds its own table again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set
from typing import Any, Generic, TypeVar, cast

from ullage.core.errors import ConfigError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

TABLES = 32
"""So many measures are kept of one history; the one made first goes first."""
_VALUES = 16
"""So many values of folds; the one that was not asked for longest goes first."""


class Measure(Generic[T_co]):
    """Something worked out of a message: a number, a truth, a list of lines.

    Args:
        name: what it is kept under; begin it with the name of your package.
        function: called with a window or a transcript, the index of a message, and the settings.
            It has to be pure: of a message as it is shown now, or as it is in the history.
        settings: keyword arguments of the function.

    Raises:
        TypeError: a setting cannot be hashed.
    """

    __slots__ = ("_function", "key", "name", "settings")

    def __init__(
        self, name: str, function: Callable[..., T_co], **settings: Hashable
    ) -> None:
        self.name = name
        self.settings = settings
        self.key = (name, *sorted(settings.items()))
        self._function = function
        hash(self.key)

    def __call__(self, history: Any, index: int) -> T_co:
        """The value of one message.

        Args:
            history: a window or a transcript.
            index: the message.
        """
        return self._function(history, index, **self.settings)

    def __repr__(self) -> str:
        texts = [f", {key}={value!r}" for key, value in self.settings.items()]
        settings = "".join(texts)
        return f"Measure({self.name!r}{settings})"


def table_of(
    tables: dict[Any, T], measure: Measure[Any], make: Callable[[], T]
) -> T:
    """What is kept of a measure in some tables, made where it is not there.

    Raises:
        ConfigError: it is a function and no measure.
    """
    if not isinstance(measure, Measure):
        name = getattr(measure, "__name__", type(measure).__name__)
        raise ConfigError(
            "measure",
            f"{name} is a plain function, and what is kept of it could not be found again",
            f'Make it one once, at module level: SIZE = Measure("mine.size", {name}), with '
            "settings as keywords, and give that.",
        )
    table = tables.get(measure.key)
    if table is None:
        table = make()
        excess = max(len(tables) + 1 - TABLES, 0)
        for oldest in [*tables][:excess]:
            # another reader of a frozen history may have done so
            tables.pop(oldest, None)
        tables[measure.key] = table
    return table


class Fold(Generic[T]):
    """What the messages of a range come to, one after the other, as a value that grows.

    Whoever asks for a longer range that begins at the same message pays for what is new in it.

    Args:
        name: what it is kept under.
        begin: makes the value of no messages.
        add: adds one message to the value: called with the value, the transcript and the index.
            It has to be pure: of that message and what is before it in the history.
        looks_back: whether the value of a longer range can tell that of a shorter one too.
    """

    __slots__ = ("add", "begin", "looks_back", "name")

    def __init__(
        self,
        name: str,
        begin: Callable[[], T],
        add: Callable[[T, Any, int], None],
        *,
        looks_back: bool = False,
    ) -> None:
        self.name = name
        self.begin = begin
        self.add = add
        self.looks_back = looks_back


class Folded:
    """The values of folds over the ranges of one history that were asked for last.

    Args:
        transcript: the history.
    """

    def __init__(self, transcript: Any) -> None:
        self._transcript = transcript
        self._values: dict[tuple[str, int], tuple[int, Any]] = {}

    def over(self, fold: Fold[T], start: int, stop: int) -> T:
        """The value of the messages from ``start`` up to ``stop``; nobody but the fold writes it.

        A value cannot shrink: for a shorter range than the last one it is made again, unless it
        looks back.
        """
        key = fold.name, start
        reached, value = self._values.pop(key, (start, None))
        if value is None or (reached > stop and not fold.looks_back):
            reached = start
            value = fold.begin()
        for index in range(reached, stop):
            fold.add(value, self._transcript, index)
        while len(self._values) >= _VALUES:
            del self._values[next(iter(self._values))]
        self._values[key] = max(reached, stop), value
        return cast("T", value)

    def clear(self) -> None:
        """Forget all values: a message reads otherwise now."""
        self._values.clear()


class Tally:
    """A sum over messages as they are shown, kept message by message.

    The window knows which messages are new and which are shown differently since; a tally works
    out only those, so a stage may ask for its sum at every boundary.

    Args:
        measure: what a message adds.

    Attributes:
        measure: the same.
        each: what each message adds, as of the last `to`.
        sum: of all of them.
    """

    def __init__(self, measure: Measure[int]) -> None:
        self.measure = measure
        self.each: list[int] = []
        self.sum = 0
        self._invalid: set[int] = set()

    def upto(self, size: int, invalid: Set[int]) -> Tally:
        """The sum over the first ``size`` messages, some of which were shown differently there."""
        tally = Tally(self.measure)
        tally.each = self.each[:size]
        tally._invalid = self._invalid | invalid
        tally.sum = sum(tally.each)
        return tally

    def invalidate(self, index: int) -> None:
        """A message is shown differently from now on."""
        self._invalid.add(index)

    def to(self, size: int, added: Callable[[int], int]) -> Tally:
        """Brought up to date for the first ``size`` messages; never fewer than at the last call."""
        length = len(self.each)
        if size == length and not self._invalid:
            return self
        for index in self._invalid:
            if index < length:
                value = added(
                    index
                )  # nothing is written where this is interrupted
                self.sum += value - self.each[index]
                self.each[index] = value
        if self._invalid:
            self._invalid.clear()
        values = [added(index) for index in range(length, size)]
        total = sum(values)
        self.each += values
        self.sum += total
        return self
