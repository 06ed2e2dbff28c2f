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

import msgspec
from msgspec import Struct

from ullage.core.history import canon
from ullage.core.history.pairing import INTERRUPTED, At, Pairing
from ullage.core.history.raw import as_json, field
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
    """The events in the order of their messages, each once."""
    by_message = sorted(reports, key=lambda report: report[0])
    events = [event for _, event in by_message]
    return tuple(dict.fromkeys(events))


class RepairedPrefix(Struct, frozen=True):
    """What the first messages of a history became.

    Attributes:
        messages: what is to be sent; an index stands for the caller's own object.
        ids: the ids up to here that may not come again, and the message of each.
        outputs: what was set aside.
        reports: what was repaired.
        stale: of the messages, those of `ullage.core.contract.repaired.Repaired.stale`.
        stop: how many raw messages it is made of.
        copies: a snapshot of each of these.
        pairs: their calls and results.
        line: the same object for every prefix that grew out of the same one.
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
    pairs: Pairing = msgspec.field(default_factory=Pairing)
    line: object = None
    id_form: str = ""
    open_ids: dict[str, int] = {}

    def sent(self, raws: Sequence[Any]) -> list[Any]:
        """The messages, with the caller's own objects."""
        return [
            raws[entry] if type(entry) is int else entry
            for entry in self.messages
        ]


class HistoryRepair(ABC):
    """One history of one wire: what was read of it, and the outcome.

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
        stale: of the messages made, those that `Repaired.stale` names.
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
        self._model_messages: list[int] = []
        self._joined: list[tuple[int, int]] = []
        self._results: dict[int, list[At]] = {}

    # ── what a wire says ─────────────────────────────────────────────────────────────

    @abstractmethod
    def _opened(self, raw: Any) -> tuple[Any, list[Any] | None]:
        """The role of a raw message and its blocks; None if its content is no list of them."""

    @abstractmethod
    def _pair(self, here: At, block: Any, role: Any) -> None:
        """Register a block that may call or answer, with `call` or `answer`."""

    @abstractmethod
    def _tool(self, call: At) -> str:
        """What an event calls the tool of a call."""

    @abstractmethod
    def _result(self, result: At) -> Any:
        """A result as its call asks for it; the caller's own object if that is legal."""

    @abstractmethod
    def _content(self, at: int, caller: int | None) -> list[Any]:
        """The messages that one message becomes.

        Args:
            at: its index.
            caller: the index of the message whose calls it answers; None if of none.
        """

    def opens(self, at: int) -> bool:
        """Whether the model begins to speak here. Asked before the message is read."""
        role, _ = self._opened(self.raws[at])
        return bool(role == self.model)

    def _before(self, at: int, previous: Any) -> list[Any]:
        """The messages to put between ``previous`` (None: there is none) and a message."""
        return []

    def _ending(self, previous: Any) -> list[Any]:
        """The messages to put at the end, behind ``previous`` (None: there is none)."""
        if previous is not None:
            return []
        self.report(0, "there was no message")
        return [self.wire.user(BEGIN)]

    # ── reading ──────────────────────────────────────────────────────────────────────

    def read(self, at: int) -> None:
        """Read the next message, which has the index ``at``, and nothing behind it."""
        role, blocks = self._opened(self.raws[at])
        is_model = role == self.model
        self.roles[at] = role
        self.blocks[at] = blocks
        self.batches[at] = []
        if is_model:
            self._model_messages.append(at)
        self.pairs.begin_message(is_model=is_model)
        for number, block in enumerate(blocks or ()):
            self._pair((at, number), block, role)

    def call(self, at: At, id: Any, tool: str = "") -> None:
        """Register the call that stands at ``at``. See `Pairing.add_call`."""
        self.batches[at[0]].append(at)
        self.pairs.add_call(at, str(id or ""), tool)

    def answer(self, at: At, id: Any, tool: str = "", **options: bool) -> None:
        """Register the result that stands at ``at``. See `Pairing.add_result`."""
        self._results.setdefault(at[0], []).append(at)
        call = self.pairs.add_result(at, str(id or ""), tool, **options)
        if call is not None:
            self._joined.append((call[0], at[0]))

    def block(self, here: At) -> Any:
        """The block that stands here."""
        message, number = here
        blocks = self.blocks[message] or ()
        return blocks[number]

    def crosses(self, boundary: int) -> bool:
        """Whether a result that was read stands behind a boundary, and its call before it."""
        return any(call < boundary <= result for call, result in self._joined)

    def spoken(self, start: int, stop: int) -> list[int]:
        """The messages of the model behind the one at ``start``, up to that at ``stop``."""
        begin = bisect_right(self._model_messages, start)
        end = bisect_right(self._model_messages, stop)
        return self._model_messages[begin:end]

    def is_late(self, result: At) -> bool:
        """Whether the model spoke between a call and this result."""
        call = self.pairs.call_by_result.get(result)
        if call is None:
            return False
        return bool(self.spoken(call[0], result[0]))

    def _is_host(self, at: int, caller: int) -> bool:
        """Whether a message may hold the results of the one before, and holds one."""
        if self.roles.get(at) not in self.hosts:
            return False
        for result in self._results.get(at, ()):
            call = self.pairs.call_by_result.get(result)
            if call is not None and call[0] == caller:
                return True
        return False

    # ── making ───────────────────────────────────────────────────────────────────────

    def made(
        self, stop: int, prefix: RepairedPrefix
    ) -> tuple[RepairedPrefix, bool]:
        """Repair the messages up to ``stop``, from what a prefix of them became.

        Returns:
            What they become, and whether that is so whatever follows.
        """
        self.ids = prefix.ids.copy()
        self.open_ids = prefix.open_ids.copy()
        self.stale = []
        self._outputs = []
        self._reports = []
        count = len(prefix.messages)
        previous = None
        if prefix.messages:
            entry = prefix.messages[-1]
            previous = self.raws[entry] if type(entry) is int else entry
        messages, is_closed = self._make(prefix.stop, stop, count, previous)
        if stop == len(self.raws):
            messages += self._ending(messages[-1] if messages else previous)
        repaired = RepairedPrefix(
            messages=[
                *prefix.messages,
                *self._with_indexes(messages, prefix.stop, stop),
            ],
            ids=self.ids,
            outputs=(*prefix.outputs, *self._outputs),
            reports=(*prefix.reports, *self._reports),
            stale=(*prefix.stale, *self._stale_among(messages, count)),
            stop=stop,
            id_form=self.legal_id.pattern,
            open_ids=self.open_ids,
        )
        return repaired, is_closed

    def _with_indexes(
        self, messages: list[Any], start: int, stop: int
    ) -> Iterator[Any]:
        """The messages, with the index of each that is the caller's own object."""
        indexes = {id(self.raws[at]): at for at in range(start, stop)}
        for message in messages:
            yield indexes.get(id(message), message)

    def _stale_among(self, messages: list[Any], count: int) -> Iterator[int]:
        """The indexes of stale messages, with ``count`` messages before these."""
        stale = {id(message) for message in self.stale}
        for index, message in enumerate(messages, count):
            if id(message) in stale:
                yield index

    def _make(
        self, start: int, stop: int, count: int, previous: Any
    ) -> tuple[list[Any], bool]:
        """What the messages of a range become, and whether that is so whatever else follows.

        Every batch of calls is followed by its results: in the message behind it, if that
        answers one of them, else in messages of their own.

        Args:
            start: the first message of the range.
            stop: the first behind it.
            count: how many repaired messages stand before.
            previous: the last of those; None if there is none.
        """
        messages: list[Any] = []
        callers: dict[int, int] = {}
        for at in range(start, stop):
            messages += self._before(
                at, messages[-1] if messages else previous
            )
            batch = self.batches[at]
            if self.names_calls:
                used_ids = self.ids if self.ids_once else {}
                for call in batch:
                    self._name(call, used_ids)
            messages += self._content(at, callers.get(at))
            if not batch:
                continue
            if self._is_host(at + 1, at):
                callers[at + 1] = at
            else:
                messages += self.wire.results(self._answers(at))
        return messages, True

    def _answers(self, caller: int, host: int | None = None) -> list[Any]:
        """The results of a batch in the order of its calls; ``host`` holds those in place."""
        calls = self.batches[caller]
        return list(self.answered(calls, lambda result: result[0] == host))

    def answered(
        self, calls: Sequence[At], stays: Callable[[At], bool]
    ) -> Iterator[Any]:
        """The result of each call. Reports a call without one, and a result that was moved.

        Args:
            calls: the calls.
            stays: whether a result stands where it may.
        """
        for call in calls:
            tool = self._tool(call)
            result = self.pairs.result_by_call.get(call)
            if result is None:
                self.report(call[0], "a call had no result", where=tool)
                yield self._interrupted(call)
                continue
            if not stays(result):
                reason = "a result did not stand behind its call"
                if self.is_late(result):
                    reason = "a result came late"
                self.report(result[0], reason, where=f"{tool} result")
            yield self._result(result)

    def _interrupted(self, call: At) -> Any:
        """The result of a call that has none: the same bytes every time."""
        unanswered = ToolCall(self.names[call], self._tool(call), "{}", 0)
        return self.wire.result(unanswered, INTERRUPTED, is_error=True)

    def left(self, at: int) -> list[Any]:
        """What becomes of a message whose results all went to their calls."""
        results = self._results.get(at, ())
        if any(self.is_late(result) for result in results):
            return [self.wire.user(MOVED)]
        return []

    # ── ids, and what is set aside ───────────────────────────────────────────────────

    def _given_id(self, call: At, key: str) -> Any:
        """The id that a call has, whatever it is."""
        return field(self.block(call), key)

    def _name(
        self, call: At, used_ids: dict[str, int], key: str = "id"
    ) -> None:
        """Give a call an id: its own if that is legal and free, else one derived from it.

        Args:
            call: the call.
            used_ids: the ids that are not free, and the message of each; the new one is added.
            key: the field that holds the id.
        """
        own_id = self._given_id(call, key)
        base = own_id if isinstance(own_id, str) else ""
        if not self.legal_id.match(base):
            base = f"call_{canon.ref_of(str(own_id))}"
        name = base
        number = 1
        while name in used_ids:
            number += 1
            name = f"{base}_{number}"
            if not self.legal_id.match(name):
                base = f"call_{canon.ref_of(base)}"
                name = f"{base}_{number}"
        if name != own_id:
            self.report(
                call[0], "a call had an id that is not legal or not its own"
            )
        self.names[call] = name
        used_ids[name] = call[0]

    def text_of(self, arguments: Any, at: int) -> str:
        """Arguments that were to be text, as text; which is reported."""
        self.report(at, "the arguments of a call were not text")
        if arguments is None:
            return ""
        return as_json(arguments, f"{self.wire.key}[{at}]")

    def report(
        self, at: int, reason: str, ref: str | None = None, *, where: str = ""
    ) -> None:
        """Report one thing that was repaired.

        Args:
            at: the index of the message.
            reason: what was wrong.
            ref: of the output that was set aside, if any was.
            where: the part of the message.
        """
        place = f"message {at + 1}"
        if where:
            place = f"{place}, {where}"
        event = Event(kind="repaired", where=place, why=reason, ref=ref)
        self._reports.append((at, event))

    def remove(self, at: int, reason: str, raw: Any) -> None:
        """Keep a raw thing that leaves no line in the view: only the event names its ref."""
        text = canon.canonical_json(unmarked(raw))
        if self.redact is not None:
            text = in_json(text, self.redact)
        output = Output(canon.ref_of(text, "block"), text, "block")
        self._outputs.append(output)
        self.report(at, reason, output.ref)

    def set_aside(self, at: int, description: str, raw: Any) -> str:
        """Keep what a message holds, which may not stand there; returns the line that names it."""
        outputs = [
            output for output in self._outputs_in(at, raw) if output.text
        ]
        self._outputs += outputs
        ref = outputs[0].ref if outputs else None
        self.report(at, f"{description} was set aside", ref)
        return aside(
            description, [(output.ref, len(output.text)) for output in outputs]
        )

    def left_over(self, result: At, raw: Any) -> str:
        """The line in place of a result that answers no call, or one that has an answer."""
        description = "a second result of one call"
        if result in self.pairs.strays:
            description = "a tool result without its call"
        return self.set_aside(result[0], description, raw)

    def _outputs_in(self, at: int, raw: Any) -> Iterator[Output]:
        """The texts of a raw message, as outputs."""
        message: Message = self.wire.parse(raw, f"{self.wire.key}[{at}]")
        transcript = Transcript(b"", self.redact)
        transcript.append(message, b"")
        for number in range(len(message.parts)):
            yield from transcript.outputs(0, number)


def is_blank(text: Any) -> bool:
    """Whether a text is empty or nothing but whitespace."""
    if not isinstance(text, str):
        return False
    return not text or text.isspace()


def is_interrupted(content: Any) -> bool:
    """Whether the content of a result is our own: a text, or one item that holds it."""
    if isinstance(content, (list, tuple)) and len(content) == 1:
        item = content[0]
        content = field(item, "text") or field(item, "stderr")
    return isinstance(content, str) and content == INTERRUPTED


def is_object(raw: Any) -> bool:
    """Whether `copy_of` can copy it: what is no object is left to the parser to refuse."""
    return isinstance(raw, Mapping) or hasattr(raw, "model_dump")


def copy_of(raw: Any) -> dict[str, Any]:
    """The fields of a dict or an SDK object, in a dict of our own."""
    return dict(plain(raw, "message"))
