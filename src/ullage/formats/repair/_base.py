"""What mending has in common: which result answers which call, ids, and what is told.

A call and a result are known by their spot: the index of the message and the number of the
block or call within it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from ullage import canon
from ullage.effects import Output
from ullage.events import Event
from ullage.formats._base import plain, unmarked
from ullage.messages import Message
from ullage.notices import aside
from ullage.transcript import Transcript

__all__ = [
    "BEGIN",
    "EMPTY",
    "GO_ON",
    "INTERRUPTED",
    "MOVED",
    "Bench",
    "Mended",
    "Pairs",
    "Spot",
    "copy_of",
    "is_blank",
    "new_id",
    "outputs_in",
]

INTERRUPTED = "[ullage: this call was interrupted; it has no result]"
MOVED = "[ullage: a result that came late now stands behind its call]"
EMPTY = "[ullage: this message was empty]"
BEGIN = "[ullage: what stood before was not kept]"
GO_ON = "[ullage: go on]"

Spot: TypeAlias = tuple[int, int]


class Mended(Struct, frozen=True):
    """A history as the provider takes it.

    Attributes:
        messages: the raw messages; untouched ones are the caller's own objects, and the
            whole is the caller's own sequence if nothing was mended.
        outputs: what was set aside, to be kept under its ref.
        events: what was mended, in order of place, one event a thing.
        stale: indices of the messages of the assistant that were made while our own result
            stood where a late one stands now: reasoning bound to what precedes it is
            bound to that.
    """

    messages: Sequence[Any]
    outputs: tuple[Output, ...] = ()
    events: tuple[Event, ...] = ()
    stale: tuple[int, ...] = ()


class Pairs:
    """Which call each result answers. Fed in order, it never looks ahead.

    A result answers the open call of its id in the newest message that has one, there the
    first. A result of ours (`INTERRUPTED`) leaves its call open for a real one.

    Attributes:
        answers: the result of each answered call.
        calls: the call that each result answers; a result not in here is left over.
        open: the calls of each id that have no real result yet, in order.
        strays: of the results left over, those of no call known before them.
    """

    def __init__(self) -> None:
        self.answers: dict[Spot, Spot] = {}
        self.calls: dict[Spot, Spot] = {}
        self.strays: set[Spot] = set()
        self.open: dict[str, list[Spot]] = {}

    def call(self, name: str, spot: Spot) -> None:
        """A call with this id stands here."""
        self.open.setdefault(name, []).append(spot)

    def result(self, name: str, spot: Spot, *, ours: bool) -> None:
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

    def join(self, waiting: Sequence[Spot], spot: Spot) -> Spot | None:
        """Let a result answer the first of the calls in the newest message, if there is one."""
        if not waiting:
            return None
        call = next(call for call in waiting if call[0] == waiting[-1][0])
        self.calls.pop(self.answers.get(call, spot), None)
        self.answers[call], self.calls[spot] = spot, call
        return call


class Bench:
    """Where a history is mended: gathers what is set aside and what is told of it."""

    def __init__(self) -> None:
        self.outputs: dict[str, Output] = {}
        self.told: list[tuple[int, Event]] = []
        self.stale: list[Any] = []

    def tell(self, at: int, why: str, ref: str | None = None, *, where: str = "") -> None:
        """Tell of one thing mended at a message."""
        place = f"message {at + 1}{where and ', '}{where}"
        self.told.append((at, Event(kind="repaired", where=place, why=why, ref=ref)))

    def put_by(self, at: int, why: str, raws: Iterable[Any]) -> None:
        """Keep raw things that leave no line in the view: only the event names their ref."""
        refs = []
        for raw in raws:
            text = canon.canonical_json(unmarked(raw))
            refs.append(canon.ref_of(text, "block"))
            self.outputs[refs[-1]] = Output(refs[-1], text, "block")
        self.tell(at, why, refs[0] if refs else None)

    def set_aside(self, at: int, what: str, outputs: Iterable[Output]) -> str:
        """Keep something that may not stand in the view; returns the line that names it."""
        kept = [output for output in outputs if output.text]
        for output in kept:
            self.outputs[output.ref] = output
        self.tell(at, f"{what} was set aside", kept[0].ref if kept else None)
        return aside(what, [(output.ref, len(output.text)) for output in kept])

    def done(self, raws: Sequence[Any], messages: list[Any]) -> Mended:
        """The history as mended; the caller's own sequence if it is the same."""
        same = len(messages) == len(raws) and all(map(_is, messages, raws))
        told = dict.fromkeys(sorted(self.told, key=lambda pair: pair[0]))
        outputs, events = tuple(self.outputs.values()), tuple(event for _, event in told)
        stale = {id(message) for message in self.stale}
        places = tuple(at for at, message in enumerate(messages) if id(message) in stale)
        return Mended(raws if same else messages, outputs, events, places)


def _is(one: Any, other: Any) -> bool:
    return one is other


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


def copy_of(raw: Any) -> dict[str, Any]:
    """The fields of a dict or an SDK object, in a dict of our own."""
    return dict(plain(raw, "message"))
