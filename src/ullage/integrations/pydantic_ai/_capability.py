"""The capability: what stands around each model request, and the recall tools as a toolset.

What is sent is made of the run's messages at each attempt, and not kept. The ledger is in the
metadata of the responses, so it goes wherever the history goes, and no model is shown it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic_ai import RetryModelRequest, Tool, ToolReturn
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import (
    AbstractToolset,
    FunctionToolset,
    WrapperToolset,
)
from pydantic_ai.usage import RequestUsage

from ullage import AsyncSession
from ullage.integrations._offered import OfferedTool
from ullage.integrations._sessions import (
    Adapter,
    AsyncHostSessions,
    PendingCalls,
    answered_request,
    forbids,
    without_none,
)
from ullage.integrations.pydantic_ai._messages import HOST, content_of

__all__ = ["UllageCapability"]

_KEY = "ullage"


class UllageCapability(Adapter, AbstractCapability[Any]):
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
        self.sessions = AsyncHostSessions(HOST, store=store, **settings)
        self._calls = PendingCalls()
        self._tools = FunctionToolset[Any](
            [self._tool(offered) for offered in self.sessions.offered]
        )

    def get_ordering(self) -> CapabilityOrdering:
        """See `AbstractCapability.get_ordering`: what others made of the messages is fitted."""
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(
        self, toolset: AbstractToolset[Any]
    ) -> AbstractToolset[Any]:
        """See `AbstractCapability.get_wrapper_toolset`: the recall tools beside the agent's own.

        Here the names of all others are known, and Pydantic AI takes no name twice.
        """
        return _WithRecall(toolset, self.sessions, self._tools)

    async def prepare_model_request(
        self, ctx: Any, request_context: Any
    ) -> Any:
        """Make an attempt's request a view that fits.

        Raises:
            FormatError, OverLimitError, StoreError, BudgetExceeded: see `ullage.Session.fit`.
        """
        request = self._request_of(request_context)
        settings = request_context.model_settings
        session = await self._of(ctx, request_context.model)
        view = await self._calls.begin(ctx.run_id, session, request)
        if forbids(view, request):
            settings = {**(settings or {}), "tool_choice": "none"}
        return replace(
            request_context, messages=view["messages"], model_settings=settings
        )

    async def after_model_request(
        self, ctx: Any, *, request_context: Any, response: Any
    ) -> Any:
        """Take in what a response reports, and write the new entries into its metadata.

        Returns:
            The response with the metadata; itself where its call is not known here.
        """
        reported = await _without_guess(request_context, response)
        session = await self._calls.observe(ctx.run_id, reported)
        if session is None:
            return response
        entries = self.sessions.missing(session, _held(ctx.messages))
        return replace(
            response, metadata={**(response.metadata or {}), _KEY: entries}
        )

    async def on_model_request_error(
        self, ctx: Any, *, request_context: Any, error: Any
    ) -> Any:
        """Ask for another attempt where the provider called the request too long, twice at most.

        Raises:
            RetryModelRequest: a shorter request is worth an attempt.
            Exception: the error itself, where it says anything else.
        """
        if self._calls.may_retry(ctx.run_id, error):
            raise RetryModelRequest from error
        raise error

    async def wrap_model_request(
        self, ctx: Any, *, request_context: Any, handler: Any
    ) -> Any:
        """Run a request, and give back what it claimed of a budget if it failed or was cancelled.

        Returns:
            What ``handler`` returns.
        """
        try:
            return await handler(request_context)
        finally:
            self._calls.leave(ctx.run_id)

    async def _of(self, ctx: Any, model: Any) -> AsyncSession:
        """The session of an agent's conversation, which knows all that its history tells."""
        family = json.dumps([ctx.conversation_id or ctx.run_id])
        key = json.dumps([family, getattr(ctx.agent, "name", None)])
        return await self.sessions.opened(
            key,
            _held(ctx.messages),
            parent=family,
            model=model.model_name,
            window_tokens=getattr(model, "context_window", 0) or 0,
        )

    def _request_of(self, context: Any) -> dict[str, Any]:
        """What of a `ModelRequestContext` is sent, in the form of `HOST`."""
        parameters = context.model_request_parameters
        settings = context.model_settings or {}
        _, tools = self.sessions.shown(parameters.function_tools, _definition)
        tools += map(_definition, parameters.output_tools)
        told = [part.content for part in parameters.instruction_parts or ()]
        schema = getattr(parameters.output_object, "json_schema", None)
        return without_none(
            model=context.model.model_name,
            system="\n\n".join(told) or None,
            messages=list(context.messages),
            tools=tools or None,
            output_format={"schema": schema} if schema else None,
            max_tokens=settings.get("max_tokens"),
            thinking=settings.get("anthropic_thinking"),
        )

    def _tool(self, offered: OfferedTool) -> Tool[Any]:
        """A recall tool, as the agent runs it beside its own."""
        spec = offered.spec
        run, schema = partial(self._open, offered.asked), dict(spec.parameters)
        return Tool.from_schema(
            run, spec.name, spec.description, schema, takes_ctx=True
        )

    async def _open(self, name: str, ctx: Any, /, **arguments: Any) -> Any:
        session = await self._of(ctx, ctx.model)
        request = answered_request(
            session,
            ctx.messages,
            lambda message: isinstance(message, ModelResponse),
        )
        answer = await session.answer(
            name, arguments, ctx.tool_call_id or "", request=request
        )
        if answer.block is None:
            return answer.text
        return ToolReturn(answer.text, content=[content_of(answer.block)])


@dataclass
class _WithRecall(WrapperToolset[Any]):
    """An agent's toolset, and the recall tools under names that none of its tools has."""

    sessions: AsyncHostSessions
    recall: FunctionToolset[Any]

    async def get_tools(self, ctx: Any) -> dict[str, Any]:
        """See `AbstractToolset.get_tools`."""
        tools: dict[str, Any] = await self.wrapped.get_tools(ctx)
        recall_tools = await self.recall.get_tools(ctx)
        for offered in self.sessions.free(tools):
            name = offered.spec.name
            tools = {**tools, name: recall_tools[name]}
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any
    ) -> Any:
        """See `AbstractToolset.call_tool`."""
        is_ours = tool.toolset is self.recall
        toolset = self.recall if is_ours else self.wrapped
        return await toolset.call_tool(name, tool_args, ctx, tool)


async def _without_guess(context: Any, response: ModelResponse) -> Any:
    """A response without the counts that a model for tests only guesses.

    Where nothing is counted, `FunctionModel` guesses as any other of the same reply would, and so
    does `TestModel`. A guess says nothing of a provider: it may be a tenth of what was sent.
    """

    async def reply(*_: Any) -> ModelResponse:
        return replace(response, usage=RequestUsage())

    sent = context.messages
    plain = ModelRequestParameters()
    is_test = isinstance(context.model, (FunctionModel, TestModel))
    # of a stream it guesses no prompt
    for messages in (sent, sent[:0]) if is_test else ():
        with suppress(Exception):  # of messages that only a run can prepare
            guess = await FunctionModel(reply).request(messages, None, plain)
            if guess.usage.input_tokens == response.usage.input_tokens:
                return await reply()
    return response


def _held(messages: Any) -> dict[str, Any]:
    """The ledger as a history holds it."""
    entries: dict[str, Any] = {}
    for message in messages:
        if isinstance(message, ModelResponse):
            ledger = (message.metadata or {}).get(_KEY)
            if isinstance(ledger, Mapping):
                entries.update(ledger)
    return entries


def _definition(tool: Any) -> dict[str, Any]:
    schema = {"input_schema": tool.parameters_json_schema}
    return {"name": tool.name, "description": tool.description or "", **schema}
