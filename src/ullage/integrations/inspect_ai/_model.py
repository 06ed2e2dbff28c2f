"""The agent that calls the model with a view that fits, and the recall tools as Inspect's own.

The record of the sample stays whole. The ledger is in the sample's store, by agent, so that a
checkpoint keeps it with the messages.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from inspect_ai.agent import Agent, AgentState, agent
from inspect_ai.model import Model, ModelOutput, get_model, get_model_info
from inspect_ai.tool import Tool, ToolDef, ToolError, ToolParams
from inspect_ai.util import store as sample_store

from ullage import AsyncSession
from ullage.integrations._offered import OfferedTool
from ullage.integrations._sessions import (
    Adapter,
    AsyncHostSessions,
    forbids,
    without_none,
)
from ullage.integrations.inspect_ai._messages import HOST, content_of

__all__ = ["UllageModel"]

_KEY = "conversation"
_session: ContextVar[AsyncSession | None] = ContextVar(
    "ullage_session", default=None
)
"""Of the agent whose task this is: its tools run in tasks that its own one starts."""


class UllageModel(Adapter):
    """A model whose requests fit, for agents of any number of samples.

    Args:
        model: the model that is asked. None: the task's own.
        store: see `ullage.AsyncSession`. Without one what is set aside is kept in memory; after a
            restart it is found again in the sample's messages.
        settings: of each session, such as ``policy``, ``limits`` and ``budget``; see
            `ullage.Sessions`.

    Attributes:
        agent: for ``react(model=…)``, or to be called with a state and tools.
        tools: the recall tools, to be listed behind one's own: each under several names, of which
            the model is shown the first that no other tool has.
        sessions: the sessions, one for each agent of a sample.

    Raises:
        ConfigError: a setting is not known.
        StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        model: str | Model | None = None,
        *,
        store: Any = None,
        **settings: Any,
    ) -> None:
        self.sessions = AsyncHostSessions(HOST, store=store, **settings)
        self.tools: list[Tool] = [
            _tool(offered) for offered in self.sessions.offered
        ]
        self.agent = self._agent(model)

    def _agent(self, name: str | Model | None) -> Agent:
        @agent(name="ullage")  # type: ignore[untyped-decorator]  # of an environment apart
        def fitted() -> Agent:
            async def execute(
                state: AgentState, tools: Sequence[Tool] = ()
            ) -> AgentState:
                """Ask the model with a view of the messages, and append what it says."""
                state.output = await self._generate(
                    get_model(name), state.messages, tools
                )
                state.messages.append(state.output.message)
                return state

            return execute

        return fitted()

    async def _generate(
        self, model: Model, messages: list[Any], tools: Sequence[Tool]
    ) -> ModelOutput:
        place = f"ullage:{messages[0].id if messages else ''}"
        stored = sample_store().get(place) or {_KEY: uuid.uuid4().hex}
        shown, definitions = self.sessions.shown(
            [ToolDef(tool) for tool in tools], _definition
        )
        info = get_model_info(model)
        request = _request_of(model, messages, definitions)
        model_settings = {
            "model": request["model"],
            "window_tokens": (info and info.context_length) or 0,
        }
        session = await self.sessions.opened(
            stored[_KEY], stored, **model_settings
        )
        _session.set(session)

        async def create(**view: Any) -> ModelOutput:
            choice = {"tool_choice": "none"} if forbids(view, request) else {}
            output = await model.generate(view["messages"], shown, **choice)
            if output.stop_reason == "model_length":
                raise ContextOverflowError(output)
            return output

        try:
            return await session.call(create, **request)
        except ContextOverflowError as refused:
            return refused.output  # for Inspect to end on
        finally:
            sample_store().set(
                place, {**stored, **self.sessions.missing(session, stored)}
            )


class ContextOverflowError(Exception):
    """What Inspect tells by a reply: the request was too long, in the provider's words."""

    def __init__(self, output: ModelOutput) -> None:
        super().__init__(output.error or output.completion)
        self.output = output


def _request_of(
    model: Model,
    messages: list[Any],
    definitions: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What of a call is sent, in the form of `HOST`, with these definitions of its tools."""
    return without_none(
        model=str(model),
        messages=list(messages),
        tools=[*definitions] or None,
        max_tokens=model.config.max_tokens,
    )


def _definition(tool: ToolDef) -> Mapping[str, Any]:
    schema = tool.parameters.model_dump(exclude_none=True)
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": schema,
    }
    return {"type": "function", "function": function}


def _tool(offered: OfferedTool) -> Tool:
    """A recall tool, as Inspect runs it beside the agent's own."""
    spec = offered.spec

    async def run(**arguments: Any) -> Any:
        session = _session.get()
        if session is None:
            raise ToolError(
                "There is nothing to read: this agent's model is not ullage's."
            )
        answer = await session.answer(offered.asked, arguments)
        if answer.is_error:
            raise ToolError(answer.text)
        return [content_of(answer.block)] if answer.block else answer.text

    parameters = ToolParams.model_validate(spec.parameters)
    for name, about in parameters.properties.items():
        about.description = (
            about.description or name
        )  # Inspect takes none without one
    return ToolDef(
        run, spec.name, spec.description, parameters, max_output=0
    ).as_tool()
