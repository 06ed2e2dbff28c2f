"""Repairing one history: the walk that all wires share, from calls and results to legal messages.

A wire says which blocks a message holds, which of them call and answer, and what each may look like
(`HistoryRepair._opened`, `_pair`, `_result`, …). Pairs, ids and the order of results are worked out
here. A call and a result are known by where they stand: the index of the message and the number of
the block within it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from msgspec import Struct, field

from ullage.core.history import canon, raw
from ullage.core.history.pairing import INTERRUPTED, At, Pairing
from ullage.core.history.raw import as_json
from ullage.core.history.transcript import Transcript
from ullage.core.redaction import Redact, in_json
from ullage.core.values.effects import Output
from ullage.core.values.events import Event
from ullage.core.values.messages import Message, ToolCall
from ullage.core.values.notices import aside
from ullage.wires.base import plain, unmarked
from ullage.wires.format import WireFormat

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


class RepairedPrefix(Struct, frozen=True):
    """What the first messages of a history became.

    Attributes:
        messages: what is to be sent; an index stands for the caller's own object.
        ids: the ids up to here that may not come again, and where each stands.
        outputs: what was set aside.
        reports: what was repaired.
        stale: of the messages, those of `ullage.core.contract.repaired.Repaired.stale`.
        stop: how many raw messages it is made of.
        copies: a snapshot of each of these.
        pairs: their calls and results.
        line: the same object for every beginning that went on from the same one.
        id_form: what the ids of its calls were made to fit.
        open_ids: ids in use until an output stands, and where their calls are (Responses).
    """

    messages: list[Any] = []
    ids: dict[str, int] = {}
    outputs: tuple[Output, ...] = ()
    reports: Reports = ()
    stale: tuple[int, ...] = ()
    stop: int = 0
    copies: list[Any] = []
    pairs: Pairing = field(default_factory=Pairing)
    line: object = None
    id_form: str = ""
    open_ids: dict[str, int] = {}

    def sent(self, raws: Sequence[Any]) -> list[Any]:
        """The messages, with the caller's own objects."""
        return [raws[one] if type(one) is int else one for one in self.messages]


class HistoryRepair(ABC):
    """One history of one wire: what was read of it, and what comes of it.

    Attributes:
        wire: the format.
        model: the role of the model, as `_opened` gives it.
        hosts: the roles of messages that may hold the results of the one before.
        names_calls: whether calls get ids where theirs are not legal, or not their own.
        legal_id: the form of the ids of calls.
        ids_once: whether no id may come again in the whole history, or else in one message.
        raws: the raw messages, all of them.
        pairs: which call each result answers.
        roles: of the messages read.
        blocks: what they hold, None where that is no list.
        batches: their calls.
        names: the id of each call, as it is to be sent.
        ids: the ids that may not come again, and where each stands.
        stale: the messages made of those that `Repaired.stale` names.
    """

    wire: ClassVar[WireFormat]
    model: ClassVar[str] = "assistant"
    hosts: ClassVar[tuple[str, ...]] = ()
    names_calls: ClassVar[bool] = True
    ids_once: ClassVar[bool] = False

    def __init__(self, raws: Sequence[Any], pairs: Pairing) -> None:
        self.raws = raws
        self.pairs = pairs
        self.redact: Redact | None = None
        self.legal_id = self.wire.call_ids("")
        self.roles: dict[int, Any] = {}
        self.blocks: dict[int, list[Any] | None] = {}
        self.batches: dict[int, list[At]] = {}
        self.names: dict[At, str] = {}
        self.ids: dict[str, int] = {}
        self.open_ids: dict[str, int] = {}
        self.stale: list[Any] = []
        self._outputs: list[Output] = []
        self._reports: list[tuple[int, Event]] = []
        self._said: list[int] = []
        self._joined: list[tuple[int, int]] = []
        self._results: dict[int, list[At]] = {}

    # ── what a wire says ─────────────────────────────────────────────────────────────

    @abstractmethod
    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        """The role of a raw message and its blocks; None if its content is no list of them."""

    @abstractmethod
    def _pair(self, here: At, block: Any, role: Any) -> None:
        """Take in a block that may call or answer: with `call` and `answer`."""

    @abstractmethod
    def _tool(self, call: At) -> str:
        """What an event calls the tool of a call."""

    @abstractmethod
    def _result(self, result: At) -> Any:
        """A result as its call asks for it; the caller's own object if that is legal."""

    @abstractmethod
    def _content(self, at: int, caller: int | None) -> list[Any]:
        """What becomes of a message that answers the calls of ``caller``, if of any."""

    def opens(self, at: int) -> bool:
        """Whether the model begins to speak here. Asked before the message is read."""
        return bool(self._opened(self.raws[at])[0] == self.model)

    def _before(self, at: int, last: Any) -> list[Any]:
        """What is to stand between ``last``, if there is anything, and a message."""
        return []

    def _ending(self, last: Any) -> list[Any]:
        """What is to stand at the end, behind ``last`` (None if there is no message)."""
        if last is not None:
            return []
        self.report(0, "there was no message")
        return [self.wire.user(BEGIN)]

    # ── reading ──────────────────────────────────────────────────────────────────────

    def read(self, at: int) -> None:
        """Take in the next message, which stands at ``at``. Looks at nothing behind it."""
        role, blocks = self._opened(self.raws[at])
        self.roles[at], self.blocks[at] = role, blocks
        self.batches[at] = []
        self._said += [at] if role == self.model else []
        self.pairs.speaker(is_model=role == self.model)
        for number, block in enumerate(blocks or ()):
            self._pair((at, number), block, role)

    def call(self, at: At, id: Any, tool: str = "") -> None:
        """A call stands here. See `Pairing.call`."""
        self.batches[at[0]].append(at)
        self.pairs.call(at, str(id or ""), tool)

    def answer(self, at: At, id: Any, tool: str = "", **how: bool) -> None:
        """A result stands here. See `Pairing.result`."""
        self._results.setdefault(at[0], []).append(at)
        call = self.pairs.result(at, str(id or ""), tool, **how)
        if call is not None:
            self._joined.append((call[0], at[0]))

    def block(self, here: At) -> Any:
        """The block that stands here."""
        return (self.blocks[here[0]] or ())[here[1]]

    def crosses(self, boundary: int) -> bool:
        """Whether a result read stands behind a boundary, and its call before it."""
        return any(call < boundary <= result for call, result in self._joined)

    def spoken(self, start: int, stop: int) -> list[int]:
        """The messages of the model between two that were read."""
        return self._said[
            bisect_right(self._said, start) : bisect_right(self._said, stop)
        ]

    def is_late(self, result: At) -> bool:
        """Whether the model spoke between a call and this result."""
        call = self.pairs.calls.get(result)
        return call is not None and bool(self.spoken(call[0], result[0]))

    def _is_host(self, at: int, caller: int) -> bool:
        """Whether a message may hold the results of the one before, and holds one."""
        if self.roles.get(at) not in self.hosts:
            return False
        calls = (self.pairs.calls.get(result) for result in self._results.get(at, ()))
        return any(call is not None and call[0] == caller for call in calls)

    # ── making ───────────────────────────────────────────────────────────────────────

    def made(self, stop: int, since: RepairedPrefix) -> tuple[RepairedPrefix, bool]:
        """What the messages up to ``stop`` become, and whether that is so whatever follows."""
        self.ids, self.open_ids = since.ids.copy(), since.open_ids.copy()
        self.stale, self._outputs, self._reports = [], [], []
        last = [
            self.raws[one] if type(one) is int else one for one in since.messages[-1:]
        ]
        count = len(since.messages)
        messages, is_closed = self._make(since.stop, stop, count, *last or [None])
        if stop == len(self.raws):
            messages += self._ending(*messages[-1:] or last or [None])
        stale = set(map(id, self.stale))
        own = {id(self.raws[at]): at for at in range(since.stop, stop)}
        made = RepairedPrefix(
            [*since.messages, *(own.get(id(message), message) for message in messages)],
            self.ids,
            (*since.outputs, *self._outputs),
            (*since.reports, *self._reports),
            (
                *since.stale,
                *(count + n for n, one in enumerate(messages) if id(one) in stale),
            ),
            stop,
            id_form=self.legal_id.pattern,
            open_ids=self.open_ids,
        )
        return made, is_closed

    def _make(
        self, since: int, stop: int, count: int, last: Any
    ) -> tuple[list[Any], bool]:
        """What some messages become, and whether that is so whatever else follows.

        Every batch of calls is followed by its results: in the message behind it, if that
        answers one of them, else in messages of their own.
        """
        made: list[Any] = []
        callers: dict[int, int] = {}
        for at in range(since, stop):
            made += self._before(at, made[-1] if made else last)
            taken = self.ids if self.ids_once else {}
            for call in self.batches[at] if self.names_calls else ():
                self._name(call, taken)
            made += self._content(at, callers.get(at))
            if self.batches[at] and self._is_host(at + 1, at):
                callers[at + 1] = at
            elif self.batches[at]:
                made += self.wire.results(self._answers(at))
        return made, True

    def _answers(self, caller: int, host: int | None = None) -> list[Any]:
        """The results of a batch in the order of its calls; ``host`` holds those in place."""
        return list(
            self.answered(self.batches[caller], lambda result: result[0] == host)
        )

    def answered(
        self, calls: Sequence[At], stays: Callable[[At], bool]
    ) -> Iterator[Any]:
        """The result of each call. Reports what has none, and what does not stay in place."""
        for call in calls:
            result = self.pairs.answers.get(call)
            if result is None:
                self.report(call[0], "a call had no result", where=self._tool(call))
                yield self._interrupted(call)
                continue
            if not stays(result):
                late = self.is_late(result)
                why = (
                    "a result came late"
                    if late
                    else "a result did not stand behind its call"
                )
                self.report(result[0], why, where=f"{self._tool(call)} result")
            yield self._result(result)

    def _interrupted(self, call: At) -> Any:
        """The result of a call that has none: the same bytes every time."""
        asked = ToolCall(self.names[call], self._tool(call), "{}", 0)
        return self.wire.result(asked, INTERRUPTED, is_error=True)

    def left(self, at: int) -> list[Any]:
        """What becomes of a message whose results all went to their calls."""
        is_late = any(map(self.is_late, self._results.get(at, ())))
        return [self.wire.user(MOVED)] if is_late else []

    # ── ids, and what is set aside ───────────────────────────────────────────────────

    def _given_id(self, call: At, field: str) -> Any:
        """The id that a call has, whatever it is."""
        return raw.field(self.block(call), field)

    def _name(self, call: At, taken: dict[str, int], field: str = "id") -> None:
        """Give a call an id: its own if that is legal and free, else one derived from it."""
        given = self._given_id(call, field)
        name = given if isinstance(given, str) else ""
        if not self.legal_id.match(name):
            name = f"call_{canon.ref_of(str(given))}"
        found, number = name, 1
        while found in taken:
            number += 1
            found = f"{name}_{number}"
            if not self.legal_id.match(found):
                name = f"call_{canon.ref_of(name)}"
                found = f"{name}_{number}"
        if found != given:
            self.report(call[0], "a call had an id that is not legal or not its own")
        self.names[call], taken[found] = found, call[0]

    def text_of(self, given: Any, at: int) -> str:
        """Arguments that were to be text, as text; which is reported."""
        self.report(at, "the arguments of a call were not text")
        return "" if given is None else as_json(given, f"{self.wire.key}[{at}]")

    def report(
        self, at: int, why: str, ref: str | None = None, *, where: str = ""
    ) -> None:
        """Report one thing that was repaired at a message."""
        place = f"message {at + 1}{where and ', '}{where}"
        self._reports.append(
            (at, Event(kind="repaired", where=place, why=why, ref=ref))
        )

    def remove(self, at: int, why: str, raw: Any) -> None:
        """Keep a raw thing that leaves no line in the view: only the event names its ref."""
        text = canon.canonical_json(unmarked(raw))
        text = text if self.redact is None else in_json(text, self.redact)
        self._outputs.append(Output(canon.ref_of(text, "block"), text, "block"))
        self.report(at, why, self._outputs[-1].ref)

    def set_aside(self, at: int, what: str, raw: Any) -> str:
        """Keep what a message holds, which may not stand there; returns the line that names it."""
        kept = [output for output in self._outputs_in(at, raw) if output.text]
        self._outputs += kept
        self.report(at, f"{what} was set aside", kept[0].ref if kept else None)
        return aside(what, [(output.ref, len(output.text)) for output in kept])

    def left_over(self, result: At, raw: Any) -> str:
        """The line in place of a result that answers no call, or one that has an answer."""
        stray = result in self.pairs.strays
        what = (
            "a tool result without its call" if stray else "a second result of one call"
        )
        return self.set_aside(result[0], what, raw)

    def _outputs_in(self, at: int, raw: Any) -> Iterator[Output]:
        message: Message = self.wire.parse(raw, f"{self.wire.key}[{at}]")
        transcript = Transcript(b"", self.redact)
        transcript.append(message, b"")
        for number in range(len(message.parts)):
            yield from transcript.outputs(0, number)


def is_blank(text: Any) -> bool:
    """Whether a text is empty or nothing but whitespace."""
    return isinstance(text, str) and (not text or text.isspace())


def is_interrupted(content: Any) -> bool:
    """Whether the content of a result is our own: a text, or one item that holds it."""
    if isinstance(content, (list, tuple)) and len(content) == 1:
        content = raw.field(content[0], "text") or raw.field(content[0], "stderr")
    return isinstance(content, str) and content == INTERRUPTED


def is_object(raw: Any) -> bool:
    """Whether `copy_of` can copy it: what is no object is left to the parser to refuse."""
    return isinstance(raw, Mapping) or hasattr(raw, "model_dump")


def copy_of(raw: Any) -> dict[str, Any]:
    """The fields of a dict or an SDK object, in a dict of our own."""
    return dict(plain(raw, "message"))
