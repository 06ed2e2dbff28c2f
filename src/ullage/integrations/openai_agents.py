"""OpenAI Agents SDK: models whose requests fit, given to a run in the place of its own.

    ullage = UllageModels(store="sqlite")
    agent = Agent(name="sre", model="gpt-5.2", tools=[*mine, *ullage.tools])
    config = RunConfig(model_provider=ullage.of("incident-7"))
    result = await Runner.run(agent, question, session=memory, run_config=config)

Needs the extra ``openai-agents``. A model sees what the run and its session made of the
history; the session keeps all of it. The SDK's items are those of the Responses API, as they are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from ullage import AsyncSession, ToolSpec
from ullage.doors.host import AsyncClosing, Portable
from ullage.integrations._needs import needs
from ullage.integrations._sessions import (
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


class UllageModels(Portable, AsyncClosing):
    """Models for any number of conversations, each within its window.

    Args:
        models: what makes the models that are asked. None: the SDK's own.
        store: see `ullage.AsyncSession`. One on disk lets a conversation go on after a restart.
        settings: of each session, such as ``policy``, ``limits`` and ``budget``; see
            `ullage.Sessions`.

    Attributes:
        tools: the recall tools, to be listed by every agent.
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
        self.tools = [_tool(spec) for spec in self.sessions.tools]
        self._models = models or MultiProvider()

    def of(self, conversation: str) -> ConversationModels:
        """The models of a conversation, for the ``model_provider`` of a run's configuration.

        Args:
            conversation: its name: what the SDK's session keeps it under.
        """
        return ConversationModels(self._models, self.sessions.of(conversation))

    async def close(self) -> None:
        """Let go of all conversations, and close the store."""
        await self.sessions.close()


class ConversationModels(Portable, ModelProvider):
    """The models of one conversation, and the session that all its agents share."""

    def __init__(self, models: ModelProvider, session: AsyncSession) -> None:
        self.session, self._models = session, models

    def get_model(self, model_name: str | None) -> Model:
        """See `ModelProvider.get_model`."""
        return _Fitted(
            self._models.get_model(model_name), self.session, model_name or ""
        )


class _Fitted(Model):
    """A model that is asked with views that fit."""

    def __init__(self, model: Model, session: AsyncSession, name: str) -> None:
        self._model, self._session = model, session
        self._name = str(getattr(model, "model", None) or name)

    async def get_response(self, *positional: Any, **named: Any) -> Any:
        """See `Model.get_response`. What is too long is cut deeper and asked once more."""
        call = _named(positional, named)
        if any(call.get(key) for key in _HELD_ELSEWHERE):
            return await self._model.get_response(**call)
        create = partial(_ask, self._model.get_response, call)
        return await self._session.call(
            create, **_request_of(call, self._name)
        )

    async def stream_response(
        self, *positional: Any, **named: Any
    ) -> AsyncIterator[Any]:
        """See `Model.stream_response`."""
        call = _named(positional, named)
        if any(call.get(key) for key in _HELD_ELSEWHERE):
            stream = self._model.stream_response(**call)
        else:
            create = partial(_ask, self._model.stream_response, call)
            stream = await self._session.call(
                create, **_request_of(call, self._name)
            )
        async with aclosing(stream) as events:
            async for event in events:
                yield event

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


def _request_of(call: Mapping[str, Any], model: str) -> dict[str, Any]:
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
        tools=[
            _definition(tool) for tool in (*call["tools"], *call["handoffs"])
        ]
        or None,
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
        name, description, schema = (
            tool.name,
            tool.description,
            tool.params_json_schema,
        )
    else:
        return {"type": tool.name}  # the server's own
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": schema,
    }


def _tool(spec: ToolSpec) -> FunctionTool:
    """A recall tool, as the SDK runs it beside the agent's own."""

    async def run(context: Any, arguments: str) -> str:
        models = getattr(context.run_config, "model_provider", None)
        if not isinstance(models, ConversationModels):
            return "There is nothing to read: this run was not given models of ullage."
        request = {
            "model": "",
            "input": [],
        }  # after a restart the store has it
        answer = await models.session.answer(
            spec.name, arguments, context.tool_call_id, request=request
        )
        return answer.text

    schema = dict(spec.parameters)
    return FunctionTool(
        spec.name, spec.description, schema, run, strict_json_schema=False
    )
