"""The capability: what stands around each model request, and the recall tools as a toolset.

What is sent is made of the run's messages at each attempt, and not kept. The ledger is in the
metadata of the responses, so it goes wherever the history goes, and no model is shown it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic_ai import RetryModelRequest, Tool, ToolReturn
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelResponse
from pydantic_ai.toolsets import FunctionToolset

from ullage.errors import OverLimitError
from ullage.integrations._base import Entries, limits_of
from ullage.integrations.pydantic_ai._messages import HOST, content_of
from ullage.recall.tools import recall_tools
from ullage.session.aio import AsyncSession
from ullage.session.sessions import AsyncSessions
from ullage.session.view import AsyncView
from ullage.values.toolset import ToolSpec

__all__ = ["UllageCapability"]

_ATTEMPTS = 3
_KEY = "ullage"


class _Call:
    """A model request under way."""

    def __init__(self, session: AsyncSession, view: AsyncView) -> None:
        self.session, self.view = session, view
        self.refusal: Exception | None = None


class UllageCapability(AbstractCapability[Any]):
    """Keeps the model requests of an agent within the window of the model that serves them.

    One object may serve any number of agents and conversations.

    Args:
        store: see `ullage.AsyncSession`. Without one what is set aside is kept in memory; after a
            restart it is found again in the history.
        settings: of each session, such as ``policy``, ``limits`` and ``budget``; see
            `ullage.Sessions`.

    Raises:
        ConfigError: a setting is not known.
        StoreError: the store cannot be opened.
    """

    def __init__(self, *, store: Any = None, **settings: Any) -> None:
        self._settings = {"format": HOST, "recall": "host", **settings}
        self.sessions = AsyncSessions(store=store, **self._settings)
        self._entries, self._calls = Entries(), dict[str | None, _Call]()
        specs = recall_tools(settings.get("policy", "default"))
        self._tools = FunctionToolset[Any]([self._tool(spec) for spec in specs])

    def get_ordering(self) -> CapabilityOrdering:
        """See `AbstractCapability.get_ordering`: what others made of the messages is fitted."""
        return CapabilityOrdering(position="innermost")

    def get_toolset(self) -> FunctionToolset[Any]:
        """See `AbstractCapability.get_toolset`: the recall tools."""
        return self._tools

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Make an attempt's request a view that fits.

        Raises:
            FormatError, OverLimitError, StoreError, BudgetExceeded: see `ullage.Session.fit`.
        """
        asked, before = _request_of(request_context), self._calls.get(ctx.run_id)
        session = await self._of(ctx, request_context.model)
        try:
            view = await session.fit(asked)
        except OverLimitError as over:
            if before is None or before.refusal is None:
                raise
            raise before.refusal from over  # nothing shorter can be sent
        self._calls[ctx.run_id] = _Call(session, view)
        settings = request_context.model_settings
        if view.get("tool_choice") != asked.get("tool_choice"):
            settings = {**(settings or {}), "tool_choice": "none"}
        return replace(request_context, messages=view["messages"], model_settings=settings)

    async def after_model_request(
        self, ctx: Any, *, request_context: Any, response: ModelResponse
    ) -> ModelResponse:
        """Take in what a response reports, and write into its metadata how it came about."""
        call = self._calls.pop(ctx.run_id, None)
        if call is None:
            return response
        await call.view.observe(response)
        new = self._entries.missing(call.session, _held(ctx.messages))
        return replace(response, metadata={**(response.metadata or {}), _KEY: new})

    async def on_model_request_error(
        self, ctx: Any, *, request_context: Any, error: Exception
    ) -> ModelResponse:
        """Ask for another attempt where the provider called the request too long, twice at most."""
        call = self._calls.get(ctx.run_id)
        if call and request_context.attempt < _ATTEMPTS and call.view.refused(error):
            call.refusal = error
            raise RetryModelRequest from error
        raise error

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        """Give back what a request that failed, or was cancelled, had claimed of a budget."""
        try:
            return await handler(request_context)
        finally:
            call = self._calls.pop(ctx.run_id, None)
            if call is not None:
                call.session.release()

    async def _of(self, ctx: Any, model: Any) -> AsyncSession:
        """The session of an agent's conversation, which knows all that its history tells."""
        family = json.dumps([ctx.conversation_id or ctx.run_id])
        agent = getattr(ctx.agent, "name", None)
        limits = {}
        if "limits" not in self._settings:
            limits = limits_of(model.model_name, getattr(model, "context_window", None) or 0)
        session = self.sessions.of(json.dumps([family, agent]), parent=family, **limits)
        await session.take(self._entries.unknown(session, _held(ctx.messages)))
        return session

    def _tool(self, spec: ToolSpec) -> Tool[Any]:
        """A recall tool, as the agent runs it beside its own."""
        schema = dict(spec.parameters)
        run = partial(self._open, spec.name)
        return Tool.from_schema(run, spec.name, spec.description, schema, takes_ctx=True)

    async def _open(self, name: str, ctx: Any, /, **arguments: Any) -> Any:
        messages = list(ctx.messages)
        while messages and not isinstance(messages.pop(), ModelResponse):
            pass
        asked = {"model": ctx.model.model_name, "messages": messages}
        session = await self._of(ctx, ctx.model)
        answer = await session.open(name, arguments, ctx.tool_call_id or "", request=asked)
        if answer.block is None:
            return answer.text
        return ToolReturn(answer.text, content=[content_of(answer.block)])


def _held(messages: Any) -> dict[str, str]:
    """The ledger as a history holds it."""
    responses = (each for each in messages if isinstance(each, ModelResponse))
    found: dict[str, str] = {}
    for response in responses:
        kept = (response.metadata or {}).get(_KEY)
        found.update(kept if isinstance(kept, Mapping) else {})
    return found


def _request_of(context: Any) -> dict[str, Any]:
    """What of a `ModelRequestContext` is sent, in the form of `HOST`."""
    parameters, settings = context.model_request_parameters, context.model_settings or {}
    tools = [*parameters.function_tools, *parameters.output_tools]
    schema = getattr(parameters.output_object, "json_schema", None)
    asked = {
        "model": context.model.model_name,
        "system": "\n\n".join(part.content for part in parameters.instruction_parts or ()) or None,
        "messages": list(context.messages),
        "tools": [_definition(tool) for tool in tools] or None,
        "output_format": {"schema": schema} if schema else None,
        "max_tokens": settings.get("max_tokens"),
        "thinking": settings.get("anthropic_thinking"),
    }
    return {key: value for key, value in asked.items() if value is not None}


def _definition(tool: Any) -> dict[str, Any]:
    described = {"name": tool.name, "description": tool.description or ""}
    return {**described, "input_schema": tool.parameters_json_schema}
