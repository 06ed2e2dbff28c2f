"""What repairing has in common: pairs, ids, what is set aside and what is reported.

A call and a result are known by where they stand: the index of the message and the number of
the block or call within it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ullage.history import canon
from ullage.history.pairing import INTERRUPTED, At, Pairing
from ullage.history.transcript import Transcript
from ullage.values.effects import Output
from ullage.values.events import Event
from ullage.values.messages import Message
from ullage.values.notices import aside
from ullage.wires.base import plain, unmarked
from ullage.wires.format import Format

__all__ = [
    "BEGIN",
    "EMPTY",
    "GO_ON",
    "INTERRUPTED",
    "MOVED",
    "At",
    "Made",
    "Reading",
    "RepairLog",
    "Reports",
    "copy_of",
    "in_order",
    "is_blank",
    "is_object",
    "new_id",
]

MOVED = "[ullage: a result that came late now stands behind its call]"
EMPTY = "[ullage: this message was empty]"
BEGIN = "[ullage: what stood before was not kept]"
GO_ON = "[ullage: go on]"

Reports: TypeAlias = tuple[tuple[int, Event], ...]
"""What was repaired, each with the message it was repaired at."""


def in_order(reports: Reports) -> tuple[Event, ...]:
    """The events in order of place, each once."""
    placed = sorted(reports, key=lambda report: report[0])
    return tuple(dict.fromkeys(event for _, event in placed))


class RepairLog:
    """What is set aside and reported while messages are made."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []
        self.reports: list[tuple[int, Event]] = []

    def report(self, at: int, why: str, ref: str | None = None, *, where: str = "") -> None:
        """Report one thing that was repaired at a message."""
        place = f"message {at + 1}{where and ', '}{where}"
        self.reports.append((at, Event(kind="repaired", where=place, why=why, ref=ref)))

    def remove(self, at: int, why: str, raw: Any) -> None:
        """Keep a raw thing that leaves no line in the view: only the event names its ref."""
        text = canon.canonical_json(unmarked(raw))
        self.outputs.append(Output(canon.ref_of(text, "block"), text, "block"))
        self.report(at, why, self.outputs[-1].ref)

    def set_aside(self, at: int, what: str, message: Message) -> str:
        """Keep what a message holds, which may not stand there; returns the line that names it."""
        kept = [output for output in _outputs_in(message) if output.text]
        self.outputs += kept
        self.report(at, f"{what} was set aside", kept[0].ref if kept else None)
        return aside(what, [(output.ref, len(output.text)) for output in kept])


def _outputs_in(message: Message) -> Iterator[Output]:
    transcript = Transcript(b"")
    transcript.append(message, b"")
    for number in range(len(message.parts)):
        yield from transcript.outputs(0, number)


class Made(Struct, frozen=True):
    """What some messages in a row became.

    Attributes:
        messages: what is to be sent; an index stands for the caller's own object.
        ids: the ids up to here that may not come again, and where each stands.
        is_closed: whether that is so whatever follows, but for a late result.
        outputs: what was set aside.
        reports: what was repaired.
        stale: of the messages, those of `ullage.wires.repaired.Repaired.stale`.
    """

    messages: list[Any] = []
    ids: dict[str, int] = {}
    is_closed: bool = True
    outputs: tuple[Output, ...] = ()
    reports: Reports = ()
    stale: tuple[int, ...] = ()

    def behind(self, before: Made) -> Made:
        """This and what became of the messages before it, as one."""
        count = len(before.messages)
        return Made(
            [*before.messages, *self.messages],
            self.ids,
            self.is_closed,
            before.outputs + self.outputs,
            before.reports + self.reports,
            (*before.stale, *(count + at for at in self.stale)),
        )

    def sent(self, raws: Sequence[Any]) -> list[Any]:
        """The messages, with the caller's own objects."""
        return [raws[one] if type(one) is int else one for one in self.messages]


class Reading(ABC):
    """One history of one format: what was read of it, and what comes of it.

    Attributes:
        raws: the raw messages, all of them.
        pairs: which call each result answers.
        log: what is reported while messages are made.
        ids: the ids that may not come again, and where each stands.
        stale: the messages made of those that `Repaired.stale` names.
        said: the messages of the model that were read, in order.
    """

    wire: Format

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        self.raws = raws
        self.pairs = pairs
        self.log = RepairLog()
        self.ids: dict[str, int] = {}
        self.stale: list[Any] = []
        self.said: list[int] = []
        self._joined: list[tuple[int, int]] = []
        self._results: dict[int, list[At]] = {}

    @abstractmethod
    def read(self, at: int) -> None:
        """Take in the next message, which stands at ``at``. Looks at nothing behind it."""

    @abstractmethod
    def opens(self, at: int) -> bool:
        """Whether the model begins to speak here. Asked before it is read."""

    @abstractmethod
    def make(self, since: int, stop: int, count: int, last: Any) -> tuple[list[Any], bool]:
        """What some messages become, and whether that is so whatever else follows.

        Args:
            since: the first raw message: 0, or where the model begins to speak.
            stop: one past the last: the end, or where the model begins to speak.
            count: how many messages everything before became.
            last: the last of those, or None.
        """

    @abstractmethod
    def tool(self, call: At) -> str:
        """What an event calls the tool of a call."""

    def ending(self, last: Any) -> list[Any]:
        """What is to stand at the end, behind ``last`` (None if there is no message)."""
        return []

    def made(self, since: int, stop: int, before: Made) -> Made:
        """What some messages become, behind what the ones before became. See `make`."""
        self.log, self.ids, self.stale = RepairLog(), before.ids.copy(), []
        last = replace(before, messages=before.messages[-1:]).sent(self.raws)
        messages, is_closed = self.make(since, stop, len(before.messages), *(last or [None]))
        if stop == len(self.raws):
            messages += self.ending(*(messages[-1:] or last or [None]))
        stale = set(map(id, self.stale))
        places = tuple(at for at, message in enumerate(messages) if id(message) in stale)
        own = {id(self.raws[at]): at for at in range(since, stop)}
        messages = [own.get(id(message), message) for message in messages]
        outputs, reports = tuple(self.log.outputs), tuple(self.log.reports)
        return Made(messages, self.ids, is_closed, outputs, reports, places)

    def crosses(self, boundary: int) -> bool:
        """Whether a result read stands behind a boundary, and its call before it."""
        return any(call < boundary <= result for call, result in self._joined)

    def speaker(self, at: int, *, is_model: bool) -> None:
        """Who made the message that is read now. See `Pairing.speaker`."""
        self.said += [at] if is_model else []
        self.pairs.speaker(is_model=is_model)

    def answer(
        self,
        at: At,
        id: str,
        tool: str = "",
        *,
        is_placeholder: bool = False,
        is_free: bool = False,
    ) -> None:
        """A result stands here. See `Pairing.result`."""
        pairs = self.pairs
        self._results.setdefault(at[0], []).append(at)
        call = pairs.result(at, id, tool, is_placeholder=is_placeholder, is_free=is_free)
        if call is not None:
            self._joined.append((call[0], at[0]))

    def is_late(self, result: At) -> bool:
        """Whether the model spoke between a call and this result."""
        call = self.pairs.calls.get(result)
        if call is None:
            return False
        return bisect_right(self.said, call[0]) < bisect_right(self.said, result[0])

    def callers(self, at: int) -> set[int]:
        """The messages whose calls a message answers."""
        calls = (self.pairs.calls.get(result) for result in self._results.get(at, ()))
        return {call[0] for call in calls if call}

    def left(self, at: int) -> list[Any]:
        """What becomes of a message whose results all went to their calls."""
        is_late = any(map(self.is_late, self._results.get(at, ())))
        return [self.wire.user(MOVED)] if is_late else []

    def answered(
        self, calls: Sequence[At], stays: Callable[[At], bool]
    ) -> Iterator[tuple[At, At | None]]:
        """Each call with its result. Reports what has none, and what does not stay in place."""
        for call in calls:
            result = self.pairs.answers.get(call)
            if result is None:
                self.log.report(call[0], "a call had no result", where=self.tool(call))
            elif not stays(result):
                late = self.is_late(result)
                why = "a result came late" if late else "a result did not stand behind its call"
                where = f"{self.tool(call)} result"
                self.log.report(result[0], why, where=where)
            yield call, result

    def left_over(self, result: At, raw: Any) -> str:
        """The line in place of a result that answers no call, or one that has an answer."""
        at = result[0]
        stray = result in self.pairs.strays
        what = "a tool result without its call" if stray else "a second result of one call"
        return self.log.set_aside(at, what, self.wire.parse(raw, f"{self.wire.key}[{at}]"))

    def own_id(self, at: int, name: Any, taken: Container[str], legal: Callable[[str], Any]) -> str:
        """An id for the call at a message: its own, or one derived from it, which is reported."""
        own = new_id(name, taken, legal)
        if own != name:
            self.log.report(at, "a call had an id that is not legal or not its own")
        return own


def new_id(name: Any, taken: Container[str], legal: Callable[[str], Any]) -> str:
    """An id for a call: its own if that is legal and free, else one derived from it."""
    base = name if isinstance(name, str) else ""
    if not legal(base):
        base = f"call_{canon.ref_of(str(name))}"
    found, number = base, 1
    while found in taken:
        number += 1
        found = f"{base}_{number}"
        if not legal(found):
            base = f"call_{canon.ref_of(base)}"
            found = f"{base}_{number}"
    return found


def is_blank(text: Any) -> bool:
    """Whether a text is empty or nothing but whitespace."""
    return isinstance(text, str) and (not text or text.isspace())


def is_object(raw: Any) -> bool:
    """Whether `copy_of` can copy it: what is no object is left to the parser to refuse."""
    return isinstance(raw, Mapping) or hasattr(raw, "model_dump")


def copy_of(raw: Any) -> dict[str, Any]:
    """The fields of a dict or an SDK object, in a dict of our own."""
    return dict(plain(raw, "message"))
