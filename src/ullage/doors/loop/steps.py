"""The loop: one generator for both drivers, every decision in it, no I/O.

    fit ──▶ call ──▶ append the reply ──▶ observe ──▶ tools ──▶ append the results ──┐
     ▲       │ "too long": refused, fit again, deeper                                │
     └───────┴───────────────────────────────────────────────────────────────────────┘

It yields what is to be done: a function, whose value it is sent, or several at once
(`ParallelActions`), which hold the result of each. Where the layers act: what a tool returned is
cut, old results are pruned and spans compacted by the `fit` *after the tools*; what a reply
reported is taken in *after the call* and judged by that same `fit`; and `flush` *before the final
return* leaves a history that has been seen to.

The history is legal at every moment at which something else runs, but between a reply and its
results; an interruption there closes it: what has finished has its result, the rest
with an error that says so. After the death of the process the next turn does the same. No
call is ever run twice. Calls of a reply that was cut short are not run: a file would be written
with half of its text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from ullage import Usage
from ullage.core.errors import FormatError
from ullage.doors.host import RECALL_TOOLS, Text, plain, pointers
from ullage.doors.loop.tools import Returned, Tool, outcome_of
from ullage.wires import Format, ToolSpec, recognise, stream_in, wire_named

if TYPE_CHECKING:
    from ullage import AsyncSession, Session

UNCOUNTED_TOOLS = RECALL_TOOLS
"""Tools whose calls do not count as an iteration (`tool-result-continuation` §5)."""

Why: TypeAlias = Literal[
    "answered", "empty", "iteration_cap", "uncounted_ceiling"
]

_PENDING = object()
_MOST_REFUSALS = 2
"""So often a request that is too long is shortened and sent again."""
_INTERRUPTED = Returned(
    "interrupted before it finished; it may have run in part. Look before you repeat it.",
    is_error=True,
)
_CUT_SHORT = (
    "not run: the reply was cut short ({why}), so this call may not be complete. Send it again; "
    "a long one in several shorter calls."
)
_COPIED = "not run: the arguments hold a notice in place of a text. Read that, and send it whole."
_NOTICES = ("[ullage: ", "[ref=", " ref=", " of arguments set aside. ")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Limit(Struct, frozen=True):
    """How long a turn may go on; see `ullage.loop.run_turn`."""

    iterations: int
    uncounted: int
    uncounted_tools: Collection[str]


class Outcome(Struct, frozen=True, kw_only=True):
    """How a turn ended.

    Attributes:
        text: what the model's last reply said.
        history: the caller's own list, with everything that was said and done.
        why: ``"answered"``: the model asked for no tool; ``"empty"``: its last reply said
            nothing; ``"iteration_cap"`` or ``"uncounted_ceiling"``: it was stopped. A turn that
            was stopped goes on if it is run again.
        iterations: model calls that counted.
        uncounted: model calls that asked for nothing but uncounted tools.
        usage: the tokens of this turn, as reported.
    """

    text: str
    history: list[Any]
    why: Why
    iterations: int
    uncounted: int
    usage: Usage


class ParallelActions:
    """Things to be done that do not wait for one another, and may block.

    Attributes:
        actions: each without arguments; a coroutine function or a plain one.
        results: the outcome of each so far: a value, or the exception it raised.
    """

    def __init__(self, actions: Sequence[Callable[[], Any]]) -> None:
        self.actions = actions
        self.results: list[Any] = [_PENDING] * len(actions)


T = TypeVar("T")
Steps: TypeAlias = Generator[Callable[[], Any] | ParallelActions, Any, T]


class AgentTurn:
    """One turn of an agent, and what it knows; its methods are the parts of the loop, in order.

    The arguments are those of `ullage.loop.run_turn`.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        session: Session | AsyncSession,
        request: Mapping[str, Any],
        tools: Mapping[str, Tool],
        limit: Limit,
    ) -> None:
        self.call = call
        self.session = session
        self.tools = tools
        self.limit = limit
        wire = session.wire_of(request)
        self.wire: Format = wire or recognise(request, session.settings.model)
        self.history = self.wire.history(request)
        if self.history is not request.get(self.wire.key):
            raise FormatError(
                self.wire.key,
                "not a list to append to",
                "Give the history as a list of messages.",
            )
        specs = [
            ToolSpec(tool.name, tool.description, tool.parameters)
            for tool in tools.values()
        ]
        self.request = self.wire.compose(
            request, self.history, [self.wire.tool(s) for s in specs]
        )
        self.iterations = 0
        self.uncounted = 0
        self.usage = Usage()
        self.view: Any = None  # that of the newest reply

    def steps(self) -> Steps[Outcome]:
        """The turn from its beginning to its end."""
        messages = self.open_reply()
        if messages:
            self.close(self.calls_of(messages), ())
            if not self.calls_of(messages):
                return self.outcome("answered", messages)
        while (reason := self.stopped()) is None:
            messages, reply = yield from self.ask()
            yield from self.act(messages, reply)
            if not self.calls_of(messages):
                reason = "answered" if messages else "empty"
                break
        yield from self.flush()
        return self.outcome(reason, messages)

    # ── before ───────────────────────────────────────────────────────────────────────

    def open_reply(self) -> list[Any]:
        """The reply at the end of the history that nothing has followed yet."""
        messages: list[Any] = []
        for raw in reversed(self.history):
            if self.wire.parse(raw, self.wire.key).role != "assistant":
                break
            messages.insert(0, raw)
        return messages

    def stopped(self) -> Why | None:
        """Why there may be no further model call, or None."""
        if self.iterations >= self.limit.iterations:
            return "iteration_cap"
        return (
            "uncounted_ceiling"
            if self.uncounted >= self.limit.uncounted
            else None
        )

    # ── the call ─────────────────────────────────────────────────────────────────────

    def ask(self) -> Steps[tuple[list[Any], Any]]:
        """One reply: its raw messages and itself. A refused request is shortened and sent again."""
        refusals = 0
        refusal: Exception | None = None
        while True:
            view = yield from self.session.fit_or_pass(self.request, refusal)
            can_retry = refusals < _MOST_REFUSALS
            try:
                reply = yield partial(self.call, **view)
                reply = stream_in(reply) or reply
                if any(
                    hasattr(type(reply), name)
                    for name in ("__next__", "__anext__")
                ):
                    reply = yield from self._gathered(reply)
            except BaseException as error:
                self.session.release()  # what the call had claimed of a budget
                if not isinstance(error, Exception) or not can_retry:
                    raise
                if view.refused(error) is None:
                    raise
                refusal = error
            else:
                messages = self.wire.reply(
                    reply
                )  # some say "too long" with HTTP 200
                if messages or not can_retry or view.refused(reply) is None:
                    self.view = view
                    return messages, reply
            refusals += 1

    def _gathered(self, events: Any) -> Steps[Any]:
        """The whole reply of a stream."""
        todo = ParallelActions(
            [partial(_alist if hasattr(events, "__anext__") else list, events)]
        )
        yield todo
        (items,) = todo.results
        if isinstance(items, Exception):
            raise items
        # nothing is hidden from the loop
        dialect = wire_named(self.wire.wire).dialect(
            self.wire, owns=lambda call: False
        )
        stream = dialect.stream(dialect, self.request)
        for event in items:
            stream.feed(dict(plain(event, "stream")))
        reply = stream.reply()
        if reply is None:
            remedy = "Run the turn again: nothing was added."
            raise FormatError(
                "stream", "it ended before the reply did", remedy
            )
        return reply

    # ── the tools ────────────────────────────────────────────────────────────────────

    def act(self, messages: list[Any], reply: Any) -> Steps[None]:
        """Append a reply, take in its usage, run its tools, append their results."""
        self.history += messages
        self.usage += self.wire.usage(reply) or Usage()
        calls = self.calls_of(messages)
        cut_reason = self.wire.cut_short(reply)
        if cut_reason:
            refused = Returned(
                _CUT_SHORT.format(why=cut_reason[:64]), is_error=True
            )
            todo = ParallelActions([lambda: refused for _ in calls])
        else:
            todo = ParallelActions([self._action(call) for call in calls])
        is_free = (
            bool(calls)
            and not cut_reason
            and all(map(self._is_uncounted, calls))
        )
        self.uncounted += is_free
        self.iterations += not is_free
        try:
            yield from self._observe(reply)
            if calls:
                yield todo
        finally:
            self.close(calls, todo.results)

    def _observe(self, reply: Any) -> Steps[None]:
        """Take in what a reply reports. It is there, and paid for, whether or not that works."""
        try:
            yield partial(self.view.observe, reply)
        except Exception as error:  # noqa: BLE001 - a run does not end for it
            self.session.leave_uncounted(error)

    def close(self, calls: Sequence[Any], outcomes: Sequence[Any]) -> None:
        """Append a result for every call; what has none yet was interrupted."""
        all_outcomes = [*outcomes, *[_PENDING] * (len(calls) - len(outcomes))]
        if calls:
            results = [
                self._result(call, outcome)
                for call, outcome in zip(calls, all_outcomes, strict=True)
            ]
            self.history += self.wire.results(results)

    def calls_of(self, messages: Sequence[Any]) -> list[Any]:
        """The calls in a reply, as they stand there."""
        return [call for raw in messages for call in self.wire.calls(raw)]

    def _is_uncounted(self, call: Any) -> bool:
        name = self.wire.call(call).name
        if self.session.owns(call):
            name = name.removeprefix(self.session.window.words.prefix)
        elif name in RECALL_TOOLS:
            return False  # a tool of the caller's own, or of nobody
        return name in self.limit.uncounted_tools

    def _action(self, call: Any) -> Callable[[], Any]:
        """What answers a call: the session its own, without a round trip; else a tool."""
        if self.session.owns(call):
            return partial(self.session.recall, call)
        parsed = self.wire.call(call)
        tool = self.tools.get(parsed.name)
        arguments = _arguments(parsed.arguments)
        if tool is not None and isinstance(arguments, dict):
            return partial(tool.run, arguments)
        there_are = ", ".join(self.tools) or "none"
        unknown = f"no tool is called {parsed.name!r}; there are: {there_are}"
        problem = unknown if tool is None else str(arguments)
        return lambda: Returned(problem, is_error=True)

    def _result(self, call: Any, outcome: Any) -> Any:
        if isinstance(outcome, dict) and self.session.owns(call):
            return outcome
        returned = _INTERRUPTED if outcome is _PENDING else outcome_of(outcome)
        return self.wire.result(
            self.wire.call(call), returned.text, is_error=returned.is_error
        )

    # ── the end ──────────────────────────────────────────────────────────────────────

    def flush(self) -> Steps[None]:
        """The last pass before the final return (`output-cache-and-compaction` §2.8).

        It sends nothing, so what is wrong with the history is told in the next turn.
        """
        try:
            yield partial(self.session.flush, self.request)
        except Exception:  # noqa: BLE001 - the answer is there; the next turn tells
            return

    def outcome(self, reason: Why, messages: Sequence[Any]) -> Outcome:
        """How it ended, and with which reply."""
        parts = [
            part
            for raw in messages
            for part in self.wire.parse(raw, self.wire.key).parts
        ]
        return Outcome(
            text="".join(
                part.text for part in parts if isinstance(part, Text)
            ),
            history=self.history,
            why=reason,
            iterations=self.iterations,
            uncounted=self.uncounted,
            usage=self.usage,
        )


async def _alist(events: Any) -> list[Any]:
    return [event async for event in events]


def _arguments(text: str) -> dict[str, Any] | str:
    """The arguments of a call, or an error for the model: a notice is no text to write (F83)."""
    if any(notice in text for notice in _NOTICES) and pointers(text):
        return _COPIED
    try:
        return _decode(text or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"the arguments are not a JSON object: {error}. Send the call again."
