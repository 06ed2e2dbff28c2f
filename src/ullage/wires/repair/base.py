"""What mending has in common: which result answers which call, ids, and what is told.

A call and a result are known by their spot: the index of the message and the number of the
block or call within it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ullage.history import canon
from ullage.history.transcript import Transcript
from ullage.values.effects import Output
from ullage.values.events import Event
from ullage.values.messages import Message
from ullage.values.notices import aside
from ullage.wires.base import plain, unmarked

__all__ = [
    "BEGIN",
    "EMPTY",
    "GO_ON",
    "INTERRUPTED",
    "MOVED",
    "Growing",
    "Location",
    "Pairs",
    "RepairLog",
    "copy_of",
    "is_blank",
    "is_object",
    "new_id",
    "outputs_in",
]

INTERRUPTED = "[ullage: this call was interrupted; it has no result]"
MOVED = "[ullage: a result that came late now stands behind its call]"
EMPTY = "[ullage: this message was empty]"
BEGIN = "[ullage: what stood before was not kept]"
GO_ON = "[ullage: go on]"

Location: TypeAlias = tuple[int, int]


class Pairs:
    """Which call each result answers. Fed in order, it never looks ahead.

    A result answers the open call of its id in the newest message that has one, there the
    first. A result of ours (`INTERRUPTED`) leaves its call open for a real one.

    Attributes:
        answers: the result of each answered call.
        calls: the call that each result answers; a result not in here is left over.
        open: the calls of each id that have no real result yet, in order.
        strays: of the results left over, those of no call known before them.
        joined: the calls that were answered, or answered otherwise, since this was emptied.
    """

    def __init__(self) -> None:
        self.answers: dict[Location, Location] = {}
        self.calls: dict[Location, Location] = {}
        self.strays: set[Location] = set()
        self.joined: list[Location] = []
        self.open: dict[str, list[Location]] = {}

    def call(self, name: str, spot: Location) -> None:
        """A call with this id stands here."""
        self.open.setdefault(name, []).append(spot)

    def result(self, name: str, spot: Location, *, ours: bool) -> None:
        """A result with this id stands here."""
        waiting = self.open.get(name)
        if waiting is None:
            self.strays.add(spot)
        elif ours:
            self.join([call for call in waiting if call not in self.answers], spot)
        else:
            call = self.join(waiting, spot)
            if call is not None:
                waiting.remove(call)

    def join(self, waiting: Sequence[Location], spot: Location) -> Location | None:
        """Let a result answer the first of the calls in the newest message, if there is one."""
        if not waiting:
            return None
        call = next(call for call in waiting if call[0] == waiting[-1][0])
        self.calls.pop(self.answers.get(call, spot), None)
        self.answers[call], self.calls[spot] = spot, call
        self.joined.append(call)
        return call


class RepairLog:
    """Where a history is mended: gathers what is set aside and what is told of it."""

    def __init__(self) -> None:
        self._outputs: list[Output] = []
        self._told: list[tuple[int, Event]] = []

    def tell(self, at: int, why: str, ref: str | None = None, *, where: str = "") -> None:
        """Tell of one thing mended at a message."""
        place = f"message {at + 1}{where and ', '}{where}"
        self._told.append((at, Event(kind="repaired", where=place, why=why, ref=ref)))

    def put_by(self, at: int, why: str, raws: Iterable[Any]) -> None:
        """Keep raw things that leave no line in the view: only the event names their ref."""
        texts = [canon.canonical_json(unmarked(raw)) for raw in raws]
        outputs = [Output(canon.ref_of(text, "block"), text, "block") for text in texts]
        self._outputs += outputs
        self.tell(at, why, outputs[0].ref if outputs else None)

    def set_aside(self, at: int, what: str, outputs: Iterable[Output]) -> str:
        """Keep something that may not stand in the view; returns the line that names it."""
        kept = [output for output in outputs if output.text]
        self._outputs += kept
        self.tell(at, f"{what} was set aside", kept[0].ref if kept else None)
        return aside(what, [(output.ref, len(output.text)) for output in kept])

    def told(self) -> tuple[tuple[Output, ...], tuple[Event, ...]]:
        """What was set aside, and the events in order of place; each once."""
        told = dict.fromkeys(sorted(self._told, key=lambda pair: pair[0]))
        outputs = {output.ref: output for output in self._outputs}
        return tuple(outputs.values()), tuple(dict.fromkeys(event for _, event in told))

    def mark(self) -> tuple[int, int]:
        """How far it has come, for `back_to`."""
        return len(self._outputs), len(self._told)

    def back_to(self, mark: tuple[int, int]) -> None:
        """Forget what was gathered since."""
        del self._outputs[mark[0] :], self._told[mark[1] :]

    def clear(self) -> None:
        """Forget everything."""
        self.back_to((0, 0))


class Growing(ABC):
    """A history of one format: what was read of it, and what comes of it.

    Attributes:
        raws: the raw messages.
        bench: what is told of mending them.
        pairs: which call each result answers.
        stale: of the messages made last, those of `ullage.wires.repaired.Repaired.stale`.
    """

    def __init__(self) -> None:
        self.raws: list[Any] = []
        self.bench = RepairLog()
        self.pairs = Pairs()
        self.stale: list[Any] = []

    @abstractmethod
    def read(self, at: int) -> None:
        """Take in the next message, which stands at ``at``. Looks at nothing behind it."""

    @abstractmethod
    def opens(self, at: int) -> bool:
        """Whether the model begins to speak here, so that a segment may end before it."""

    @abstractmethod
    def make(self, since: int, stop: int, count: int, last: Any) -> tuple[list[Any], bool]:
        """What some messages become, and whether that is so whatever else follows.

        Args:
            since: the first raw message: 0, or where the model begins to speak.
            stop: one past the last: the end, or where the model begins to speak.
            count: how many messages everything before became.
            last: the last of those, or None.
        """

    def ending(self, last: Any) -> list[Any]:
        """What is to stand at the end, behind ``last`` (None if there is no message)."""
        return []

    def look_again(self, at: int) -> None:
        """A message has other cache markers now, and nothing else."""
        return

    def spots(self, at: int) -> Iterable[Location]:
        """Where in a message results may stand."""
        return ((at, 0),)

    def place(self, spot: Location) -> int:
        """The index of the message of a spot."""
        return spot[0]

    def answered(self, at: int) -> list[int]:
        """The messages whose calls a message answers."""
        calls = self.pairs.calls
        return [self.place(calls[spot]) for spot in self.spots(at) if spot in calls]

    def joined(self) -> list[int]:
        """The messages with calls that were answered since this was last asked."""
        places = [self.place(call) for call in self.pairs.joined]
        self.pairs.joined.clear()
        return places


def new_id(name: Any, taken: Callable[[str], bool], legal: Callable[[str], bool]) -> str:
    """An id for a call: its own if that is legal and free, else one derived from it."""
    base = name if isinstance(name, str) else ""
    if not legal(base):
        base = f"call_{canon.ref_of(str(name))}"
    found, number = base, 1
    while taken(found):
        number += 1
        found = f"{base}_{number}"
        if not legal(found):
            base = f"call_{canon.ref_of(base)}"
            found = f"{base}_{number}"
    return found


def outputs_in(message: Message) -> Iterator[Output]:
    """What everything in a message is set aside as."""
    transcript = Transcript(b"")
    transcript.append(message, b"")
    for number in range(len(message.parts)):
        yield from transcript.outputs(0, number)


def is_blank(text: Any) -> bool:
    """Whether a text is empty or nothing but whitespace."""
    return isinstance(text, str) and (not text or text.isspace())


def is_object(raw: Any) -> bool:
    """Whether `copy_of` can copy it: what is no object is left to the parser to refuse."""
    return isinstance(raw, Mapping) or hasattr(raw, "model_dump")


def copy_of(raw: Any) -> dict[str, Any]:
    """The fields of a dict or an SDK object, in a dict of our own."""
    return dict(plain(raw, "message"))
