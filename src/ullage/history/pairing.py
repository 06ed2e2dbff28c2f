"""Which call each result answers. It is decided here, for everybody who asks.

The transcript, repairing, conversion between formats, the judge and the readers of logs feed
what they read, in order, and are told the same. Nothing looks ahead.

    a result answers                  of the open calls with its id, those of the newest message,
                                      there the first; so an id may come again in a later turn
    an id on one side only            calls and results of one tool are paired in order (Gemini)
    a placeholder of ours             leaves its call open: a real result takes its place (F04)
    a second result                   answers nothing, and belongs to the newest call with its id
    a result of no call before it     is a stray, unless a reference may stand for its call
    an opening and a closing          of a tool of the provider are a call and its result, by an
                                      id that no other call has

What *waits* is another question: the calls of the newest reply without any result, and those
of any reply whose result may come in a later turn. A call that was never answered must not
wait for ever (F06).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = ["INTERRUPTED", "At", "Pairing"]

INTERRUPTED = "[ullage: this call was interrupted; it has no result]"
"""The text of a placeholder: the result that a call without one gets."""

At: TypeAlias = tuple[int, int]
"""Where a call or result stands: its message (or reply), and its number there."""

_Key: TypeAlias = tuple[str, str]


class _Call(NamedTuple):
    at: At
    keys: tuple[_Key, ...]


class Pairing:
    """The calls and results fed so far.

    Attributes:
        calls: the call that each result answers; a second result and a stray are not in here.
        answers: the result of each answered call.
        seconds: the newest call with the id of each second result.
        strays: the results of no call before them.
        waiting: the calls that wait for a result, and whether it may come in a later turn.
    """

    def __init__(self) -> None:
        self.calls: dict[At, At] = {}
        self.answers: dict[At, At] = {}
        self.seconds: dict[At, At] = {}
        self.strays: set[At] = set()
        self.waiting: dict[At, bool] = {}
        self._open: dict[_Key, tuple[_Call, ...]] = {}
        self._newest: dict[_Key, At] = {}
        self._refers = False

    def copy(self) -> Pairing:
        """The same, to be fed on its own."""
        new = Pairing()
        new.calls, new.answers = self.calls.copy(), self.answers.copy()
        new.seconds, new.strays = self.seconds.copy(), self.strays.copy()
        new.waiting = self.waiting.copy()
        new._open, new._newest = self._open.copy(), self._newest.copy()
        new._refers = self._refers
        return new

    def reply(self) -> None:
        """A reply of the model begins: of the calls before it only late ones wait."""
        if self.waiting:
            self.waiting = {at: late for at, late in self.waiting.items() if late}

    def reference(self) -> None:
        """A reference stands here: whatever is answered from now on, it may name the call."""
        self._refers = True

    def call(self, at: At, id: str, tool: str = "", *, late: bool = False) -> None:
        """A call stands here.

        Args:
            at: where.
            id: its id on the wire, ``""`` for none.
            tool: its tool, where a result may be known by that alone.
            late: whether its result may come in any later turn.
        """
        keys = [("id", id)] if id or not tool else [("nameless", tool)]
        call = _Call(at, (*keys, ("tool", tool)) if tool else tuple(keys))
        for key in call.keys:
            self._open[key] = (*self._open.get(key, ()), call)
            self._newest[key] = at
        self.waiting[at] = late

    def result(
        self,
        at: At,
        id: str,
        tool: str = "",
        *,
        is_placeholder: bool = False,
        is_free: bool = False,
    ) -> At | None:
        """A result stands here; returns the call that it answers, if it answers one.

        Args:
            at: where.
            id: the id it names, ``""`` for none.
            tool: its tool, where it may be known by that alone.
            is_placeholder: whether it is one of ours, which a real one replaces.
            is_free: whether its call may be held elsewhere: then it is never a stray.
        """
        keys = [("id", id), ("nameless", tool)] if id else [("tool", tool)]
        keys = [key for key in keys if key[1] or key[0] == "id"] or [("id", "")]
        fits = next((calls for key in keys if (calls := self._open.get(key))), ())
        if is_placeholder:
            fits = tuple(call for call in fits if call.at not in self.answers)
        if fits:
            return self._join(fits, at, is_placeholder=is_placeholder)
        newest = next((self._newest[key] for key in keys if key in self._newest), None)
        if newest is not None:
            self.seconds[at] = newest
        elif not (is_free or self._refers):
            self.strays.add(at)
        return None

    def _join(self, fits: tuple[_Call, ...], at: At, *, is_placeholder: bool) -> At:
        message = fits[-1].at[0]
        call = next(call for call in fits if call.at[0] == message)
        replaced = self.answers.get(call.at)
        if replaced is not None:
            del self.calls[replaced]
            self.seconds[replaced] = call.at
        self.answers[call.at], self.calls[at] = at, call.at
        self.waiting.pop(call.at, None)
        if not is_placeholder:
            for key in call.keys:
                self._open[key] = tuple(other for other in self._open[key] if other is not call)
        return call.at

    def of(self, at: At) -> At | None:
        """The call that a result belongs to: the one it answers, or has an answer already."""
        return self.calls.get(at) or self.seconds.get(at)
