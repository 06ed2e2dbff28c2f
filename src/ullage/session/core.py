"""What the session and the session for an event loop share: everything that does no I/O.

Settings, state, events, the account of calls, and each turn as steps for a driver.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal

from msgspec.structs import replace

from ullage.errors import ConfigError, FormatError, RefNotFound
from ullage.history.snapshots import snapshot_at
from ullage.history.window import Window
from ullage.presets import preset
from ullage.recall.dispatch import Answer, answer
from ullage.recall.found import ToolOutputRef, output_ref
from ullage.recall.history import find_in_history
from ullage.session.refusals import Refusals
from ullage.spend.allowance import Claim
from ullage.spend.budget import Budget
from ullage.spend.calls import Call, Spent
from ullage.stages.default import SUMMARISED
from ullage.stages.policy import Policy
from ullage.stores import AsyncStore, Store, with_files
from ullage.summarise import Summaries, Summariser, of
from ullage.tokens.catalog import lookup
from ullage.tokens.models import preload
from ullage.turn import Settings, State, Turned, observe, turn, wire_of
from ullage.turn.filling import Asking
from ullage.turn.memo import Memo
from ullage.values.effects import Output, Steps, Summarise
from ullage.values.events import Event
from ullage.values.limits import Limits
from ullage.values.notices import Words
from ullage.values.usage import Usage
from ullage.wires import Format, format_of
from ullage.wires.base import name_of_call, text_at
from ullage.wires.overflow import Overflow, is_overflow
from ullage.wires.reported import Unreadable, id_of, left_out_of, usage_of

__all__ = ["SessionCore"]


class SessionCore(ABC):
    """What both sessions share: settings, state, and everything that does no I/O.

    The arguments are those of `Session`.
    """

    _looks_ahead = False

    def __init__(
        self,
        model: str,
        *,
        policy: str | Policy = "default",
        limits: Limits | None = None,
        format: str | Format | None = None,
        store: str | os.PathLike[str] | Store | AsyncStore | None = None,
        tenant: str = "",
        recall: bool | Literal["auto"] = "auto",
        repair: bool = False,
        state: State | None = None,
        budget: Budget | None = None,
        agent: str = "",
        summariser: Summariser | Callable[[Summarise], Any] | None = None,
    ) -> None:
        self.settings = Settings(
            model=model,
            policy=_policy(policy, summarised=summariser is not None),
            limits=limits,
            format=None if format is None else format_of(format),
            tenant=tenant,
            recall=recall,
            repair=repair,
        )
        self.state = state or State()
        self.events: list[Event] = []
        self.budget = Budget(tokens=0) if budget is None else budget
        self._payer = self.budget.join(agent, self.events.append)
        self._summaries: Summaries | None = None
        if summariser is not None:
            self._summaries = Summaries(of(summariser), self.budget, agent)
        self._heard: tuple[str, Usage] | None = None
        self._memo = Memo()
        self._window: Window | None = None
        self._refusals = Refusals(limits)
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
        name = name_of_call(call)
        return Words(True, opened.prefix, self.settings.policy.toolset).is_recall(name)

    def refused(self, error: Any) -> Overflow | None:
        """Take in that the provider refused the newest view because it was too long.

        The next `fit` cuts deeper, until a reply reports usage. A smaller window that the
        provider names holds from now on. What the call had claimed of a budget is given back.

        Args:
            error: what the provider call raised, or a reply that says so.

        Returns:
            What was too long, or None if the error says anything else: then raise it.

        Raises:
            ConfigError: nothing was fitted yet.
        """
        found = is_overflow(error)
        if found is None:
            return None
        model, shown = self.window.meter.model, self.window.estimate
        self.events.append(self._refusals.take(found, model, shown))
        self.release()
        return found

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
        reserve = self._refusals.limits(window.meter.model).window_tokens - window.limit_tokens
        output = min(reserve, info.max_output_tokens or reserve)
        return self.budget.most(window.calibration.upper(window.tokens), output, info.id)

    def _turn(
        self, request: Mapping[str, Any], added_tokens: int = 0, *, now: bool = False
    ) -> Steps[Turned]:
        if not isinstance(request, Mapping):
            raise FormatError(
                "request",
                f"expected a dict, got {type(request).__name__}",
                "Give the keyword arguments of the provider call as one dict.",
            )
        model = text_at(request.get("model") or self.settings.model, "model")
        limits, asking = self._refusals.next_limits(model), self._asking(model)
        settings = replace(self.settings, limits=limits, asking=asking)
        return turn(request, self.state, self._memo, settings, added_tokens, now=now)

    def _asking(self, model: str) -> Asking | None:
        """Who is asked for summaries of this model's conversation."""
        if self._summaries is None:
            return None
        window_for = partial(self._summaries.summariser.window_for, caller=model)
        return Asking(window_for, model, ahead=self._looks_ahead)

    def _compact(self, request: Mapping[str, Any]) -> Steps[Turned]:
        if self.settings.policy.on_request is None:
            raise ConfigError("policy", "it has no compaction", "Use a policy that compacts.")
        return self._turn(request, now=True)

    def _compacted(self, turned: Turned) -> bool:
        self._turned(turned)
        return any(event.kind == "compacted" for event in turned.events)

    def _turned(self, turned: Turned) -> dict[str, Any]:
        self.state = self._paid(turned.state)
        self._window = turned.window
        self.events += turned.events
        for event in turned.events:
            if event.kind == "diagnostic":
                _tell(event.why)
        return turned.request

    def _paid(self, state: State) -> State:
        """The state with what summaries came to since the last time."""
        if self._summaries is None:
            return state
        spent = self._summaries.take()
        total = Spent(usage=state.usage, cost_usd=state.cost_usd).plus(spent.usage, spent.cost_usd)
        return replace(state, usage=total.usage, cost_usd=total.cost_usd)

    def _observe(self, reply: Any) -> Steps[State] | None:
        usage, window = usage_of(reply, self._wire), self.window
        if isinstance(usage, Unreadable):
            self._unreported(usage)
            return None
        heard = id_of(reply)
        if heard and self._heard == (heard, usage):
            return None  # the very reply that was observed before (F104)
        self._heard = (heard, usage)
        self._tell_of_reasoning(reply)
        self.budget.settle(self._payer, usage, window.meter.model, window.estimate)
        return observe(usage, self.state, window)

    def _unreported(self, found: Unreadable) -> None:
        """Nobody knows what the newest call came to: our estimate of its prompt is counted."""
        estimate = self.window.estimate
        self.budget.leave_unreported(self._payer, self.window.meter.model, estimate)
        why = f"{found.why}; {estimate:,} input tokens are counted for it, our estimate"
        self.events.append(Event(kind="unreported", where="reply", why=why, tokens_after=estimate))

    def _tell_of_reasoning(self, reply: Any) -> None:
        """An event, if the provider left reasoning out that stood in the request."""
        reasons = left_out_of(reply)
        if reasons:
            told = ", ".join(f"{reason} ({count})" for reason, count in reasons.items())
            why = f"the provider left out {reasons.total():,} blocks of it: {told}"
            self.events.append(Event(kind="reasoning", where="reply", why=why))

    def _observed(self, state: State) -> None:
        usage = state.usage.input_tokens - self.state.usage.input_tokens
        why = f"the provider reported {usage:,} input tokens"
        self.events.append(
            Event(kind="observed", where="reply", why=why, tokens_after=max(usage, 0))
        )
        self._memo.outdate(self.window, (self.window.transcript.decision_key(self.window.size),))
        self.state = state
        self._refusals.reported()

    def _recall(self, call: Any) -> Steps[dict[str, Any]]:
        wire = self._wire
        snapshot_at(call, "call")
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
        return found or (self._memo.set_aside(wanted) if thorough else None)

    @property
    def _wire(self) -> Format:
        wire = wire_of(self.state, self.settings)
        if wire is None:
            raise ConfigError("session", "nothing was fitted yet", "Call fit(request) first.")
        return wire


def _tell(line: str) -> None:
    """Say a line on stderr, if that takes it. No turn fails for it: an event says the same."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{line}\n")


def _policy(policy: str | Policy, *, summarised: bool) -> Policy:
    """The policy of this name; the default has a compaction if somebody writes summaries."""
    if not isinstance(policy, str):
        return policy
    return SUMMARISED if policy == "default" and summarised else preset(policy)
