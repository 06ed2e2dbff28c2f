"""Which call each result answers, decided once for all: messages are fed in order, none ahead.

    a result answers                  of the open calls with its id, the first that was made
                                      together with the newest: in one message, or, where each
                                      call is one of its own, in one reply. So an id may come
                                      again in a later turn
    an id on one side only            calls and results of one tool are paired in order (Gemini)
    neither an id nor a tool          the first call that waits (Ollama)
    a placeholder of ours             leaves its call open: a real result takes its place (F04)
    a second result                   answers nothing, and belongs to the newest call with its id
    a result of no call before it     is a stray, unless a reference may stand for its call
    a tool of the provider's          has its opening and closing paired as a call and its result

A call *waits* while its reply is the newest and it has no result; for longer only where its
result may come in a later turn. A call that was never answered must not wait for ever (F06).
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from ullage.core.values.messages import (
    WHOLE,
    Message,
    Opaque,
    ToolCall,
    ToolResult,
)

INTERRUPTED = "[ullage: this call was interrupted; it has no result]"
"""The text of a placeholder: the result that a call without one gets."""

At: TypeAlias = tuple[int, int]
"""Where a call or result is: its message, and its number there."""

_Key: TypeAlias = tuple[str, str]


class _Call(NamedTuple):
    at: At
    group: int
    keys: tuple[_Key, ...]


class Pairing(Struct):
    """The calls and results fed so far.

    Attributes:
        call_by_result: the call that each result answers; a second result and a stray are not in
            here.
        result_by_call: the result of each answered call.
        seconds: the newest call with the id of each second result.
        strays: the results of no call before them.
        unanswered: the calls without a result, and whether it may come in a later turn.
        waiting: of those, the ones that still wait.
    """

    call_by_result: dict[At, At] = {}
    result_by_call: dict[At, At] = {}
    seconds: dict[At, At] = {}
    strays: set[At] = set()
    unanswered: dict[At, bool] = {}
    waiting: dict[At, bool] = {}
    _open: dict[_Key, tuple[_Call, ...]] = {}
    _newest: dict[_Key, At] = {}
    _reply: int = 0
    _is_reply: bool = False
    _refers: bool = False

    def copy(self) -> Pairing:
        """The same, to be fed on its own."""
        twin = copy(self)
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not isinstance(value, int):
                setattr(twin, name, value.copy())
        return twin

    def begin_message(self, *, is_model: bool) -> None:
        """Who made the next message: the model's in a row are one reply."""
        if is_model and not self._is_reply:
            self._reply += 1
            if self.waiting:
                self.waiting = {
                    at: late for at, late in self.waiting.items() if late
                }
        self._is_reply = is_model

    def add_reference(self) -> None:
        """A reference is here: whatever is answered from now on, it may name the call."""
        self._refers = True

    def add_call(
        self,
        at: At,
        id: str,
        tool: str = "",
        *,
        late: bool = False,
        is_whole: bool = False,
    ) -> None:
        """A call is here.

        Args:
            at: where.
            id: its id, ``""`` or one that was made up if the wire has none.
            tool: its tool, where a result may be known by that alone.
            late: whether its result may come in any later turn.
            is_whole: whether it is a message of its own (Responses).
        """
        keys: list[_Key] = [("id", id)] if id or not tool else []
        if tool:
            keys.append(("tool", tool))
            if not _is_of_wire(id, tool):
                keys.append(("nameless", tool))
        # calls were made together in one message, or, each a message of its own, in one reply
        group = -self._reply if is_whole else at[0]
        call = _Call(at, group, tuple(keys))
        for key in call.keys:
            self._open[key] = (*self._open.get(key, ()), call)
            self._newest[key] = at
        self.waiting[at] = self.unanswered[at] = late

    def add_result(
        self,
        at: At,
        id: str,
        tool: str = "",
        *,
        is_placeholder: bool = False,
        is_free: bool = False,
    ) -> At | None:
        """A result is here; returns the call that it answers, if it answers one.

        Args:
            at: where.
            id: the id it names, ``""`` for none; `NAMELESS` where it names no tool either.
            tool: its tool, where it may be known by that alone.
            is_placeholder: whether it is one of ours, which a real one replaces.
            is_free: whether its call may be held elsewhere: then it is never a stray.
        """
        keys: list[_Key] = [("id", id)]
        if tool:
            keys = (
                [("id", id), ("nameless", tool)]
                if _is_of_wire(id, tool)
                else [("tool", tool)]
            )
        fits = (
            self._waiting_calls() if id == NAMELESS else self._open_calls(keys)
        )
        if is_placeholder:
            fits = tuple(
                call for call in fits if call.at not in self.result_by_call
            )
        if fits:
            return self._join(fits, at, is_placeholder=is_placeholder)
        named = [key for key in keys if key in self._newest]
        if named:
            self.seconds[at] = self._newest[named[0]]
        elif not (is_free or self._refers):
            self.strays.add(at)
        return None

    def _open_calls(self, keys: list[_Key]) -> tuple[_Call, ...]:
        """The calls that may still be answered under the first key that has any."""
        for key in keys:
            if calls := self._open.get(key):
                return calls
        return ()

    def _waiting_calls(self) -> tuple[_Call, ...]:
        """The calls that wait, in order."""
        calls = {
            call.at: call for same in self._open.values() for call in same
        }
        return tuple(calls[at] for at in sorted(self.waiting) if at in calls)

    def _join(
        self, fits: tuple[_Call, ...], at: At, *, is_placeholder: bool
    ) -> At:
        call = next(call for call in fits if call.group == fits[-1].group)
        replaced = self.result_by_call.get(call.at)
        if replaced is not None:
            # first: `of` is asked meanwhile by other threads
            self.seconds[replaced] = call.at
            del self.call_by_result[replaced]
        self.result_by_call[call.at] = at
        self.call_by_result[at] = call.at
        self.waiting.pop(call.at, None)
        self.unanswered.pop(call.at, None)
        if not is_placeholder:
            for key in call.keys:
                calls = self._open.pop(key)
                remaining = tuple(
                    rival for rival in calls if rival is not call
                )
                if remaining:
                    self._open[key] = remaining
        return call.at

    def of(self, at: At) -> At | None:
        """The call that a result belongs to: the one it answers, or has an answer already."""
        return self.call_by_result.get(at) or self.seconds.get(at)

    def results_of(self, at: At) -> list[At]:
        """The results that belong to a call: its answer, and those that came besides."""
        answer = self.result_by_call.get(at)
        results = [] if answer is None else [answer]
        # a copy: a reader of a frozen history may ask in mid-turn
        for result, call in self.seconds.copy().items():
            if call == at:
                results.append(result)
        return results

    def feed(self, index: int, message: Message) -> None:
        """Take in the next message, whatever its format: what it calls, answers and opens."""
        self.begin_message(is_model=message.role == "assistant")
        for number, part in enumerate(message.parts):
            at = (index, number)
            if isinstance(part, ToolCall):
                whole = part.at == WHOLE
                self.add_call(
                    at, part.id, part.name, late=part.deferred, is_whole=whole
                )
            elif isinstance(part, ToolResult):
                is_ours = _is_placeholder(part)
                self.add_result(
                    at, part.call_id, part.name, is_placeholder=is_ours
                )
            elif isinstance(part, Opaque):
                if part.closes:
                    self.add_result(at, part.closes)
                if part.opens:
                    self.add_call(
                        at,
                        part.opens,
                        late=part.deferred,
                        is_whole=part.at == WHOLE,
                    )


def _is_placeholder(result: ToolResult) -> bool:
    """Whether a result is the one that we gave in place of a missing one."""
    texts = list[str | None]()
    for item in result.content:
        text = getattr(item, "text", None)
        if not isinstance(item, Opaque) and text != "":
            texts.append(text)
    return texts == [INTERRUPTED]


def made_up(tool: str, number: int) -> str:
    """The id of the call of a tool, or of its result, in a message whose wire gives it none."""
    return f"{tool}#{number}"


NAMELESS = made_up("", 0)
"""The id of a result that names neither its call nor its tool."""


def is_made_up(id: str, tool: str) -> bool:
    """Whether an id is no wire's own."""
    head, mark, number = id.rpartition("#")
    return bool(mark) and head == tool and number.isdigit()


def _is_of_wire(id: str, tool: str) -> bool:
    return bool(id) and not is_made_up(id, tool)
