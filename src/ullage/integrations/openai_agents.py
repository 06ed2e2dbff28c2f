"""OpenAI Agents SDK: models whose requests fit, given to a run in the place of its own.

    ullage = UllageModels(store="sqlite")
    agent = Agent(name="sre", model="gpt-5.2", tools=[*mine, *ullage.tools])
    config = RunConfig(model_provider=ullage.of("incident-7"))
    result = await Runner.run(agent, question, session=memory, run_config=config)

Needs the extra ``openai-agents``. A model sees what the run and its session made of the
history; the session keeps all of it. The SDK's items are those of the Responses API, as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import Any

from ullage import AsyncSession
from ullage.doors.host import AsyncClosing, Portable
from ullage.integrations._needs import needs
from ullage.integrations._offered import OfferedTool
from ullage.integrations._sessions import (
    Adapter,
    AsyncHostSessions,
    forbids,
    without_none,
)

with needs("openai-agents"):
    from agents import (
        FunctionTool,
        Handoff,
        Model,
        ModelProvider,
        MultiProvider,
    )

__all__ = ["ConversationModels", "UllageModels"]

_HELD_ELSEWHERE = ("previous_response_id", "conversation_id", "prompt")


class UllageModels(Adapter, AsyncClosing):
    """Models for any number of conversations, each within its window.

    Args:
        models: what makes the models that are asked. None: the SDK's own.
        store: see `ullage.AsyncSession`. One on disk lets a conversation go on after a restart.
        settings: of each session, such as ``policy``, ``limits`` and ``budget``; see
            `ullage.Sessions`.

    Attributes:
        tools: the recall tools, to be listed by every agent: each under several names, of which
            the model is shown the first that no tool of the agent's own has.
        sessions: the sessions, by the names of conversations.

    Raises:
        ConfigError: a setting is not known.
        StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        models: ModelProvider | None = None,
        *,
        store: Any = None,
        **settings: Any,
    ) -> None:
        self.sessions = AsyncHostSessions(
            "openai-responses", store=store, **settings
        )
        self.tools = [_tool(offered) for offered in self.sessions.offered]
        self._models = models or MultiProvider()

    def of(self, conversation: str) -> ConversationModels:
        """The models of a conversation, for the ``model_provider`` of a run's configuration.

        Args:
            conversation: its name: what the SDK's session keeps it under.
        """
        return ConversationModels(
            self._models, self.sessions, self.sessions.of(conversation)
        )

    async def close(self) -> None:
        """Let go of all conversations, and close the store."""
        await self.sessions.close()


class ConversationModels(Portable, ModelProvider):
    """The models of one conversation, and the session that all its agents share."""

    def __init__(
        self,
        models: ModelProvider,
        sessions: AsyncHostSessions,
        session: AsyncSession,
    ) -> None:
        self.session = session
        self._models = models
        self._sessions = sessions

    def get_model(self, model_name: str | None) -> Model:
        """See `ModelProvider.get_model`."""
        model = self._models.get_model(model_name)
        return _Fitted(model, self._sessions, self.session, model_name or "")


class _Fitted(Model):
    """A model that is asked with views that fit."""

    def __init__(
        self,
        model: Model,
        sessions: AsyncHostSessions,
        session: AsyncSession,
        name: str,
    ) -> None:
        self._model = model
        self._sessions = sessions
        self._session = session
        self._name = str(getattr(model, "model", None) or name)

    async def get_response(self, *positional: Any, **named: Any) -> Any:
        """See `Model.get_response`. What is too long is cut deeper and asked once more."""
        return await self._reply(self._model.get_response, positional, named)

    async def stream_response(
        self, *positional: Any, **named: Any
    ) -> AsyncIterator[Any]:
        """See `Model.stream_response`."""
        stream = await self._reply(
            self._model.stream_response, positional, named
        )
        async with aclosing(stream) as events:
            async for event in events:
                yield event

    async def _reply(
        self,
        method: Any,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> Any:
        """What a method of the model gives, asked with a view that fits."""
        call, tools = self._call_of(positional, named)
        if any(call.get(key) for key in _HELD_ELSEWHERE):
            reply = method(**call)
            return await reply if isawaitable(reply) else reply
        create = partial(_ask, method, call)
        request = _request_of(call, tools, self._name)
        return await self._session.call(create, **request)

    def _call_of(
        self, positional: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """A call with each recall tool under one name, and the definitions of its tools."""
        call = _named(positional, named)
        handoffs = [_definition(handoff) for handoff in call["handoffs"]]
        names = [handoff["name"] for handoff in handoffs]
        tools, definitions = self._sessions.shown(
            call["tools"], _definition, names
        )
        return {**call, "tools": tools}, [*definitions, *handoffs]

    async def close(self) -> None:
        """See `Model.close`."""
        await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        """See `Model.get_retry_advice`."""
        return self._model.get_retry_advice(request)


_NAMES = (
    "system_instructions",
    "input",
    "model_settings",
    "tools",
    "output_schema",
    "handoffs",
    "tracing",
)


def _named(
    positional: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by their names."""
    return {**dict(zip(_NAMES, positional, strict=False)), **named}


def _ask(method: Any, call: Mapping[str, Any], **view: Any) -> Any:
    """Make a call with the view in it."""
    settings = call["model_settings"]
    if forbids(view, {"tool_choice": settings.tool_choice}):
        settings = replace(settings, tool_choice=view["tool_choice"])
    return method(
        **{**call, "input": view["input"], "model_settings": settings}
    )


def _request_of(
    call: Mapping[str, Any], tools: Sequence[dict[str, Any]], model: str
) -> dict[str, Any]:
    """What of a call is sent, in the form of the Responses API."""
    items = call["input"]
    settings = call["model_settings"]
    schema = call["output_schema"]
    form = (
        None
        if schema is None or schema.is_plain_text()
        else schema.json_schema()
    )
    return without_none(
        model=model,
        instructions=call["system_instructions"],
        input=[{"role": "user", "content": items}]
        if isinstance(items, str)
        else list(items),
        tools=[*tools] or None,
        text={"format": {"type": "json_schema", "schema": form}}
        if form
        else None,
        tool_choice=settings.tool_choice,
        max_output_tokens=settings.max_tokens,
    )


def _definition(tool: Any) -> dict[str, Any]:
    if isinstance(tool, Handoff):
        name = tool.tool_name
        description = tool.tool_description
        schema = tool.input_json_schema
    elif isinstance(tool, FunctionTool):
        name = tool.name
        description = tool.description
        schema = tool.params_json_schema
    else:
        return {"type": tool.name}  # the server's own
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": schema,
    }


def _tool(offered: OfferedTool) -> FunctionTool:
    """A recall tool, as the SDK runs it beside the agent's own."""
    spec = offered.spec

    async def is_free(context: Any, agent: Any) -> bool:
        # the SDK takes the last tool of a name, which would be ours
        return spec.name not in await _names_beside(
            spec.description, context, agent
        )

    async def run(context: Any, arguments: str) -> str:
        models = getattr(context.run_config, "model_provider", None)
        if not isinstance(models, ConversationModels):
            return "There is nothing to read: this run was not given models of ullage."
        request = {
            "model": "",
            "input": [],
        }  # after a restart the store has it
        answer = await models.session.answer(
            offered.asked, arguments, context.tool_call_id, request=request
        )
        return answer.text

    return FunctionTool(
        spec.name,
        spec.description,
        dict(spec.parameters),
        run,
        strict_json_schema=False,
        is_enabled=is_free,
    )


async def _names_beside(
    description: str, context: Any, agent: Any
) -> set[str]:
    """The names of an agent's tools, but for those of this description."""
    names = {
        str(getattr(tool, "name", ""))
        for tool in agent.tools
        if getattr(tool, "description", "") != description
    }
    if getattr(agent, "mcp_servers", ()):
        names |= await _names_of_servers(context, agent)
    return names


_listings: dict[tuple[int, int], asyncio.Task[set[str]]] = {}
"""Under way: the SDK asks of all our tools at once, and one list is enough for them."""


async def _names_of_servers(context: Any, agent: Any) -> set[str]:
    """The names of the tools of an agent's MCP servers."""
    place = (id(context), id(agent))
    if place not in _listings:
        listing = asyncio.ensure_future(_listed(context, agent))
        _listings[place] = listing
        listing.add_done_callback(lambda _: _listings.pop(place, None))
    return await _listings[place]


async def _listed(context: Any, agent: Any) -> set[str]:
    """What servers listed last; where one does not keep that, what they list now."""
    listed = [server.cached_tools for server in agent.mcp_servers]
    if None in listed:
        with suppress(Exception):
            listed = [await agent.get_mcp_tools(context)]
    return {tool.name for tools in listed for tool in tools or ()}
