"""The plugin: ADK's callbacks, and what each of them asks of an ullage session.

    before_model    fit: the sliding window, the emergency brake, the budget
    after_model     observe: exact tokens, cost, calibration
    on_model_error  a request the provider calls too long is shortened and sent again
    after_tool      the limit on one tool's result, where a store outlives the process

Source: `multi-stage-strategy.md`. ADK's events are never changed: what leaves the view is still
in ADK's session, but for what `after_tool_callback` cut, which is in the store.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin

from ullage.errors import BudgetExceeded, ConfigError, FormatError
from ullage.integrations.adk._content import has_functions, request_of, shorten, show
from ullage.integrations.adk._state import Call, Room
from ullage.presets import from_env
from ullage.presets.environment import TOKEN_BUDGET, whole_number
from ullage.redaction import Redact
from ullage.session.sessions import AsyncSessions
from ullage.spend.budget import Budget
from ullage.stages.policy import Policy
from ullage.stores import MemoryStore, Store, open_store
from ullage.summarise import Summariser
from ullage.values.effects import Summarise
from ullage.values.limits import Limits

__all__ = ["UllagePlugin"]

_REFUSALS = 2
_UNLIMITED = partial(Budget, tokens=0)


class UllagePlugin(BasePlugin):
    """Keeps every agent of a runner within its window.

    Each agent of each ADK session has an ullage session. What it decided and what was reported
    is written to ADK's session state, so that any runner on the same session service goes on
    from it.

    Args:
        name: the plugin's name in ADK.
        policy: a policy, or the name of one.
        limits: the window and what is kept free for the answer. None: each model's own.
        store: where what is set aside is kept: None or ``"memory"``, ``"sqlite"``, a path of an
            SQLite file, or a store. With one that outlives the process, tool results over the
            policy's limit are cut in `after_tool_callback`, and ADK keeps what is shown. Without
            one ADK's session holds the only original, so they are cut in the request alone.
        budget: makes the budget of an ADK session, shared by its agents; takes ``spent``.
            None: no limit, sums alone.
        recall: whether requests offer the recall tools; ``"auto"``: if the plugin is there from
            the start. Never where an agent has no functions of its own.
        summariser: a model that adds to the narratives of the sliding window: any callable, or
            one of `ullage.summarise`. None: the deterministic summaries stand alone.
        redact: takes secrets out of what is set aside, summarised or cut; what ADK keeps whole
            stays as it is. None: nothing does.
        most_sessions: how many ADK sessions are held in memory.

    Raises:
        ConfigError: a setting is not known.
        StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        name: str = "ullage",
        *,
        policy: str | Policy = "multi_stage",
        limits: Limits | None = None,
        store: str | os.PathLike[str] | Store | None = None,
        budget: Callable[..., Budget] = _UNLIMITED,
        recall: bool | Literal["auto", "host"] = "auto",
        summariser: Summariser | Callable[[Summarise], Any] | None = None,
        redact: Redact | None = None,
        most_sessions: int = 256,
    ) -> None:
        super().__init__(name=name)
        if most_sessions < 1:
            raise ConfigError("most_sessions", f"{most_sessions} is under 1", "Give 1 or more.")
        opened = open_store(store)
        self._lasts = not isinstance(opened, MemoryStore)
        self._sessions = AsyncSessions(
            store=opened,
            policy=policy,
            limits=limits,
            format="gemini",
            summariser=summariser,
            redact=redact,
        )
        self._recall, self._budget, self._most = recall, budget, most_sessions
        self._rooms: OrderedDict[str, Room] = OrderedDict()
        budget()  # a bad setting is refused now

    @classmethod
    def from_env(cls, name: str = "ullage", **settings: Any) -> UllagePlugin:
        """The plugin with the document's environment variables, read now, once.

        ``SRE_AGENT_TOKEN_BUDGET``, ``SAFE_TRIGGER_TOKENS`` and ``MAX_RESULT_CHARS``.

        Args:
            name: the plugin's name in ADK.
            settings: the other settings of the plugin.

        Raises:
            ConfigError: a variable holds no whole number; its value is not shown.
        """
        budget = partial(Budget, tokens=whole_number(TOKEN_BUDGET) or 0)
        return cls(name, policy=from_env("multi_stage"), budget=budget, **settings)

    def room(self, session: Any) -> Room:
        """What is held of an ADK session: its budget, its agents' sessions; of those used last."""
        tenant = json.dumps([session.app_name, session.user_id, session.id])
        if tenant not in self._rooms:
            own = {} if self._lasts else {"store": MemoryStore()}
            self._rooms[tenant] = Room(tenant, self._sessions, self._budget, **own)
        self._rooms.move_to_end(tenant)
        while len(self._rooms) > self._most:
            self._rooms.popitem(last=False)
        return self._rooms[tenant]

    # ── ADK's callbacks ──────────────────────────────────────────────────────────────────

    async def before_model_callback(
        self, *, callback_context: Any, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Make the request a view that fits.

        Returns:
            None; where the budget is spent, and the model has been asked to sum up, a response
            that says so with the code ``BUDGET_EXCEEDED``. The run ends with it.

        Raises:
            FormatError, OverLimitError, StoreError: see `ullage.Session.fit`.
        """
        if llm_request.previous_interaction_id or not llm_request.contents:
            return None  # the history is held by the provider
        asked, place = request_of(llm_request), _place(callback_context)
        room, held = self.room(callback_context.session), callback_context.session.state
        recall = has_functions(asked) and self._recall
        session = await room.session_of(place, held, recall=recall)
        call = room.calls[place] = Call(session, asked)
        try:
            return await _fit(call, llm_request)
        finally:
            room.give(session, place[0], callback_context.state, held)

    async def after_model_callback(
        self, *, callback_context: Any, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Take in the usage of a reply: tokens, cost, calibration."""
        room, place = self.room(callback_context.session), _place(callback_context)
        call = room.calls.get(place)
        if call is None or call.view is None or llm_response.partial:
            return None
        if llm_response.usage_metadata is not None:
            del room.calls[place]
        await call.view.observe(llm_response)
        held = callback_context.session.state
        room.give(call.session, place[0], callback_context.state, held)
        return None

    async def on_model_error_callback(
        self, *, callback_context: Any, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """Shorten a request that the provider called too long, and send it again.

        Returns:
            The reply to the shorter request; None if the error says anything else, or if the
            provider has refused it too often. ADK raises the error then.
        """
        call = self.room(callback_context.session).calls.get(_place(callback_context))
        agent, seen = callback_context.get_invocation_context().agent, error
        while call and call.view and call.refusals < _REFUSALS and call.view.refused(seen):
            call.refusals += 1
            try:
                ended = await _fit(call, llm_request)
                return ended or await _send(agent.canonical_model, llm_request)
            except Exception as again:  # noqa: BLE001
                seen = again
        if call is not None:
            call.session.release()
        return None

    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> dict[str, Any] | None:
        """Cut a result that is over the policy's limit, if its original can be kept."""
        room = self.room(tool_context.session)
        session = room.session_at(_place(tool_context))
        if not self._lasts or session is None or not result:
            return None
        try:
            settings = session.settings
            words = session.window.words
            done = shorten(result, tool.name, settings.policy, words, settings.redact)
        except FormatError:
            return None  # media, or an object of the tool's own: ADK knows what to do with it
        if done is None:
            return None
        response, outputs, events = done
        await session.store.commit(room.tenant, outputs, ())
        for event in events:
            session.emit(event)
        return response

    async def close(self) -> None:
        """Let go of everything. ADK's sessions hold what is needed to go on."""
        self._rooms.clear()
        await self._sessions.close()


def _place(context: Any) -> tuple[str, str]:
    """Whose conversation it is: the agent's, in its branch."""
    return context.agent_name, context.get_invocation_context().branch or ""


async def _fit(call: Call, request: LlmRequest) -> LlmResponse | None:
    """Make a request the view of what its agent asked; the response if there is to be none."""
    try:
        call.view = await call.session.fit(call.asked)
    except BudgetExceeded as error:
        call.view = None
        return LlmResponse(error_code="BUDGET_EXCEEDED", error_message=str(error))
    show(call.view, request)
    return None


async def _send(model: Any, request: LlmRequest) -> LlmResponse | None:
    """The last response of a model to a request."""
    responses = [response async for response in model.generate_content_async(request)]
    return responses[-1] if responses else None
