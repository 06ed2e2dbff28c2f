"""Sessions: the coat over a turn that most users meet.

    client, session = anthropic.Anthropic(), ullage.Session(model="claude-opus-4-8")
    reply = client.messages.create(**session.fit(request))
    session.observe(reply)

`Session` and `ullage.aio.AsyncSession` differ in nothing but ``await``.
"""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Self

from msgspec.structs import replace

from ullage.allowance import Claim
from ullage.budget import Budget
from ullage.calls import Call
from ullage.catalog import lookup
from ullage.drivers import run
from ullage.effects import Output, Steps
from ullage.errors import ConfigError, FormatError, RefNotFound
from ullage.events import Event
from ullage.formats import FORMATS, Format
from ullage.formats._base import field, reply_id
from ullage.limits import Limits
from ullage.memo import Memo
from ullage.notices import Words
from ullage.policy import Policy
from ullage.presets import preset
from ullage.recall.dispatch import Answer, answer
from ullage.recall.found import ToolOutputRef, output_ref
from ullage.stores import AsyncStore, Store, open_store, with_files
from ullage.tokens import preload
from ullage.turn import Settings, State, Turned, find_in_history, observe, turn
from ullage.usage import Usage
from ullage.window import Window

__all__ = ["Coat", "Session", "fit"]


class Coat(ABC):
    """What both sessions share: settings, state, and everything that does no I/O.

    The arguments are those of `Session`.
    """

    def __init__(
        self,
        model: str,
        *,
        policy: str | Policy = "default",
        limits: Limits | None = None,
        format: str | None = None,
        store: str | os.PathLike[str] | Store | AsyncStore | None = None,
        tenant: str = "",
        recall: bool | Literal["auto"] = "auto",
        repair: bool = False,
        state: State | None = None,
        budget: Budget | None = None,
        agent: str = "",
    ) -> None:
        if format is not None and format not in FORMATS:
            raise ConfigError(
                "format", f"{format!r} is not known", f"Use one of {', '.join(FORMATS)}."
            )
        self.settings = Settings(
            model=model,
            policy=preset(policy) if isinstance(policy, str) else policy,
            limits=limits,
            format=format,
            tenant=tenant,
            recall=recall,
            repair=repair,
        )
        self.state = state or State()
        self.events: list[Event] = []
        self.budget = Budget(tokens=0) if budget is None else budget
        self._payer = self.budget.join(agent, self.events.append)
        self._heard: tuple[str, Usage] | None = None
        self._memo = Memo()
        self._window: Window | None = None
        self._hold(store)
        preload(model)

    @abstractmethod
    def _hold(self, store: Any) -> None:
        """Open the store and make the lock; each session its own kind."""

    def _with_files(self, store: Store) -> Store:
        """The store as the policy wants it; the policy then knows where its files are."""
        policy = self.settings.policy
        store, directory = with_files(store, policy.spill_directory, self.settings.tenant)
        self._place_files(directory)
        return store

    def _place_files(self, directory: str | None) -> None:
        policy = replace(self.settings.policy, spill_directory=directory)
        self.settings = replace(self.settings, policy=policy)

    @property
    def usage(self) -> Usage:
        """The sum of everything reported so far."""
        return self.state.usage

    @property
    def cost_usd(self) -> float | None:
        """What the reported usage cost at list price, or None if a price is not known."""
        return self.state.cost_usd

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call that was observed: its tokens, its cost, what the budget had spent then."""
        return tuple(self._payer.calls)

    def release(self) -> None:
        """The call that the last view was for was not made: give back what it had reserved."""
        self.budget.release(self._payer)

    @property
    def window(self) -> Window:
        """The newest window: how much is shown, of what limit, and every edit.

        Raises:
            ConfigError: nothing was fitted yet.
        """
        if self._window is None:
            raise ConfigError("session", "nothing was fitted yet", "Call fit(request) first.")
        return self._window

    def owns(self, call: Any) -> bool:
        """Whether a tool call of the model is for `recall` and not for the caller's tools.

        A call is ours if its name and our definition are in the request.

        Args:
            call: a tool call as it stands in the reply, a dict or the SDK's object.
        """
        opened = self.state.opened
        if opened is None or not opened.recall:
            return False
        name = _name_of(call)
        return Words(True, opened.prefix, self.settings.policy.desk).is_recall(name)

    def _fit(self, request: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """A view the budget allows; once that is spent, the view with the request to sum up."""
        self._heard = None
        self.budget.begin(self._payer)
        view = self._turned((yield from self._turn(request)))
        if self.budget.claim(self._payer, self._most):
            return view
        words = self.budget.allowance.words
        added_tokens = self._memo.meter.message(words)
        view = self._turned((yield from self._turn(request, added_tokens)))
        self.budget.claim_wrap_up(self._payer, self._most(), added_tokens)
        return self._wire.wrap_up(view, words)

    def _most(self) -> Claim:
        """The most that the call of the newest view can come to."""
        window, info = self.window, lookup(self.window.meter.model)
        limits = self.settings.limits or Limits(window_tokens=info.window_tokens)
        reserve = limits.window_tokens - window.limit_tokens
        output = min(reserve, info.max_output_tokens or reserve)
        return self.budget.most(window.calibration.upper(window.tokens), output, info.id)

    def _turn(self, request: Mapping[str, Any], added_tokens: int = 0) -> Steps[Turned]:
        if not isinstance(request, Mapping):
            raise FormatError(
                "request",
                f"expected a dict, got {type(request).__name__}",
                "Give the keyword arguments of the provider call as one dict.",
            )
        return turn(request, self.state, self._memo, self.settings, added_tokens)

    def _turned(self, turned: Turned) -> dict[str, Any]:
        self.state = turned.state
        self._window = turned.window
        self.events += turned.events
        for event in turned.events:
            if event.kind == "diagnostic":
                sys.stderr.write(f"{event.why}\n")
        return turned.request

    def _observe(self, reply: Any) -> Steps[State] | None:
        usage = reply if isinstance(reply, Usage) else self._wire.usage(reply)
        window = self.window
        if usage is None:
            self.budget.leave_unreported(self._payer, window.meter.model, window.estimate)
            return None
        heard = reply_id(reply)
        if heard and self._heard == (heard, usage):
            return None  # the very reply that was observed before (F104)
        self._heard = (heard, usage)
        self.budget.settle(self._payer, usage, window.meter.model, window.estimate)
        return observe(usage, self.state, window)

    def _observed(self, state: State) -> None:
        usage = state.usage.input_tokens - self.state.usage.input_tokens
        why = f"the provider reported {usage:,} input tokens"
        self.events.append(
            Event(kind="observed", where="reply", why=why, tokens_after=max(usage, 0))
        )
        self._memo.outdate(self.window, (self.window.transcript.decision_key(self.window.size),))
        self.state = state

    def _recall(self, call: Any) -> Steps[dict[str, Any]]:
        wire = self._wire
        parsed = wire.call(call)
        given: Answer = yield from answer(parsed, self.window.words, self._from_history)
        size = self._window.meter.text(given.text) if self._window else 0
        self.events.append(
            Event(
                kind="recalled",
                where=parsed.name,
                why="the call could not be answered" if given.is_error else "the model asked",
                tokens_after=size,
                ref=given.ref,
            )
        )
        return wire.result(parsed, given.text, is_error=given.is_error, block=given.block)

    def _output_ref(self, wanted: str) -> Steps[ToolOutputRef]:
        found = yield from output_ref(wanted, self._from_history)
        if found is None:
            raise RefNotFound("the history and the store", wanted)
        return found

    def _from_history(self, wanted: str, thorough: bool) -> Output | None:
        found = find_in_history(self.window, wanted, thorough=thorough)
        return found or (self._memo.mended[1].get(wanted) if thorough else None)

    @property
    def _wire(self) -> Format:
        name = self.state.format or self.settings.format
        if name is None:
            raise ConfigError("session", "nothing was fitted yet", "Call fit(request) first.")
        return FORMATS[name]


_CALL_BODIES = ("function", "custom", "functionCall", "function_call")
"""Where a format puts what a call says, if not in the call itself."""


def _name_of(call: Any) -> str:
    bodies = (field(call, key) for key in _CALL_BODIES)
    body = next((body for body in bodies if body), call)
    name = field(body, "name")
    return name if isinstance(name, str) else ""


class Session(Coat):
    """Keeps one conversation within its window.

    Args:
        model: the model the requests are for; ``request["model"]`` goes first.
        policy: a policy, or the name of one.
        limits: the window and what is kept free for the answer. None: the model's own.
        format: the wire format. None: recognised from the first request.
        store: where what is set aside is kept: None or ``"memory"``, ``"sqlite"``, a path of
            an SQLite file, or a store.
        tenant: whose content this is; a ref opens only what the same tenant put there.
        recall: whether requests offer the recall tools; ``"auto"``: if the session is there
            from the start.
        repair: mend a history that the provider would refuse (interrupted calls, results
            that come late, twice or without a call, empty text), and tell of it.
        state: the state of an earlier session, to go on from.
        budget: what it may spend together with all sessions of the same budget. None: no
            limit; its calls are kept account of all the same.
        agent: the name its calls are listed under.

    Attributes:
        events: everything that happened so far, in order.
        state: the state between turns, one frozen value.

    Raises:
        ConfigError: a setting is not known.

    A session may be used from several threads; its turns run one at a time.
    """

    store: Store

    def _hold(self, store: Any) -> None:
        self.store = self._with_files(open_store(store))
        self._lock = threading.Lock()

    def fit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A request that fits, made from a request with the whole history.

        Args:
            request: the keyword arguments of the provider call. Never changed.

        Returns:
            A new dict. Untouched messages are the caller's own objects; recall tools may
            stand at the end of ``tools``.

        Raises:
            FormatError: the request is not what its format says it is.
            OverLimitError: what may not be touched is over the limit.
            StoreError: what is set aside could not be kept.
            BudgetExceeded: the budget is spent, and the model has been asked to sum up.
            ConfigError: the budget is in money, and the model's prices are not known.
        """
        with self._lock:
            view: dict[str, Any] = self._run(self._fit(request))
            return view

    def observe(self, reply: Any) -> None:
        """Take in a reply: its usage calibrates the estimate and adds to the totals.

        Args:
            reply: the provider's reply (a dict or the SDK's object), or a `Usage`.
        """
        with self._lock:
            steps = self._observe(reply)
            if steps is not None:
                self._observed(self._run(steps))

    def recall(self, call: Any) -> dict[str, Any]:
        """Answer a call that `owns` said is ours.

        Args:
            call: the tool call as it stands in the reply, a dict or the SDK's object.

        Returns:
            The wire result, ready to append: a tool message (OpenAI), or a ``tool_result``
            block (Anthropic) or ``functionResponse`` part (Gemini) for the next user message.
            What is wrong with the call is told to the model in it.

        Raises:
            FormatError: this is not a tool call of the format.
            StoreError: the store failed.
        """
        with self._lock:
            result: dict[str, Any] = self._run(self._recall(call))
            return result

    def output_ref(self, wanted: str) -> ToolOutputRef:
        """The ref of a tool output, and how large it is, whether or not it was set aside.

        Args:
            wanted: the id of its tool call (the newest result with it is meant), or its ref.

        Raises:
            RefNotFound: neither the newest history nor the store has it.
            ConfigError: nothing was fitted yet.
        """
        with self._lock:
            found: ToolOutputRef = self._run(self._output_ref(wanted))
            return found

    def close(self) -> None:
        """Close the store, and give back what is reserved of the budget."""
        self.budget.end(self._payer)
        self.store.close()

    def _run(self, steps: Steps[Any]) -> Any:
        return run(steps, self.store, self.settings.tenant)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


def fit(
    request: Mapping[str, Any],
    *,
    model: str | None = None,
    policy: str | Policy = "default",
    limits: Limits | None = None,
    format: str | None = None,
    store: str | os.PathLike[str] | Store | None = None,
    recall: bool | Literal["auto"] = "auto",
    repair: bool = False,
) -> dict[str, Any]:
    """Make one request fit, without a session. See `Session` for the arguments.

    Without a store, what leaves the view is in the caller's history and nowhere else.

    Raises:
        FormatError, OverLimitError, StoreError: see `Session.fit`.
    """
    llm = str(request.get("model") or model or "")
    session = Session(
        llm, policy=policy, limits=limits, format=format, store=store, recall=recall, repair=repair
    )
    return session.fit(request)
