"""The plugin: ADK's callbacks, and what each of them asks of an ullage session.

    before_model    fit: the sliding window, the emergency brake, the budget
    after_model     observe: exact tokens, cost, calibration
    on_model_error  a request the provider calls too long is shortened and sent again
    after_tool      the limit on one tool's result, where a store outlives the process

Source: `multi-stage-strategy.md`. ADK's events are never changed: what leaves the view is still
in ADK's session, but for what `after_tool_callback` cut, which is in the store.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin

from ullage import AsyncSession, Budget, Policy
from ullage.core.errors import BudgetExceeded, FormatError
from ullage.documents import TOKEN_BUDGET, from_env, whole_number
from ullage.doors.host import named_tools
from ullage.integrations._results import cut_message
from ullage.integrations._sessions import (
    Adapter,
    AsyncHostSessions,
    PendingCalls,
    SessionFamily,
)
from ullage.integrations.adk._content import (
    as_messages,
    has_functions,
    request_of,
    show,
)
from ullage.wires import FORMATS

__all__ = ["UllageAdkPlugin"]


class UllageAdkPlugin(Adapter, BasePlugin):
    """Keeps every agent of a runner within its window.

    Each agent of each ADK session has an ullage session. What it decided and what was reported
    is written to ADK's session state, so that any runner on the same session service goes on
    from it.

    Args:
        name: the plugin's name in ADK.
        policy: a policy, or the name of one.
        store: where what is set aside is kept: None or ``"memory"``, ``"sqlite"``, a path of an
            SQLite file, or a store. With one that outlives the process, tool results over the
            policy's limit are cut in `after_tool_callback`, and ADK keeps what is shown. Without
            one ADK's session holds the only original, so they are cut in the request alone.
        budget: makes the budget of an ADK session, shared by its agents; no limit unless given.
        recall: whether requests offer the recall tools; ``"auto"``: from the start, or, of a
            session that is first seen under way, as soon as it saves money (``joins=False``:
            never). Never where an agent has no functions of its own.
        user_tools: names of tools by which the user answers, as of `ullage.Session`. An agent's
            long-running tools are always such: by them ADK waits for a human.
        settings: of each session, such as ``limits``, ``summariser`` and ``redact``, and ``most``:
            how many conversations are held in memory; see `ullage.Sessions`.

    Attributes:
        sessions: a session for each agent of each ADK session.

    Raises:
        ConfigError: a setting is not known.
        StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        name: str = "ullage",
        *,
        policy: str | Policy = "multi_stage",
        store: Any = None,
        budget: Callable[[], Budget] = partial(Budget, tokens=0),
        recall: bool | Literal["auto", "host"] = "auto",
        user_tools: Iterable[str] = (),
        **settings: Any,
    ) -> None:
        super().__init__(name=name)
        self._user_tools = named_tools(user_tools)
        session_settings = {
            "policy": policy,
            "budget": lambda _: budget(),
            "recall": recall,
            **settings,
        }
        self.sessions = AsyncHostSessions(
            "gemini", store=store, **session_settings
        )
        self._recall = recall
        self._calls = PendingCalls()

    @classmethod
    def from_env(
        cls, name: str = "ullage", **settings: Any
    ) -> UllageAdkPlugin:
        """The plugin with the document's environment variables, read now, once.

        ``SRE_AGENT_TOKEN_BUDGET``, ``SAFE_TRIGGER_TOKENS`` and ``MAX_RESULT_CHARS``.

        Args:
            name: the plugin's name in ADK.
            settings: the other settings of the plugin.

        Raises:
            ConfigError: a variable holds no whole number; its value is not shown.
        """
        budget = partial(Budget, tokens=whole_number(TOKEN_BUDGET) or 0)
        return cls(
            name, policy=from_env("multi_stage"), budget=budget, **settings
        )

    def family(self, session: Any) -> SessionFamily:
        """What the agents of an ADK session share: its budget, and their sessions.

        Args:
            session: ADK's session.
        """
        key = json.dumps([session.app_name, session.user_id, session.id])
        return self.sessions.family(key, session.state)

    # ── ADK's callbacks ──────────────────────────────────────────────────────────────────

    async def before_model_callback(
        self, *, callback_context: Any, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Make the request a view that fits.

        Returns:
            None; where the budget is spent, and the model has been asked to sum up, a response
            that says so with the code ``BUDGET_EXCEEDED``. The run ends with it.

        Raises:
            ConfigError: see `ullage.Session.call`.
        """
        if llm_request.previous_interaction_id or not llm_request.contents:
            return None  # the history is held by the provider
        request = request_of(llm_request)
        key = _key(callback_context)
        stored = _held(callback_context)
        session = await self.sessions.opened(
            key,
            stored,
            parent=self.family(callback_context.session).name,
            recall=has_functions(request) and self._recall,
            agent=callback_context.agent_name,
            user_tools=(*self._user_tools, *_long_running(llm_request)),
        )
        # No callback of ADK's tells of a run that is cancelled.
        task = asyncio.current_task()
        if task is not None:
            task.add_done_callback(partial(self._leave, key))
        try:
            show(await self._calls.begin(key, session, request), llm_request)
        except BudgetExceeded as error:
            return _over(error)
        finally:
            self._give(session, callback_context)
        return None

    async def after_model_callback(
        self, *, callback_context: Any, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Take in the usage of a reply: tokens, cost, calibration.

        Returns:
            None: the response stays as it is.
        """
        if llm_response.partial:
            return None
        is_whole = llm_response.usage_metadata is not None
        key = _key(callback_context)
        session = await self._calls.observe(
            key, llm_response, is_whole=is_whole
        )
        if session is not None:
            self._give(session, callback_context)
        return None

    async def on_model_error_callback(
        self,
        *,
        callback_context: Any,
        llm_request: LlmRequest,
        error: Exception,
    ) -> LlmResponse | None:
        """Shorten a request that the provider called too long, and send it again.

        Returns:
            The reply to the shorter request; None if the error says anything else, or if the
            provider has refused it too often. ADK raises the error then.
        """
        key = _key(callback_context)
        seen = error
        model = callback_context.get_invocation_context().agent.canonical_model
        while self._calls.may_retry(key, seen):
            try:
                show(await self._calls.again(key), llm_request)
                return await _send(model, llm_request)
            except BudgetExceeded as over:
                return _over(over)
            except Exception as again:  # noqa: BLE001
                seen = again
        self._calls.leave(key)
        return None

    async def after_tool_callback(
        self,
        *,
        tool: Any,
        tool_args: dict[str, Any],
        tool_context: Any,
        result: Any,
    ) -> dict[str, Any] | None:
        """Cut a result that is over the policy's limit, if its original can be kept.

        Returns:
            The shorter result; None if it stays as it is.

        Raises:
            StoreError: the original cannot be kept.
        """
        session = self.sessions.get(_key(tool_context))
        if not self.sessions.lasts or session is None or not result:
            return None
        call, answer = as_messages(tool.name, result)
        try:
            words = session.window.words
            wire = FORMATS["gemini"]
            cut = await cut_message(
                session, wire, call, answer, tool.name, words
            )
        except FormatError:
            return None  # media, or an object of the tool's own: ADK knows what to do with it
        return (
            None
            if cut is None
            else dict(cut["parts"][0]["functionResponse"]["response"])
        )

    async def close(self) -> None:
        """Let go of everything. ADK's sessions hold what is needed to go on."""
        await self.sessions.close()

    def _leave(self, key: str, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self._calls.leave(key)

    def _give(self, session: AsyncSession, context: Any) -> None:
        """Write into ADK's session what is new here, or was lost with an event that never came."""
        entries = self.sessions.missing(
            session, _held(context), agent=context.agent_name
        )
        context.state.update(entries)  # which makes a delta of it


def _long_running(request: LlmRequest) -> list[str]:
    """The agent's long-running tools: ADK asks a human by them."""
    tools = request.tools_dict.items()
    return [
        name
        for name, tool in tools
        if getattr(tool, "is_long_running", False) is True
    ]


def _key(context: Any) -> str:
    """Whose conversation it is: the agent's, in its branch of an ADK session."""
    session = context.session
    branch = context.get_invocation_context().branch or ""
    return json.dumps(
        [
            session.app_name,
            session.user_id,
            session.id,
            context.agent_name,
            branch,
        ]
    )


def _held(context: Any) -> Mapping[str, Any]:
    """ADK's session state, as it is now."""
    return context.session.state  # type: ignore[no-any-return]


def _over(error: BudgetExceeded) -> LlmResponse:
    """The response that stands where the budget allows no call."""
    return LlmResponse(error_code="BUDGET_EXCEEDED", error_message=str(error))


async def _send(model: Any, request: LlmRequest) -> LlmResponse | None:
    """The last response of a model to a request."""
    responses = [
        response async for response in model.generate_content_async(request)
    ]
    return responses[-1] if responses else None
